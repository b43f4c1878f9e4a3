/* arrival_clock.h: the time at which something came, seconds since 1970.
 *
 * Read from a clock that never goes back and goes on while the machine sleeps, anchored to the wall clock
 * when it is started. What a person or a time server does to the wall clock afterwards does not move it: that
 * shows as an offset, and the owner moves the anchor when it suits (svi_arrival_clock_move), for whatever
 * holds earlier times must move with it. */
#ifndef SVI_ARRIVAL_CLOCK_H
#define SVI_ARRIVAL_CLOCK_H

/* Less than this between the two clocks is let be. A slow drift adds up and becomes a step. */
#define SVI_CLOCK_TOLERANCE 0.5

struct svi_arrival_clock {
    double anchor; /* seconds since 1970 when the steady clock was at 0 */
};

void svi_arrival_clock_start(struct svi_arrival_clock *c);
double svi_arrival_clock_now(const struct svi_arrival_clock *c);

/* How far the wall clock is ahead of this one, negative: behind; 0 within the tolerance. */
double svi_arrival_clock_offset(const struct svi_arrival_clock *c);

void svi_arrival_clock_move(struct svi_arrival_clock *c, double step);

#endif
