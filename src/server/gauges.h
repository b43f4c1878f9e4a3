/* gauges.h: figures that the server measures in addition to the stream: latency in buckets, the smallest p, and the
 * seconds since the last sample. Reading them changes none, so that any number of clients may poll. */
#ifndef SVI_GAUGES_H
#define SVI_GAUGES_H

#include "base/bytes.h"
#include "fleet/stream.h"
#include "server/latency.h"
#include "wire/event.h"

#define SVI_GAUGE_PERIODS 3 /* that smallest_p covers: two whole ones and the present one */

/* Begin with svi_gauges_begin. */
struct svi_gauges {
    struct svi_latency_buckets latency;
    struct svi_bytes packed;            /* of these */
    double smallest[SVI_GAUGE_PERIODS]; /* p of each period, the present one first; INFINITY: none */
    double since_stats;                 /* smallest p since the previous stats */
    double period_at;                   /* monotonic: when the present period began */
    int64_t seen;                       /* samples of the stream at the last turn */
    double sample_at;                   /* monotonic: when that number last grew; NAN: not yet */
};

/* After a recovery, whose samples do not count. */
void svi_gauges_begin(struct svi_gauges *g, svi_stream *s, double now);
void svi_gauges_clear(struct svi_gauges *g);

/* Notes the p of a score. */
void svi_gauges_event(struct svi_gauges *g, const struct svi_event *e);

/* After a turn of the loop; `now` is monotonic. */
void svi_gauges_turn(struct svi_gauges *g, svi_stream *s, double now);

/* Sets the gauges of the stream. With `stats` smallest_p also covers all since the previous stats. */
void svi_gauges_set(struct svi_gauges *g, svi_stream *s, double now, bool stats);

#endif
