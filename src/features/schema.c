/* A schema is the shape of a stream (features and their names) and, once a column is more than one number,
 * columns as a second registry.
 *
 * UNDO. A row changes everything at once, so that later values of the same row see it: names are appended, a
 * column's `now` departs from its `kept`, a feature that changes hands is renamed and its former name noted
 * in `renewed`. Committing copies `now` to `kept`; restoring truncates the names, copies back and renames
 * back. `dirty` is set by every such change, so that rows of a stream whose columns are known cost nothing.
 *
 * A feature of a category remembers when it was last 1 (`seen`, in the numbers of what holds samples), which
 * shows without a scan whether a held sample has it (category.c).
 *
 * Order: set-up, columns, values, rows, commit and undo, fewer features, the archive. */
#include "features/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/feature_names.h"
#include "features/calendar.h"
#include "features/category.h"

/* ---- set-up */

/* Adds a name without the spaces around it; an empty one is ignored. */
static svs_code schema_add_listed(svs_features *f, const char *from, const char *to, svs_error *err) {
    while (from < to && *from == ' ')
        from++;
    while (to > from && to[-1] == ' ')
        to--;
    if (from == to)
        return SVS_OK;
    return svs_features_add(f, from, (size_t)(to - from), err) >= 0 ? SVS_OK : err->code;
}

/* Makes the registry of a comma-separated list of names; NULL where the list is empty. */
static svs_code schema_list(svs_features **out, const char *key, const char *text, svs_error *err) {
    svs_error why = {0};
    if (!text || !*text)
        return SVS_OK;
    /* A list of n bytes has at most n + 1 names. */
    if (!(*out = svs_features_new((int)strlen(text) + 1, err)))
        return err->code;
    for (const char *at = text, *end; at; at = *end ? end + 1 : NULL) {
        end = strchrnul(at, ',');
        if (schema_add_listed(*out, at, end, &why) != SVS_OK)
            return svi_fail(err, why.code == SVS_NO_MEMORY ? SVS_NO_MEMORY : SVS_SETTING, "%s: %.200s", key,
                            why.text);
    }
    return SVS_OK;
}

static bool schema_listed(const svs_features *list, const char *name, size_t length) {
    return list && svs_features_find(list, name, length) >= 0;
}

svs_code svi_schema_init(struct svi_schema *s, const struct svi_schema_options *o, svs_error *err) {
    *s = (struct svi_schema){.o = *o, .calendar = -1, .calendar_kept = -1};
    /* Whatever was made before an error is freed by svi_schema_clear. */
    svs_code code = svi_shape_init_in(&s->shape, o->max_features, o->features, o->scratch, err);
    if (code == SVS_OK)
        code = schema_list(&s->categories, "categories", o->categories, err);
    if (code == SVS_OK)
        code = schema_list(&s->numbers, "numbers", o->numbers, err);
    if (code == SVS_OK)
        code = schema_list(&s->ignored, "ignore", o->ignore, err);
    if (code == SVS_OK)
        code = schema_list(&s->unscaled, "unscaled", o->unscaled, err);
    if (code == SVS_OK)
        code = svi_calendar_parse(o->calendar, &s->calendar_day, &s->calendar_week, err);
    /* Now, before there are threads; texts of alerts take an unknown zone for UTC. */
    if (code == SVS_OK && svi_calendar_set_zone(o->zone, err) != SVS_OK &&
        (s->calendar_day || s->calendar_week))
        code = err->code;
    snprintf(s->zone, sizeof s->zone, "%s", o->zone ? o->zone : "");
    if (code != SVS_OK)
        svi_schema_clear(s);
    /* The texts belong to the caller and need not live after this call. */
    s->o.features = s->o.categories = s->o.numbers = s->o.ignore = s->o.unscaled = NULL;
    s->o.calendar = s->o.zone = NULL;
    return code;
}

/* Arrays of a mixed stream, sized by max_features: `column` and `absent` go by column, the others by feature.
 */
static const struct svi_array schema_table[] = {
#define OWNER struct svi_schema
    SVI_ARRAY(OWNER, column, NULL, SVI_AXIS(0)),  SVI_ARRAY(OWNER, seen[0], NULL, SVI_AXIS(0)),
    SVI_ARRAY(OWNER, seen[1], NULL, SVI_AXIS(0)), SVI_ARRAY(OWNER, seen[2], NULL, SVI_AXIS(0)),
    SVI_ARRAY(OWNER, owner, NULL, SVI_AXIS(0)),   SVI_ARRAY(OWNER, hot, NULL, SVI_AXIS(0)),
    SVI_ARRAY(OWNER, absent, NULL, SVI_AXIS(0)),  SVI_ARRAY(OWNER, one_hot, NULL, SVI_AXIS(0)),
#undef OWNER
};
static const struct svi_arrays schema_arrays = SVI_ARRAYS(schema_table, "the columns of the stream");

/* Frees the former names of features that changed hands, when they cannot come back. */
static void schema_end_renewed(struct svi_schema *s) {
    for (int i = 0; i < s->renewed_count; i++)
        svi_free(s->renewed[i].before);
    s->renewed_count = 0;
}

/* Frees all that a mixed stream has; the caller resets the counts. */
static void schema_clear_columns(struct svi_schema *s) {
    const int count = s->columns ? svs_features_count(s->columns) : 0;
    /* Only `count` columns own a list of values; the array is larger. */
    for (int c = 0; s->column && c < count; c++)
        svi_free(s->column[c].value);
    svs_features_free(&s->columns);
    svi_arrays_free(&schema_arrays, s);
    schema_end_renewed(s);
    svi_free(s->renewed);
}

