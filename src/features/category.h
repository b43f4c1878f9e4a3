/* category.h: the feature of a category's value. For schema.c. */
#ifndef SVI_CATEGORY_H
#define SVI_CATEGORY_H

#include "features/schema.h"

/* The feature of that value, which is made, or taken over from a value that no held sample has, where it is
 * new; that of all further values when the column is full. -1: SVS_BAD_COLUMN, SVS_LIMIT, SVS_NO_MEMORY. */
int svi_category_feature(struct svi_schema *s, int column, const char *word, size_t length, svs_error *err);

/* Room for the features of so many values. SVS_NO_MEMORY. */
svs_code svi_category_reserve(struct svi_column *c, int count, svs_error *err);

/* Makes a category of an open column. SVS_NO_MEMORY. */
svs_code svi_category_begin(struct svi_schema *s, int column, svs_error *err);

#endif
