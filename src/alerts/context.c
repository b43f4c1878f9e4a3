#include "alerts/context.h"

#include <math.h>

#include "alerts/block_tails.h"
#include "features/calendar.h"

#define DAY    86400.0
#define WEEK   (7 * DAY)
#define MONDAY (4 * DAY) /* the first one after 1970 began, on a Thursday */
#define FIRST  32        /* rows before the memory is first set */

void svi_context_moment(const char *zone, double time, struct svi_moment *out) {
    /* floor, not fmod: times before 1970 lie in the right part of their day as well. */
    const double local = svi_calendar_local(zone, time);
    const double in_day = local - DAY * floor(local / DAY);
    const double in_week = local - MONDAY - WEEK * floor((local - MONDAY) / WEEK);
    const double turn = 2 * M_PI * in_day / DAY, s = sin(turn), c = cos(turn);
    const int weekend = in_week >= 5 * DAY;
    double *v = out->values, sine = 0, cosine = 1;
    out->time = time;
    *v++ = 1;
    *v++ = weekend;
    /* The addition theorem steps to the next multiple, so that only one sine and one cosine are computed.
     * Each harmonic appears twice, for all days and for the weekend alone, so that a linear forecast has two
     * shapes of the day. */
    for (int h = 0; h < SVI_CONTEXT_HARMONICS; h++) {
        const double next = sine * c + cosine * s;
        cosine = cosine * c - sine * s;
        sine = next;
        *v++ = sine;
        *v++ = cosine;
        *v++ = weekend ? sine : 0;
        *v++ = weekend ? cosine : 0;
    }
    /* Bins 0 to 47 are working days, 48 to 95 weekends. fmin: rounding could give the end of the day. */
    out->bin = (int)fmin(floor(in_day / (DAY / (SVI_CONTEXT_BINS / 2))), SVI_CONTEXT_BINS / 2 - 1) +
               (weekend ? SVI_CONTEXT_BINS / 2 : 0);
}

/* ---- the memory of the detectors */

void svi_pace_init(struct svi_pace *p) {
    *p = (struct svi_pace){.memory = SVI_PACE_MIN};
}

bool svi_pace_row(struct svi_pace *p, double time) {
    p->since = p->rows == 0 ? time : p->since;
    p->rows++;
    /* At powers of two: every change of the memory makes other parts adapt, and doubling keeps
     * changes rare. */
    if (p->rows < FIRST || (p->rows & (p->rows - 1)) != 0 || !(time > p->since))
        return false;
    p->memory = fmax(SVI_PACE_MIN, fmin((double)p->rows / (time - p->since) * WEEK, SVI_PACE_MAX));
    return true;
}

bool svi_pace_knows_a_day(const struct svi_pace *p, double time) {
    return p->rows > 0 && (time - p->since >= DAY || p->rows >= SVI_PACE_DAY);
}

bool svi_pace_is_fast(const struct svi_pace *p, double time) {
    return p->rows >= SVI_PACE_MIN_ROWS && time > p->since &&
           (double)p->rows / (time - p->since) * DAY > SVI_PACE_DAY;
}

int64_t svi_pace_block(const struct svi_pace *p) {
    /* The largest power-of-two multiple that does not exceed it, because blocks only ever double. */
    int64_t rows = SVI_BLOCK_MIN_ROWS;
    while ((double)rows * 2 * SVI_BLOCKS <= 4 * p->memory)
        rows *= 2;
    return rows;
}

void svi_pace_archive(struct svi_archive *a, struct svi_pace *p) {
    svi_archive_int64(a, "rows", &p->rows, 0, INT64_MAX / 4);
    svi_archive_finite(a, "since", &p->since, 1);
    svi_archive_finite(a, "memory", &p->memory, 1);
    svi_archive_check(a, p->memory >= SVI_PACE_MIN && p->memory <= SVI_PACE_MAX,
                      "the memory of the detectors is out of range");
}
