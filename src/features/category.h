/* category.h: the feature of a category's value. For schema.c. */
#ifndef SVI_CATEGORY_H
#define SVI_CATEGORY_H

#include "features/schema_internal.h"

/* The feature of that value, which is made, or taken over from a value that no held sample has, where it is
 * new; that of all further values when the column is full. -1: SVS_BAD_COLUMN, SVS_LIMIT, SVS_NO_MEMORY. */
int svi_category_feature(struct svi_schema *s, int column, const char *word, size_t length, svs_error *err);

/* The same where nothing is made: the feature of the value, else the one that it would share, else -1. */
int svi_category_known(const struct svi_schema *s, int column, const char *word, size_t length);

/* The feature that this value shares with others where it has none of its own, -1 = there is none. */
int svi_category_shared(const struct svi_schema *s, int column, const char *word, size_t length);

/* Room for the features of so many values. SVS_NO_MEMORY. */
svs_code svi_category_reserve(struct svi_column *c, int count, svs_error *err);

/* Makes a category of an open column. SVS_NO_MEMORY. */
svs_code svi_category_begin(struct svi_schema *s, int column, svs_error *err);

#endif