void svi_schema_clear(struct svi_schema *s) {
    schema_clear_columns(s);
    svs_features_free(&s->categories);
    svs_features_free(&s->numbers);
    svs_features_free(&s->ignored);
    svs_features_free(&s->unscaled);
    svi_free(s->missing);
    svi_free(s->list_column);
    svi_free(s->set);
    svi_shape_clear(&s->shape);
    *s = (struct svi_schema){.calendar = -1, .calendar_kept = -1};
}

double svi_schema_memory(const struct svi_schema_options *o, int d) {
    const int32_t most = o->max_features;
    /* Arrays outside of the table, in their largest form. */
    const double besides = sizeof(int64_t) + sizeof(int32_t); /* missing, list_column */
    return sizeof(struct svi_schema) + (double)svi_arrays_bytes(&schema_arrays, &most) + most * besides +
           d * (double)(sizeof(struct svi_handover) + sizeof(int32_t) + 2 * sizeof(char *) + SVS_NAME_MAX);
}

/* Reserves everything at once for max_features, so that rows of a mixed stream allocate only names and
 * values. */
static bool schema_reserve(struct svi_schema *s, svs_error *err) {
    const int32_t most = s->shape.max_features;
    s->columns = svs_features_new(most, err);
    return svi_arrays_alloc(&schema_arrays, s, &most, err) == SVS_OK && s->columns;
}

/* Returns to a plain shape. The count of changes must never repeat a value, or a cached list of columns
 * would seem valid. */
static void schema_forget_columns(struct svi_schema *s) {
    if (s->columns)
        s->changes_before += svi_feature_names_changes(s->columns) + 1;
    schema_clear_columns(s);
    /* schema_clear_columns has freed the array. */
    s->renewed = NULL;
    s->renewed_capacity = 0;
    s->hot_count = s->absent_count = s->columns_kept = 0;
    s->shape.mixed = s->dirty = s->mixed_now = false;
}

/* Has the current row, of a stream that is not mixed yet, a number in that feature? */
static bool schema_has_number(const struct svi_schema *s, const struct svi_message *m, int feature) {
    const bool set =
        m && feature < m->d && (m->kind == SVI_DENSE || s->shape.marks[feature] == s->shape.round);
    return set && !isnan(m->x[feature]);
}

/* Makes the stream mixed: every feature so far becomes a column of its own. m: the current row, NULL = none.
 * A feature that no row has had yet belongs to an open column, so a word may still make it a category. */
static svs_code schema_mix(struct svi_schema *s, const struct svi_message *m, svs_error *err) {
    if (s->columns)
        return SVS_OK;
    bool good = schema_reserve(s, err);
    const int count = svs_features_count(s->shape.names);
    for (int j = 0; good && j < count; j++) {
        const char *name = svs_features_name(s->shape.names, j);
        /* A feature of accepted rows, or with a number in this one, holds numbers. */
        const bool had = (j < s->shape.d && s->shape.kind != SVI_UNSET) || schema_has_number(s, m, j);
        const struct svi_column_state state = {had ? SVI_COLUMN_NUMBER : SVI_COLUMN_OPEN, j, 0};
        good = svs_features_add(s->columns, name, strlen(name), err) == j;
        if (!good)
            break;
        s->column[j].now = s->column[j].kept = state;
        s->owner[j] = j;
    }
    if (!good) {
        schema_forget_columns(s);
        return svi_fail_memory(err, schema_arrays.what);
    }
    /* Columns of the current row are not kept; `mixed_now` lets svi_schema_restore go back to the plain
     * shape. */
    s->columns_kept = s->shape.names_kept;
    s->shape.mixed = s->dirty = s->mixed_now = true;
    return SVS_OK;
}

svs_code svi_schema_begin_columns(struct svi_schema *s, svs_error *err) {
    const svs_code code = schema_mix(s, NULL, err);
    s->dirty = s->mixed_now = false; /* not an effect of a row: there is nothing to undo */
    return code;
}

/* ---- columns */

/* The registry of column names; that of the features while the two are the same. */
static const svs_features *schema_names(const struct svi_schema *s) {
    return s->columns ? s->columns : s->shape.names;
}

int svi_schema_columns(const struct svi_schema *s) {
    return svs_features_count(schema_names(s));
}

const char *svi_schema_column_name(const struct svi_schema *s, int column) {
    return svs_features_name(schema_names(s), column);
}

enum svi_column_kind svi_schema_kind(const struct svi_schema *s, int column) {
    /* Before the first row a plain column is still open: its first value may be a word. */
    if (s->columns)
        return s->column[column].now.kind;
    return column < s->shape.d && s->shape.kind != SVI_UNSET ? SVI_COLUMN_NUMBER : SVI_COLUMN_OPEN;
}

uint64_t svi_schema_changes(const struct svi_schema *s) {
    /* The top bit separates the counts of the two registries. */
    return (s->columns ? UINT64_C(1) << 63 | svi_feature_names_changes(s->columns)
                       : svi_feature_names_changes(s->shape.names)) +
           s->changes_before;
}

int svi_schema_find(const struct svi_schema *s, const char *name, size_t length, int guess) {
    return svi_feature_names_is(schema_names(s), guess, name, length)
               ? guess
               : svs_features_find(schema_names(s), name, length);
}

/* Do the settings make a column of that name something other than a number? */
static bool schema_is_special(const struct svi_schema *s, const char *name, size_t length) {
    return schema_listed(s->categories, name, length) || schema_listed(s->ignored, name, length);
}

/* Refuses a new column where none may be added: a model, fixed names, or the setting columns.new after the
 * first row. */
