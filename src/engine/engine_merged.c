/* A merged model, made by `svmstream merge` from the sums of many processes, takes the place of the refit.
 *
 * It is the exact model of the union of their windows, so what one process has not seen is known here
 * without loss. A row of a part is 0 in features that the part does not have, so a feature that is not known
 * here has no effect on any row so far and is left out. A class without samples has the constant score -1,
 * exactly: that is the row of a class that the model lacks. A class that is not known here is added to the
 * learner, as one of which all samples have left the window.
 *
 * svi_engine_check_merged decides and changes nothing, so that a refused model is never written to a journal.
 * svi_engine_take_merged decides again and takes; a recovery calls it for the record. Classes are placed
 * before columns, and the learner gets its new classes last, when all that can be refused has been checked.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "engine/engine_internal.h"
#include "learner/learner_held.h"
#include "learner/ring.h"
#include "wire/fields.h"

#define NAME_SHOWN 80 /* bytes of a name in an error text, with the NUL */

/* A model and where its classes and features are in the stream. */
struct merged {
    svs_model *m;
    struct svi_merged_from from;
    int *class;  /* class_count values: index in the stream; those from `known` on are new */
    int *column; /* d values; -1 = not known here */
    int known;   /* classes of the stream */
    int classes; /* of the stream once the new ones are added */
};

struct merged_head {
    struct svi_merged_from from;
    char method[SVS_NAME_MAX + 1];
    const uint8_t *parts;
};

svs_code svi_merged_read(struct svi_merged_from *from, const void *bytes, size_t size, svs_error *err) {
    static const struct svi_field fields[] = {
        {.name = "epoch", .type = SVI_FIELD_UINT, .to = offsetof(struct merged_head, from.epoch)},
        {.name = "version", .type = SVI_FIELD_UINT, .to = offsetof(struct merged_head, from.version)},
        SVI_FIELD_STRING(struct merged_head, method),
        {.name = "parts",
         .type = SVI_FIELD_ANY,
         .to = offsetof(struct merged_head, parts),
         .optional = true}};
    struct merged_head head = {0};
    char shown[NAME_SHOWN];
    SVI_TRY(svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, err));
    SVI_TRY(svi_fields_read("model", SVI_FIELDS(fields), bytes, (const uint8_t *)bytes + size, &head, err));
    *from = head.from;
    if (head.parts && strcmp(head.method, "merged") == 0)
        return SVS_OK;
    return svi_fail(err, SVS_UNAVAILABLE,
                    "it is a model of the method %s%s: merge.from must be the `out` of svmstream merge",
                    svi_escape(shown, sizeof shown, head.method, strlen(head.method)),
                    head.parts ? "" : " and not of a merger");
}

static bool merged_is_newer(const struct svi_merged_from *a, const struct svi_merged_from *b) {
    return a->epoch > b->epoch || (a->epoch == b->epoch && a->version > b->version);
}

bool svi_engine_wants_merged(const svi_engine *e, const struct svi_merged_from *from) {
    return merged_is_newer(from, &e->refit->from);
}

uint64_t svi_engine_merged_epoch(const svi_engine *e) {
    return e->refit->from.epoch;
}

/* ---- classes */

static int merged_find_class(const struct svi_engine *e, const struct merged *q, int k) {
    for (int j = 0; j < q->known; j++)
        if (svs_value_equal(svs_learner_class(e->learner, j), q->m->classes[k]))
            return j;
    return -1;
}

/* Places class k. A name that the stream could not have, or one that occurs twice, is refused: it would be
 * added like any other. */
static svs_code merged_place_class(const struct svi_engine *e, struct merged *q, int k, svs_error *err) {
    const svs_value y = q->m->classes[k];
    char shown[4 * SVS_NAME_MAX + 1];
    if (y.kind == SVS_STR && (y.length < 1 || y.length > SVS_NAME_MAX))
        return svi_fail(err, SVS_BAD_LABEL, "a class of the model has a name of %u bytes, not 1 to %d",
                        (unsigned)y.length, SVS_NAME_MAX);
    for (int i = 0; i < k; i++)
        if (svs_value_equal(q->m->classes[i], y))
            return svi_fail(err, SVS_BAD_LABEL, "the model has the class %.60s twice",
                            svs_value_text(y, shown, sizeof shown));
    q->class[k] = merged_find_class(e, q, k);
    if (q->class[k] < 0)
        q->class[k] = q->classes++;
    if (q->classes <= e->s->max_classes)
        return SVS_OK;
    return svi_fail(err, SVS_LIMIT,
                    "class %.60s of the model would be class number %d, but max.classes is %lld",
                    svs_value_text(y, shown, sizeof shown), q->classes, (long long)e->s->max_classes);
}

