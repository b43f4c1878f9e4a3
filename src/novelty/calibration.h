/* calibration.h: conformal p-values from a sliding window of scores.
 *
 *     p(s) = (1 + number of calibration scores >= s) / (1 + number of calibration scores)
 *
 * When the scored sample and the calibration samples are exchangeable, P(p <= a) <= a for every a, whatever
 * the score (Vovk, Gammerman, Shafer 2005). That needs calibration samples which the model was not fitted on
 * and which were chosen without looking at their scores.
 *
 * p is never below 1 / (1 + count). svi_calibration_tail goes below by a fit to the upper scores (see THE
 * TAIL): an estimate, not a promise; only the false-discovery control needs it.
 *
 * One disturbance that reaches the calibration spoils the p-values of the next one like it. So samples of a
 * lasting disturbance should not calibrate, from their first on. The rule that was measured best: those of a
 * run of `confirm` or more successive samples with p <= `alert.clear`; they wait until it is known whether
 * the run lasts. With runs of 20 making up 1 % of a stream 0.92 of them were found so (|normal| + 2, see
 * discovery.h), 0.11 when the samples of an open alert waited, 0.05 when those before its confirmation
 * calibrated at once. The promise does not suffer: 5 successive normals with p <= 0.02 come once in 3e8.
 *
 * The scores are kept twice: in a ring, to know the oldest, and sorted. A p-value is one binary search
 * (30 ns for 2000, 0.25 us for a million), a new score moves a third of the sorted ones (0.1 us; 0.1 ms for a
 * million). Scores may be infinite, never NaN.
 *
 * THE TAIL: how likely a score beyond all those seen is, judged from the highest tenth of those seen, by the
 * law of tail.h with the 16 shapes xi = 1/32, 3/32 ... 31/32: so the estimate is rather too large than too
 * small. It is tripled for the cases where the law is not reached yet at the threshold.
 *
 * Measured, true probability over the estimate, at 1e-3, 1e-4, 1e-5, 1e-6 with 2000 scores (mean over 200
 * fits): |Student t, 3 degrees| 0.41 0.53 0.67 0.80; Pareto of exponent 2 0.38 0.43 0.48 0.50; exponential
 * 0.14 0.03 0.003 4e-5; |normal| 0.02 4e-4 5e-7 3e-11. So 1e-5 is reached at 7.6 standard deviations of a
 * normal score and not at 4.4: the price of safety, less with more scores.
 *
 * With fewer than 200 scores (svi_calibration_tail_early) the fit is to the upper half, at most 20 scores;
 * measured at 1e-2 and 1e-3 with 30 scores, 60 scores: |Student t| 0.09 0.01, 0.18 0.04; Pareto 0.26 0.06,
 * 0.31 0.16; lognormal 0.08 0.001, 0.17 0.02; exponential, |normal|, uniform, integers below 0.03 (mean over
 * 300 fits). A score of 8 normal deviations comes to 0.010 with 30 scores, 0.004 with 60, 0.001 with 199,
 * where ranks alone end at 0.032, 0.016, 0.005.
 *
 * It is an extrapolation. Nothing protects against scores whose upper tenth does not show what comes
 * beyond: a rare kind of normal sample that was never seen, for one. */
#ifndef SVI_CALIBRATION_H
#define SVI_CALIBRATION_H

#include "base/stat_ring.h"
#include "svmstream/error.h"

#define SVI_TAIL_PARTS      16
#define SVI_TAIL_MIN_SCORES 200 /* scores */

struct svi_tail {
    int count;        /* k; 0 = no fit: fewer than 200 scores, or an upper tenth without differences or with
                         infinities */
    double threshold; /* y = score - this */
    double share;     /* of the scores that are above it */
    double slope[SVI_TAIL_PARTS], total[SVI_TAIL_PARTS], weight[SVI_TAIL_PARTS]; /* b, S(b), weight: sum 1 */
};

struct svi_calibration {
    double *scores; /* by their place in the ring */
    double *sorted; /* the same scores, ascending */
    struct svi_stat_ring ring;
    int capacity; /* scores that the arrays hold, those of the window at most */
    struct svi_tail tail;
    int stale; /* scores that came since the tail was fitted; -1: never was */
};

/* room >= 1. The arrays hold `count` scores; before svi_calibration_add, svi_calibration_reserve makes them
 * hold that many, or all of the room if that is less. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_calibration_init(struct svi_calibration *c, int capacity, int count, svs_error *err);
svs_code svi_calibration_reserve(struct svi_calibration *c, int count, svs_error *err);
double svi_calibration_memory(int capacity);           /* bytes besides the struct */
void svi_calibration_clear(struct svi_calibration *c); /* frees */
void svi_calibration_empty(struct svi_calibration *c); /* forgets the scores, keeps the room */

/* 1 with no scores yet. */
double svi_calibration_p(const struct svi_calibration *c, double score);

/* How many of the scores are above this one, of which `level` are not below it. */
int svi_calibration_above(const struct svi_calibration *c, double score, int level);

/* The smallest score whose p-value is <= p is just above this one: the level at which an alert opens.
 * INFINITY when no score can have so small a p-value, that is: 1 / (1 + count) > p. */
double svi_calibration_level(const struct svi_calibration *c, double p);

/* At most svi_calibration_p, and below it only for a score above all of the calibration's: then what the fit
 * to the upper scores gives. The fit is made again, here, when a twentieth of the scores has been replaced.
 */
double svi_calibration_tail(struct svi_calibration *c, double score);

/* The same, and with 30 to 199 scores by a fit to their upper half, at most 20 of them; made again by each
 * score above all others. A function of its own because svi_calibration_tail is what kept streams were judged
 * by. */
double svi_calibration_tail_early(struct svi_calibration *c, double score);

/* The score takes the place of the oldest when full; returns that place, 0 to room - 1. */
int svi_calibration_add(struct svi_calibration *c, double score);

/* New scores for the samples that are held, by their place in the ring: after another model scored them. */
void svi_calibration_replace(struct svi_calibration *c, const double *scores);

/* Loading goes into an empty calibration of the same room. */
void svi_calibration_archive(struct svi_archive *a, struct svi_calibration *c);

#endif
