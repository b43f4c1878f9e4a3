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

#include "alerts/evidence.h"

#define SVI_SENSORS_MAX 512 /* columns; a stream of more is not judged so */

/* The state of svi_sensor_detectors; all but what is of context goes by its engine. */
typedef struct svi_sensors svi_sensors;

/* A column is context: it is not judged, and forecasts go by it. False: it is already, there is no room for
 * it (SVI_CONTEXT_COLUMNS), or none was to be. */
bool svi_sensors_set_context(svi_sensors *s, int column);
bool svi_sensors_is_context(const svi_sensors *s, int column);

/* After that, before the next row: capacity for what columns of context bring. SVS_NO_MEMORY: nothing has
 * changed, and no row may be judged until it is called again. */
svs_code svi_sensors_reserve_context(svi_sensors *s, svs_error *err);

#endif
