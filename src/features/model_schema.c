#include "features/model_schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "features/calendar.h"

#define UNOWNED (-2) /* owner of a feature that no column has claimed yet */

/* Adds the names of the features. In a mixed schema they are separate from the names of columns, of which
 * they do not exist yet. */
static svs_code model_schema_names(struct svi_schema *s, const char *const *features, int d, svs_error *err) {
    svs_error why = {0};
    for (int j = 0; j < d; j++) {
        const int at = svs_features_add(s->shape.names, features[j], strlen(features[j]), &why);
        if (at != j)
            return svi_fail(err, why.code == SVS_NO_MEMORY ? SVS_NO_MEMORY : SVS_WRONG_TYPE,
                            "features[%d] of the model is not a valid name: %s", j,
                            at < 0 ? why.text : "it is a duplicate");
        s->owner[j] = UNOWNED;
    }
    s->shape.kind = SVI_NAMED;
    s->shape.d = s->shape.names_kept = d;
    /* Closed from the start: the model's reader fills the schema directly, not by rows. */
    s->closed = true;
    s->dirty = false;
    return SVS_OK;
}

svs_code svi_model_schema_init(struct svi_model_schema *m, const char *const *features, int d, int columns,
                               svs_error *err) {
    const int capacity = d > columns ? d : columns;
    const struct svi_schema_options o = {
        .max_features = capacity > 0 ? capacity : 1, .categories_max = 1, .missing = SVI_MISSING_AUTO};
    *m = (struct svi_model_schema){0};
    /* Columns and features share one limit, the larger count of both. */
    svs_code code = svi_schema_init(&m->schema, &o, err);
    if (code == SVS_OK)
        code = svi_schema_begin_columns(&m->schema, err);
    if (code == SVS_OK)
        code = model_schema_names(&m->schema, features, d, err);
    if (code == SVS_OK && !(m->mean = svi_alloc_array((size_t)d + 1, sizeof *m->mean)))
        code = svi_fail_memory(err, "the schema of a model");
    for (int j = 0; code == SVS_OK && j < d; j++)
        m->mean[j] = NAN;
    return code;
}

void svi_model_schema_clear(struct svi_model_schema *m) {
    if (m->schema.shape.max_features > 0)
        svi_schema_clear(&m->schema);
    svi_free(m->mean);
    *m = (struct svi_model_schema){0};
}

int svi_model_schema_column(struct svi_model_schema *m, const char *name, enum svi_column_kind kind,
                            svs_error *err) {
    struct svi_schema *s = &m->schema;
    svs_error why = {0};
    const int count = svs_features_count(s->columns);
    /* Columns are numbered in the model's order: a duplicate returns an earlier one. */
    const int column = svs_features_add(s->columns, name, strlen(name), &why);
    if (column != count) {
        svi_fail(err, why.code == SVS_NO_MEMORY ? SVS_NO_MEMORY : SVS_WRONG_TYPE,
                 "the name of column %d of the model's schema is not valid: %s", count,
                 column < 0 ? why.text : "it is a duplicate");
        return -1;
    }
    /* now == kept: svi_schema_restore after a refused row must not undo the model's columns. */
    s->column[column].now = s->column[column].kept = (struct svi_column_state){kind, -1, 0};
    s->columns_kept = count + 1;
    return column;
}

/* A model comes from a file, so every feature is checked: it exists, and it has one owner. */
static svs_code model_schema_claim(struct svi_schema *s, int64_t feature, int owner, svs_error *err) {
    if (feature < 0 || feature >= s->shape.d)
        return svi_fail(err, SVS_WRONG_TYPE, "the model's schema has feature %lld of %d", (long long)feature,
                        s->shape.d);
    if (s->owner[feature] != UNOWNED)
        return svi_fail(err, SVS_WRONG_TYPE, "feature %lld has two columns in the model's schema",
                        (long long)feature);
    s->owner[feature] = owner;
    return SVS_OK;
}

svs_code svi_model_schema_own(struct svi_model_schema *m, int column, int64_t feature, svs_error *err) {
    struct svi_schema *s = &m->schema;
    struct svi_column *c = &s->column[column];
    SVI_TRY(model_schema_claim(s, feature, column, err));
    if (c->now.kind == SVI_COLUMN_CATEGORY)
        s->one_hot[feature] = 1;
    else
        c->now.feature = c->kept.feature = (int32_t)feature;
    return SVS_OK;
}

svs_code svi_model_schema_calendar(struct svi_model_schema *m, bool day, bool week, const char *zone,
                                   int64_t feature, svs_error *err) {
    struct svi_schema *s = &m->schema;
    const char *names[SVI_CALENDAR_MAX];
    const int count = svi_calendar_features(zone, day, week, 0, names, NULL);
    svs_code code = SVS_OK;
    for (int i = 0; i < count && code == SVS_OK; i++)
        code = model_schema_claim(s, feature + i, -1, err);
    if (code != SVS_OK || count == 0)
        return code;
    /* Consecutive features in the order of svi_calendar_features: only the first one is kept. */
    snprintf(s->zone, sizeof s->zone, "%s", zone);
    s->calendar_day = day;
    s->calendar_week = week;
    s->calendar = s->calendar_kept = (int)feature;
    return SVS_OK;
}

svs_code svi_model_schema_fill(const struct svi_model_schema *m, struct svi_message *row, svs_error *err) {
    const enum svi_missing policy = svi_schema_policy(&m->schema, row);
    for (int j = 0; row->missing > 0 && j < row->d; j++) {
        if (!isnan(row->x[j]))
            continue;
        /* NAN for every other policy: the model has no past to carry over, so the row is refused. */
        row->x[j] = policy == SVI_MISSING_ZERO ? 0 : policy == SVI_MISSING_MEAN ? m->mean[j] : NAN;
        if (isnan(row->x[j]))
            return svi_fail(err, SVS_MISSING_VALUE, "the value of \"%s\" is missing, and the model %s",
                            svs_features_name(m->schema.shape.names, j),
                            policy == SVI_MISSING_MEAN
                                ? "has no mean to replace it"
                                : "has nothing to replace it: give the value, or --missing zero");
    }
    return SVS_OK;
}
