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

#include <stdint.h>

#include "judges/context.h"
#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_DEVIATION_STEADY 30
#define SVI_DEVIATION_LEAST  1e-5 /* of the unit that residuals are measured in */

struct svi_deviations {
    int series;
    float *square;                  /* bins x series: sums of squared residuals ... */
    float visits[SVI_CONTEXT_BINS]; /* ... of that number of rows */
    float *overall;                 /* series: their mean over all times, which fades */
    float *now;                     /* series: the deviation of the present bin */
    int bin;                        /* -1: none yet */
};

svs_code svi_deviations_init(struct svi_deviations *v, int series, svs_error *err);

/* Likewise, in a block of svi_deviations_room floats, of zeros: as new, or moved there. */
size_t svi_deviations_room(int series);
void svi_deviations_place(struct svi_deviations *v, float *block);

/* What is held, packed as in forecast.h: of the bins that had a row, without the series that `skip` flags
 * (NULL: none): those never had a residual. */
void svi_deviations_move(struct svi_deviations *v, const uint8_t *skip, char **at, bool out);
int svi_deviations_bins(const struct svi_deviations *v); /* that had a row */
size_t svi_deviations_packed(int series, int bins);
void svi_deviations_clear(struct svi_deviations *v); /* frees */

/* The present bin's deviations are worked out: when the bin changes, and now and then. */
void svi_deviations_turn_to(struct svi_deviations *v, int bin);

/* A row's residuals, 0 for none, are learned for that bin; share: of them in `overall`, 1 at first. */
void svi_deviations_learn(struct svi_deviations *v, int bin, const float *residual, float share);

/* The column of that number of each of `parts` parts of the series starts again. */
void svi_deviations_forget(struct svi_deviations *v, int parts, int column);

/* All of `from` in the first columns of each part of `to`, which has wider ones. */
void svi_deviations_widen(struct svi_deviations *to, const struct svi_deviations *from, int parts);

void svi_deviations_archive(struct svi_archive *a, struct svi_deviations *v);
double svi_deviations_memory(int series); /* bytes */

#endif
