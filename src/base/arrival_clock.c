#include "base/arrival_clock.h"

#include <math.h>

#include "base/clock.h"

#define LOOKS   5     /* attempts to read both clocks without an interruption */
#define BETWEEN 0.001 /* seconds; a longer attempt was interrupted and is repeated */

static double steady_seconds(void) {
    return svi_clock_seconds(CLOCK_BOOTTIME);
}

/* Wall clock minus steady clock. The two cannot be read at once: the wall clock is read between two readings
 * of the steady one and compared with their mean. NAN: every attempt was interrupted. */
static double clock_distance(void) {
    for (int i = 0; i < LOOKS; i++) {
        const double before = steady_seconds(), wall = svi_wall_clock(), after = steady_seconds();
        if (after - before <= BETWEEN)
            return wall - 0.5 * (before + after);
    }
    return NAN;
}

void svi_arrival_clock_start(struct svi_arrival_clock *c) {
    const double distance = clock_distance();
    c->anchor = isnan(distance) ? svi_wall_clock() - steady_seconds() : distance;
}

double svi_arrival_clock_now(const struct svi_arrival_clock *c) {
    return c->anchor + steady_seconds();
}

double svi_arrival_clock_offset(const struct svi_arrival_clock *c) {
    const double offset = clock_distance() - c->anchor;
    return fabs(offset) > SVI_CLOCK_TOLERANCE ? offset : 0; /* NAN compares false: an unknown offset is 0 */
}

void svi_arrival_clock_move(struct svi_arrival_clock *c, double step) {
    c->anchor += step;
}
