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

#include <math.h>

#include "svmstream/model.h"

#define SVI_LOGIT_MAX 15.0 /* probabilities are 3e-7 to 1 - 3e-7: one mistake is not to cost all */

/* Where the curve has its knots, ascending: SVS_CURVE of them. */
extern const double svi_logit_knots[SVS_CURVE];

/* 1 / (knot[j + 1] - knot[j]), and the intervals from 0 on for each 0.05 of |z|. */
extern const double svi_logit_inverse[SVS_CURVE - 1];
extern const unsigned char svi_logit_interval[140];

/* A number of any size, infinite or NaN (then 0), into [-most, most]. */
static inline double svi_bounded(double v, double most) {
    const double above = v > -most ? v : -most, within = above < most ? above : most;
    return v == v ? within : 0;
}

/* A logit among the knots: z = (1 - share) knot[at] + share knot[at + 1], 0 <= share <= 1, at from 0 to
 * SVS_CURVE - 2. */
struct svi_logit {
    double z, share;
    int at;
};

/* Beyond the ends *beyond is what z is further out. */
static inline struct svi_logit svi_logit_place(double z, double *beyond) {
    const double most = svi_logit_knots[SVS_CURVE - 1], size = fabs(z);
    *beyond = 0;
    if (size >= most) {
        *beyond = z - copysign(most, z);
        return (struct svi_logit){z, z > 0, z > 0 ? SVS_CURVE - 2 : 0};
    }
    const int out = svi_logit_interval[(int)(size * 20)], j = SVS_CURVE / 2 + (z >= 0 ? out : -1 - out);
    return (struct svi_logit){z, (z - svi_logit_knots[j]) * svi_logit_inverse[j], j};
}

/* The logit of a score before the curve. */
static inline double svi_logit_of(const svs_calibration *c, int k, double score) {
    return svi_bounded(c->a * svi_bounded(score, 1e100) + c->b[k], SVI_LOGIT_MAX);
}

/* Fills proba[class_count], each in (0, 1), their sum 1 but for rounding. rows: 1 with class_count 2, else
 * class_count >= 3. */
void svi_probabilities(const svs_calibration *c, const double *scores, int rows, double *proba);

/* The same with a curve, of two classes and of more; where the logits lie before it into *at, at[rows], for
 * the calibrator. */
void svi_probabilities_pair(const svs_calibration *c, double score, double *proba, struct svi_logit *at);
void svi_probabilities_placed(const svs_calibration *c, const double *scores, int rows, double *proba,
                              struct svi_logit *at);

/* z_k -> exp(z_k) / sum_j exp(z_j), no more than SVI_LOGIT_MAX below the largest. */
void svi_softmax(double *z, int count);

#endif
