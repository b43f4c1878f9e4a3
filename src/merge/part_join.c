/* What a union of parts is made of: features, columns and classes, joined by name.
 *
 * Parts enter one after another, in the order of their names. Each gets its places: where its features and
 * classes are in the union. The union's names, schema, means and exemptions are read when all are in.
 *
 * The difficulty is that a part may contradict those before it. So it is read twice. First it is compared:
 * kinds of columns, owners of features, calendar, limits; nothing is changed. Only then it is added, which
 * fails for lack of memory alone. So a refused part leaves no trace, and the union follows from the parts
 * that are in it and their order.
 *
 * A part without a schema has a column of numbers for each of its named features. The schema of the union is
 * written by the same code as that of any model (wire/schema_map.h).
 *
 * Read join_incoming first: it has all the steps in order. */
#include "merge/part_join.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/owned_model.h"
#include "wire/schema_map.h"

#define UNOWNED      (-2)
#define COLUMNS_MAX  1000000 /* as of a registry of names */
#define COMPARED_MAX 2048    /* features of two parts whose names are compared one by one */

void svi_join_clear(struct svi_join *j) {
    void *const all[] = {j->column, j->owner, j->exempt, j->mean, j->rows, j->label};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svs_features_free(&j->names);
    svs_features_free(&j->columns);
    *j = (struct svi_join){0};
}

/* The arrays get their final sizes here, by the limits of the union. The comparison refuses a part that would
 * exceed them, so adding never grows or overruns them. Columns alone grow, in add_columns. */
svs_code svi_join_begin(struct svi_join *j, bool named, int max_features, int max_classes, svs_error *err) {
    const size_t n = (size_t)max_features;
    *j = (struct svi_join){
        .named = named, .max_features = max_features, .max_classes = max_classes, .calendar = -1};
    if (named && (!(j->names = svs_features_new(max_features, err)) ||
                  !(j->columns = svs_features_new(COLUMNS_MAX, err))))
        return err->code;
    j->owner = svi_alloc_array(n, sizeof *j->owner);
    j->exempt = svi_alloc_array(n, sizeof *j->exempt);
    j->mean = svi_alloc_array(n, sizeof *j->mean);
    j->rows = svi_alloc_array(n, sizeof *j->rows);
    j->label = svi_alloc_array((size_t)max_classes, sizeof *j->label);
    if (!j->owner || !j->exempt || !j->mean || !j->rows || !j->label)
        return svi_fail_memory(err, "the features of all parts");
    /* Zero would be the first column. */
    for (int i = 0; i < max_features; i++)
        j->owner[i] = UNOWNED;
    return SVS_OK;
}

/* ---- comparing */

/* The columns of a part while it is added. */
struct incoming {
    struct svi_part *part;
    struct svi_model_schema schema; /* `mixed`: it has one */
    bool mixed;
};

static const char *kind_name(enum svi_column_kind kind) {
    return kind == SVI_COLUMN_CATEGORY ? "a category" : "numbers";
}

/* Open and ignored columns contradict no kind: they can still be joined with either. */
static bool kind_decided(enum svi_column_kind kind) {
    return kind == SVI_COLUMN_NUMBER || kind == SVI_COLUMN_CATEGORY;
}

/* These three hide whether a part has a schema: without one, column c is feature c, and it is a number. */
static int incoming_columns(const struct incoming *in) {
    return in->mixed                   ? svi_schema_columns(&in->schema.schema)
           : in->part->record.features ? in->part->record.sums.d
                                       : 0;
}

static const char *incoming_column(const struct incoming *in, int c, enum svi_column_kind *kind) {
    *kind = in->mixed ? svi_schema_kind(&in->schema.schema, c) : SVI_COLUMN_NUMBER;
    return in->mixed ? svi_schema_column_name(&in->schema.schema, c) : in->part->record.features[c];
}

/* The column of the part that has this feature; -1: the calendar, -2: none. */
static int incoming_owner(const struct incoming *in, int feature) {
    return in->mixed ? in->schema.schema.owner[feature] : feature;
}

/* The same column must have one kind everywhere: a category has a feature for each value, numbers have one
 * for all. */
