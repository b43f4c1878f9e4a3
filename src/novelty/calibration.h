/* calibration.h: conformal p-values from a sliding window of scores.
 *
 *     p(s) = (1 + number of calibration scores >= s) / (1 + number of calibration scores)
 *
 * When the scored sample and the calibration samples are exchangeable, P(p <= a) <= a for every a, whatever
 * the score (Vovk, Gammerman, Shafer 2005). That requires calibration samples that the model was not fitted
 * on and that were chosen without looking at their scores.
 *
 * The smallest p is 1 / (1 + count). To go below it, svi_calibration_tail fits the upper scores
 * (see THE TAIL). That estimate has no guarantee, and only the false-discovery control needs it.
 *
 * A disturbance that enters the calibration spoils the p-values of the next similar one. Samples of
 * a lasting disturbance should therefore not calibrate, from the first on. The rule that measured
 * best excludes runs of `confirm` or more successive samples with p <= `alert.clear`. Their samples
 * wait until it is known whether the run lasts. The guarantee does not suffer: 5 successive normal
 * samples with p <= 0.02 occur once in 3e8. Measured share of runs found, with runs of 20 that make
 * up 1 % of a stream (|normal| + 2, see discovery.h):
 *
 *     0.92  by this rule
 *     0.11  if the samples of an open alert wait
 *     0.05  if the samples before an alert's confirmation calibrate at once
 *
 * Scores are stored twice: in a ring, in order of arrival, and sorted. A p-value is one binary
 * search (30 ns for 2000, 0.25 us for a million). A new score moves a third of the sorted ones (0.1
 * us; 0.1 ms for a million). Scores may be infinite, never NaN.
 *
 * THE TAIL: the probability of a score beyond all those seen, from the highest tenth of them. It
 * follows the law of tail.h with the 16 shapes xi = 1/32, 3/32 ... 31/32, and errs on the large
 * side. It is tripled for the cases where the law does not hold yet at the threshold.
 *
 * Measured with 2000 scores: true probability over the estimate (mean over 200 fits), at
 *
 *                              1e-3   1e-4   1e-5    1e-6
 *     |Student t, 3 degrees|   0.41   0.53   0.67    0.80
 *     Pareto of exponent 2     0.38   0.43   0.48    0.50
 *     exponential              0.14   0.03   0.003   4e-5
 *     |normal|                 0.02   4e-4   5e-7    3e-11
 *
 * So 1e-5 is reached at 7.6 standard deviations of a normal score instead of 4.4: the price of
 * safety, which falls with more scores.
 *
 * With fewer than 200 scores (svi_calibration_tail_early) the fit is to the upper half, at most 20
 * scores. Measured the same way (mean over 300 fits):
 *
 *                    30 scores         60 scores
 *                    1e-2   1e-3       1e-2   1e-3
 *     |Student t|    0.09   0.01       0.18   0.04
 *     Pareto         0.26   0.06       0.31   0.16
 *     lognormal      0.08   0.001      0.17   0.02
 *
 * Exponential, |normal|, uniform and integers are below 0.03. A score of 8 normal deviations gets p
 * 0.010 with 30 scores, 0.004 with 60 and 0.001 with 199. Ranks alone end at 0.032, 0.016 and
 * 0.005.
 *
 * It is an extrapolation. Nothing protects against scores whose upper tenth says nothing about what lies
 * beyond, such as a rare kind of normal sample that was never seen. */
#ifndef SVI_CALIBRATION_H
#define SVI_CALIBRATION_H

#include "base/stat_ring.h"
#include "svmstream/error.h"

#define SVI_TAIL_PARTS      16
#define SVI_TAIL_MIN_SCORES 200 /* scores */

struct svi_tail {
    int count; /* k excesses; 0 = no fit: too few scores, or upper ones that are all equal or infinite */
    double threshold; /* an excess is y = score - threshold */
    double share;     /* share of scores above the threshold */
    double slope[SVI_TAIL_PARTS], total[SVI_TAIL_PARTS], weight[SVI_TAIL_PARTS]; /* b, S(b), weight: sum 1 */
};

struct svi_calibration {
    double *scores; /* by place in the ring */
    double *sorted; /* the same scores, ascending */
    struct svi_stat_ring ring;
    int capacity; /* of the arrays, at most the ring's window */
    struct svi_tail tail;
    int stale; /* scores added since the tail was fitted; -1: not fitted */
};

/* init: a window of `capacity` >= 1 scores, with arrays for `count`. reserve: arrays for `count` scores, at
 * most the window; needed before svi_calibration_add. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_calibration_init(struct svi_calibration *c, int capacity, int count, svs_error *err);
svs_code svi_calibration_reserve(struct svi_calibration *c, int count, svs_error *err);
double svi_calibration_memory(int capacity);           /* bytes besides the struct */
void svi_calibration_clear(struct svi_calibration *c); /* frees */
void svi_calibration_empty(struct svi_calibration *c); /* removes the scores, keeps the capacity */

/* The p-value of a score; 1 while there are no scores. */
double svi_calibration_p(const struct svi_calibration *c, double score);

/* The number of scores above this one; level: the number of those not below it, known from its p-value. */
int svi_calibration_above(const struct svi_calibration *c, double score, int level);

/* The level of alerts: every score above it has a p-value <= p. INFINITY when no score can have such a
 * p-value, that is, when 1 / (1 + count) > p. */
double svi_calibration_level(const struct svi_calibration *c, double p);

/* At most svi_calibration_p, and smaller only for a score above all calibration scores: then by the fit to
 * the upper scores. Refits when a twentieth of the scores was replaced. */
double svi_calibration_tail(struct svi_calibration *c, double score);

/* The same, and with 30 to 199 scores by a fit to their upper half, at most 20 of them, for each score above
 * all others. Separate, because svi_calibration_tail must keep assessing stored streams as it did. */
double svi_calibration_tail_early(struct svi_calibration *c, double score);

/* Adds a score, in place of the oldest when full; returns its place, 0 to window - 1. */
int svi_calibration_add(struct svi_calibration *c, double score);

/* Replaces all scores, by place in the ring, after another model scored their samples. */
void svi_calibration_replace(struct svi_calibration *c, const double *scores);

/* Loads into an empty calibration with the same window. */
void svi_calibration_archive(struct svi_archive *a, struct svi_calibration *c);

#endif
