/* quick.h: how long tests go on. A sanitized build, which is up to 50 times slower, looks for memory errors
 * and races: each path once and some more will do there, the statistics are those of the plain build. */
#ifndef TEST_SUPPORT_QUICK_H
#define TEST_SUPPORT_QUICK_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool quick(void) {
    return getenv("SVMSTREAM_QUICK") != NULL;
}

/* A count or a step. */
static inline int often(int plain, int sanitized) {
    return quick() ? sanitized : plain;
}

/* Is this the build that looks for races? */
static inline bool races(void) {
    return quick() && getenv("SVMSTREAM_QUICK")[0] == '2';
}

/* Allocations and calls that fail in turn: all of them where memory errors are looked for, so many apart
 * where races are, as these are tests of one thread (SVMSTREAM_QUICK=2). */
static inline int every(int step) {
    return races() ? step : 1;
}

#endif
