/* reliability.h: how good published probabilities are, over all and over the last `window` labelled samples.
 *
 *     logloss   mean of -log p(truth), natural, p at least 1e-15
 *     brier     mean of (p - y)^2, p of the second class, for two classes; for more, of the sum of squares
 *               over the classes (Brier 1950)
 *     ece       expected calibration error: over 15 bins of equal width of p, the mean of
 *               |share that came true - mean p|, by samples; p is that of the second class for two classes,
 *               and that of the most probable class for more
 *
 * A class that had no probability counts as one of p 0. Windowed figures carry the suffix ".w"; they are sums
 * of whole numbers, so what leaves leaves nothing behind. Samples without probabilities do not count. */
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

/* What `of` counts over all goes on in *r, a new one with another window, whose figures begin again. `of` is
 * only to be freed then. */
void svi_reliability_take_over(svi_reliability *r, const svi_reliability *of);

/* proba: of class_count >= 2 classes; truth >= class_count: it had none. */
void svi_reliability_add(svi_reliability *r, const double *proba, int class_count, int truth);

/* n <= SVI_QUAD samples of two classes in their order, of arrays of n values: probabilities of the first
 * class and of the second one; 1 or 0: it was of the second one. */
void svi_reliability_add_pairs(svi_reliability *r, const struct svi_quads *quads, const double *first,
                               const double *second, const double *y, int n);

/* Fills SVI_RELIABILITY_FIGURES figures; NAN = not known yet. */
void svi_reliability_figures(const svi_reliability *r, struct svi_figure *out);

/* The whole state, bit for bit; loads into one with the same window. 12 bytes a sample of the window. */
void svi_reliability_archive(struct svi_archive *a, svi_reliability *r);

double svi_reliability_memory(int64_t window); /* bytes */

#endif
