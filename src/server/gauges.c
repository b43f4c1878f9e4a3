#include "server/gauges.h"

#include <math.h>

#define PERIOD 1.0 /* seconds */

void svi_gauges_begin(struct svi_gauges *g, svi_stream *s, double now) {
    (void)svi_stream_smallest_p(s);
    *g = (struct svi_gauges){
        .since_stats = INFINITY, .period_at = now, .seen = svi_stream_seen(s), .sample_at = NAN};
    for (int i = 0; i < SVI_GAUGE_PERIODS; i++)
        g->smallest[i] = INFINITY;
}

void svi_gauges_clear(struct svi_gauges *g) {
    svi_bytes_clear(&g->packed);
}

static void gauges_note(struct svi_gauges *g, double p) {
    /* both false for NAN */
    if (p < g->smallest[0])
        g->smallest[0] = p;
    if (p < g->since_stats)
        g->since_stats = p;
}

void svi_gauges_event(struct svi_gauges *g, const struct svi_event *e) {
    if (e->topic == SVI_TOPIC_SCORE && e->as.score.judged)
        gauges_note(g, e->as.score.p);
}

/* Ends the periods that are over. A client that polls once in two periods misses none. */
static void gauges_pass(struct svi_gauges *g, double now) {
    for (int i = 0; i < SVI_GAUGE_PERIODS && now >= g->period_at + PERIOD; i++) {
        for (int k = SVI_GAUGE_PERIODS - 1; k > 0; k--)
            g->smallest[k] = g->smallest[k - 1];
        g->smallest[0] = INFINITY;
        g->period_at += PERIOD;
    }
    if (now >= g->period_at + PERIOD) /* all of them are over */
        g->period_at = now;
}

void svi_gauges_turn(struct svi_gauges *g, svi_stream *s, double now) {
    const int64_t seen = svi_stream_seen(s);
    gauges_pass(g, now);
    gauges_note(g, svi_stream_smallest_p(s));
    if (seen != g->seen)
        g->sample_at = now;
    g->seen = seen;
}

void svi_gauges_set(struct svi_gauges *g, svi_stream *s, double now, bool stats) {
    gauges_pass(g, now);
    double smallest = stats ? g->since_stats : INFINITY;
    for (int i = 0; i < SVI_GAUGE_PERIODS; i++)
        smallest = fmin(smallest, g->smallest[i]);
    svi_stream_set_gauge(s, "smallest_p", isinf(smallest) ? NAN : smallest);
    svi_stream_set_gauge(s, "idle", now - g->sample_at);
    if (svi_latency_pack(&g->latency, &g->packed) == SVS_OK)
        svi_stream_set_packed(s, "latency_buckets", g->packed.data, g->packed.size);
    else /* no memory: the bytes of the previous ones are overwritten */
        svi_stream_set_gauge(s, "latency_buckets", NAN);
    if (stats)
        g->since_stats = INFINITY;
}
