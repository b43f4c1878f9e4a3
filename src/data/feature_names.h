/* feature_names.h: what the decoders need of the registry beyond the public header. */
#ifndef SVI_FEATURE_NAMES_H
#define SVI_FEATURE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/features.h"

/* Is this the name of that column? Cheaper than a lookup when the caller has a good guess. False when there
 * is no such column. */
bool svi_features_is(const svs_features *f, int column, const char *name, size_t length);

/* How often a name came or went: what was found out about the names holds as long as this is the same. */
uint64_t svi_features_changes(const svs_features *f);

/* Checks the invariants (every name is found at its column, the table holds nothing else); for tests. Slow.
 */
bool svi_features_check(const svs_features *f);

#endif
