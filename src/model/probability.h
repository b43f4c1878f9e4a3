/* probability.h: scores of a linear model -> probabilities of its classes, by a calibration (model.h:
 * svs_calibration).
 *
 *     z_k = curve(clamp(a s_k + b_k, +-SVI_LOGIT_MAX))
 *     two classes:   p(second) = 1 / (1 + exp(-z)), z of the one score,
 *     more:          p(k) = exp(z_k) / sum_j exp(z_j),
 *
 * Platt (1999) and its softmax form. `curve` is piecewise linear through (svi_logit_knots[j], curve[j]), with
 * slope 1 beyond the ends: rising, so that the order of the scores is kept. */
#ifndef SVI_PROBABILITY_H
#define SVI_PROBABILITY_H

#include "svmstream/model.h"

#define SVI_LOGIT_MAX 15.0 /* probabilities are 3e-7 to 1 - 3e-7: one mistake is not to cost all */

/* Where the curve has its knots, ascending: SVS_CURVE of them. */
extern const double svi_logit_knots[SVS_CURVE];

/* A number of any size, infinite or NaN (then 0), into [-most, most]. */
static inline double svi_bounded(double v, double most) {
    return v < -most ? -most : v > most ? most : v == v ? v : 0;
}

/* The place of z among the knots: z = (1 - *share) knot[j] + *share knot[j + 1], 0 <= *share <= 1; beyond the
 * ends *beyond is what z is further out. Returns j, 0 to SVS_CURVE - 2. */
int svi_logit_place(double z, double *share, double *beyond);

/* Fills proba[class_count], each in (0, 1), their sum 1 but for rounding. rows: 1 with class_count 2, else
 * class_count >= 3. */
void svi_probabilities(const svs_calibration *c, const double *scores, int rows, double *proba);

#endif
