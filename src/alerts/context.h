/* context.h: what is known of a sample before its sensors are looked at: where in the day and in the week it
 * lies, and the columns that were named as context. Forecasts are linear in these (forecast.h); scales go by
 * the time of day (SVI_CONTEXT_BINS). */
#ifndef SVI_CONTEXT_H
#define SVI_CONTEXT_H

#include <stdint.h>

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

#endif
