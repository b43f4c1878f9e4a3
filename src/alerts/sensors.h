/* sensors.h: the detectors that look at each sensor by itself, against its past, the time of day and of the
 * week, the columns of context, the sample before and the other sensors (evidence.h).
 *
 * SIGNALS. Of each sensor some series are followed, each in both directions: its value; its residual after
 * time and context, of this row and as the mean of the last 30 and 180; what of that the row before does not
 * tell, as the mean of the last 30; its residual after the other sensors as well, of this row and of the last
 * 30 and 180. Residuals are measured in a deviation that goes by the time of day too (deviations.h).
 *
 * How rare a signal is comes from the largest values of blocks of rows (block_tails.h), and means of many
 * rows count only when there are ten times as many. A detector's surprise is that of its rarest series, less
 * the logarithm of their number: they are paid for.
 *
 * A sensor that surprises is not learned, for a quarter of the memory at most; then its new level is taken as
 * the usual one. The memory is a week of rows, 2000 at least and 20000 at most.
 *
 * FALSE ALARMS. For each detector an episode of rows with a surprise of s or more begins in at most a share
 * 10^-s of the rows, as far as the law of the tails holds (tests/property/test_sensors.c: six laws, and rows
 * that hang together). Of VALUE that is so of single rows, too, where they are exchangeable; successive means
 * have most of their rows in common. */
#ifndef SVI_SENSORS_H
#define SVI_SENSORS_H

#include <stdbool.h>

#include "alerts/context.h"
#include "alerts/evidence.h"
#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_SENSORS_MAX 512 /* columns; a stream of more is not judged so */

typedef struct svi_sensors svi_sensors;

/* d columns, 1 to SVI_SENSORS_MAX; context: some may be. grows: room for blocks of rows, times of day and
 * columns of context comes with svi_sensors_reserve, as they are needed; else all room is there at once, and
 * a row never needs memory. SVS_NO_MEMORY: NULL. */
svi_sensors *svi_sensors_new(int d, bool context, bool grows, svs_error *err);
void svi_sensors_free(svi_sensors **s);

/* Before each row, if it grows: room for what the row may bring. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_sensors_reserve(svi_sensors *s, svs_error *err);

int svi_sensors_columns(const svi_sensors *s);

/* A copy with more columns. SVS_NO_MEMORY: NULL. */
svi_sensors *svi_sensors_widened(const svi_sensors *s, int d, svs_error *err);

/* A column is context: it is not judged, and forecasts go by it. False: it is already, there is no room for
 * it (SVI_CONTEXT_COLUMNS), or none was to be. */
bool svi_sensors_set_context(svi_sensors *s, int column);
bool svi_sensors_is_context(const svi_sensors *s, int column);

/* After that, before the next row: room for what columns of context bring. SVS_NO_MEMORY: nothing has
 * changed, and no row may be judged until it is called again. */
svs_code svi_sensors_reserve_context(svi_sensors *s, svs_error *err);

/* A column belongs to a value of a category: it is not judged. */
void svi_sensors_set_category(svi_sensors *s, int column);

/* A column changes hands: it starts again. */
void svi_sensors_forget(svi_sensors *s, int column);

/* Judges a row of d values, NaN where one is missing, and learns it. Fills the evidence (SVI_DETECTORS of
 * them, without surprise before) of the detectors VALUE, LEVEL, STEP and OTHERS. */
void svi_sensors_step(svi_sensors *s, const double *x, const struct svi_moment *m,
                      struct svi_evidence *evidence);

/* Between two rows; loading goes into new ones of the same columns. */
void svi_sensors_archive(struct svi_archive *a, svi_sensors *s);

/* Bytes at most, with that many columns of context. */
double svi_sensors_memory(int d, int contexts, bool grows);

#endif
