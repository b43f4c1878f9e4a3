/* context.h: the context of a sample, known before its sensors are assessed: its place in the day and the
 * week, and the columns that were named as context. Forecasts are linear in these (forecast.h); deviations go
 * by the time of day (SVI_CONTEXT_BINS, deviations.h).
 *
 * Also the pace: how many rows back detectors remember. That is a week of rows, estimated from the times of
 * the rows, and limited to SVI_PACE_MIN and SVI_PACE_MAX. */
#ifndef SVI_CONTEXT_H
#define SVI_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"

#define SVI_CONTEXT_HARMONICS 4                               /* multiples of one turn a day */
#define SVI_CONTEXT_TIME      (2 + 4 * SVI_CONTEXT_HARMONICS) /* regressors: 1, weekend, harmonics of each */
#define SVI_CONTEXT_COLUMNS   16                              /* most columns of context */
#define SVI_CONTEXT_MAX       (SVI_CONTEXT_TIME + SVI_CONTEXT_COLUMNS)
#define SVI_CONTEXT_BINS      96 /* half an hour each: 48 of working days, then 48 of the weekend */

struct svi_moment {
    double time;                     /* seconds since 1970, or of a clock with another origin */
    double values[SVI_CONTEXT_TIME]; /* regressors, each -1 to 1 */
    int bin;                         /* 0 to SVI_CONTEXT_BINS - 1 */
};

/* Fills in the regressors and the bin of a time (seconds since 1970). zone: see features/calendar.h. */
void svi_context_moment(const char *zone, double time, struct svi_moment *out);

#define SVI_PACE_MIN      2000.0
#define SVI_PACE_MAX      20000.0
#define SVI_PACE_DAY      20000
#define SVI_PACE_MIN_ROWS 400

struct svi_pace {
    int64_t rows;  /* so far */
    double since;  /* time of the first row, seconds */
    double memory; /* rows, SVI_PACE_MIN to SVI_PACE_MAX */
};

void svi_pace_init(struct svi_pace *p);

/* Counts a row at that time, in seconds. True: the memory was set again, which happens each time the number
 * of rows has doubled. */
bool svi_pace_row(struct svi_pace *p, double time);

/* Is the past as long as a machine takes to show what is normal: a day, or SVI_PACE_DAY rows where rows come
 * fast? */
bool svi_pace_knows_a_day(const struct svi_pace *p, double time);

/* Do rows come so fast that SVI_PACE_DAY of them take less than a day? Not before there are
 * SVI_PACE_MIN_ROWS. */
bool svi_pace_is_fast(const struct svi_pace *p, double time);

/* Largest length of a block of block_tails.h, in rows: SVI_BLOCKS of them cover up to four times
 * the memory. */
int64_t svi_pace_block(const struct svi_pace *p);

void svi_pace_archive(struct svi_archive *a, struct svi_pace *p);

#endif
