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

#include "linalg/exponential.h"
#include "linalg/quads.h"
#include "svmstream/model.h"

#define SVI_LOGIT_MAX   15.0 /* probabilities are 3e-7 to 1 - 3e-7: one mistake is not to cost all */
#define SVI_LOGIT_PLAIN 12.0 /* a logit beyond it counts as if it were there, where a slope is learned */

/* Where the curve has its knots, ascending: SVS_CURVE of them. */
extern const double svi_logit_knots[SVS_CURVE];

/* 1 / (knot[j + 1] - knot[j]), and the interval that each 0.05 from the first knot on lies in. */
extern const double svi_logit_inverse[SVS_CURVE - 1];
extern const unsigned char svi_logit_interval[SVI_KNOTS_PLACES];

/* A number of any size, infinite or NaN (then 0), into [-most, most]. */
static inline double svi_bounded(double v, double most) {
    const double above = v > -most ? v : -most, within = above < most ? above : most;
    return v == v ? within : 0;
}

/* The same of one that is not NaN. */
static inline double svi_within(double v, double most) {
    const double above = v > -most ? v : -most;
    return above < most ? above : most;
}

/* A logit among the knots: z = (1 - share) knot[at] + share knot[at + 1], 0 <= share <= 1, at from 0 to
 * SVS_CURVE - 2. */
struct svi_logit {
    double z, share;
    int at;
};

/* Beyond the ends *beyond is what z is further out. */
static inline struct svi_logit svi_logit_place(double z, double *beyond) {
    const double above = z > -SVI_KNOTS_REACH ? z : -SVI_KNOTS_REACH;
    const double inside = above < SVI_KNOTS_REACH ? above : SVI_KNOTS_REACH;
    const int j = svi_logit_interval[(int)((inside + SVI_KNOTS_REACH) * 20)];
    const double share = (inside - svi_logit_knots[j]) * svi_logit_inverse[j];
    *beyond = z - inside;
    /* Next to a knot rounding finds the next interval, or the one before. */
    return (struct svi_logit){z, share <= 0 ? 0 : share < 1 ? share : 1, j};
}

/* The logit of a score before the curve. */
static inline double svi_logit_of(const svs_calibration *c, int k, double score) {
    return svi_within(c->a * (score == score ? score : 0) + c->b[k], SVI_LOGIT_MAX);
}

/* Fills proba[class_count], each in (0, 1), their sum 1 but for rounding. rows: 1 with class_count 2, else
 * class_count >= 3. */
void svi_probabilities(const svs_calibration *c, const double *scores, int rows, double *proba);

/* The place of a logit on a curve, and among the knots. */
static inline double svi_logit_curved(const double *curve, double z, struct svi_logit *at) {
    double beyond;
    *at = svi_logit_place(z, &beyond);
    const double *value = curve + at->at;
    return svi_within(value[0] + (value[1] - value[0]) * at->share + beyond, SVI_LOGIT_MAX);
}

/* Two classes: proba[2] at the logit z; returns that of the second one at another logit. */
static inline double svi_logit_pair(double z, double other, double *proba) {
    const svi_two lesser = svi_exp_two((svi_two){-fabs(z), -fabs(other)}),
                  greater = svi_both(1.0) / (svi_both(1.0) + lesser), product = lesser * greater;
    const int second = z > 0;
    proba[second] = greater[0];
    proba[!second] = product[0];
    return other > 0 ? greater[1] : product[1];
}

#endif
