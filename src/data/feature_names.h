/* feature_names.h: what decoders and schemas need of the registry of feature names beyond the public header.
 */
#ifndef SVI_FEATURE_NAMES_H
#define SVI_FEATURE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/features.h"

/* Is `name` the name of that column? Cheaper than a lookup when the caller has a good guess. False also when
 * the column does not exist. */
bool svi_feature_names_is(const svs_features *f, int column, const char *name, size_t length);

/* Renames a column in two steps, of which only the first can fail. svi_feature_names_new_name makes
 * the block of the name. NULL: SVS_BAD_COLUMN (the name is malformed or in use) or SVS_NO_MEMORY.
 * Then svi_feature_names_rename puts it in place and returns the block of the former name. A block
 * that the registry does not hold belongs to the caller (svi_free). */
char *svi_feature_names_new_name(const svs_features *f, const char *name, size_t length, svs_error *err);
char *svi_feature_names_rename(svs_features *f, int column, char *name);

/* How often names were added, removed or replaced: what was derived from the names is valid while this stays
 * the same. */
uint64_t svi_feature_names_changes(const svs_features *f);

/* Checks the invariants: every name is found at its column, and the table holds nothing else. Slow; for
 * tests. */
bool svi_feature_names_check(const svs_features *f);

#endif