static svs_code schema_refuse_new(const struct svi_schema *s, const char *name, size_t length,
                                  svs_error *err) {
    char text[80];
    if (s->closed)
        return svi_fail(err, SVS_WRONG_COLUMNS, "the model has no column \"%s\"",
                        svi_escape(text, sizeof text, name, length));
    if (s->shape.fixed_names)
        return svi_fail(err, SVS_BAD_COLUMN, "\"%s\" is not a name in the setting `features`",
                        svi_escape(text, sizeof text, name, length));
    if (s->o.refuse_new && s->shape.kind != SVI_UNSET)
        return svi_fail(err, SVS_BAD_COLUMN, "column \"%s\" is new, and the setting columns.new refuses it",
                        svi_escape(text, sizeof text, name, length));
    return SVS_OK;
}

/* Adds a column to a mixed stream, of which nothing but the name is known. */
static int schema_add_column(struct svi_schema *s, const char *name, size_t length, svs_error *err) {
    const int column = svs_features_add(s->columns, name, length, err);
    if (column < 0)
        return -1;
    s->column[column] =
        (struct svi_column){.now = {SVI_COLUMN_OPEN, -1, 0}, .kept = {SVI_COLUMN_OPEN, -1, 0}};
    s->dirty = true;
    if (schema_listed(s->ignored, name, length))
        s->column[column].now.kind = SVI_COLUMN_IGNORED;
    else if (schema_listed(s->categories, name, length) && svi_category_begin(s, column, err) != SVS_OK)
        return -1;
    return column;
}

int svi_schema_column(struct svi_schema *s, const struct svi_message *m, const char *name, size_t length,
                      int guess, svs_error *err) {
    const int column = svi_schema_find(s, name, length, guess);
    if (column >= 0)
        return column;
    if (schema_refuse_new(s, name, length, err) != SVS_OK)
        return -1;
    /* As long as every column is a number, its name goes straight to the features. */
    if (!s->columns && schema_is_special(s, name, length) && schema_mix(s, m, err) != SVS_OK)
        return -1;
    return s->columns ? schema_add_column(s, name, length, err)
                      : svs_features_add(s->shape.names, name, length, err);
}

bool svi_schema_ignores(const struct svi_schema *s, const char *name, size_t length) {
    return schema_listed(s->ignored, name, length);
}

svs_code svi_schema_ignore(struct svi_schema *s, const char *name, svs_error *err) {
    if (s->closed || svi_schema_find(s, name, strlen(name), -1) >= 0)
        return SVS_OK;
    /* A plain shape has no place for a column without a feature. */
    svs_code code = schema_mix(s, NULL, err);
    const int column = code == SVS_OK ? schema_add_column(s, name, strlen(name), err) : -1;
    if (column < 0)
        return err->code;
    s->column[column].now.kind = SVI_COLUMN_IGNORED;
    svi_schema_commit_names(s);
    return SVS_OK;
}

/* ---- values */

/* Refuses a second value of the same column in a row. */
static svs_code schema_mark(struct svi_schema *s, int column, svs_error *err) {
    char text[80];
    if (svi_shape_mark(&s->shape, column))
        return SVS_OK;
    const char *name = svi_schema_column_name(s, column);
    return svi_fail(err, SVS_DUPLICATE_KEY, "x[\"%s\"] is a duplicate",
                    svi_escape(text, sizeof text, name, strlen(name)));
}

/* Makes the feature of a column of numbers if it has none. A closed schema makes none: the model may not use
 * the column. */
static svs_code schema_own_feature(struct svi_schema *s, int column, svs_error *err) {
    struct svi_column *c = &s->column[column];
    const char *name = svs_features_name(s->columns, column);
    if (c->now.feature >= 0 || s->closed)
        return SVS_OK;
    const int count = svs_features_count(s->shape.names);
    const int feature = svs_features_add(s->shape.names, name, strlen(name), err);
    if (feature < 0)
        return err->code;
    /* `a=b` may be a column and the value b of column a. */
    if (feature < count)
        return svi_fail(err, SVS_BAD_COLUMN, "the feature \"%s\" is both a column and a value of another one",
                        name);
    s->owner[feature] = column;
    s->one_hot[feature] = 0;
    c->now.feature = feature;
    s->dirty = true;
    return SVS_OK;
}

/* Sets a feature in the current row; a negative one is ignored. A feature beyond those of a stream of arrays
 * makes the row one of names. */
static void schema_set(struct svi_schema *s, struct svi_message *m, int feature, double v) {
    if (feature < 0)
        return;
    if (feature >= s->shape.d)
        m->kind = SVI_NAMED;
    svi_message_reach(m, feature);
    m->x[feature] = v;
    if (s->set && !s->all_set)
        s->set[s->set_count++] = feature;
}

/* Sets the feature of a category's value to 1. `hot` collects those of the row for svi_schema_used and for
 * category_find_free. */
static svs_code schema_set_value(struct svi_schema *s, struct svi_message *m, int column, const char *word,
                                 size_t length, svs_error *err) {
    /* A model has features for the values that it was trained on; an unknown one sets none. */
    if (s->closed) {
        schema_set(s, m, svi_category_known(s, column, word, length), 1);
        return SVS_OK;
    }
    /* The feature may be new in this row; a stream of arrays becomes one of names by it. */
    const int feature = svi_category_feature(s, column, word, length, err);
    if (feature < 0)
        return err->code;
    schema_set(s, m, feature, 1);
    m->kind = SVI_NAMED;
    s->hot[s->hot_count++] = feature;
    return SVS_OK;
}

