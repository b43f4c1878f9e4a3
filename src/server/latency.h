/* latency.h: how long messages stay between being taken from their queue and their events being handed over,
 * as quantiles from a logarithmic histogram (four steps to the octave: within 19 %). Nothing is allocated. */
#ifndef SVI_LATENCY_H
#define SVI_LATENCY_H

#include <stdint.h>

#define SVI_LATENCY_STEPS 160 /* 100 ns to beyond a day */

/* Zero-initialised is empty. */
struct svi_latency {
    int64_t counts[SVI_LATENCY_STEPS];
    int64_t messages, turns, largest; /* since the last reset; largest: messages of one turn */
};

/* One turn in which `messages` were taken and `seconds` went by: each of them waited that long at most. */
void svi_latency_add(struct svi_latency *l, double seconds, int64_t messages);

/* Seconds that a share q (0 to 1) of the messages did not exceed; NAN without messages. */
double svi_latency_quantile(const struct svi_latency *l, double q);

#endif
