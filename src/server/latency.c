/* Step i of the histogram covers times up to SHORTEST * 2^(i / 4) seconds; the last step also takes
 * everything beyond. */
#include "server/latency.h"

#include <math.h>

#define SHORTEST 1e-7 /* seconds; upper bound of the first step */

void svi_latency_add(struct svi_latency *l, double seconds, int64_t messages) {
    int step = seconds > SHORTEST ? (int)(4 * log2(seconds / SHORTEST)) + 1 : 0;
    if (messages <= 0)
        return;
    l->counts[step < SVI_LATENCY_STEPS ? step : SVI_LATENCY_STEPS - 1] += messages;
    l->messages += messages;
    l->turns++;
    if (messages > l->largest)
        l->largest = messages;
}

double svi_latency_quantile(const struct svi_latency *l, double q) {
    double below = 0;
    if (l->messages == 0)
        return NAN;
    for (int i = 0; i < SVI_LATENCY_STEPS; i++) {
        below += (double)l->counts[i];
        if (below >= q * (double)l->messages)
            return SHORTEST * exp2(i / 4.0);
    }
    return NAN;
}
