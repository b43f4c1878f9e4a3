/* context.h: what is known of a sample before its sensors are looked at: where in the day and in the week it
 * lies, and the columns that were named as context. Forecasts are linear in these (forecast.h); scales go by
 * the time of day (SVI_CONTEXT_BINS). And how far back detectors look: a week of rows, SVI_PACE_MIN at
 * least and SVI_PACE_MAX at most, as far as the times of the rows tell how many that is. */
#ifndef SVI_CONTEXT_H
#define SVI_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"

#define SVI_CONTEXT_HARMONICS 4                               /* of the day */
#define SVI_CONTEXT_TIME      (2 + 4 * SVI_CONTEXT_HARMONICS) /* regressors: 1, weekend, harmonics of either */
#define SVI_CONTEXT_COLUMNS   16                              /* named ones, at most */
#define SVI_CONTEXT_MAX       (SVI_CONTEXT_TIME + SVI_CONTEXT_COLUMNS)
#define SVI_CONTEXT_BINS      96 /* half an hour each, of working days and of the weekend */

struct svi_moment {
    double time; /* seconds since 1970, or of a clock that began elsewhere */
    double values[SVI_CONTEXT_TIME];
    int bin;
};

/* The time (seconds since 1970) in the zone of the process (features/calendar.h), as regressors of size up to
 * 1 each; and its bin. */
void svi_context_moment(double time, struct svi_moment *out);

#define SVI_PACE_MIN 2000.0
#define SVI_PACE_MAX 20000.0

struct svi_pace {
    int64_t rows;
    double since;  /* time of the first row */
    double memory; /* rows */
};

void svi_pace_init(struct svi_pace *p);

/* A row at that time, in seconds. True: the memory was looked at again, which it is each time their number
 * has doubled. */
bool svi_pace_row(struct svi_pace *p, double time);

/* Rows that a block of block_tails.h may have: of SVI_BLOCKS that cover four times the memory. */
int64_t svi_pace_block(const struct svi_pace *p);

void svi_pace_archive(struct svi_archive *a, struct svi_pace *p);

#endif
