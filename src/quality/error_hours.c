#include "quality/error_hours.h"

#include <math.h>

#define DAY         86400.0
#define HALF_HOUR   (DAY / SVI_HOURS)
#define MIN_SAMPLES 20  /* of a half-hour, before its share counts */
#define MIN_KNOWN   0.9 /* part of a stretch whose half-hours must be known */

static int hours_bin(double time) {
    const double in_day = time - DAY * floor(time / DAY);
    return (int)fmin(floor(in_day / HALF_HOUR), SVI_HOURS - 1);
}

/* A new visit: the one before counts from now on. */
static void hours_enter(struct svi_error_hours *h, double time) {
    const int b = h->now = hours_bin(time);
    h->until = HALF_HOUR * (floor(time / HALF_HOUR) + 1);
    if (h->latest_n[b] > 0) {
        const double keep = h->visits[b] < SVI_HOURS_MEMORY ? 1 : 1 - 1 / SVI_HOURS_MEMORY;
        h->n[b] = keep * h->n[b] + h->latest_n[b];
        h->wrong[b] = keep * h->wrong[b] + h->latest_wrong[b];
        h->visits[b] = keep * h->visits[b] + 1;
    }
    h->latest_n[b] = h->latest_wrong[b] = 0;
}

void svi_error_hours_add(struct svi_error_hours *h, double time, bool wrong) {
    /* A late sample of the half-hour before counts in the present one: only the order of samples matters. */
    if (time >= h->until || time < h->until - DAY)
        hours_enter(h, time);
    h->latest_n[h->now]++;
    h->latest_wrong[h->now] += wrong;
}

bool svi_error_hours_expect(const struct svi_error_hours *h, double from, double to,
                            struct svi_hours_expected *out) {
    /* A stretch of a day or more has each half-hour alike. Each counts by its part of the stretch and by how
     * many samples it normally has. */
    double all = 0, known = 0, wrong = 0, samples = 0;
    const double first = fmax(from, to - DAY);
    for (double t = first; t < to;) {
        const double end = fmin(to, HALF_HOUR * (floor(t / HALF_HOUR) + 1));
        const int b = hours_bin(t);
        const double part = (end - t) / HALF_HOUR;
        const bool is_known = h->n[b] >= MIN_SAMPLES;
        all += part;
        known += is_known ? part : 0;
        if (is_known) {
            wrong += part * h->wrong[b] / h->visits[b];
            samples += part * h->n[b] / h->visits[b];
        }
        t = end > t ? end : to;
    }
    if (!(samples > 0) || known < MIN_KNOWN * all)
        return false;
    out->share = wrong / samples;
    out->samples = 0;
    for (int b = 0; b < SVI_HOURS; b++) {
        const double ahead = fmod(b * HALF_HOUR - first, DAY), since = ahead < 0 ? ahead + DAY : ahead;
        out->samples += since < to - first || b == hours_bin(first) ? h->n[b] : 0;
    }
    return true;
}

void svi_error_hours_archive(struct svi_archive *a, struct svi_error_hours *h) {
    svi_archive_finite(a, "hour until", &h->until, 1);
    svi_archive_int(a, "hour", &h->now, 0, SVI_HOURS - 1);
    svi_archive_finite(a, "hours", h->n, SVI_HOURS);
    svi_archive_finite(a, "hours wrong", h->wrong, SVI_HOURS);
    svi_archive_finite(a, "hours visits", h->visits, SVI_HOURS);
    svi_archive_finite(a, "hours latest", h->latest_n, SVI_HOURS);
    svi_archive_finite(a, "hours latest wrong", h->latest_wrong, SVI_HOURS);
}
