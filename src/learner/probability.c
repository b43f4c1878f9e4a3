#include "learner/probability.h"

#include <math.h>

/* Dense around 0, where a learner whose labels are noisy steps from one probability to another. */
const double svi_logit_knots[SVS_CURVE] = {-7,   -4.5, -3.2, -2.2, -1.4, -0.8, -0.4, -0.15, 0,
                                           0.15, 0.4,  0.8,  1.4,  2.2,  3.2,  4.5,  7};

const double svi_logit_inverse[SVS_CURVE - 1] = {1 / 2.5,  1 / 1.3,  1 / 1.0,  1 / 0.8,  1 / 0.6, 1 / 0.4,
                                                 1 / 0.25, 1 / 0.15, 1 / 0.15, 1 / 0.25, 1 / 0.4, 1 / 0.6,
                                                 1 / 0.8,  1 / 1.0,  1 / 1.3,  1 / 2.5};

/* 50 of them end at the second knot, 26 more at the third, ... */
#define TIMES4(n)  n, n, n, n
#define TIMES12(n) TIMES4(n), TIMES4(n), TIMES4(n)
#define TIMES26(n) TIMES12(n), TIMES12(n), n, n
const unsigned char svi_logit_interval[SVI_KNOTS_PLACES] = {
    TIMES26(0), TIMES12(0), TIMES12(0),  TIMES26(1),  TIMES12(2),  TIMES4(2),   TIMES4(2),
    TIMES12(3), TIMES4(3),  TIMES12(4),  TIMES4(5),   TIMES4(5),   TIMES4(6),   6,
    7,          7,          7,           8,           8,           8,           TIMES4(9),
    9,          TIMES4(10), TIMES4(10),  TIMES12(11), TIMES12(12), TIMES4(12),  TIMES12(13),
    TIMES4(13), TIMES4(13), TIMES26(14), TIMES26(15), TIMES12(15), TIMES12(15), 15};

/* As svi_quads' `law` does it, bit for bit. */
static double probability_on_line(const svs_calibration *c, double z) {
    double beyond;
    const int j = svi_logit_place(z, &beyond).at;
    const double gain = (c->curve[j + 1] - c->curve[j]) * svi_logit_inverse[j];
    const double base = c->curve[j] - gain * svi_logit_knots[j];
    return svi_within(base + gain * (z - beyond) + beyond, SVI_LOGIT_MAX);
}

void svi_probabilities(const svs_calibration *c, const double *scores, int rows, double *proba) {
    struct svi_logit at;
    if (rows == 1) {
        const double z = svi_logit_of(c, 0, scores[0]);
        svi_logit_pair(c->curve ? svi_logit_curved(c->curve, z, &at) : z, 0, proba);
        return;
    }
    for (int k = 0; k < rows; k++) {
        const double z = svi_logit_of(c, k, scores[k]);
        proba[k] = c->curve ? probability_on_line(c, z) : z;
    }
    svi_quads_generic.softmax(proba, rows, SVI_LOGIT_MAX, proba);
}
