/* clock.h: time that only grows, for durations. */
#ifndef SVI_CLOCK_H
#define SVI_CLOCK_H

#include <time.h>

/* Seconds. */
static inline double svi_monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
