/* The schema of a model: written from the schema of a stream or table, read into a closed one.
 *
 * Written is what is needed to turn a row into features: the columns with their features, means, the
 * calendar. The values of a category follow from the names of its features, which the model has anyway.
 * Reading trusts nothing: a feature belongs to at most one column, and svi_model_schema_own and its
 * neighbours refuse numbers out of range and duplicates. First the writing part, then the tables of fields,
 * then the reading part. */
#include "wire/schema_map.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "features/calendar.h"
#include "features/category.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define WHAT        "model's schema"
#define COLUMNS_MAX 1000000

static const char *const policies[] = {[SVI_MISSING_REFUSE] = "refuse",
                                       [SVI_MISSING_CARRY] = "carry",
                                       [SVI_MISSING_DROP] = "drop",
                                       [SVI_MISSING_MEAN] = "mean",
                                       [SVI_MISSING_ZERO] = "zero",
                                       [SVI_MISSING_AUTO] = "auto",
                                       NULL};
static const char *const column_kinds[] = {[SVI_COLUMN_OPEN] = "open",
                                           [SVI_COLUMN_NUMBER] = "number",
                                           [SVI_COLUMN_CATEGORY] = "category",
                                           [SVI_COLUMN_IGNORED] = "ignored",
                                           NULL};

/* ---- writing */

bool svi_schema_matters(const struct svi_schema *s, bool filled) {
    /* Features without names (dense or sparse rows) cannot be described by columns. */
    const bool named = s->shape.names_kept > 0 && s->shape.names_kept >= s->shape.d;
    return named && (svi_schema_archived(s) || filled || s->o.missing == SVI_MISSING_MEAN);
}

/* Links the features of each category: first[column] and next[feature], -1 ends a chain. So all categories
 * together cost one pass over the features. Built from the back, so that chains ascend. */
static void chain_features(const struct svi_schema *s, int d, int32_t *first, int32_t *next) {
    for (int c = 0; c < svi_schema_columns(s); c++)
        first[c] = -1;
    for (int j = d - 1; j >= 0; j--)
        if (s->one_hot[j]) {
            next[j] = first[s->owner[j]];
            first[s->owner[j]] = j;
        }
}

static void put_category(struct svi_pack *p, const struct svi_schema *s, int d, int column,
                         const int32_t *first, const int32_t *next) {
    /* The feature that collects values without one of their own; hashed categories have none. */
    const int other = s->o.hash > 0 ? -1 : svi_category_shared(s, column, "", 0);
    const struct svi_open_map map = svi_pack_open(p);
    size_t count = 0;
    svi_put_text(p, "name", svi_schema_column_name(s, column));
    svi_put_text(p, "kind", column_kinds[SVI_COLUMN_CATEGORY]);
    svi_pack_key(p, "features");
    const size_t hole = svi_pack_hole(p);
    for (int j = first[column]; j >= 0; j = next[j], count++)
        svi_pack_int(p, j);
    svi_pack_fill(p, hole, count, false);
    if (other >= 0 && other < d)
        svi_put_int(p, "other", other);
    svi_pack_close(p, map);
}

static void put_schema_column(struct svi_pack *p, const struct svi_schema *s, int d, int column,
                              const double *mean) {
    /* Without separate columns, column j is feature j. A feature from d on was added after the model was
     * made. */
    const enum svi_column_kind kind = svi_schema_kind(s, column);
    const int own = s->columns ? s->column[column].now.feature : column;
    /* An open or ignored column has no feature, but its name and kind are known. */
    const bool has = kind == SVI_COLUMN_NUMBER && own >= 0 && own < d;
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_text(p, "name", svi_schema_column_name(s, column));
    svi_put_text(p, "kind", column_kinds[kind]);
    if (has)
        svi_put_int(p, "feature", own);
    if (has && mean)
        svi_put_real(p, "mean", mean[own]);
    svi_pack_close(p, map);
}