static svs_code compare_columns(const struct svi_join *j, const struct incoming *in, svs_error *err) {
    enum svi_column_kind kind;
    char name[SVS_NAME_MAX * 4 + 1];
    int added = 0;
    for (int c = 0, count = incoming_columns(in); c < count; c++) {
        const char *text = incoming_column(in, c, &kind);
        const int have = svs_features_find(j->columns, text, strlen(text));
        added += have < 0;
        if (have >= 0 && kind_decided(kind) && kind_decided(j->column[have].kind) &&
            kind != j->column[have].kind)
            return svi_fail(
                err, SVS_WRONG_COLUMNS,
                "column %s is %s here, but %s in the parts before it: make it the same everywhere "
                "(settings categories, numbers)",
                svi_escape(name, sizeof name, text, strlen(text)), kind_name(kind),
                kind_name(j->column[have].kind));
    }
    /* The registry has this limit too. Here it refuses one part; while adding, it would spoil the union. */
    if (svs_features_count(j->columns) + added > COLUMNS_MAX)
        return svi_fail(err, SVS_LIMIT, "all parts together have more than %d columns", COLUMNS_MAX);
    return SVS_OK;
}

/* The answer is a constant or lies in `out`: the caller keeps `out` until the message is made. */
static const char *owner_text(char *out, size_t size, int owner, const char *column, const char *feature) {
    char name[SVS_NAME_MAX * 4 + 1];
    if (owner < 0)
        return "of the calendar";
    if (strcmp(column, feature) == 0)
        return "a column of its own";
    snprintf(out, size, "a value of the column %.50s", svi_escape(name, sizeof name, column, strlen(column)));
    return out;
}

/* A feature that both have must belong to the same column: `x=1` may be a value of x, or a column itself. */
static svs_code compare_owners(const struct svi_join *j, const struct incoming *in, int feature, int have,
                               svs_error *err) {
    const int owner = incoming_owner(in, feature), old = j->owner[have];
    const char *text = in->part->record.features[feature];
    enum svi_column_kind kind;
    char name[SVS_NAME_MAX * 4 + 1], here[96], there[96];
    const char *column = owner >= 0 ? incoming_column(in, owner, &kind) : NULL,
               *before = old >= 0 ? svs_features_name(j->columns, old) : NULL;
    /* Names are compared, not numbers: each part numbers its columns in its own order. A feature without a
     * column contradicts nothing. */
    if (owner == UNOWNED || old == UNOWNED || (owner < 0 && old < 0) ||
        (column && before && strcmp(column, before) == 0))
        return SVS_OK;
    return svi_fail(err, SVS_WRONG_COLUMNS, "the feature %.50s is %s here, but %s in the parts before it",
                    svi_escape(name, sizeof name, text, strlen(text)),
                    owner_text(here, sizeof here, owner, column, text),
                    owner_text(there, sizeof there, old, before, text));
}

static svs_code compare_features(const struct svi_join *j, const struct incoming *in, svs_error *err) {
    const struct svi_sums *r = &in->part->record;
    int d = j->d;
    for (int i = 0; j->named && i < r->sums.d; i++) {
        const int have = svs_features_find(j->names, r->features[i], strlen(r->features[i]));
        d += have < 0;
        if (have >= 0)
            SVI_TRY(compare_owners(j, in, i, have, err));
    }
    /* Features without names are the same where their numbers are, so the widest part decides. */
    if (!j->named && r->sums.d > d)
        d = r->sums.d;
    /* The owner, mean and other arrays have this size (svi_join_begin). */
    if (d > j->max_features)
        return svi_fail(err, SVS_LIMIT,
                        "with this part the merged model would have %d features: max.features is %d", d,
                        j->max_features);
    return SVS_OK;
}

/* The calendar makes features of a row's time, so it must be the same one, from the first part on. Hashed
 * words, likewise: their features are numbered. */
