/* calibration.h: conformal p-values from a sliding window of scores.
 *
 *     p(s) = (1 + number of calibration scores >= s) / (1 + number of calibration scores)
 *
 * When the scored sample and the calibration samples are exchangeable, P(p <= a) <= a for every a, whatever
 * the score (Vovk, Gammerman, Shafer 2005). That needs calibration samples which the model was not fitted on
 * and which were chosen without looking at their scores. */
#ifndef SVI_CALIBRATION_H
#define SVI_CALIBRATION_H

#include <stdint.h>

#include "svmstream/error.h"

struct svi_calibration {
    double *scores; /* ring of `room` */
    int room, count, at;
};

svs_code svi_calibration_init(struct svi_calibration *c, int room, svs_error *err);
void svi_calibration_clear(struct svi_calibration *c);
void svi_calibration_empty(struct svi_calibration *c);

/* 1 with no scores yet. */
double svi_calibration_p(const struct svi_calibration *c, double score);

/* The score takes the place of the oldest when full; returns that place, 0 to room - 1. */
int svi_calibration_add(struct svi_calibration *c, double score);

#endif
