/* clock.h: the two clocks, in seconds. */
#ifndef SVI_CLOCK_H
#define SVI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline double svi_clock_seconds(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Never runs backwards; for durations only. */
static inline double svi_monotonic(void) {
    return svi_clock_seconds(CLOCK_MONOTONIC);
}

static inline int64_t svi_monotonic_ms(void) {
    return (int64_t)(1000 * svi_monotonic());
}

/* Since 1970; may jump at any moment. Arrival times are read from an arrival clock instead
 * (base/arrival_clock.h). */
static inline double svi_wall_clock(void) {
    return svi_clock_seconds(CLOCK_REALTIME);
}

#endif
