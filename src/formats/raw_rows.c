/* The public schema, svs_schema: a model's schema, or one that grows with its rows, behind functions
 * without wire types. One row is built at a time, as a message; after a failure it must be begun again,
 * and what it would have changed is taken back. */
#include "svmstream/raw_rows.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "wire/schema_map.h"

struct svs_schema {
    struct svi_model_schema of; /* `mean` is NULL if it is not a model's schema */
    struct svi_message row;
    bool begun;
    double time;
};

void svs_schema_options_default(svs_schema_options *o) {
    *o = (svs_schema_options){.max_features = 10000, .categories_max = 100};
}

static svs_schema *raw_rows_new(svs_error *err) {
    svs_schema *s = svi_alloc(sizeof *s);
    if (!s)
        svi_fail_memory(err, "a schema");
    return s;
}

svs_schema *svs_schema_new(const svs_schema_options *o, svs_error *err) {
    svs_error mine = {0};
    err = err ? err : &mine;
    const struct svi_schema_options inside = {.max_features = o->max_features,
                                              .categories = o->categories,
                                              .numbers = o->numbers,
                                              .ignore = o->ignore,
                                              .categories_max = o->categories_max,
                                              .hash = o->hash,
                                              .calendar = o->calendar,
                                              .zone = o->zone,
                                              .missing = SVI_MISSING_MEAN};
    if (o->categories_max < 1 || o->hash < 0 || o->hash > 12) {
        svi_fail(err, SVS_SETTING, "categories_max is 1 at least, hash 0 to 12");
        return NULL;
    }
    svs_schema *s = raw_rows_new(err);
    if (s && svi_schema_init(&s->of.schema, &inside, err) != SVS_OK)
        svs_schema_free(&s);
    return s;
}

/* A schema for a model without one: each feature is a column of numbers under its name. */
static svs_code raw_rows_plain(struct svi_model_schema *of, const svs_model *m, svs_error *err) {
    if (!m->features)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "the features of the model have no names: its rows are arrays of numbers");
    svs_code code = svi_model_schema_init(of, m->features, m->d, m->d, err);
    if (code == SVS_OK)
        of->schema.o.missing = SVI_MISSING_ZERO; /* such a model has no means to fill in */
    for (int j = 0; j < m->d && code == SVS_OK; j++) {
        const int column = svi_model_schema_column(of, m->features[j], SVI_COLUMN_NUMBER, err);
        code = column < 0 ? SVS_WRONG_TYPE : svi_model_schema_own(of, column, j, err);
    }
    return code;
}

svs_schema *svs_schema_of_model(const svs_model *m, svs_error *err) {
    svs_error mine = {0};
    err = err ? err : &mine;
    svs_schema *s = raw_rows_new(err);
    const uint8_t *at = m->schema;
    if (!s)
        return NULL;
    svs_code code = at ? svi_schema_decode(&s->of, m->features, m->d, at, at + m->schema_size, err)
                       : raw_rows_plain(&s->of, m, err);
    if (code != SVS_OK)
        svs_schema_free(&s);
    return s;
}

void svs_schema_free(svs_schema **s) {
    if (!*s)
        return;
    svi_model_schema_clear(&(*s)->of);
    svi_free(*s);
    *s = NULL;
}

/* Begins a row. Columns that it does not name will be missing. */
svs_code svs_schema_begin(svs_schema *s, svs_error *err) {
    svs_error mine = {0};
    err = err ? err : &mine;
    /* A row that was begun and not ended is dropped. */
    svi_schema_restore(&s->of.schema);
    s->row = (struct svi_message){.absent = SVI_MISSING_MEAN, .ts = NAN, .weight = 1, .n = -1};
    s->time = NAN;
    svs_code code = svi_schema_begin_row(&s->of.schema, &s->row, err);
    s->begun = code == SVS_OK;
    return code;
}