svs_code svi_schema_number(struct svi_schema *s, struct svi_message *m, int column, double v,
                           svs_error *err) {
    SVI_TRY(schema_mark(s, column, err));
    if (!s->columns) {
        schema_set(s, m, column, v);
        return SVS_OK;
    }
    struct svi_column *c = &s->column[column];
    if (c->now.kind == SVI_COLUMN_IGNORED)
        return SVS_OK;
    /* Codes may be sent as numbers: 7 is the value 7 of a category, however it was written. */
    if (c->now.kind == SVI_COLUMN_CATEGORY) {
        char text[32];
        for (int digits = 15; digits <= 17; digits++) { /* the shortest text that reads back as v */
            snprintf(text, sizeof text, "%.*g", digits, v);
            if (strtod(text, NULL) == v)
                break;
        }
        return schema_set_value(s, m, column, text, strlen(text), err);
    }
    SVI_TRY(schema_own_feature(s, column, err));
    if (c->now.kind == SVI_COLUMN_OPEN && !s->closed) {
        c->now.kind = SVI_COLUMN_NUMBER;
        s->dirty = true;
    }
    schema_set(s, m, c->now.feature, v);
    return SVS_OK;
}

/* Refuses a word in a column of numbers. */
static svs_code schema_refuse_word(const struct svi_schema *s, int column, const char *word, size_t length,
                                   svs_error *err) {
    char name[80], text[80];
    const char *of = svi_schema_column_name(s, column);
    svi_escape(name, sizeof name, of, strlen(of));
    return svi_fail(err, SVS_WRONG_TYPE,
                    "x[\"%s\"] is the word \"%s\": the column holds numbers (to read words from the start, "
                    "list it in the setting categories)",
                    name, svi_escape(text, sizeof text, word, length));
}

svs_code svi_schema_word(struct svi_schema *s, struct svi_message *m, int column, const char *word,
                         size_t length, svs_error *err) {
    const char *name = svi_schema_column_name(s, column);
    /* Before the mark, which would count as a number of the current row. */
    svs_code code = schema_mix(s, m, err);
    if (code == SVS_OK)
        code = schema_mark(s, column, err);
    if (code != SVS_OK)
        return code;
    const struct svi_column *c = &s->column[column];
    /* The order of the tests: ignored columns take anything; then numbers refuse words, also empty ones. */
    if (c->now.kind == SVI_COLUMN_IGNORED || (c->now.kind == SVI_COLUMN_OPEN && s->closed))
        return SVS_OK;
    if (c->now.kind == SVI_COLUMN_NUMBER || schema_listed(s->numbers, name, strlen(name)))
        return schema_refuse_word(s, column, word, length, err);
    if (length == 0)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "x[\"%s\"] is an empty string: send nil (null, None) for a missing value", name);
    if (c->now.kind == SVI_COLUMN_OPEN)
        code = svi_category_begin(s, column, err);
    return code == SVS_OK ? schema_set_value(s, m, column, word, length, err) : code;
}

/* A feature that is missing; a column without a feature (a closed schema) is not counted. */
static void schema_set_missing(struct svi_schema *s, struct svi_message *m, int feature) {
    schema_set(s, m, feature, NAN);
    m->missing += feature >= 0;
}

svs_code svi_schema_missing(struct svi_schema *s, struct svi_message *m, int column, svs_error *err) {
    /* An unknown column whose row asks for replacement needs columns: its feature must be open. */
    const bool known = column < s->shape.names_kept && s->shape.kind != SVI_UNSET;
    svs_code code = SVS_OK;
    if (!known && m->absent != SVI_MISSING_AUTO)
        code = schema_mix(s, m, err); /* its first value may be a word */
    if (code == SVS_OK)
        code = schema_mark(s, column, err);
    if (code != SVS_OK)
        return code;
    if (!s->columns) {
        schema_set_missing(s, m, column);
        return SVS_OK;
    }
    const struct svi_column *c = &s->column[column];
    /* A category without a value has all its features 0: nothing is replaced, but the gap is counted. */
    if (c->now.kind == SVI_COLUMN_CATEGORY)
        s->absent[s->absent_count++] = column;
    if (c->now.kind == SVI_COLUMN_CATEGORY || c->now.kind == SVI_COLUMN_IGNORED)
        return SVS_OK;
    code = schema_own_feature(s, column, err);
    if (code == SVS_OK)
        schema_set_missing(s, m, c->now.feature);
    return code;
}

/* ---- rows */

enum svi_missing svi_schema_policy(const struct svi_schema *s, const struct svi_message *m) {
    if (s->o.missing != SVI_MISSING_AUTO)
        return s->o.missing;
    return m->absent != SVI_MISSING_AUTO ? m->absent : SVI_MISSING_REFUSE;
}

/* Begins a row, except for clearing its values. */
static svs_code schema_start_row(struct svi_schema *s, struct svi_message *m, svs_error *err) {
    /* A stream of arrays keeps its form while a named row has only its columns. */
    const bool arrays = s->shape.kind == SVI_DENSE && s->shape.names_kept >= s->shape.d && !s->columns;
    const enum svi_kind kind = arrays ? SVI_DENSE : SVI_NAMED;
    m->has_x = true;
    m->kind = kind;
    m->d = s->shape.d;
    m->x = s->shape.row;
    s->hot_count = s->absent_count = 0;
    svi_shape_begin_row(&s->shape);
    /* Checked before the first value, because a refused row must not add names. `kind`, not m->kind: one load
     * of m->kind and m->d together would wait for the two stores (no store forwarding). */
    return kind == s->shape.kind && s->shape.d > 0 ? SVS_OK : svi_shape_compare(&s->shape, m, err);
}

svs_code svi_schema_follow(struct svi_schema *s, svs_error *err) {
    s->all_set = true;
    if (!s->set) /* a model's schema reads several files */
        s->set = svi_alloc_plain_array((size_t)s->shape.max_features, sizeof *s->set);
    return s->set ? SVS_OK : svi_fail_memory(err, "the columns of a row");
}

static void schema_clear_row(struct svi_schema *s, struct svi_message *m) {
    /* Clears what the previous row has set: feature by feature where that is known, else all d values. */
    for (int i = 0; s->set && !s->all_set && i < s->set_count; i++)
        m->x[s->set[i]] = 0;
    if ((!s->set || s->all_set) && m->d > 0)
        memset(m->x, 0, (size_t)m->d * sizeof *m->x);
    s->set_count = 0;
    /* Listed rows set every column, so a list of them would only cost. */
    s->all_set = !m->cells || m->listed;
}

