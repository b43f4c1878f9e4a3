/* The figures of a stream: what its engines count, rates and gauges, which the surroundings set by name. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "fleet/fleet_internal.h"

#define RATE_SMOOTH 0.5 /* weight of the newest stretch */

int64_t svi_stream_seen(const svi_stream *s) {
    return s->root->kept[SVI_KEPT_SEEN] + s->others.seen;
}

int64_t svi_stream_unkeyed(const svi_stream *s) {
    return s->root->kept[SVI_KEPT_SEEN];
}

int64_t svi_stream_errors(const svi_stream *s) {
    return s->root->kept[SVI_KEPT_REFUSED] + s->others.refused;
}

int64_t svi_stream_refused(const svi_stream *s) {
    return svi_stream_errors(s) - svi_engine_notices(s->root);
}

bool svi_stream_out_of_memory(const svi_stream *s) {
    return s->lost.code != SVS_OK || svi_engine_out_of_memory(s->root);
}

svs_code svi_stream_lost_key(const svi_stream *s, svs_error *err) {
    return s->lost.code != SVS_OK ? svi_fail(err, s->lost.code, "%s", s->lost.text) : SVS_OK;
}

static void figures_set_gauge(svi_stream *s, struct svi_figure gauge) {
    struct svi_stream_figures *f = &s->figures;
    int i = 0;
    while (i < f->gauge_count && strcmp(f->gauges[i].name, gauge.name) != 0)
        i++;
    if (i == SVI_GAUGES_MAX)
        return;
    f->gauge_count += i == f->gauge_count;
    f->gauges[i] = gauge;
}

void svi_stream_set_gauge(svi_stream *s, const char *name, double value) {
    figures_set_gauge(s, (struct svi_figure){.name = name, .type = SVI_NUMBER, .as.number = value});
}

void svi_stream_set_packed(svi_stream *s, const char *name, const void *bytes, size_t size) {
    figures_set_gauge(s, (struct svi_figure){.name = name, .type = SVI_PACKED, .as.packed = {bytes, size}});
}

double svi_stream_smallest_p(svi_stream *s) {
    const double smallest = s->figures.smallest_p;
    s->figures.smallest_p = INFINITY;
    return smallest;
}

void svi_stream_set_kept_memory(svi_stream *s, double share, double fixed) {
    s->figures.kept_share = share;
    s->figures.kept_fixed = fixed;
}

/* Figures of one engine, or of the whole stream where it is the root: then the kind adds its keys, and
 * gauges follow. */
int svi_stream_figures(svi_stream *s, svi_engine *e, double now, const struct svi_figure **figures) {
    struct svi_stream_figures *f = &s->figures;
    union svi_amount *of = f->counters.of;
    e = e ? e : s->root;
    if (e == s->root)
        svi_stream_settle(s);
    f->started = isnan(f->started) ? now : f->started;
    svi_engine_count(e, &f->counters);
    of[SVI_COUNTER_RATE].number = e == s->root ? f->rate : NAN;
    of[SVI_COUNTER_SOURCES].count = svi_sources_count(s->entry.sources);
    of[SVI_COUNTER_UPTIME].number = now - f->started;
    const int d = (int)of[SVI_COUNTER_D].count, classes = (int)of[SVI_COUNTER_CLASSES].count;
    /* Of the process: the engine, the states that are kept for a load, the keys and the alerts. */
    of[SVI_COUNTER_MEMORY_PREDICTED].number =
        svi_engine_memory(e->s, d, classes) + (e == s->root ? svi_kept_alerts_memory(s->alerts) : 0) +
        (f->kept_fixed + f->kept_share * svi_engine_state_memory(e->s, d, classes)) +
        (e == s->root && s->verbs->memory ? s->verbs->memory(s) : 0);
    int filled = svi_counters_figures(&f->counters, f->all);
    if (e == s->root && s->verbs->figures)
        filled += s->verbs->figures(s, f->all, f->all + filled);
    filled += svi_engine_further_figures(e, f->all + filled);
    *figures = f->all;
    if (e != s->root) /* gauges are of the stream */
        return filled;
    memcpy(f->all + filled, f->gauges, (size_t)f->gauge_count * sizeof *f->gauges);
    return filled + f->gauge_count;
}

/* Samples of the stream per second since the stats before, smoothed. */
static void take_rate(svi_stream *s, double now) {
    struct svi_stream_figures *f = &s->figures;
    /* Two calls within the same instant would divide by 0. */
    const int64_t seen = svi_stream_seen(s);
    const double since = isnan(f->rate_since) ? f->started : f->rate_since;
    if (!(now > since))
        return;
    const double newest = (double)(seen - f->rate_seen) / (now - since);
    f->rate = isnan(f->rate) ? newest : f->rate + RATE_SMOOTH * (newest - f->rate);
    f->rate_since = now;
    f->rate_seen = seen;
}

void svi_stream_publish_stats(svi_stream *s, svi_engine *e, double now) {
    const struct svi_figure *figures;
    struct svi_engine *root = svi_stream_settle(s);
    s->figures.started = isnan(s->figures.started) ? now : s->figures.started;
    e = e ? e : root;
    if (e == root)
        take_rate(s, now);
    const int count = svi_stream_figures(s, e, now, &figures);
    svi_engine_publish_stats(e, figures, count, now);
}

void svi_stream_progress(svi_stream *s, struct svi_stream_progress *out) {
    struct svi_engine *root = svi_stream_settle(s);
    const struct svi_stream_total *t = &s->others;
    *out = (struct svi_stream_progress){.seen = svi_stream_seen(s),
                                        .alerts = root->novelty->alert.opened + t->alerts,
                                        .sums = svi_metrics_sums(root->quality_stage.metrics)};
    out->quality_count = svi_engine_quality(root, &out->quality);
    if (!s->keyed)
        return;
    out->sums.judged += t->judged;
    out->sums.right += t->right;
    out->sums.squares += t->squares;
    const double n = (double)out->sums.judged;
    struct svi_figure *quality = root->scratch->quality; /* what is known of all keys */
    /* Only what can be summed over keys is known of the whole stream; other qualities are NAN. */
    for (int i = 0; i < out->quality_count; i++)
        quality[i].as.number = strcmp(quality[i].name, "accuracy") == 0 ? (double)out->sums.right / n
                               : strcmp(quality[i].name, "rmse") == 0   ? sqrt(out->sums.squares / n)
                                                                        : NAN;
}