/* ---- columns */

/* The feature is not known here. Has the stream a column of the same name and another kind? Then the two do
 * not mean the same, and leaving the feature out would be wrong. */
static svs_code merged_check_kind(const struct svi_engine *e, const char *name, svs_error *err) {
    const struct svi_schema *s = &e->schema;
    char shown[NAME_SHOWN];
    const size_t length = strlen(name), before = strcspn(name, "=");
    const int whole = s->columns ? svi_schema_find(s, name, length, 0) : -1;
    const int prefix = before < length && s->shape.names ? svi_schema_find(s, name, before, 0) : -1;
    if (whole >= 0 && svi_schema_kind(s, whole) == SVI_COLUMN_CATEGORY)
        return svi_fail(err, SVS_WRONG_COLUMNS, "%s is a number in the model and a category in the stream",
                        svi_escape(shown, sizeof shown, name, length));
    if (prefix >= 0 && svi_schema_kind(s, prefix) == SVI_COLUMN_NUMBER)
        return svi_fail(err, SVS_WRONG_COLUMNS, "%s is a category in the model and a number in the stream",
                        svi_escape(shown, sizeof shown, name, before));
    return SVS_OK;
}

/* By name. Rows that are arrays have a value for each column, so that a further one was not measured; in maps
 * an absent feature is 0. */
static svs_code merged_place_names(const struct svi_engine *e, struct merged *q, bool maps, svs_error *err) {
    const struct svi_shape *shape = &e->schema.shape;
    char shown[NAME_SHOWN];
    bool *met = svi_alloc_array((size_t)shape->d + 1, sizeof *met);
    svs_code code = met ? SVS_OK : svi_fail_memory(err, "the columns of a model");
    int found = 0;
    for (int j = 0; j < q->m->d && code == SVS_OK; j++) {
        const char *name = q->m->features[j];
        int at = svs_features_find(shape->names, name, strlen(name));
        q->column[j] = at = at < shape->d ? at : -1;
        svi_escape(shown, sizeof shown, name, strlen(name));
        if (at >= 0 && met[at])
            code = svi_fail(err, SVS_WRONG_COLUMNS, "the model has the feature %s twice", shown);
        else if (at < 0 && !maps)
            code =
                svi_fail(err, SVS_WRONG_COLUMNS,
                         "the model has the feature %s, the stream (%d features) does not", shown, shape->d);
        else if (at < 0)
            code = merged_check_kind(e, name, err);
        else
            met[at] = true;
        found += at >= 0;
    }
    if (code == SVS_OK && found == 0)
        code = svi_fail(err, SVS_WRONG_COLUMNS,
                        "the model (%d features) and the stream (%d) have no feature in "
                        "common",
                        q->m->d, shape->d);
    svi_free(met);
    return code;
}

static svs_code merged_place_columns(const struct svi_engine *e, struct merged *q, svs_error *err) {
    const struct svi_shape *shape = &e->schema.shape;
    const bool maps = shape->kind == SVI_SPARSE || shape->kind == SVI_NAMED;
    if (q->m->features && shape->names_kept >= shape->d)
        return merged_place_names(e, q, maps, err);
    if (q->m->d != shape->d && shape->kind != SVI_SPARSE)
        return svi_fail(err, SVS_WRONG_DIMENSION, "the model has %d features, the stream has %d", q->m->d,
                        shape->d);
    for (int j = 0; j < q->m->d; j++)
        q->column[j] = j < shape->d ? j : -1;
    return SVS_OK;
}

/* ---- the decision */

static void merged_clear(struct merged *q) {
    svs_model_free(&q->m);
    svi_free(q->class);
    *q = (struct merged){0};
}

static svs_code merged_check_model(const struct svi_engine *e, const svs_model *m, svs_error *err) {
    SVI_TRY(svi_engine_check_foreign(e, m, err));
    return m->class_count <= e->s->max_classes
               ? SVS_OK
               : svi_fail(err, SVS_LIMIT, "the model has %d classes, but max.classes is %lld", m->class_count,
                          (long long)e->s->max_classes);
}

static svs_code merged_place(const struct svi_engine *e, struct merged *q, svs_error *err) {
    SVI_TRY(merged_check_model(e, q->m, err));
    q->class = svi_alloc_array((size_t)(q->m->class_count + q->m->d) + 1, sizeof *q->class);
    if (!q->class)
        return svi_fail_memory(err, "a merged model");
    q->column = q->class + q->m->class_count;
    q->known = q->classes = svs_learner_class_count(e->learner);
    for (int k = 0; k < q->m->class_count; k++)
        SVI_TRY(merged_place_class(e, q, k, err));
    return merged_place_columns(e, q, err);
}

