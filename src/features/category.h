/* category.h: the feature of a category's value. Private to the schema (schema.c). */
#ifndef SVI_CATEGORY_H
#define SVI_CATEGORY_H

#include "features/schema_internal.h"

/* The feature of the value. A new value gets a new feature, or takes over that of a value that no held sample
 * has; when the column is full, it shares one with other values. -1: SVS_BAD_COLUMN, SVS_LIMIT,
 * SVS_NO_MEMORY. */
int svi_category_feature(struct svi_schema *s, int column, const char *word, size_t length, svs_error *err);

/* The same without any change: the feature of the value, else the one that it would share, else -1. */
int svi_category_known(const struct svi_schema *s, int column, const char *word, size_t length);

/* The feature that the value would share with others without one of its own; -1 = it does not exist. */
int svi_category_shared(const struct svi_schema *s, int column, const char *word, size_t length);

/* Reserves the list of features for `count` values. SVS_NO_MEMORY. */
svs_code svi_category_reserve(struct svi_column *c, int count, svs_error *err);

/* Makes an open column a category. SVS_NO_MEMORY. */
svs_code svi_category_begin(struct svi_schema *s, int column, svs_error *err);

#endif
