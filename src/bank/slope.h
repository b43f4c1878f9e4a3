/* slope.h: an expert's score s for the second of two classes -> its probability 1 / (1 + exp(-a s)). There
 * is no offset, so that the sign of the score still decides.
 *
 * Each sample moves a by a Newton step on its log loss; the curvature is that of past samples with
 * forgetting (online Newton step: Hazan, Agarwal, Kale 2007). a stays in [SVI_SLOPE_MIN, SVI_SLOPE_MAX]. */
#ifndef SVI_SLOPE_H
#define SVI_SLOPE_H

#include "base/archive.h"

#define SVI_SLOPE_MIN 0.05
#define SVI_SLOPE_MAX 20.0

struct svi_slope {
    double a, curvature;
};

void svi_slope_init(struct svi_slope *s);

/* proba: 2 values, the probabilities of both classes. */
void svi_slope_proba(const struct svi_slope *s, const double *score, double *proba);

/* Learns that the sample with this score, and these probabilities of svi_slope_proba, was of class `truth`
 * (0 or 1). weight > 0, 1 for a sample like the others. */
void svi_slope_learn(struct svi_slope *s, double score, const double *proba, int truth, double weight);

void svi_slope_archive(struct svi_archive *a, struct svi_slope *s);

#endif