/* The zone is part of the model: hours of another zone would be other features. */
static void put_calendar(struct svi_pack *p, const struct svi_schema *s, const char *zone) {
    svi_put_map(p, "calendar", 3);
    svi_put_text(p, "parts",
                 s->calendar_day && s->calendar_week ? "day,week"
                 : s->calendar_day                   ? "day"
                                                     : "week");
    svi_put_text(p, "zone", zone && *zone ? zone : "UTC");
    svi_put_int(p, "feature", s->calendar);
}

svs_code svi_schema_encode(const struct svi_schema *s, int d, const double *mean, const char *zone,
                           struct svi_bytes *out) {
    struct svi_pack p;
    const int columns = svi_schema_columns(s);
    /* Packing continues without them and fails at the end (p.failed): one path cleans up. */
    int32_t *first = svi_alloc_array((size_t)columns + 1, sizeof *first),
            *next = svi_alloc_array((size_t)d + 1, sizeof *next);
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "missing", policies[s->o.missing]);
    if (s->o.hash > 0)
        svi_put_int(&p, "hash", s->o.hash);
    svi_put_array(&p, "columns", (size_t)columns);
    if (first && next && s->columns)
        chain_features(s, d, first, next);
    for (int c = 0; first && next && c < columns; c++)
        if (svi_schema_kind(s, c) == SVI_COLUMN_CATEGORY)
            put_category(&p, s, d, c, first, next);
        else
            put_schema_column(&p, s, d, c, mean);
    if (s->calendar >= 0 && s->calendar < d)
        put_calendar(&p, s, zone);
    svi_pack_close(&p, map);
    p.failed = p.failed || !first || !next;
    svi_free(first);
    svi_free(next);
    return svi_pack_end(&p);
}

/* ---- reading */

/* Each struct holds the pairs of one map as read. Its table says types, ranges, and what may be
 * absent. */
struct schema_parts {
    int missing;
    int64_t hash;
    const uint8_t *columns, *calendar;
};

