/* latency.h: time from taking a message off its queue to publishing its events, as quantiles of a logarithmic
 * histogram (four steps an octave: within 19 %). Allocates nothing. */
#ifndef SVI_LATENCY_H
#define SVI_LATENCY_H

#include <stdint.h>

#define SVI_LATENCY_STEPS 160 /* from 100 ns to more than a day */

/* Zero-initialised is empty. */
struct svi_latency {
    int64_t counts[SVI_LATENCY_STEPS];
    int64_t messages, turns, largest; /* since the last reset; largest: most messages in one turn */
};

/* Adds one turn that took `messages` messages and `seconds`: each of them waited at most that long. */
void svi_latency_add(struct svi_latency *l, double seconds, int64_t messages);

/* Seconds that a share q (0 to 1) of the messages did not exceed; NAN if there were none. */
double svi_latency_quantile(const struct svi_latency *l, double q);

#endif
