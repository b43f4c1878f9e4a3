/* tuning.h: the result of tuning C by leave-one-out (svs_learner_tune) as pairs of a msgpack map, and back.
 */
#ifndef SVI_WIRE_TUNING_H
#define SVI_WIRE_TUNING_H

#include "svmstream/learner.h"
#include "wire/pack.h"

#define SVI_TUNING_KEYS 7

/* Puts SVI_TUNING_KEYS pairs; `table` holds one map for each C. */
void svi_put_tuning(struct svi_pack *p, const svs_tuning *t);

/* Reads the pairs from a map that may have others too, in bytes whose form was checked. SVS_WRONG_TYPE: a
 * pair is absent or has a wrong type or range. */
svs_code svi_tuning_read(const uint8_t *map, const uint8_t *end, svs_tuning *t, svs_error *err);

#endif
