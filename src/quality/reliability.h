/* reliability.h: how good published probabilities are, over all and over the last `window` labelled samples.
 *
 *     logloss   mean of -log p(truth), natural, p at least 1e-15
 *     brier     mean of (p - y)^2, p of the second class, for two classes; for more, of the sum of squares
 *               over the classes (Brier 1950)
 *     ece       expected calibration error: over 15 bins of equal width of p, the mean of
 *               |share of true outcomes - mean p|, weighted by samples; p is the probability of the second
 *               class for two classes, and of the most probable class for more
 *
 * A class without a probability counts as p = 0. Windowed figures carry the suffix ".w"; they are sums of
 * integers, so a sample that leaves the window leaves no rounding error. Samples without probabilities do not
 * count. */
#ifndef SVI_RELIABILITY_H
#define SVI_RELIABILITY_H

#include "base/archive.h"
#include "base/figure.h"
#include "linalg/quads.h"

#define SVI_RELIABILITY_FIGURES 6 /* in the order above, then with ".w" */
#define SVI_RELIABILITY_BINS    15

typedef struct svi_reliability svi_reliability;

/* window >= 1. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_reliability *svi_reliability_new(int64_t window, svs_error *err);
void svi_reliability_free(svi_reliability **r);
void svi_reliability_reset(svi_reliability *r);

/* Moves the totals of `of` into *r, a new object with another window; the windowed figures restart. After
 * this `of` may only be freed. */
void svi_reliability_take_over(svi_reliability *r, const svi_reliability *of);

/* proba[class_count], class_count >= 2; truth >= class_count: the true class had no probability. */
void svi_reliability_add(svi_reliability *r, const double *proba, int class_count, int truth);

/* n <= SVI_QUAD samples of two classes in order: probabilities of the first and of the second class, and y =
 * 1 for a sample of the second class, else 0. The arrays have SVI_QUAD readable values. */
void svi_reliability_add_pairs(svi_reliability *r, const struct svi_quads *quads, const double *first,
                               const double *second, const double *y, int n);

/* Fills SVI_RELIABILITY_FIGURES figures; NAN = not known yet. */
void svi_reliability_figures(const svi_reliability *r, struct svi_figure *out);

/* The whole state, bit for bit; loads into an object with the same window. 12 bytes per sample of the
 * window. */
void svi_reliability_archive(struct svi_archive *a, svi_reliability *r);

double svi_reliability_memory(int64_t window); /* bytes */

#endif
