/* model_schema.h: the schema that a model carries: what the columns of raw rows are, how their values become
 * features, and the means that replace missing numbers. It is used as any schema (schema.h), but it is
 * closed: rows add nothing to it. */
#ifndef SVI_MODEL_SCHEMA_H
#define SVI_MODEL_SCHEMA_H

#include "features/schema.h"

struct svi_model_schema {
    struct svi_schema schema;
    double *mean; /* by feature: the replacement of a missing value, NAN = none; owned */
};

/* Makes a schema with the d features of those names and no columns yet; `columns`: how many will follow.
 * SVS_WRONG_TYPE: names that features cannot have. SVS_NO_MEMORY. Clear it in any case. */
svs_code svi_model_schema_init(struct svi_model_schema *m, const char *const *features, int d, int columns,
                               svs_error *err);
void svi_model_schema_clear(struct svi_model_schema *m);

/* Adds the next column and returns its number. -1: SVS_WRONG_TYPE, SVS_NO_MEMORY. */
int svi_model_schema_column(struct svi_model_schema *m, const char *name, enum svi_column_kind kind,
                            svs_error *err);

/* Gives the feature to the column: the one of its numbers, or one of a category's values. SVS_WRONG_TYPE: no
 * such feature, or it has an owner. */
svs_code svi_model_schema_own(struct svi_model_schema *m, int column, int64_t feature, svs_error *err);

/* Makes the features from `feature` on those of the calendar. SVS_WRONG_TYPE. The zone is checked when the
 * first row arrives. */
svs_code svi_model_schema_calendar(struct svi_model_schema *m, bool day, bool week, const char *zone,
                                   int64_t feature, svs_error *err);

/* Replaces missing values by the policy of the row (svi_schema_policy: mean or zero). SVS_MISSING_VALUE:
 * another policy, or no mean. */
svs_code svi_model_schema_fill(const struct svi_model_schema *m, struct svi_message *row, svs_error *err);

#endif
