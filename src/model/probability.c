#include "model/probability.h"

#include <math.h>

/* Dense around 0, where a learner whose labels are noisy steps from one probability to another. */
const double svi_logit_knots[SVS_CURVE] = {-7,   -4.5, -3.2, -2.2, -1.4, -0.8, -0.4, -0.15, 0,
                                           0.15, 0.4,  0.8,  1.4,  2.2,  3.2,  4.5,  7};

/* 1 / (knot[j + 1] - knot[j]) */
static const double inverse_width[SVS_CURVE - 1] = {1 / 2.5,  1 / 1.3,  1 / 1.0,  1 / 0.8,  1 / 0.6, 1 / 0.4,
                                                    1 / 0.25, 1 / 0.15, 1 / 0.15, 1 / 0.25, 1 / 0.4, 1 / 0.6,
                                                    1 / 0.8,  1 / 1.0,  1 / 1.3,  1 / 2.5};

/* Intervals from 0 on for each 0.05 of |z|: 3, 8, 16, 28, 44, 64, 90 and 140 of them end at knots. */
#define TIMES4(n)  n, n, n, n
#define TIMES12(n) TIMES4(n), TIMES4(n), TIMES4(n)
static const unsigned char interval[140] = {
    0,         0,          0,          1,          1,          1,          1,         1,          TIMES4(2),
    TIMES4(2), TIMES12(3), TIMES12(4), TIMES4(4),  TIMES12(5), TIMES4(5),  TIMES4(5), TIMES12(6), TIMES12(6),
    6,         6,          TIMES12(7), TIMES12(7), TIMES12(7), TIMES12(7), 7,         7};

int svi_logit_place(double z, double *share, double *beyond) {
    const double most = svi_logit_knots[SVS_CURVE - 1], size = fabs(z);
    *beyond = 0;
    if (size >= most) {
        *share = z > 0;
        *beyond = z - copysign(most, z);
        return z > 0 ? SVS_CURVE - 2 : 0;
    }
    const int out = interval[(int)(size * 20)], j = SVS_CURVE / 2 + (z >= 0 ? out : -1 - out);
    *share = (z - svi_logit_knots[j]) * inverse_width[j];
    return j;
}

static double probability_logit(const svs_calibration *c, int k, double score) {
    const double z = svi_bounded(c->a * svi_bounded(score, 1e100) + c->b[k], SVI_LOGIT_MAX);
    double share, beyond;
    if (!c->curve)
        return z;
    const int j = svi_logit_place(z, &share, &beyond);
    return svi_bounded(c->curve[j] * (1 - share) + c->curve[j + 1] * share + beyond, SVI_LOGIT_MAX);
}

/* z_k -> exp(z_k) / sum_j exp(z_j), no more than SVI_LOGIT_MAX below the largest. */
static void probability_softmax(double *z, int count) {
    double top = z[0], sum = 0;
    for (int k = 1; k < count; k++)
        top = z[k] > top ? z[k] : top;
    for (int k = 0; k < count; k++)
        sum += z[k] = exp(fmax(z[k] - top, -SVI_LOGIT_MAX));
    for (int k = 0; k < count; k++)
        z[k] /= sum;
}

void svi_probabilities(const svs_calibration *c, const double *scores, int rows, double *proba) {
    for (int k = 0; k < rows; k++)
        proba[k] = probability_logit(c, k, scores[k]);
    if (rows > 1) {
        probability_softmax(proba, rows);
        return;
    }
    const double z = proba[0], lesser = exp(-fabs(z)), greater = 1 / (1 + lesser);
    proba[z > 0] = greater;
    proba[!(z > 0)] = lesser * greater;
}