static svs_code compare_calendar(const struct svi_join *j, const struct incoming *in, svs_error *err) {
    const struct svi_schema *s = &in->schema.schema;
    /* A part without a schema has no calendar. The first part is compared with nothing: its calendar is that
     * of the union. */
    const bool has = in->mixed && s->calendar >= 0;
    if (!j->begun)
        return SVS_OK;
    if (has != (j->calendar >= 0) ||
        (has && (s->calendar_day != j->day || s->calendar_week != j->week || strcmp(s->zone, j->zone) != 0)))
        return svi_fail(
            err, SVS_WRONG_COLUMNS,
            "its calendar is not that of the parts before it: set calendar and zone alike everywhere");
    if (in->mixed && j->mixed && s->o.hash != j->hash)
        return svi_fail(err, SVS_WRONG_COLUMNS,
                        "its words are hashed to %d bits, those of the parts before it to %d: set hash alike "
                        "everywhere",
                        s->o.hash, j->hash);
    return SVS_OK;
}

/* The guess k saves a search: it holds where a part has its classes in the order of the union. */
static svs_code compare_classes(const struct svi_join *j, const struct svi_sums *r, svs_error *err) {
    int added = 0;
    for (int k = 0; k < r->sums.classes; k++)
        added += svi_class_search(j->label, j->classes, r->classes[k], k) < 0;
    if (j->classes + added > j->max_classes)
        return svi_fail(err, SVS_LIMIT,
                        "with this part the merged model would have %d classes: max.classes is %d",
                        j->classes + added, j->max_classes);
    return SVS_OK;
}

/* ---- adding */

static svs_code add_columns(struct svi_join *j, const struct incoming *in, svs_error *err) {
    const int old = j->columns ? svs_features_count(j->columns) : 0, count = incoming_columns(in);
    enum svi_column_kind kind;
    /* Capacity for all of them to be new. */
    struct svi_join_column *more =
        svi_realloc(j->column, (size_t)old * sizeof *more, (size_t)(old + count + 1) * sizeof *more);
    if (!more)
        return svi_fail_memory(err, "the columns of all parts");
    j->column = more;
    for (int c = 0; c < count; c++) {
        const char *text = incoming_column(in, c, &kind);
        const int at = svs_features_add(j->columns, text, strlen(text), err);
        if (at < 0)
            return err->code;
        /* A kind that is decided replaces one that is not, whichever part is first. An ignored column
         * replaces an open one: the kinds are in that order. */
        if (kind > j->column[at].kind && !kind_decided(j->column[at].kind))
            j->column[at].kind = kind;
        else if (kind_decided(kind))
            j->column[at].kind = kind;
    }
    return SVS_OK;
}

/* The mean of the union weighs each part by its samples. Parts that have no mean of the feature are left out
 * of the divisor, too: NAN means that it is not known. */
static void add_mean(struct svi_join *j, const struct incoming *in, int feature, int at) {
    const double mean = in->mixed ? in->schema.mean[feature] : NAN, n = (double)in->part->record.sums.n;
    if (isnan(mean))
        return;
    j->mean[at] += n * mean;
    j->rows[at] += n;
}

/* The column of the union that is column `owner` of the part; the calendar's stays -1. */
static int32_t union_column(const struct svi_join *j, const struct incoming *in, int owner) {
    enum svi_column_kind kind;
    const char *name = owner < 0 ? NULL : incoming_column(in, owner, &kind);
    return name ? svs_features_find(j->columns, name, strlen(name)) : owner;
}

static svs_code add_features(struct svi_join *j, const struct incoming *in, svs_error *err) {
    struct svi_part *p = in->part;
    const struct svi_sums *r = &p->record;
    for (int i = 0; i < r->sums.d; i++) {
        /* The names of one record differ from each other, so the first part's features keep their numbers.
         * The calendar relies on that (add_settings). */
        const int at = j->named ? svs_features_add(j->names, r->features[i], strlen(r->features[i]), err) : i;
        if (at < 0)
            return err->code;
        const int owner = j->named ? incoming_owner(in, i) : UNOWNED;
        p->feature[i] = at;
        if (at >= j->d)
            j->d = at + 1;
        /* A later part without an owner must not erase the one that is known. */
        if (owner != UNOWNED)
            j->owner[at] = union_column(j, in, owner);
        add_mean(j, in, i, at);
    }
    /* One part that leaves a feature raw is enough: the union has one flag for each feature. `unscaled` has
     * the part's own numbers, so the places must be set before. */
    for (int i = 0; i < r->unscaled_count; i++)
        j->exempt[p->feature[r->unscaled[i]]] = true;
    return SVS_OK;
}

