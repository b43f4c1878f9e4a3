/* schema_map.h: the schema of a model as msgpack: the key `schema` of a model event and of model files
 * (`svmstream help protocol` has its keys). */
#ifndef SVI_SCHEMA_MAP_H
#define SVI_SCHEMA_MAP_H

#include "base/bytes.h"
#include "features/model_schema.h"

/* Does a model need the key `schema`, because its columns are more than its features? `filled`: the policy
 * has replaced missing values, or columns that a row did not name, by means or zeros. */
bool svi_schema_matters(const struct svi_schema *s, bool filled);

/* Appends the schema of a model of the first d features, all of which have names. `mean`: [d], or NULL;
 * `zone`: of the calendar. SVS_NO_MEMORY. */
svs_code svi_schema_encode(const struct svi_schema *s, int d, const double *mean, const char *zone,
                           struct svi_bytes *out);

/* Reads a schema for the d features of these names from one complete msgpack object, checked by svi_walk.
 * SVS_WRONG_TYPE with the reason, SVS_DUPLICATE_KEY, SVS_SETTING (the zone is not known on this machine),
 * SVS_NO_MEMORY. The caller clears *m in any case. */
svs_code svi_schema_decode(struct svi_model_schema *m, const char *const *features, int d, const uint8_t *at,
                           const uint8_t *end, svs_error *err);

#endif
