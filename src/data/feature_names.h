/* feature_names.h: what the decoders need of the registry beyond the public header. */
#ifndef SVI_FEATURE_NAMES_H
#define SVI_FEATURE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/features.h"

/* Is this the name of that column? Cheaper than a lookup when the caller has a good guess. False when there
 * is no such column. */
bool svi_features_is(const svs_features *f, int column, const char *name, size_t length);

/* Another name for a column, in two steps of which only the first can fail (NULL: SVS_BAD_COLUMN, malformed
 * or another column has it; SVS_NO_MEMORY): a block that holds the name, and its place taken by it, which
 * returns the block of the name before. Blocks that the registry does not hold are the caller's to free
 * (svi_free). */
char *svi_features_new_name(const svs_features *f, const char *name, size_t length, svs_error *err);
char *svi_features_rename(svs_features *f, int column, char *name);

/* How often a name came or went: what was found out about the names holds as long as this is the same. */
uint64_t svi_features_changes(const svs_features *f);

/* Checks the invariants (every name is found at its column, the table holds nothing else); for tests. Slow.
 */
bool svi_features_check(const svs_features *f);

#endif
