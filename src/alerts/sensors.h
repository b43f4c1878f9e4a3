/* sensors.h: the detectors that assess each sensor by itself (evidence.h). They compare it with its
 * past, the time of day and of the week, the columns of context, its last rows and the other
 * sensors.
 *
 * SIGNALS. Each sensor has seven series, all but the last in both directions:
 *
 *  - VALUE: its value;
 *  - LEVEL: the mean of its last 30 residuals after time and context;
 *  - FORECAST: its residual after all that is known before and next to it (forecast.h), of this row
 *    and as the mean of the last 10, 60 and 360;
 *  - SPREAD: the mean square of its last 30 such residuals.
 *
 * Residuals are in deviations of the time of day (deviations.h); means fade exponentially. STEP has
 * one series for all sensors: the distance of the sensor that has moved farthest away from its last
 * rows (steps.h). SPREAD and STEP need several sensors, because FORECAST already knows the last
 * rows of a sensor that is alone.
 *
 * SURPRISE. How rare a signal is follows from the largest values of blocks of rows (block_tails.h). The mean
 * of many rows counts only once the past has ten times as many, and STEP once the past has a day or 20,000
 * rows. The surprise of a detector is that of its rarest series, less the logarithm of their number.
 *
 * LEARNING. A surprising sensor is not learned, for a quarter of the memory at most. After that its
 * new level is normal. The memory is a week of rows, 2000 to 20000.
 *
 * FALSE ALARMS. For each detector, an episode of rows with a surprise of s or more begins in at
 * most a share 10^-s of the rows. This holds as far as the law of the tails holds
 * (tests/property/test_sensors.c: six laws, and autocorrelated rows). For VALUE this is also true
 * of single rows where they are exchangeable; successive means have most of their rows in common.
 */
#ifndef SVI_SENSORS_H
#define SVI_SENSORS_H

#include "alerts/evidence.h"

#define SVI_SENSORS_MAX 512 /* most columns; streams of more have no such detectors */

/* The state of svi_sensor_detectors. Everything but context is called through the engine. */
typedef struct svi_sensors svi_sensors;

/* Makes a column context: it is not assessed, and forecasts depend on it. False: it is context already, there
 * are SVI_CONTEXT_COLUMNS of them, or the shape had no contexts. */
bool svi_sensors_set_context(svi_sensors *s, int column);
bool svi_sensors_is_context(const svi_sensors *s, int column);

/* After svi_sensors_set_context, before the next row: reserves capacity for the regressors. SVS_NO_MEMORY:
 * nothing has changed, and no row may be assessed until this is called again with success. */
svs_code svi_sensors_reserve_context(svi_sensors *s, svs_error *err);

#endif
