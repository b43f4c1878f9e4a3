#include "alerts/context.h"

#include <math.h>

#include "features/calendar.h"

#define DAY    86400.0
#define WEEK   (7 * DAY)
#define MONDAY (4 * DAY) /* the first one after 1970 began, on a Thursday */

void svi_context_moment(double time, struct svi_moment *out) {
    const double local = svi_calendar_local(time);
    const double in_day = local - DAY * floor(local / DAY);
    const double in_week = local - MONDAY - WEEK * floor((local - MONDAY) / WEEK);
    const double turn = 2 * M_PI * in_day / DAY, s = sin(turn), c = cos(turn);
    const int weekend = in_week >= 5 * DAY;
    double *v = out->values, sine = 0, cosine = 1;
    out->time = time;
    *v++ = 1;
    *v++ = weekend;
    for (int h = 0; h < SVI_CONTEXT_HARMONICS; h++) { /* sine and cosine of the next multiple */
        const double next = sine * c + cosine * s;
        cosine = cosine * c - sine * s;
        sine = next;
        *v++ = sine;
        *v++ = cosine;
        *v++ = weekend ? sine : 0;
        *v++ = weekend ? cosine : 0;
    }
    out->bin = (int)fmin(floor(in_day / (DAY / (SVI_CONTEXT_BINS / 2))), SVI_CONTEXT_BINS / 2 - 1) +
               (weekend ? SVI_CONTEXT_BINS / 2 : 0);
}