/* Two firsts: `missing` and `hash` are of the first part that has a schema, the calendar is of the first part
 * of all. Without one there, later parts with a calendar are refused. */
static void add_settings(struct svi_join *j, const struct incoming *in) {
    const struct svi_schema *s = &in->schema.schema;
    if (in->mixed && !j->mixed) {
        j->mixed = true;
        j->missing = (int)s->o.missing;
        j->hash = s->o.hash;
    }
    if (!j->begun && in->mixed && s->calendar >= 0) {
        j->day = s->calendar_day;
        j->week = s->calendar_week;
        snprintf(j->zone, sizeof j->zone, "%s", s->zone);
        /* A schema keeps only the first feature of its calendar, and takes the others to follow it. They do,
         * in the first part of a union. */
        j->calendar = in->part->feature[s->calendar];
    }
    j->begun = true;
}

/* Labels are borrowed: their text belongs to the record, which stays while the union is in use. */
static void add_classes(struct svi_join *j, struct svi_part *p) {
    for (int k = 0; k < p->record.sums.classes; k++) {
        const svs_value label = p->record.classes[k];
        int at = svi_class_search(j->label, j->classes, label, k);
        if (at < 0)
            j->label[at = j->classes++] = label;
        p->label[k] = at;
    }
}

/* Places are made for each solution, and small: of the size of the record's names. */
static svs_code add_places(struct svi_part *p, svs_error *err) {
    svi_free(p->feature);
    svi_free(p->label);
    p->feature = svi_alloc_plain_array((size_t)p->record.sums.d + 1, sizeof *p->feature);
    p->label = svi_alloc_plain_array((size_t)p->record.sums.classes + 1, sizeof *p->label);
    return p->feature && p->label ? SVS_OK : svi_fail_memory(err, "the places of a part's features");
}

/* All comparisons are before add_places, which is the first step that changes anything. Columns are added
 * before features, whose owners are found among them. Settings need the places of features. */
static svs_code join_incoming(struct svi_join *j, const struct incoming *in, svs_error *err) {
    struct svi_part *p = in->part;
    if (j->named)
        SVI_TRY(compare_columns(j, in, err));
    SVI_TRY(compare_features(j, in, err));
    SVI_TRY(compare_calendar(j, in, err));
    SVI_TRY(compare_classes(j, &p->record, err));
    SVI_TRY(add_places(p, err));
    if (j->named)
        SVI_TRY(add_columns(j, in, err));
    SVI_TRY(add_features(j, in, err));
    add_settings(j, in);
    add_classes(j, p);
    return SVS_OK;
}

/* A schema without names of features cannot be joined by name: such a part counts as one without a schema.
 * The decoded schema lives for this call only; what the union needs of it is copied. */
svs_code svi_join_add(struct svi_join *j, struct svi_part *p, svs_error *err) {
    const struct svi_sums *r = &p->record;
    struct incoming in = {.part = p, .mixed = r->schema && r->features};
    svs_code code = SVS_OK;
    if (in.mixed)
        code = svi_schema_decode(&in.schema, r->features, r->sums.d, r->schema,
                                 (const uint8_t *)r->schema + r->schema_size, err);
    if (code == SVS_OK)
        code = join_incoming(j, &in, err);
    if (in.mixed)
        svi_model_schema_clear(&in.schema);
    return code;
}

/* ---- refusing */

/* By a plain search: it serves messages alone, and COMPARED_MAX bounds its cost. */
static bool part_has(const struct svi_sums *r, const char *name) {
    for (int j = 0; j < r->sums.d; j++)
        if (strcmp(r->features[j], name) == 0)
            return true;
    return false;
}

/* The names of `r`, as many as fit; those that `other` lacks first, unless there are too many to look for. */
static void join_list(const struct svi_sums *r, const struct svi_sums *other, char *out, size_t size) {
    const bool compares = r->sums.d <= COMPARED_MAX && other->sums.d <= COMPARED_MAX;
    bool fits = true;
    *out = 0;
    for (int shared = compares ? 0 : 1; shared < 2; shared++)
        for (int j = 0; fits && j < r->sums.d; j++)
            if (!compares || part_has(other, r->features[j]) == (shared == 1))
                fits = svi_list_add(out, size, r->features[j], strlen(r->features[j]));
}

