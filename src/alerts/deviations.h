/* deviations.h: the normal size of a sensor's residuals at the present time of day.
 *
 * A machine varies at each change of shifts and is quiet at night. One deviation for all times would hide
 * faults of the night among those variations, or report each of them. Squared residuals are therefore summed
 * by bins of half an hour, separately for working days and weekends (context.h). The deviation of a bin is
 * the root of a mean over its rows, half of the rows of both neighbours, and the overall mean with the weight
 * of SVI_DEVIATION_STEADY rows, which decides while a bin is new. A series that starts after the first 64
 * rows begins with deviation 1. One residual counts as five deviations at most. */
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
    int parts, columns;              /* of the series: parts x columns */
    int series;                      /* their number */
    int bins, capacity;              /* bins that had a row; bins that the arrays can hold */
    float *square;                   /* (1 + capacity) x series: sums of squared residuals, by place */
    float visits[SVI_CONTEXT_BINS];  /* by bin: rows in these sums, fading */
    uint8_t place[SVI_CONTEXT_BINS]; /* by bin: from 1; 0: the bin had no row */
    float *overall;                  /* series: fading mean of squared residuals over all times */
    float *now;                      /* series: the deviation at the present bin, > 0 */
    int bin;                         /* the present one; -1: none yet */
};

/* capacity: bins to reserve, SVI_CONTEXT_BINS at most. SVS_NO_MEMORY: `v` may be cleared. */
svs_code svi_deviations_init(struct svi_deviations *v, int parts, int columns, int capacity, svs_error *err);
void svi_deviations_clear(struct svi_deviations *v); /* frees */

/* Full: there is no capacity for one more bin, which _reserve takes. SVS_NO_MEMORY: nothing has changed. */
bool svi_deviations_are_full(const struct svi_deviations *v);
svs_code svi_deviations_reserve(struct svi_deviations *v, svs_error *err);

/* Makes `bin` the present one and computes its deviations. Due when the bin changes, and at times in between,
 * since the sums move on. */
void svi_deviations_turn_to(struct svi_deviations *v, int bin);

/* Learns a row's residuals (`series`, 0 for none) in that bin. share: their weight in `overall`, 1 in the
 * first row and falling. There must be capacity for the bin. */
void svi_deviations_learn(struct svi_deviations *v, int bin, const float *residual, float share);

/* That column of each part starts again. */
void svi_deviations_forget(struct svi_deviations *v, int column);

/* Copies `from` into the first columns of each part of `to`, which is new and has more columns.
 * SVS_NO_MEMORY: `to` may be cleared. */
svs_code svi_deviations_widen(struct svi_deviations *to, const struct svi_deviations *from, svs_error *err);

/* Loading reserves capacity for the bins of the archive. */
void svi_deviations_archive(struct svi_archive *a, struct svi_deviations *v);
double svi_deviations_memory(int parts, int columns, int capacity); /* bytes */

#endif
