#include "learner/probability.h"

#include <math.h>

/* Dense around 0, where a learner whose labels are noisy steps from one probability to another. */
const double svi_logit_knots[SVS_CURVE] = {-7,   -4.5, -3.2, -2.2, -1.4, -0.8, -0.4, -0.15, 0,
                                           0.15, 0.4,  0.8,  1.4,  2.2,  3.2,  4.5,  7};

int svi_logit_place(double z, double *share, double *beyond) {
    const double *knot = svi_logit_knots;
    int j = 0;
    *beyond = 0;
    if (z <= knot[0]) {
        *share = 0;
        *beyond = z - knot[0];
        return 0;
    }
    if (z >= knot[SVS_CURVE - 1]) {
        *share = 1;
        *beyond = z - knot[SVS_CURVE - 1];
        return SVS_CURVE - 2;
    }
    for (int k = 1; k < SVS_CURVE - 1; k++) /* counted, not searched: no branch that is hard to predict */
        j += z >= knot[k];
    *share = (z - knot[j]) / (knot[j + 1] - knot[j]);
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

void svi_softmax(double *z, int count) {
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
        svi_softmax(proba, rows);
        return;
    }
    const double z = proba[0], lesser = exp(-fabs(z)), sum = 1 + lesser;
    proba[z > 0] = 1 / sum;
    proba[!(z > 0)] = lesser / sum;
}
