/* calibration_map.h: how scores become probabilities, as msgpack. */
#ifndef SVI_CALIBRATION_MAP_H
#define SVI_CALIBRATION_MAP_H

#include "svmstream/model.h"
#include "wire/pack.h"

/* One number for each row of a model: a number where there is one row. */
void svi_put_rows(struct svi_pack *p, const char *key, const double *v, int rows);

/* The pair `calibration` of a model with this number of rows. */
void svi_put_calibration(struct svi_pack *p, const svs_calibration *c, int rows);

#endif
