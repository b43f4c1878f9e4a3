/* calibration_map.h: the calibration that turns scores into probabilities, as msgpack. */
#ifndef SVI_CALIBRATION_MAP_H
#define SVI_CALIBRATION_MAP_H

#include "svmstream/model.h"
#include "wire/pack.h"

/* Puts one number for each row of a model: a plain number if rows is 1, else packed doubles. */
void svi_put_rows(struct svi_pack *p, const char *key, const double *v, int rows);

/* Puts the pair `calibration` of a model with this number of rows. */
void svi_put_calibration(struct svi_pack *p, const svs_calibration *c, int rows);

#endif