static const struct svi_field schema_fields[] = {
    SVI_FIELD_WORDS(struct schema_parts, missing, policies),
    SVI_FIELD_OPTIONAL(struct schema_parts, hash, INTEGER, 0, 20),
    SVI_FIELD(struct schema_parts, columns, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(struct schema_parts, calendar, ANY, 0, 0),
};

struct column_parts {
    char name[SVS_NAME_MAX + 1];
    int kind;
    int64_t feature, other; /* -1: absent */
    double mean;
    const uint8_t *features;
};

static const struct svi_field column_fields[] = {
    SVI_FIELD_STRING(struct column_parts, name),
    SVI_FIELD_WORDS(struct column_parts, kind, column_kinds),
    SVI_FIELD_OPTIONAL(struct column_parts, feature, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(struct column_parts, other, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(struct column_parts, mean, REAL, -HUGE_VAL, HUGE_VAL),
    SVI_FIELD_OPTIONAL(struct column_parts, features, ANY, 0, 0),
};

struct calendar_parts {
    char parts[16], zone[SVS_NAME_MAX + 1];
    int64_t feature;
};

static const struct svi_field calendar_fields[] = {
    SVI_FIELD_STRING(struct calendar_parts, parts),
    SVI_FIELD_STRING(struct calendar_parts, zone),
    SVI_FIELD(struct calendar_parts, feature, INTEGER, 0, SVI_FIELD_UNLIMITED),
};

/* The features of a category, claimed one by one. */
static svs_code read_values(struct svi_model_schema *m, int column, const uint8_t *at, svs_error *err) {
    struct svi_item array, item;
    at = svi_item_read(at, &array);
    if (array.type != SVI_ARRAY)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "features of column %d of the " WHAT " is %s: it must be an array", column,
                        svi_item_name(&array));
    for (uint32_t i = 0; i < array.length; i++) {
        at = svi_item_read(at, &item);
        if (item.type != SVI_INT)
            return svi_fail(err, SVS_WRONG_TYPE,
                            "column %d of the " WHAT
                            " has %s among its features: they are numbers of features",
                            column, svi_item_name(&item));
        if (svi_model_schema_own(m, column, item.i, err) != SVS_OK)
            return err->code;
    }
    return SVS_OK;
}

/* Reads one column. Each feature is claimed by svi_model_schema_own before anything is stored for it, which
 * also checks its range. */
static svs_code read_column(struct svi_model_schema *m, const uint8_t *at, const uint8_t *end,
                            svs_error *err) {
    struct column_parts c = {.feature = -1, .other = -1, .mean = NAN};
    svs_code code = svi_fields_read("column of the " WHAT, SVI_FIELDS(column_fields), at, end, &c, err);
    if (code != SVS_OK)
        return code;
    const int column = svi_model_schema_column(m, c.name, (enum svi_column_kind)c.kind, err);
    if (column < 0)
        return err->code;
    if (c.kind == SVI_COLUMN_CATEGORY && c.features)
        code = read_values(m, column, c.features, err);
    if (c.kind == SVI_COLUMN_CATEGORY && code == SVS_OK && c.other >= 0 &&
        (c.other >= m->schema.shape.d || m->schema.owner[c.other] != column))
        return svi_fail(err, SVS_WRONG_TYPE, "`other` of column \"%s\" must be one of its features", c.name);
    if (c.kind != SVI_COLUMN_NUMBER || c.feature < 0)
        return code;
    code = svi_model_schema_own(m, column, c.feature, err);
    if (code == SVS_OK)
        m->mean[c.feature] = c.mean;
    return code;
}

static svs_code read_columns(struct svi_model_schema *m, const uint8_t *at, uint32_t count,
                             const uint8_t *end, svs_error *err) {
    for (uint32_t i = 0; i < count; i++) { /* the walk only finds the end: the form was checked */
        const uint8_t *next = at;
        svi_walk(&next, end, SVI_WALK_MAX);
        if (read_column(m, at, next, err) != SVS_OK)
            return err->code;
        at = next;
    }
    return SVS_OK;
}

static svs_code read_calendar(struct svi_model_schema *m, const uint8_t *at, const uint8_t *end,
                              svs_error *err) {
    struct calendar_parts c = {0};
    bool day, week;
    svs_error why = {0};
    SVI_TRY(svi_fields_read("calendar of the " WHAT, SVI_FIELDS(calendar_fields), at, end, &c, err));
    /* The text of this error speaks of a setting; here the model is wrong, so the text is quoted. */
    if (svi_calendar_parse(c.parts, &day, &week, &why) != SVS_OK)
        return svi_fail(err, SVS_WRONG_TYPE, "parts of the " WHAT ": %.200s", why.text);
    return svi_model_schema_calendar(m, day, week, c.zone, c.feature, err);
}

svs_code svi_schema_decode(struct svi_model_schema *m, const char *const *features, int d, const uint8_t *at,
                           const uint8_t *end, svs_error *err) {
    struct schema_parts p = {0};
    struct svi_item array;
    svs_error mine = {0};
    err = err ? err : &mine; /* the functions below return err->code */
    *m = (struct svi_model_schema){0};
    svs_code code = svi_fields_read(WHAT, SVI_FIELDS(schema_fields), at, end, &p, err);
    if (code != SVS_OK)
        return code;
    /* Columns refer to features, and a category to the names of its values: both need the names. */
    if (!features)
        return svi_fail(err, SVS_WRONG_TYPE, "the model has a schema, but no names of features");
    at = svi_item_read(p.columns, &array);
    if (array.type != SVI_ARRAY || array.length > COLUMNS_MAX)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "columns of the " WHAT " is %s: it must be an array of %d maps at most",
                        svi_item_name(&array), COLUMNS_MAX);
    /* COLUMNS_MAX bounds this allocation; each column has at least one byte in the file besides. */
    code = svi_model_schema_init(m, features, d, (int)array.length, err);
    if (code != SVS_OK)
        return code;
    /* Options before columns: hash decides how values of a category become features. */
    m->schema.o.missing = (enum svi_missing)p.missing;
    m->schema.o.hash = (int)p.hash;
    code = read_columns(m, at, array.length, end, err);
    return code == SVS_OK && p.calendar ? read_calendar(m, p.calendar, end, err) : code;
}
