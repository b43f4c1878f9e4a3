/* error_hours.h: how many samples are wrong at each time of day, while nothing has changed: 48 half-hours of
 * the day in UTC. A daily cycle of the error rate is normal, and a rise that it explains is no change.
 *
 * The latest visit to each half-hour is kept apart and counts from the next visit on, so that a change of
 * today is never compared with itself. Visits fade with a memory of SVI_HOURS_MEMORY. */
#ifndef SVI_ERROR_HOURS_H
#define SVI_ERROR_HOURS_H

#include <stdbool.h>

#include "base/archive.h"

#define SVI_HOURS        48
#define SVI_HOURS_MEMORY 28.0 /* visits */

struct svi_error_hours {
    double until; /* end of the present half-hour, seconds since 1970; 0: none yet */
    int now;      /* that half-hour */
    double n[SVI_HOURS], wrong[SVI_HOURS], visits[SVI_HOURS]; /* before the latest visit */
    double latest_n[SVI_HOURS], latest_wrong[SVI_HOURS];
};

/* What the times of day let expect of a stretch. */
struct svi_hours_expected {
    double share;   /* of wrong samples */
    double samples; /* that this share was measured on */
};

void svi_error_hours_add(struct svi_error_hours *h, double time, bool wrong);

/* From one time to another. False: too little is known of these hours. */
bool svi_error_hours_expect(const struct svi_error_hours *h, double from, double to,
                            struct svi_hours_expected *out);

void svi_error_hours_archive(struct svi_archive *a, struct svi_error_hours *h);

#endif
