/* latency.h: time from taking a message off its queue to publishing its events. It is kept as
 * quantiles of a logarithmic histogram (four steps an octave: within 19 %), which begins again with
 * each stats. It is also kept as counts in a few buckets, which never fall. Only svi_latency_pack
 * allocates. */
#ifndef SVI_LATENCY_H
#define SVI_LATENCY_H

#include <stdint.h>

#include "base/bytes.h"
#include "svmstream/error.h"

#define SVI_LATENCY_STEPS 160 /* from 100 ns to more than a day */

/* Bounds of the buckets in seconds: 1, 2.5 and 5 times each power of ten from 10 us to 10 s. */
#define SVI_LATENCY_BOUNDS                                                                                   \
    1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5,  \
        5, 10
#define SVI_LATENCY_BUCKETS 20 /* one more than bounds: the last has no upper bound */

/* All messages since the process began. Zero-initialised is empty. */
struct svi_latency_buckets {
    int64_t counts[SVI_LATENCY_BUCKETS]; /* of each bucket alone */
    double sum;                          /* seconds of all messages */
};

/* Adds `messages` that took at most `seconds` each. */
void svi_latency_bucket(struct svi_latency_buckets *b, double seconds, int64_t messages);

/* {bounds: [seconds], counts: [messages up to each bound, then all], sum: seconds}. SVS_NO_MEMORY. */
svs_code svi_latency_pack(const struct svi_latency_buckets *b, struct svi_bytes *out);

/* Zero-initialised is empty. */
struct svi_latency {
    int64_t counts[SVI_LATENCY_STEPS];
    int64_t messages, turns, largest; /* since the last reset; largest: most messages in one turn */
};

/* Adds one turn that took `messages` messages and `seconds`: each of them waited at most that long. */
void svi_latency_add(struct svi_latency *l, double seconds, int64_t messages);

/* Seconds that a share q (0 to 1) of the messages did not exceed; NAN without messages. */
double svi_latency_quantile(const struct svi_latency *l, double q);

#endif
