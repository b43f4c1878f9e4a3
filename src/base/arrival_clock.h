/* arrival_clock.h: the time of arrival of a sample, in seconds since 1970.
 *
 * Based on a clock that never runs backwards and keeps running while the machine sleeps, anchored to the wall
 * clock at its start. Later changes of the wall clock, by a person or a time server, do not move it; they
 * show as an offset. The owner decides when to move the anchor (svi_arrival_clock_move), because everything
 * that holds earlier times must move with it. */
#ifndef SVI_ARRIVAL_CLOCK_H
#define SVI_ARRIVAL_CLOCK_H

/* Offsets up to this many seconds are ignored. A slow drift adds up and eventually becomes one step. */
#define SVI_CLOCK_TOLERANCE 0.5

struct svi_arrival_clock {
    double anchor; /* seconds since 1970 when the steady clock was at 0 */
};

void svi_arrival_clock_start(struct svi_arrival_clock *c);
double svi_arrival_clock_now(const struct svi_arrival_clock *c);

/* Seconds by which the wall clock is ahead of this one (negative: it lags); 0 within the tolerance. */
double svi_arrival_clock_offset(const struct svi_arrival_clock *c);

/* Adds `step` seconds to the clock from now on. */
void svi_arrival_clock_move(struct svi_arrival_clock *c, double step);

#endif
