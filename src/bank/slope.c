#include "bank/slope.h"

#include <math.h>

#include "learner/probability.h"

#define BEGIN                                                                                                \
    2.0 /* scores of least squares on +-1 are about 2 p - 1, whose logit near p = 1/2 is twice that */
#define DAMP 1.0   /* initial curvature */
#define KEEP 0.999 /* factor of the curvature at each sample */

void svi_slope_init(struct svi_slope *s) {
    *s = (struct svi_slope){BEGIN, DAMP};
}

void svi_slope_proba(const struct svi_slope *s, const double *score, double *proba) {
    proba[1] = 1 / (1 + exp(-svi_bounded(s->a * *score, SVI_LOGIT_MAX)));
    proba[0] = 1 - proba[1];
}

void svi_slope_learn(struct svi_slope *s, double score, const double *proba, int truth, double weight) {
    /* Log loss l(a), p = 1 / (1 + exp(-a s)): l' = (p - y) s, l'' = p (1 - p) s^2. */
    const double gradient = weight * (proba[1] - (truth == 1)) * score;
    s->curvature = KEEP * s->curvature + weight * proba[1] * proba[0] * score * score;
    /* 1e-9 keeps the step finite while all scores were 0; the bounds keep it useful after it. */
    const double a = s->a - gradient / (s->curvature + 1e-9);
    s->a = a < SVI_SLOPE_MIN ? SVI_SLOPE_MIN : a < SVI_SLOPE_MAX ? a : SVI_SLOPE_MAX;
}

void svi_slope_archive(struct svi_archive *a, struct svi_slope *s) {
    svi_archive_double(a, "slope", &s->a);
    svi_archive_double(a, "curvature", &s->curvature);
    svi_archive_check(a, s->a >= SVI_SLOPE_MIN && s->a <= SVI_SLOPE_MAX && s->curvature >= 0,
                      "a slope is out of range");
}