svs_code svi_schema_begin_row(struct svi_schema *s, struct svi_message *m, svs_error *err) {
    SVI_TRY(schema_start_row(s, m, err));
    schema_clear_row(s, m);
    return SVS_OK;
}

/* Marks the columns that the row did not name as missing. Not under the policy zero: they are 0 already. */
void svi_schema_end_row(struct svi_schema *s, struct svi_message *m) {
    /* Absence means something only if the row asks for it. */
    if (s->named_only || m->absent == SVI_MISSING_AUTO || svi_schema_policy(s, m) == SVI_MISSING_ZERO)
        return;
    /* Marks go by column, so a category that had a word is skipped like a number. */
    const int count = svi_schema_columns(s);
    for (int c = 0; c < count; c++) {
        if (s->shape.marks[c] == s->shape.round)
            continue;
        /* A category has no feature of its own: its absence is only counted. */
        const int feature = s->columns ? s->column[c].now.feature : c;
        if (s->columns && s->column[c].now.kind == SVI_COLUMN_CATEGORY)
            s->absent[s->absent_count++] = c;
        if (feature >= 0)
            schema_set_missing(s, m, feature);
    }
}

svs_code svi_schema_cell(struct svi_schema *s, struct svi_message *m, const struct svi_cell *cell, int column,
                         svs_error *err) {
    switch (cell->kind) {
    case SVI_CELL_NUMBER:
        return svi_schema_number(s, m, column, cell->number, err);
    case SVI_CELL_WORD:
        return svi_schema_word(s, m, column, cell->word, cell->length, err);
    default:
        return svi_schema_missing(s, m, column, err);
    }
}

svs_code svi_schema_refuse_columns(const struct svi_schema *s, const struct svi_message *m, bool model,
                                   svs_error *err) {
    char sent[SVI_LIST_PAIR] = "", have[SVI_LIST_PAIR] = "";
    const char *name = "";
    bool fits = true;
    /* Long lists are cut where the text is full; an error text has a fixed size. */
    for (int i = 0; fits && i < m->cell_count; i++)
        fits = svi_list_add(sent, sizeof sent, m->cells[i].name, m->cells[i].name_length);
    fits = true;
    for (int c = 0; fits && (name = svi_schema_column_name(s, c)); c++)
        fits = svi_list_add(have, sizeof have, name, strlen(name));
    return svi_fail(err, SVS_WRONG_COLUMNS,
                    model ? "the columns are %s, but the model has %s: --ignore skips a column"
                          : "the columns are %s, but this stream has %s",
                    sent, have);
}

/* The column of a cell; *column = -1 with SVS_OK: it is ignored, because the setting `features` does not name
 * it. */
static svs_code schema_column_of(struct svi_schema *s, const struct svi_message *m, int guess, int *column,
                                 svs_error *err) {
    const struct svi_cell *cell = &m->cells[guess];
    *column = -1;
    if (s->shape.fixed_names && svs_features_find(schema_names(s), cell->name, cell->name_length) < 0)
        return SVS_OK;
    *column = svi_schema_column(s, m, cell->name, cell->name_length, guess, err);
    return *column >= 0 ? SVS_OK : err->code;
}

/* Is the lookup of these listed cells still valid? Same list, same schema. */
static bool schema_knows_list(const struct svi_schema *s, const struct svi_message *m) {
    return m->listed && s->list == m->cells && s->list_count == m->cell_count &&
           s->list_changes == svi_schema_changes(s) && m->cell_count > 0 && s->list_name == m->cells[0].name;
}

/* Looks up the columns of the list for the next row, after this one has added the new ones. Without memory
 * every row looks up its names. */
static void schema_note_list(struct svi_schema *s, const struct svi_message *m) {
    s->list = NULL;
    if (!m->listed || m->cell_count < 1 || m->cell_count > s->shape.max_features)
        return;
    /* One array for all lists, made when the first one appears. */
    if (!s->list_column &&
        !(s->list_column = svi_alloc_array((size_t)s->shape.max_features, sizeof *s->list_column)))
        return;
    s->list_known = true;
    for (int i = 0; i < m->cell_count; i++) {
        s->list_column[i] = svi_schema_find(s, m->cells[i].name, m->cells[i].name_length, i);
        s->list_known = s->list_known && s->list_column[i] >= 0;
    }
    s->list = m->cells;
    s->list_name = m->cells[0].name;
    s->list_count = m->cell_count;
    s->list_changes = svi_schema_changes(s);
}

/* Only numbers, one a column, in a stream of nothing else: nearly every row of such a file. */
static inline bool schema_is_plain(const struct svi_schema *s, const struct svi_message *m) {
    return m->plain && !s->columns && s->list_known && m->cell_count == s->shape.d &&
           s->shape.kind != SVI_UNSET;
}

/* Scatters the numbers to their features; schema_is_plain guarantees that every one has a place. */
static void schema_take_numbers(const struct svi_schema *s, const struct svi_message *m) {
    const struct svi_cell *cell = m->cells;
    const int32_t *column = s->list_column;
    double *x = m->x;
    for (int i = 0; i < m->cell_count; i++)
        x[column[i]] = cell[i].number;
}

