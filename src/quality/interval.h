/* interval.h: an interval for the target of a regression, from the residuals of the last samples (split
 * conformal prediction; Vovk, Gammerman, Shafer 2005; with signed residuals Romano, Patterson, Candes 2019).
 *
 * A residual is r = (y - f) / sqrt(1 + h): y the target, f the score that was made before the sample was
 * learned, h its leverage x'Px. For a least squares fit on n rows the variance of y - f is 1 + h times that
 * of the noise, so that r has one law while the learner learns, and the interval of a row unlike the others
 * is wider. Of the last n residuals (SVI_INTERVAL_RESIDUALS at most), m = floor((n + 1)(1 - level)) places
 * are outside, half of them (rounded down) below, the others above:
 *
 *     low = f + r_(k) sqrt(1 + h),   high = f + r_(n + 1 - (m - k)) sqrt(1 + h),   k = floor(m / 2).
 *
 * If the n + 1 residuals are exchangeable and differ, then P(low <= y <= high) = 1 - m / (n + 1): at least
 * the level, and less than 1 / (n + 1) above it. Two ends, not absolute residuals: a law that is not
 * symmetric gets an interval that is not either, and as many targets are below it as above. The first
 * interval needs m >= 2: 19 residuals for 0.9, 1999 for 0.999. Once n residuals are there, every second
 * sample's takes the place of the oldest, so that they are of the last 2 n samples.
 *
 * Cost: residuals stay in order of arrival; of the smallest and the largest some more than are needed are
 * kept sorted, and picked out again when too few are left, so a sample costs a few comparisons, and what it
 * says does not depend on how many are kept. */
#ifndef SVI_INTERVAL_H
#define SVI_INTERVAL_H

#include <math.h>

#include "base/archive.h"

#define SVI_INTERVAL_RESIDUALS 999  /* this many of the last count: levels up to 0.998 */
#define SVI_INTERVAL_MAX       1999 /* for levels above */

typedef struct svi_interval svi_interval;

/* window: labelled samples of the windowed coverage, >= 1. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_interval *svi_interval_new(int64_t window, svs_error *err);
void svi_interval_free(svi_interval **v);
void svi_interval_reset(svi_interval *v); /* but for the level */

/* What `of` counts over all goes on in *v, a new one with another window, whose figures begin again. `of` is
 * only to be freed then. */
void svi_interval_take_over(svi_interval *v, const svi_interval *of);

/* 0 (as new) to 0.999. Residuals are kept; with 0 none is taken. */
void svi_interval_set_level(svi_interval *v, double level);

/* The residuals at the ends of an interval, low <= high. False: off, or too few residuals yet. */
bool svi_interval_ends(const svi_interval *v, double *ends);

/* The interval of a score with these ends. */
static inline void svi_interval_around(const double *ends, double score, double leverage, double *low_high) {
    const double scale = sqrt(1 + leverage);
    low_high[0] = score + scale * ends[0];
    low_high[1] = score + scale * ends[1];
}

/* The target of a score has come: was it inside (of the ends of now)? Then its residual is one
 * of the last. Scores that were made before the model knew anything (leverage >= 1) leave none. */
void svi_interval_learn(svi_interval *v, double score, double leverage, double target);

/* What was covered and how wide intervals were. NAN: none yet. */
struct svi_interval_quality {
    double coverage, windowed, width; /* share of targets inside, of all and over the window; mean */
};
struct svi_interval_quality svi_interval_quality(const svi_interval *v);

/* All but the level. Loading: as svi_metrics_archive. */
void svi_interval_archive(struct svi_archive *a, svi_interval *v);

double svi_interval_memory(int64_t window); /* bytes */

#endif