/* Passes `code` on; a failure ends the row and takes back what it would have changed. */
static svs_code raw_rows_taken(svs_schema *s, svs_code code) {
    if (code != SVS_OK) {
        svi_schema_restore(&s->of.schema);
        s->begun = false;
    }
    return code;
}

/* Sets the value of a column in the row. A number must be finite; for a word `number` is 0. */
static svs_code raw_rows_put(svs_schema *s, const char *name, struct svi_cell cell, svs_error *err) {
    svs_error mine = {0};
    err = err ? err : &mine;
    if (!s->begun)
        return raw_rows_taken(
            s, svi_fail(err, SVS_INVALID,
                        "no row is begun: call svs_schema_begin first, and again after a failure"));
    const int column = svi_schema_column(&s->of.schema, &s->row, name, strlen(name), -1, err);
    if (column < 0)
        return raw_rows_taken(s, err->code);
    if (!isfinite(cell.number))
        return raw_rows_taken(s, svi_fail(err, SVS_NOT_FINITE, "x[\"%.80s\"] is not finite", name));
    return raw_rows_taken(s, svi_schema_cell(&s->of.schema, &s->row, &cell, column, err));
}

svs_code svs_schema_number(svs_schema *s, const char *name, double value, svs_error *err) {
    return raw_rows_put(s, name, (struct svi_cell){.kind = SVI_CELL_NUMBER, .number = value}, err);
}

svs_code svs_schema_word(svs_schema *s, const char *name, const char *word, svs_error *err) {
    const struct svi_cell cell = {.kind = SVI_CELL_WORD, .word = word, .length = (uint32_t)strlen(word)};
    return raw_rows_put(s, name, cell, err);
}

svs_code svs_schema_missing(svs_schema *s, const char *name, svs_error *err) {
    return raw_rows_put(s, name, (struct svi_cell){.kind = SVI_CELL_MISSING}, err);
}

void svs_schema_time(svs_schema *s, double seconds) {
    s->time = seconds;
}

svs_code svs_schema_end(svs_schema *s, const double **x, int *d, svs_error *err) {
    svs_error mine = {0};
    err = err ? err : &mine;
    struct svi_schema *schema = &s->of.schema;
    if (!s->begun)
        return svi_fail(err, SVS_INVALID, "no row is begun: call svs_schema_begin first");
    /* In this order: missing columns, calendar, limits, then means for what is missing. Only a row that
     * passed all is committed. */
    svi_schema_end_row(schema, &s->row);
    svs_code code = SVS_OK;
    if ((schema->calendar_day || schema->calendar_week) && !isfinite(s->time))
        code =
            svi_fail(err, SVS_WRONG_TYPE, "the row has no time, and the calendar needs one: svs_schema_time");
    if (code == SVS_OK)
        code = svi_schema_calendar(schema, &s->row, s->time, err);
    if (code == SVS_OK)
        code = svi_shape_fits(&schema->shape, &s->row, err);
    if (code == SVS_OK && s->of.mean)
        code = svi_model_schema_fill(&s->of, &s->row, err);
    if (raw_rows_taken(s, code) != SVS_OK)
        return code;
    svi_schema_commit(schema, &s->row);
    schema->held = (struct svi_held){
        .window = schema->rows}; /* no value is ever dropped, so its feature stays where it is */
    svi_schema_used(schema);
    s->begun = false;
    *x = s->row.x;
    *d = s->row.d;
    return SVS_OK;
}

int svs_schema_dimension(const svs_schema *s) {
    return s->of.schema.shape.d;
}

const char *svs_schema_feature(const svs_schema *s, int feature) {
    const struct svi_shape *shape = &s->of.schema.shape;
    return feature >= 0 && feature < shape->d ? svs_features_name(shape->names, feature) : NULL;
}

bool svs_schema_is_word(const svs_schema *s, int feature) {
    const struct svi_schema *schema = &s->of.schema;
    return feature >= 0 && feature < schema->shape.d && schema->columns && schema->one_hot[feature];
}
