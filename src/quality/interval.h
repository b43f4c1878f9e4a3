/* interval.h: an interval for the target of a regression, from the residuals of the last samples (split
 * conformal prediction; Vovk, Gammerman, Shafer 2005; with signed residuals Romano, Patterson, Candes 2019).
 *
 * A residual is r = (y - f) / sqrt(1 + h): y the target, f the score that was made before the sample was
 * learned, h its leverage x'Px. For a least squares fit on n rows the variance of y - f is 1 + h times that
 * of the noise, so r keeps one distribution while the learner learns, and an atypical row gets a wider
 * interval. Of the last n residuals (SVI_INTERVAL_RESIDUALS at most), m = floor((n + 1)(1 - level)) ranks
 * are outside, half of them (rounded down) below, the others above:
 *
 *     low = f + r_(k) sqrt(1 + h),   high = f + r_(n + 1 - (m - k)) sqrt(1 + h),   k = floor(m / 2).
 *
 * If the n + 1 residuals are exchangeable and distinct, then P(low <= y <= high) = 1 - m / (n + 1): at least
 * the level, and less than 1 / (n + 1) above it. Two ends instead of absolute residuals: a skewed
 * distribution gets a skewed interval, with as many targets below it as above. The first interval needs m >=
 * 2: 19 residuals for 0.9, 1999 for 0.999. Once n residuals are stored, every second sample replaces the
 * oldest, so they span the last 2 n samples.
 *
 * Cost: residuals stay in order of arrival. Somewhat more of the smallest and the largest than are needed are
 * kept sorted, and selected again when too few are left. A sample costs a few comparisons, and the ends do
 * not depend on how many are kept sorted. */
#ifndef SVI_INTERVAL_H
#define SVI_INTERVAL_H

#include <math.h>

#include "base/archive.h"

#define SVI_INTERVAL_RESIDUALS 999  /* residuals stored for levels up to 0.998 */
#define SVI_INTERVAL_MAX       1999 /* residuals stored for higher levels */

typedef struct svi_interval svi_interval;

/* window: labelled samples of the windowed coverage, >= 1. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_interval *svi_interval_new(int64_t window, svs_error *err);
void svi_interval_free(svi_interval **v);
void svi_interval_reset(svi_interval *v); /* as new; the level is kept */

/* Moves residuals and totals of `of` into *v, a new object with another window; the windowed figures restart.
 * After this `of` may only be freed. */
void svi_interval_take_over(svi_interval *v, const svi_interval *of);

/* level: 0 to 0.999, 0 as new. Residuals are kept as far as the level needs them; with 0 none are stored. */
void svi_interval_set_level(svi_interval *v, double level);

/* Fills ends[2] with the residuals at the ends of an interval, low <= high. False: off, or too few residuals
 * yet. */
bool svi_interval_ends(const svi_interval *v, double *ends);

/* The interval of a score with these ends: fills low_high[2]. */
static inline void svi_interval_around(const double *ends, double score, double leverage, double *low_high) {
    const double scale = sqrt(1 + leverage);
    low_high[0] = score + scale * ends[0];
    low_high[1] = score + scale * ends[1];
}

/* The target of a score is known: counts whether it lies inside the present interval, then stores its
 * residual. Scores made before the model knew anything (leverage >= 1) store none. */
void svi_interval_learn(svi_interval *v, double score, double leverage, double target);

/* NAN: no target was compared with an interval yet. */
struct svi_interval_quality {
    double coverage, windowed, width; /* share of targets inside, of all and over the window; mean width */
};
struct svi_interval_quality svi_interval_quality(const svi_interval *v);

/* Everything but the level. Loads into an object with the same window. */
void svi_interval_archive(struct svi_archive *a, svi_interval *v);

double svi_interval_memory(int64_t window); /* bytes */

#endif
