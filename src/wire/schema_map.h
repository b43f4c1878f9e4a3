/* schema_map.h: the schema of a model as msgpack: the key `schema` of a model event and of model files
 * (`svmstream help protocol` has its keys). */
#ifndef SVI_SCHEMA_MAP_H
#define SVI_SCHEMA_MAP_H

#include "base/bytes.h"
#include "features/model_schema.h"

/* Is there more to know of the columns than that they are the features? Then a model has the key. `filled`:
 * the policy put means or zeros where values were missing, or where a row did not name a column. */
bool svi_schema_matters(const struct svi_schema *s, bool filled);

/* Appends the schema of a model of the first d features, all of which have names. `mean` (NULL = there are
 * none) by feature; `zone` of the calendar. SVS_NO_MEMORY. */
svs_code svi_schema_encode(const struct svi_schema *s, int d, const double *mean, const char *zone,
                           struct svi_bytes *out);

/* One complete msgpack object, checked by svi_walk, that is a schema for the d features of these names.
 * SVS_WRONG_TYPE with the reason, SVS_DUPLICATE_KEY, SVS_SETTING (a zone that is not known here),
 * SVS_NO_MEMORY. Clear it in any case. */
svs_code svi_schema_decode(struct svi_model_schema *m, const char *const *features, int d, const uint8_t *at,
                           const uint8_t *end, svs_error *err);

#endif
