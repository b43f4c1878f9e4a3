/* deviations.h: how far a sensor's residuals usually lie from 0, at the present time of day.
 *
 * A machine swings at each change of shifts and is quiet at night: one deviation for all times would hide
 * faults of the night behind those swings, or report each swing. So squared residuals are summed by bins of
 * half an hour, apart for working days and weekends (context.h); the deviation of a bin takes in half of the
 * bins beside it, and as many rows of all times as count for SVI_DEVIATION_STEADY rows, which decide while a
 * bin is new. A series that comes after the first 64 rows begins with the deviation 1. One residual counts as
 * five deviations at most. */
#ifndef SVI_DEVIATIONS_H
#define SVI_DEVIATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "alerts/context.h"
#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_DEVIATION_STEADY 30
#define SVI_DEVIATION_MIN    1e-5 /* of the unit that residuals are measured in */

struct svi_deviations {
    int parts, columns;             /* of the series: parts x columns */
    int series;                     /* their number */
    int bins, capacity;             /* that had a row; for which there is room */
    float *square;                  /* (1 + room) x series: sums of squared residuals, by place; 0 at first */
    float visits[SVI_CONTEXT_BINS]; /* by bin: rows that these are of */
    uint8_t place[SVI_CONTEXT_BINS]; /* by bin; 0: it had no row */
    float *overall;                  /* series: their mean over all times, which fades */
    float *now;                      /* series: the deviation of the present bin */
    int bin;                         /* -1: none yet */
};

/* Room for `room` bins that have rows, SVI_CONTEXT_BINS at most. SVS_NO_MEMORY: it may be cleared. */
svs_code svi_deviations_init(struct svi_deviations *v, int parts, int columns, int capacity, svs_error *err);
void svi_deviations_clear(struct svi_deviations *v); /* frees */

/* Is there no capacity for one more bin? Capacity for that. SVS_NO_MEMORY: nothing has changed. */
bool svi_deviations_are_full(const struct svi_deviations *v);
svs_code svi_deviations_reserve(struct svi_deviations *v, svs_error *err);

/* The present bin's deviations are worked out: when the bin changes, and now and then. */
void svi_deviations_turn_to(struct svi_deviations *v, int bin);

/* A row's residuals, 0 for none, are learned for that bin; share: of them in `overall`, 1 at first. */
void svi_deviations_learn(struct svi_deviations *v, int bin, const float *residual, float share);

/* The column of that number of each part starts again. */
void svi_deviations_forget(struct svi_deviations *v, int column);

/* All of `from` in the first columns of each part of `to`, which is new and has wider ones. SVS_NO_MEMORY: it
 * may be cleared. */
svs_code svi_deviations_widen(struct svi_deviations *to, const struct svi_deviations *from, svs_error *err);

/* Loading: room is made for the bins that there are. */
void svi_deviations_archive(struct svi_archive *a, struct svi_deviations *v);
double svi_deviations_memory(int parts, int columns, int capacity); /* bytes */

#endif
