/* slope.h: the score of an expert for the second of two classes -> its probability, by one slope: 1 / (1 +
 * exp(-a s)). No offset: what the expert decides by its score stays decided.
 *
 * a is moved by a Newton step on the log loss of each sample, with the curvature of those before fading
 * (online Newton step: Hazan, Agarwal, Kale 2007), and stays in [SVI_SLOPE_MIN, SVI_SLOPE_MAX]. */
#ifndef SVI_SLOPE_H
#define SVI_SLOPE_H

#include "base/archive.h"

#define SVI_SLOPE_MIN 0.05
#define SVI_SLOPE_MAX 20.0

struct svi_slope {
    double a, curvature;
};

void svi_slope_init(struct svi_slope *s);

/* proba: of both classes. */
void svi_slope_proba(const struct svi_slope *s, const double *score, double *proba);

/* The sample with this score, and this svi_slope_proba of it, was of class `truth`. */
void svi_slope_learn(struct svi_slope *s, double score, const double *proba, int truth);

void svi_slope_archive(struct svi_archive *a, struct svi_slope *s);

#endif