/* The questions go from the coarse to the fine: the first difference is the one that a person must change
 * first. */
svs_code svi_join_refuse(const struct svi_part *p, const struct svi_part *lead, svs_error *err) {
    static const char *const kinds[] = {
        [SVI_SUMS_DENSE] = "dense", [SVI_SUMS_SPARSE] = "sparse", [SVI_SUMS_NAMED] = "named"};
    char here[SVI_LIST_PAIR], there[SVI_LIST_PAIR];
    const struct svi_sums *r = &p->record, *other = &lead->record;
    if (r->task != other->task)
        return svi_fail(err, SVS_UNAVAILABLE, "its task is %s, that of %s is %s",
                        r->task == SVS_REGRESS ? "regress" : "classify", other->part,
                        other->task == SVS_REGRESS ? "regress" : "classify");
    if (r->kind != other->kind)
        return svi_fail(err, SVS_WRONG_KIND, "its rows are %s, those of %s are %s", kinds[r->kind],
                        other->part, kinds[other->kind]);
    if (!r->features != !other->features)
        return svi_fail(err, SVS_WRONG_COLUMNS, "its columns have %s, those of %s have %s",
                        r->features ? "names" : "no names", other->part, other->features ? "some" : "none");
    if (!r->features)
        return svi_fail(err, SVS_WRONG_COLUMNS, "its rows have %d features, those of %s have %d", r->sums.d,
                        other->part, other->sums.d);
    /* The sets of names differ: each list begins with what the other part lacks. */
    join_list(r, other, here, sizeof here);
    join_list(other, r, there, sizeof there);
    return svi_fail(err, SVS_WRONG_COLUMNS, "its columns are %s, but those of %.40s are %s", here,
                    other->part, there);
}

/* ---- what is published */

/* One place more than features, so that a union without features gets an array too: NULL means no names, or
 * no memory. The names themselves belong to the union. */
const char **svi_join_feature_names(const struct svi_join *j) {
    const char **names = j->named ? svi_alloc_array((size_t)j->d + 1, sizeof *names) : NULL;
    for (int i = 0; names && i < j->d; i++)
        names[i] = svs_features_name(j->names, i);
    return names;
}

/* Columns first, then their features in ascending order, as a reader of schemas has them. */
static svs_code fill_schema(const struct svi_join *j, struct svi_model_schema *m, svs_error *err) {
    m->schema.o.missing = (enum svi_missing)j->missing;
    m->schema.o.hash = j->hash;
    for (int c = 0; c < svs_features_count(j->columns); c++)
        if (svi_model_schema_column(m, svs_features_name(j->columns, c), j->column[c].kind, err) < 0)
            return err->code;
    for (int i = 0; i < j->d; i++) {
        if (j->owner[i] < 0)
            continue;
        SVI_TRY(svi_model_schema_own(m, j->owner[i], i, err));
        if (j->rows[i] > 0)
            m->mean[i] = j->mean[i] / j->rows[i];
    }
    /* The calendar claims its features here, and they have no owner so far: the loop skips them. */
    return j->calendar < 0 ? SVS_OK
                           : svi_model_schema_calendar(m, j->day, j->week, j->zone, j->calendar, err);
}

/* A model has one schema, although its parts may be mixed: parts without a schema are in it as columns of
 * numbers. */
svs_code svi_join_schema(const struct svi_join *j, struct svi_bytes *out, svs_error *err) {
    struct svi_model_schema m = {0};
    if (!j->mixed)
        return SVS_OK;
    const char **names = svi_join_feature_names(j);
    svs_code code = names ? svi_model_schema_init(&m, names, j->d, svs_features_count(j->columns), err)
                          : svi_fail_memory(err, "the names of all features");
    if (code == SVS_OK)
        code = fill_schema(j, &m, err);
    if (code == SVS_OK && svi_schema_encode(&m.schema, j->d, m.mean, j->zone, out) != SVS_OK)
        code = svi_fail_memory(err, "the schema of all parts");
    if (names)
        svi_model_schema_clear(&m);
    svi_free(names);
    return code;
}
