/* model_schema.h: the schema that a model carries: what the columns of raw rows are, how their values become
 * its features, and the means that it puts where a number is missing. Rows go by it as by any schema
 * (schema.h), but nothing is added: it is closed. */
#ifndef SVI_MODEL_SCHEMA_H
#define SVI_MODEL_SCHEMA_H

#include "features/schema.h"

struct svi_model_schema {
    struct svi_schema schema;
    double *mean; /* by feature: what is put where it is missing, NAN = nothing is; owned */
};

/* Without columns, for the d features of those names. SVS_WRONG_TYPE: names that cannot be those of features.
 * SVS_NO_MEMORY. Clear it in any case. */
svs_code svi_model_schema_init(struct svi_model_schema *m, const char *const *features, int d, int columns,
                               svs_error *err);
void svi_model_schema_clear(struct svi_model_schema *m);

/* The next column. -1: SVS_WRONG_TYPE, SVS_NO_MEMORY. */
int svi_model_schema_column(struct svi_model_schema *m, const char *name, enum svi_column_kind kind,
                            svs_error *err);

/* The feature is that column's: the one of a number, or one of a category's values. SVS_WRONG_TYPE: there is
 * no such feature, or it has an owner. */
svs_code svi_model_schema_own(struct svi_model_schema *m, int column, int64_t feature, svs_error *err);

/* The features from this one on are those of the calendar. SVS_WRONG_TYPE. The zone is
 * looked at when the first row comes. */
svs_code svi_model_schema_calendar(struct svi_model_schema *m, bool day, bool week, const char *zone,
                                   int64_t feature, svs_error *err);

/* Puts what the policy of the row (svi_schema_policy: mean or zero) has in the place of missing values.
 * SVS_MISSING_VALUE: another policy, or no mean. */
svs_code svi_model_schema_fill(const struct svi_model_schema *m, struct svi_message *row, svs_error *err);

#endif
