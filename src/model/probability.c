#include "model/probability.h"

#include <math.h>

/* Dense around 0, where a learner whose labels are noisy steps from one probability to another. */
const double svi_logit_knots[SVS_CURVE] = {-7,   -4.5, -3.2, -2.2, -1.4, -0.8, -0.4, -0.15, 0,
                                           0.15, 0.4,  0.8,  1.4,  2.2,  3.2,  4.5,  7};

const double svi_logit_inverse[SVS_CURVE - 1] = {1 / 2.5,  1 / 1.3,  1 / 1.0,  1 / 0.8,  1 / 0.6, 1 / 0.4,
                                                 1 / 0.25, 1 / 0.15, 1 / 0.15, 1 / 0.25, 1 / 0.4, 1 / 0.6,
                                                 1 / 0.8,  1 / 1.0,  1 / 1.3,  1 / 2.5};

/* Of those from 0 on 3, 8, 16, 28, 44, 64, 90 and 140 of them end at knots. */
#define TIMES4(n)  n, n, n, n
#define TIMES12(n) TIMES4(n), TIMES4(n), TIMES4(n)
const unsigned char svi_logit_interval[140] = {
    0,         0,          0,          1,          1,          1,          1,         1,          TIMES4(2),
    TIMES4(2), TIMES12(3), TIMES12(4), TIMES4(4),  TIMES12(5), TIMES4(5),  TIMES4(5), TIMES12(6), TIMES12(6),
    6,         6,          TIMES12(7), TIMES12(7), TIMES12(7), TIMES12(7), 7,         7};

static inline double probability_curve(const svs_calibration *c, double z, struct svi_logit *at) {
    double beyond;
    *at = svi_logit_place(z, &beyond);
    return svi_bounded(c->curve[at->at] * (1 - at->share) + c->curve[at->at + 1] * at->share + beyond,
                       SVI_LOGIT_MAX);
}

void svi_softmax(double *z, int count) {
    double top = z[0], sum = 0;
    for (int k = 1; k < count; k++)
        top = z[k] > top ? z[k] : top;
    for (int k = 0; k < count; k++) {
        const double below = z[k] - top;
        sum += z[k] = exp(below > -SVI_LOGIT_MAX ? below : -SVI_LOGIT_MAX);
    }
    for (int k = 0; k < count; k++)
        z[k] /= sum;
}

static inline void probability_pair(double z, double *proba) {
    const double lesser = exp(-fabs(z)), greater = 1 / (1 + lesser);
    proba[z > 0] = greater;
    proba[!(z > 0)] = lesser * greater;
}

void svi_probabilities_pair(const svs_calibration *c, double score, double *proba, struct svi_logit *at) {
    probability_pair(probability_curve(c, svi_logit_of(c, 0, score), at), proba);
}

void svi_probabilities_placed(const svs_calibration *c, const double *scores, int rows, double *proba,
                              struct svi_logit *at) {
    for (int k = 0; k < rows; k++)
        proba[k] = probability_curve(c, svi_logit_of(c, k, scores[k]), &at[k]);
    svi_softmax(proba, rows);
}

void svi_probabilities(const svs_calibration *c, const double *scores, int rows, double *proba) {
    struct svi_logit at;
    for (int k = 0; k < rows; k++) {
        const double z = svi_logit_of(c, k, scores[k]);
        proba[k] = c->curve ? probability_curve(c, z, &at) : z;
    }
    if (rows > 1)
        svi_softmax(proba, rows);
    else
        probability_pair(proba[0], proba);
}