/* Sets the cells of a row one by one. Not inlined, to keep the fast path of svi_schema_row small. */
static __attribute__((noinline)) svs_code schema_take_cells(struct svi_schema *s, struct svi_message *m,
                                                            bool known, svs_error *err) {
    svs_code code = SVS_OK;
    schema_clear_row(s, m);
    for (int i = 0; i < m->cell_count && code == SVS_OK; i++) {
        int column = known ? s->list_column[i] : -1;
        if (!known)
            code = schema_column_of(s, m, i, &column, err);
        if (code == SVS_OK && column >= 0)
            code = svi_schema_cell(s, m, &m->cells[i], column, err);
    }
    /* Both lists help more than the first name that does not fit. */
    if (code == SVS_WRONG_COLUMNS)
        code = svi_schema_refuse_columns(s, m, true, err);
    if (code != SVS_OK)
        return code;
    svi_schema_end_row(s, m);
    /* The row was accepted by the schema, so every wanted cell has a column now. */
    if (!known)
        schema_note_list(s, m);
    return SVS_OK;
}

svs_code svi_schema_row(struct svi_schema *s, struct svi_message *m, svs_error *err) {
    const bool known = schema_knows_list(s, m);
    const svs_code code = schema_start_row(s, m, err);
    /* The fast path below writes every feature, so the row needs no clearing, and `set` would be incomplete.
     */
    s->all_set = s->all_set || m->listed;
    if (code != SVS_OK)
        return code;
    if (!known || !schema_is_plain(s, m))
        return schema_take_cells(s, m, known, err);
    schema_take_numbers(s, m);
    return SVS_OK;
}

/* Adds the features of the calendar, consecutively and owned by no column (owner -1). */
static svs_code schema_begin_calendar(struct svi_schema *s, const struct svi_message *m,
                                      const char *const *names, int count, svs_error *err) {
    svs_code code = schema_mix(s, m, err);
    for (int i = 0; i < count && code == SVS_OK; i++) {
        /* A name that exists already is returned, not added: it is a column's then. */
        const int before = svs_features_count(s->shape.names);
        const int feature = svs_features_add(s->shape.names, names[i], strlen(names[i]), err);
        if (feature < 0)
            return err->code;
        if (feature < before)
            return svi_fail(err, SVS_BAD_COLUMN, "a column has the name %s, which is one of the calendar",
                            names[i]);
        s->owner[feature] = -1;
        s->one_hot[feature] = 0;
        s->calendar = i == 0 ? feature : s->calendar;
        s->dirty = true;
    }
    return code;
}

static svs_code schema_take_calendar(struct svi_schema *s, struct svi_message *m, double time,
                                     svs_error *err) {
    const char *names[SVI_CALENDAR_MAX];
    double values[SVI_CALENDAR_MAX];
    if (svs_features_count(s->shape.names) < m->d)
        return svi_fail(err, SVS_NOT_SUPPORTED,
                        "the setting calendar needs columns with names: send x as a map, or `columns`");
    /* The zone is one of the process: another schema may have set a different one. */
    if (svi_calendar_set_zone(s->zone, err) != SVS_OK)
        return err->code;
    const int count = svi_calendar_features(s->zone, s->calendar_day, s->calendar_week, time, names, values);
    svs_code code = s->calendar >= 0 ? SVS_OK : schema_begin_calendar(s, m, names, count, err);
    for (int i = 0; i < count && code == SVS_OK; i++)
        schema_set(s, m, s->calendar + i, values[i]);
    return code;
}

svs_code svi_schema_calendar(struct svi_schema *s, struct svi_message *m, double time, svs_error *err) {
    return s->calendar_day || s->calendar_week ? schema_take_calendar(s, m, time, err) : SVS_OK;
}

/* ---- commit and undo */

/* Makes the state of the current row permanent: only a dirty row pays for the loop over all columns. */
static void schema_commit_columns(struct svi_schema *s) {
    s->columns_kept = svs_features_count(s->columns);
    for (int c = 0; c < s->columns_kept; c++)
        s->column[c].kept = s->column[c].now;
    s->calendar_kept = s->calendar;
    schema_end_renewed(s);
    s->dirty = s->mixed_now = false;
}

void svi_schema_commit(struct svi_schema *s, const struct svi_message *m) {
    svi_shape_commit(&s->shape, m); /* includes the names of features */
    if (!m->has_x || !s->columns)
        return;
    /* `rows` counts rows of a mixed stream only, as `seen` does. */
    s->rows++;
    if (s->dirty)
        schema_commit_columns(s);
}

void svi_schema_commit_names(struct svi_schema *s) {
    s->shape.names_kept = svs_features_count(s->shape.names);
    if (s->columns && s->dirty)
        schema_commit_columns(s);
}

bool svi_schema_has_new_names(const struct svi_schema *s) {
    return svs_features_count(s->shape.names) != s->shape.names_kept;
}

const char *svi_schema_name(const struct svi_schema *s, int feature) {
    /* Until the commit, readers of events see the former name. */
    for (int i = 0; i < s->renewed_count && feature < s->shape.names_kept; i++)
        if (s->renewed[i].feature == feature)
            return s->renewed[i].before;
    return svi_shape_name(&s->shape, feature);
}

const char *svi_schema_unit(const struct svi_schema *s, int feature) {
    return svi_units_find(s->o.units, svi_schema_name(s, feature));
}

void svi_schema_restore(struct svi_schema *s) {
    s->hot_count = s->absent_count = 0;
    if (s->columns && s->dirty) {
        const int count = svs_features_count(s->columns);
        /* The order matters: new columns are removed, kept ones get their state back, then names of features.
         */
        for (int c = s->columns_kept; c < count; c++) {
            svi_free(s->column[c].value);
            s->column[c] = (struct svi_column){0};
        }
        svs_features_truncate(s->columns, s->columns_kept);
        for (int c = 0; c < s->columns_kept; c++)
            s->column[c].now = s->column[c].kept;
        s->calendar = s->calendar_kept;
        /* Before renaming back: an added name may equal the former name of a feature. */
        svi_shape_restore(&s->shape);
        /* In reverse order of the changes, so that each name is free again when its owner returns to it. */
        for (int i = s->renewed_count - 1; i >= 0; i--) {
            struct svi_handover *r = &s->renewed[i];
            if (r->feature >= s->shape.names_kept)
                continue; /* added in this row, so truncated already */
            r->before = svi_feature_names_rename(s->shape.names, r->feature, r->before);
            s->one_hot[r->feature] = r->one_hot;
        }
        schema_end_renewed(s);
        s->dirty = false;
    }
    /* The stream was plain before this row, so all columns are dropped, not only new ones. */
    if (s->mixed_now)
        schema_forget_columns(s);
    svi_shape_restore(&s->shape);
}

