/* Loads a model that was learned elsewhere; it replaces the refit and serves.
 *
 * Its classes and features are mapped to those of the stream first, because a refit of the stream, and
 * everything that reads it, has the stream's order. Nothing changes until the mapped model is accepted. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "engine/engine_internal.h"

#define LABEL_SHOWN 60 /* bytes of a label in an error text */

/* place[k]: index in the stream of class k of the model (`class_count` values). SVS_BAD_LABEL: the two have
 * not the same classes, each once. */
static svs_code place_classes(const struct svi_engine *e, const svs_model *m, int *place, svs_error *err) {
    const int known = svs_learner_class_count(e->learner);
    char shown[4 * SVS_NAME_MAX];
    bool *met = svi_alloc_array((size_t)known + 1, sizeof *met);
    if (!met)
        return svi_fail_memory(err, "the classes of a model");
    svs_code code = SVS_OK;
    for (int k = 0; k < m->class_count && code == SVS_OK; k++) {
        int j = 0;
        while (j < known && !svs_value_equal(svs_learner_class(e->learner, j), m->classes[k]))
            j++;
        place[k] = j;
        if (j == known || met[j])
            code = svi_fail(err, SVS_BAD_LABEL,
                            "the model has the class %.*s, the stream (%d classes) has not seen it",
                            LABEL_SHOWN, svs_value_text(m->classes[k], shown, sizeof shown), known);
        else
            met[j] = true;
    }
    for (int j = 0; j < known && code == SVS_OK; j++)
        if (!met[j])
            code = svi_fail(
                err, SVS_BAD_LABEL, "the stream has the class %.*s, the model (%d classes) does not know it",
                LABEL_SHOWN, svs_value_text(svs_learner_class(e->learner, j), shown, sizeof shown),
                m->class_count);
    svi_free(met);
    return code;
}

/* column[j]: column in the stream of feature j of the model (m->d values). */
static svs_code place_columns(const struct svi_engine *e, const svs_model *m, int *column, svs_error *err) {
    const struct svi_shape *shape = &e->schema.shape;
    char shown[80];
    const bool named = m->features && shape->names_kept >= shape->d;
    if (!named && m->d != shape->d)
        return svi_fail(err, SVS_WRONG_DIMENSION, "the model has %d features, the stream has %d", m->d,
                        shape->d);
    for (int j = 0; j < m->d; j++) {
        column[j] = named ? svs_features_find(shape->names, m->features[j], strlen(m->features[j])) : j;
        if (column[j] < 0 || column[j] >= shape->d)
            return svi_fail(
                err, SVS_WRONG_COLUMNS, "the model has the feature %s, the stream (%d features) does not",
                svi_escape(shown, sizeof shown, m->features[j], strlen(m->features[j])), shape->d);
    }
    return SVS_OK;
}

/* Writes the weights (rows x d) and constants in the order of the stream's classes and columns. A single row
 * scores class 1 against class 0, so exchanged classes change its sign. */
static void place_weights(const svs_model *m, const int *place, const int *column, double *W, double *b,
                          int d) {
    const double sign = m->rows == 1 && place[0] == 1 ? -1 : 1;
    for (int k = 0; k < m->rows; k++) {
        const int row = m->rows == 1 ? 0 : place[k];
        b[row] = sign * m->b[k];
        for (int j = 0; j < m->d; j++)
            W[(size_t)row * (size_t)d + (size_t)column[j]] =
                sign * m->W[(size_t)k * (size_t)m->d + (size_t)j];
    }
}

svs_code svi_engine_check_foreign(const struct svi_engine *e, const svs_model *m, svs_error *err) {
    if (m->task != (svs_task)e->s->task)
        return svi_fail(err, SVS_UNAVAILABLE, "the model is one of task %s, the stream one of task %s",
                        m->task == SVS_REGRESS ? "regress" : "classify",
                        e->s->task == SVS_REGRESS ? "regress" : "classify");
    for (int k = 0; k < m->rows; k++)
        for (int j = 0; j <= m->d; j++) {
            const double w = j < m->d ? m->W[(size_t)k * (size_t)m->d + (size_t)j] : m->b[k];
            if (!(fabs(w) <= SVI_VALUE_MAX))
                return svi_fail(
                    err, SVS_TOO_LARGE,
                    "a weight of the model is %g; values beyond 1e100 are too large to compute with", w);
        }
    return SVS_OK;
}

static svs_code take_check(const struct svi_engine *e, const svs_model *m, svs_error *err) {
    SVI_TRY(svi_engine_check_foreign(e, m, err));
    if (e->schema.shape.d < 1 || (e->s->task == SVS_CLASSIFY && svs_learner_class_count(e->learner) < 2))
        return svi_fail(err, SVS_UNAVAILABLE,
                        "the stream has not seen two classes yet: load a model after samples of both");
    return SVS_OK;
}

/* Maps the model and gives it to the refit policy, which copies it. */
static svs_code take_over(struct svi_engine *e, const svs_model *m, svs_error *err) {
    const int d = e->schema.shape.d;
    int *map = svi_alloc_array((size_t)(m->class_count + m->d) + 1, sizeof *map);
    double *W = svi_alloc_array((size_t)m->rows * ((size_t)d + 1), sizeof *W);
    svs_code code = map && W ? take_check(e, m, err) : svi_fail_memory(err, "a model");
    if (code == SVS_OK)
        code = place_classes(e, m, map, err);
    if (code == SVS_OK)
        code = place_columns(e, m, map + m->class_count, err);
    if (code == SVS_OK) {
        svs_model fit = *m;
        double *b = W + (size_t)m->rows * (size_t)d;
        place_weights(m, map, map + m->class_count, W, b, d);
        fit.d = d;
        fit.W = W;
        fit.b = b;
        code = svi_refit_policy_load(e->refit, e->learner, &fit, e->kept[SVI_KEPT_SEEN], err);
    }
    svi_free(map);
    svi_free(W);
    return code;
}

svs_code svi_engine_take_model(svi_engine *e, const void *bytes, size_t size, struct svi_settings *s,
                               double now, svs_error *err) {
    char reason[SVS_ERROR_TEXT], method[40];
    svs_model *m = svs_model_decode(bytes, size, err);
    if (!m)
        return err->code;
    /* The policy decides by `serve` whether a new model serves at once, so it is set before and restored
     * after a failure. */
    const int before = e->refit->serve;
    e->refit->serve = SVI_SERVE_REFIT;
    svs_code code = take_over(e, m, err);
    if (code != SVS_OK)
        e->refit->serve = before;
    snprintf(reason, sizeof reason,
             "a model that was loaded (version %" PRIu64 ", %s) serves after sample %" PRId64, m->version,
             svi_escape(method, sizeof method, m->method, strlen(m->method)), e->kept[SVI_KEPT_SEEN]);
    svs_model_free(&m);
    if (code != SVS_OK)
        return code;
    e->s->serve = s->serve = SVI_SERVE_REFIT;
    svi_quality_stage_forget_refit(&e->quality_stage); /* calibrated for scores of another scale */
    svi_publish_error(e, SVS_STATE_LOADED, reason, NULL, 0, now);
    svi_engine_publish_model(e, true);
    return SVS_OK;
}