/* The caller clears *q in any case. */
static enum svi_merged merged_decide(const struct svi_engine *e, struct merged *q, const void *bytes,
                                     size_t size, svs_error *err) {
    if (!e->refit->merges) {
        svi_fail(err, SVS_UNAVAILABLE, "the stream takes no merged models: merge.from is not set");
        return SVI_MERGED_REFUSED;
    }
    if (svi_merged_read(&q->from, bytes, size, err) != SVS_OK)
        return SVI_MERGED_REFUSED;
    if (!svi_engine_wants_merged(e, &q->from))
        return SVI_MERGED_OLD;
    if (!(q->m = svs_model_decode(bytes, size, err)))
        return SVI_MERGED_REFUSED;
    /* Before the first row it is not known which of its features the stream has; and a merger that has met
     * one class has nothing to say yet. */
    if (e->schema.shape.d < 1 || (q->m->task == SVS_CLASSIFY && q->m->class_count < 2))
        return SVI_MERGED_EARLY;
    return merged_place(e, q, err) == SVS_OK ? SVI_MERGED_FITS : SVI_MERGED_REFUSED;
}

enum svi_merged svi_engine_check_merged(const svi_engine *e, const void *bytes, size_t size, svs_error *err) {
    struct merged q = {0};
    const enum svi_merged decision = merged_decide(e, &q, bytes, size, err);
    merged_clear(&q);
    return decision;
}

/* ---- taking it */

/* Writes the weights (rows x d) and constants in the order of the stream's classes and columns. The single
 * row of a model of two classes scores its second class; a third class of the stream gives each of both a row
 * of its own, of opposite signs. */
static void merged_weights(const struct merged *q, int d, double *W, double *b) {
    const svs_model *m = q->m;
    const bool pair = q->classes == 2, values = m->task == SVS_REGRESS;
    for (int row = 0; row < svi_rows_of(q->classes); row++)
        b[row] = -1; /* of a class that the model lacks */
    for (int k = 0; k < (values ? 1 : m->class_count); k++) {
        if (pair && q->class[k] == 0) /* the other class has the row */
            continue;
        const int row = pair || values ? 0 : q->class[k], from = m->rows == 1 ? 0 : k;
        const double sign = m->rows == 1 && k == 0 && !values ? -1 : 1;
        b[row] = sign * m->b[from];
        for (int j = 0; j < m->d; j++)
            if (q->column[j] >= 0)
                W[(size_t)row * (size_t)d + (size_t)q->column[j]] =
                    sign * m->W[(size_t)from * (size_t)m->d + (size_t)j];
    }
}

static svs_code merged_add_classes(struct svi_engine *e, const struct merged *q, svs_error *err) {
    if (q->classes >= 3)
        SVI_TRY(svi_quality_stage_reserve(&e->quality_stage, q->classes, err));
    for (int k = 0; k < q->m->class_count; k++)
        if (q->class[k] >= q->known)
            SVI_TRY(svi_learner_meet_class(e->learner, q->m->classes[k], err));
    return SVS_OK;
}

static svs_code merged_take(struct svi_engine *e, const struct merged *q, svs_error *err) {
    const int d = e->schema.shape.d, rows = svi_rows_of(q->classes);
    double *W = svi_alloc_array((size_t)rows * ((size_t)d + 1), sizeof *W);
    svs_code code = W ? merged_add_classes(e, q, err) : svi_fail_memory(err, "a merged model");
    if (code == SVS_OK) {
        svs_model fit = *q->m;
        double *b = W + (size_t)rows * (size_t)d;
        merged_weights(q, d, W, b);
        fit.d = d;
        fit.rows = rows;
        fit.class_count = q->classes;
        fit.W = W;
        fit.b = b;
        code = svi_refit_policy_merge(e->refit, e->learner, &fit, &q->from, e->kept[SVI_KEPT_SEEN], err);
    }
    svi_free(W);
    return code;
}

svs_code svi_engine_take_merged(svi_engine *e, const void *bytes, size_t size, svs_error *err) {
    struct merged q = {0};
    svs_error local = {0};
    err = err ? err : &local;
    svi_engine_settle(e);
    const enum svi_merged decision = merged_decide(e, &q, bytes, size, err);
    svs_code code = SVS_OK;
    if (decision == SVI_MERGED_FITS)
        code = merged_take(e, &q, err);
    else if (decision == SVI_MERGED_REFUSED)
        code = err->code;
    const int known = q.known;
    merged_clear(&q);
    if (decision != SVI_MERGED_FITS || code != SVS_OK)
        return code;
    svi_engine_report_classes(e, known, e->event_ts);
    svi_publish_refit(e);
    return SVS_OK;
}
