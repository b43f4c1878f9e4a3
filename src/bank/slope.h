/* slope.h: scores of an expert -> the probability of each class, by one slope: sigmoid(a s) for two classes,
 * softmax(a s) for more. No offset: what the expert decides by its scores stays decided.
 *
 * a is moved by a Newton step on the log loss of each sample, with the curvature of those before fading
 * (online Newton step: Hazan, Agarwal, Kale 2007), and stays in [SVI_SLOPE_LEAST, SVI_SLOPE_MOST]. */
#ifndef SVI_SLOPE_H
#define SVI_SLOPE_H

#include "base/archive.h"

#define SVI_SLOPE_LEAST 0.05
#define SVI_SLOPE_MOST  20.0

struct svi_slope {
    double a, curvature;
};

void svi_slope_init(struct svi_slope *s);

/* rows of scores: 1 for two classes, else one a class; proba: of each class. */
void svi_slope_proba(const struct svi_slope *s, const double *scores, int rows, double *proba);

/* The sample with these scores, and this svi_slope_proba of them, was of class `truth`. */
void svi_slope_learn(struct svi_slope *s, const double *scores, int rows, const double *proba, int truth);

void svi_slope_archive(struct svi_archive *a, struct svi_slope *s);

#endif
