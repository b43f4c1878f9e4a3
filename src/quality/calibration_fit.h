/* calibration_fit.h: the calibration of many scores at once.
 *
 * The minimum of the log loss of (a, b) of learner/probability.h without a curve, for targets that leave room
 * for the rows that are not there (Platt 1999): n_k rows of class k of K have (n_k + 1) / (n_k + K) of it and
 * 1 / (n_k + K) of each other. Two classes: Newton with halved steps (Lin, Lin, Weng 2007). More: Newton
 * by coordinates, the slope and each offset in turn, which are summed to 0. */
#ifndef SVI_CALIBRATION_FIT_H
#define SVI_CALIBRATION_FIT_H

#include <stdint.h>

#include "svmstream/error.h"

/* scores: n x rows, of rows that were not learned by what scored them; label: n class indices; rows and
 * class_count as in svs_model, class_count >= 2. Fills *a (above 0) and b[rows]. SVS_NO_MEMORY;
 * SVS_UNAVAILABLE: the scores rank the classes at random or the other way round, so that no slope above 0
 * fits. */
svs_code svi_calibration_fit(const double *scores, const int32_t *label, int64_t n, int rows, int class_count,
                             double *a, double *b, svs_error *err);

#endif
