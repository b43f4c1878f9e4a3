/* anomaly.h: one score of a row, in [0, 1], from the p-value of novelty and from the strength of the sensors.
 *
 * Novelty compares the row with earlier rows, all features together. It ignores the time of day,
 * the forecasts and the rows before. The detectors of sensors use all of these (sensors.h). Their
 * surprises, however, are 0 for most rows, and zeros have no order. So this uses the STRENGTH of a
 * row: the largest signal of all sensors in deviations, which exists in every row (evidence.h).
 *
 * With q, the share of the past rows with at least this strength,
 *
 *     anomaly = 1 - (p^2 q)^(1/3)                                                                         (1)
 *
 * and 1 - p for a row without strength: without a budget, without any residual yet. A geometric
 * mean orders rows as Fisher's combination of p-values does: a small one counts in full, whatever
 * the other is. A mean of the ranks 1 - p and 1 - q would let the one without evidence hide part of
 * the other's. p counts twice, because it is about all features and q about a single one. A second
 * reason is that means of past rows are noise where rows are independent.
 *
 * THE PAST is a histogram of 48 counts, 4 to a factor of 2. A strength within a bin takes its place there in
 * proportion. All counts are halved when they sum to SVI_ANOMALY_MAX_ROWS, so the past is the last half of
 * these to all of them, older rows counting less. Both halves of the score change slowly; a row is ranked
 * before it is added. */
#ifndef SVI_ANOMALY_H
#define SVI_ANOMALY_H

#include <stdint.h>

#include "base/archive.h"

#define SVI_ANOMALY_BINS     48
#define SVI_ANOMALY_MAX_ROWS 32768 /* must fit in a count */

/* Zero-initialised, it has no past. */
struct svi_anomaly {
    uint16_t count[SVI_ANOMALY_BINS]; /* rows by strength, fading */
    int rows;                         /* their sum, < SVI_ANOMALY_MAX_ROWS */
};

/* The score (1) of a row. p: in [0, 1]; strength: >= 0, 0 for none. */
double svi_anomaly_score(const struct svi_anomaly *s, double p, double strength);

/* Adds a row to the past; one without strength leaves it unchanged. */
void svi_anomaly_add(struct svi_anomaly *s, double strength);

void svi_anomaly_archive(struct svi_archive *a, struct svi_anomaly *s);

#endif
