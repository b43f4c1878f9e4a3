/* calibration.h: conformal p-values from a sliding window of scores.
 *
 *     p(s) = (1 + number of calibration scores >= s) / (1 + number of calibration scores)
 *
 * When the scored sample and the calibration samples are exchangeable, P(p <= a) <= a for every a, whatever
 * the score (Vovk, Gammerman, Shafer 2005). That needs calibration samples which the model was not fitted on
 * and which were chosen without looking at their scores.
 *
 * p is never below 1 / (1 + count). svi_calibration_tail goes below by a fit to the upper scores (tail.h):
 * an estimate, not a promise; only the false-discovery control needs it.
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
 * million). Scores may be infinite, never NaN. */
#ifndef SVI_CALIBRATION_H
#define SVI_CALIBRATION_H

#include <stdint.h>

#include "novelty/tail.h"
#include "svmstream/error.h"

struct svi_calibration {
    double *scores; /* ring of `room` */
    double *sorted; /* the same `count` scores, ascending */
    int room, count, at;
    struct svi_tail tail;
    int stale; /* scores that came since the tail was fitted; -1: never was */
};

/* room >= 1. SVS_NO_MEMORY. */
svs_code svi_calibration_init(struct svi_calibration *c, int room, svs_error *err);
void svi_calibration_clear(struct svi_calibration *c); /* frees */
void svi_calibration_empty(struct svi_calibration *c); /* forgets the scores, keeps the room */

/* 1 with no scores yet. */
double svi_calibration_p(const struct svi_calibration *c, double score);

/* The smallest score whose p-value is <= p is just above this one: the level at which an alert opens.
 * INFINITY when no score can have so small a p-value, that is: 1 / (1 + count) > p. */
double svi_calibration_level(const struct svi_calibration *c, double p);

/* At most svi_calibration_p, and below it only for a score above all of the calibration's: then what the fit
 * to the upper scores gives. The fit is made anew, here, when a twentieth of the scores has been replaced. */
double svi_calibration_tail(struct svi_calibration *c, double score);

/* The score takes the place of the oldest when full; returns that place, 0 to room - 1. */
int svi_calibration_add(struct svi_calibration *c, double score);

/* New scores for the samples that are held, by their place in the ring: after another model scored them. */
void svi_calibration_replace(struct svi_calibration *c, const double *scores);

#endif
