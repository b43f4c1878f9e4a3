/* tuning.h: what leaving out each sample says of C (svs_learner_tune), as pairs of a map and back. */
#ifndef SVI_WIRE_TUNING_H
#define SVI_WIRE_TUNING_H

#include "svmstream/learner.h"
#include "wire/pack.h"

#define SVI_TUNING_KEYS 7

/* SVI_TUNING_KEYS pairs; those of `table`: one map for each C. */
void svi_put_tuning(struct svi_pack *p, const svs_tuning *t);

/* From a map that has them among others, in bytes whose form was checked. SVS_WRONG_TYPE: they are not all
 * there, or not what they must be. */
svs_code svi_tuning_read(const uint8_t *map, const uint8_t *end, svs_tuning *t, svs_error *err);

#endif