void svi_schema_count_missing(struct svi_schema *s, const struct svi_message *m) {
    if (!s->missing && !(m->gaps || s->absent_count > 0))
        return;
    if (!s->missing && !(s->missing = svi_alloc_array((size_t)s->shape.max_features, sizeof *s->missing)))
        return; /* only a figure is lost: the row is accepted all the same */
    /* Features of the calendar are never missing, so every gap has an owner. */
    for (int j = 0; m->gaps && j < m->d; j++)
        if (m->gaps[j])
            s->missing[s->columns ? s->owner[j] : j]++;
    for (int i = 0; i < s->absent_count; i++)
        s->missing[s->absent[i]]++;
    s->absent_count = 0;
}

int64_t svi_schema_missed(const struct svi_schema *s, int column) {
    return s->missing ? s->missing[column] : 0;
}

/* The row has entered the window, the queue of waiting samples and the rows. */
void svi_schema_used(struct svi_schema *s) {
    for (int i = 0; i < s->hot_count; i++) {
        const int f = s->hot[i];
        s->seen[0][f] = s->held.window;
        s->seen[1][f] = s->held.waiting;
        s->seen[2][f] = s->rows;
    }
    s->hot_count = 0;
}

void svi_schema_used_row(struct svi_schema *s, const double *x, int d) {
    /* By its vector: the row's words are not known any more. */
    for (int j = 0; s->columns && j < d; j++)
        if (s->one_hot[j] && x[j] != 0)
            s->seen[0][j] = s->held.window;
}

bool svi_schema_unscaled(const struct svi_schema *s, int feature) {
    const char *name = svs_features_name(s->shape.names, feature);
    /* Scaling would make rare values large. */
    return (s->columns && s->one_hot[feature]) || (name && schema_listed(s->unscaled, name, strlen(name)));
}

/* ---- fewer features */

/* stays[c]: does column c keep a feature? The result uses the memory of s->absent, which is free between
 * rows. */
static const int32_t *schema_find_staying(const struct svi_schema *s, const bool *keep) {
    int32_t *stays = s->absent;
    memset(stays, 0, (size_t)s->shape.max_features * sizeof *stays);
    for (int j = 0; j < s->shape.d; j++)
        if (keep[j] && s->owner[j] >= 0)
            stays[s->owner[j]] = 1;
    return stays;
}

/* The first step of dropping features: everything that can fail. */
svs_code svi_schema_kept_columns(const struct svi_schema *s, const bool *keep, svs_features **columns,
                                 svs_error *err) {
    *columns = NULL;
    if (!s->columns)
        return SVS_OK;
    if (!(*columns = svs_features_new(s->shape.max_features, err)))
        return err->code;
    /* In the order of the columns, which svi_schema_keep relies on. */
    const int32_t *stays = schema_find_staying(s, keep);
    for (int c = 0; c < s->columns_kept; c++) {
        const char *name = svs_features_name(s->columns, c);
        if (stays[c] && svs_features_add(*columns, name, strlen(name), err) < 0) {
            svs_features_free(columns);
            return err->code;
        }
    }
    return SVS_OK;
}

/* Renumbers the features of a column. place[j]: the new number of feature j, -1 = dropped. */
static void schema_move_column(struct svi_column *c, const int32_t *place) {
    int values = 0;
    for (int i = 0; i < c->now.values; i++)
        if (place[c->value[i]] >= 0)
            c->value[values++] = place[c->value[i]];
    c->now.values = values;
    if (c->now.feature >= 0)
        c->now.feature = place[c->now.feature];
    c->kept = c->now;
}

/* Copies what is known by feature to a lower number. */
static void schema_move_feature(struct svi_schema *s, int from, int to, int32_t owner) {
    s->one_hot[to] = s->one_hot[from];
    s->owner[to] = owner;
    for (int k = 0; k < 3; k++)
        s->seen[k][to] = s->seen[k][from];
}

/* Moves a column to its new number; -1 drops it. In ascending order `to` <= `from`, so nothing is overwritten
 * that is still needed. */
static void schema_keep_column(struct svi_schema *s, int from, int to, const int32_t *place) {
    struct svi_column column = s->column[from];
    s->column[from] = (struct svi_column){0};
    if (to < 0) {
        svi_free(column.value);
        return;
    }
    schema_move_column(&column, place);
    s->column[to] = column;
    if (s->missing)
        s->missing[to] = s->missing[from];
}

/* Resets the counts of missing values of columns from this one on. */
static void schema_clear_missing(struct svi_schema *s, int from) {
    if (s->missing)
        memset(s->missing + from, 0, (size_t)(s->shape.max_features - from) * sizeof *s->missing);
}

