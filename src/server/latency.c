/* Step i of the histogram covers times up to SHORTEST * 2^(i / 4) seconds; the last step also takes
 * everything beyond. */
#include "server/latency.h"

#include <math.h>

#include "wire/pack.h"

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

static const double latency_bounds[] = {SVI_LATENCY_BOUNDS};
static_assert(sizeof latency_bounds / sizeof *latency_bounds == SVI_LATENCY_BUCKETS - 1, "one bucket more");

void svi_latency_bucket(struct svi_latency_buckets *b, double seconds, int64_t messages) {
    int i = 0;
    if (messages <= 0)
        return;
    while (i < SVI_LATENCY_BUCKETS - 1 && seconds > latency_bounds[i])
        i++;
    b->counts[i] += messages;
    b->sum += seconds * (double)messages;
}

svs_code svi_latency_pack(const struct svi_latency_buckets *b, struct svi_bytes *out) {
    struct svi_pack p;
    int64_t within = 0;
    out->size = 0;
    svi_pack_begin(&p, out);
    svi_pack_map(&p, 3);
    svi_put_reals(&p, "bounds", latency_bounds, SVI_LATENCY_BUCKETS - 1);
    svi_put_array(&p, "counts", SVI_LATENCY_BUCKETS);
    for (int i = 0; i < SVI_LATENCY_BUCKETS; i++)
        svi_pack_int(&p, within += b->counts[i]);
    svi_put_real(&p, "sum", b->sum);
    return svi_pack_end(&p);
}