void svi_schema_keep(struct svi_schema *s, const bool *keep, svs_features *names, svs_features *columns) {
    /* Works in memory that is free between rows (hot, absent), so that it cannot fail: the names were made
     * before. */
    int32_t *place = s->hot, kept = 0;
    const int d = s->shape.d, most = s->shape.max_features;
    const int32_t *stays = s->columns ? schema_find_staying(s, keep) : NULL;
    s->changes_before += svi_feature_names_changes(s->shape.names) + 1;
    svi_shape_keep(&s->shape, keep, names);
    /* A plain shape: columns are features, and only their counts move. */
    if (!s->columns) {
        for (int j = 0; s->missing && j < d; j++)
            if (keep[j])
                s->missing[kept++] = s->missing[j];
        schema_clear_missing(s, kept);
        return;
    }
    int32_t *column_place = s->absent, stay = 0; /* in place of `stays`, entry by entry */
    for (int c = 0; c < s->columns_kept; c++)
        column_place[c] = stays[c] ? stay++ : -1;
    for (int j = 0; j < most; j++)
        place[j] = -1;
    for (int j = 0; j < d; j++)
        if (keep[j]) {
            schema_move_feature(s, j, kept, s->owner[j] < 0 ? -1 : column_place[s->owner[j]]);
            place[j] = kept++;
        }
    for (int k = 0; k < 3; k++) /* features added later have never been seen */
        memset(s->seen[k] + kept, 0, (size_t)(most - kept) * sizeof *s->seen[k]);
    for (int c = 0; c < s->columns_kept; c++)
        schema_keep_column(s, c, column_place[c], place);
    schema_clear_missing(s, stay);
    s->calendar = s->calendar_kept = s->calendar >= 0 ? place[s->calendar] : -1;
    s->changes_before += svi_feature_names_changes(s->columns) + 1;
    svs_features_free(&s->columns);
    s->columns = columns;
    s->columns_kept = stay;
}

/* ---- archive */

bool svi_schema_archived(const struct svi_schema *s) {
    return s->columns != NULL;
}

/* One column: name, kind, own feature, and the features of its values. On loading, each figure is checked
 * before anything is made from it. */
static void schema_archive_column(struct svi_archive *a, struct svi_schema *s, int c) {
    char key[SVI_KEY_MAX], name[SVS_NAME_MAX + 1] = "";
    struct svi_column *column = &s->column[c];
    int kind = (int)column->now.kind;
    svs_error why = {0};
    if (!a->loading)
        snprintf(name, sizeof name, "%s", svs_features_name(s->columns, c));
    svi_archive_text(a, svi_archive_key(key, "column", c), name, sizeof name);
    svi_archive_int(a, svi_archive_key(key, "kind", c), &kind, SVI_COLUMN_OPEN, SVI_COLUMN_IGNORED);
    svi_archive_int(a, svi_archive_key(key, "feature", c), &column->now.feature, -1, s->shape.names_kept - 1);
    svi_archive_int(a, svi_archive_key(key, "count", c), &column->now.values, 0, s->o.categories_max);
    if (!svi_archive_ok(a))
        return;
    if (a->loading) {
        column->now.kind = (enum svi_column_kind)kind;
        const int place = svs_features_add(s->columns, name, strlen(name), &why);
        if (place < 0 && why.code == SVS_NO_MEMORY)
            svi_archive_fail(a, SVS_NO_MEMORY, why.text);
        else
            svi_archive_check(a, place == c, "a column's name is malformed or a duplicate");
    }
    /* The list of values is made before it is loaded; the count was checked against categories_max. */
    if (a->loading && svi_archive_ok(a) && kind == SVI_COLUMN_CATEGORY &&
        (svi_category_begin(s, c, a->err) != SVS_OK ||
         svi_category_reserve(column, column->now.values, a->err) != SVS_OK))
        return;
    if (svi_archive_check(a, kind == SVI_COLUMN_CATEGORY || column->now.values == 0,
                          "a column that is no category has values") &&
        kind == SVI_COLUMN_CATEGORY)
        svi_archive_ints(a, svi_archive_key(key, "values", c), column->value, column->now.values, 0,
                         s->shape.names_kept - 1);
    column->kept = column->now;
}

void svi_schema_archive(struct svi_archive *a, struct svi_schema *s) {
    static const char *const seen[] = {"seen in the window", "seen waiting", "seen in rows"};
    int columns = s->columns_kept;
    const int d = s->shape.names_kept; /* includes names from messages without a row */
    /* Loading into a plain shape: make the arrays first. */
    if (a->loading && schema_mix(s, NULL, a->err) != SVS_OK)
        return;
    if (a->loading) {
        /* schema_mix made columns of the loaded shape; the archive has its own. */
        svs_features_truncate(s->columns, 0);
        memset(s->column, 0, (size_t)s->shape.max_features * sizeof *s->column);
    }
    svi_archive_int(a, "columns", &columns, 0, s->shape.max_features);
    svi_archive_int(a, "calendar", &s->calendar, -1, d - 1);
    svi_archive_int64(a, "rows", &s->rows, 0, INT64_MAX / 4);
    for (int c = 0; c < columns && svi_archive_ok(a); c++)
        schema_archive_column(a, s, c);
    /* By feature, after the columns, whose number bounds the owners. */
    svi_archive_bytes(a, "one hot", s->one_hot, d);
    svi_archive_ints(a, "owners", s->owner, d, -1, columns - 1);
    for (int k = 0; k < 3; k++)
        svi_archive_int64s(a, seen[k], s->seen[k], d, 0, INT64_MAX / 4);
    if (!a->loading)
        return;
    s->columns_kept = svs_features_count(s->columns);
    s->calendar_kept = s->calendar;
    s->dirty = s->mixed_now = false;
}

void svi_schema_missing_archive(struct svi_archive *a, struct svi_schema *s) {
    int columns = svi_schema_columns(s);
    svi_archive_int(a, "columns", &columns, 0, s->shape.max_features);
    if (a->loading && svi_archive_ok(a) && !s->missing &&
        !(s->missing = svi_alloc_array((size_t)s->shape.max_features, sizeof *s->missing))) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the counts of missing values");
        return;
    }
    svi_archive_int64s(a, "missing", s->missing, columns, 0, INT64_MAX / 4);
}
