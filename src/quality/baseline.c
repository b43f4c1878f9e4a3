/* The baselines of quality, compared with the learner sample by sample.
 *
 * Classes are counted. Squared errors of values are summed over all samples and over a ring of the window, in
 * the way of metrics.c: slots older than the last wrap hold the sum from there to the end of the ring. A
 * windowed sum is therefore one such suffix sum plus the sum since the wrap, and nothing is ever
 * subtracted. */
#include "quality/baseline.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/stat_ring.h"

#define COUNT_MAX (INT64_MAX / 8)

struct squares {
    double same, mean;
};

/* Squared errors of a baseline less those of the learner. */
struct gain {
    double sum, squares;
};

struct svi_baseline {
    svs_task task;
    int64_t n; /* compared */
    /* classify */
    int last; /* label before, -1 = none */
    int64_t hits, same, both;
    /* regress */
    int64_t targets; /* so far */
    double target;
    double mean; /* running mean of the targets */
    struct gain gain_same, gain_mean;
    struct squares all, fresh; /* fresh: of the slots before `slot` */
    struct svi_stat_ring places;
    struct squares ring[]; /* of the window */
};

static size_t baseline_bytes(svs_task task, int64_t window) {
    return sizeof(struct svi_baseline) + (task == SVS_REGRESS ? (size_t)window * sizeof(struct squares) : 0);
}

svi_baseline *svi_baseline_new(svs_task task, int64_t window, svs_error *err) {
    svi_baseline *b = svi_new_plain(baseline_bytes(task, window), "the baselines of quality", err);
    if (!b)
        return NULL;
    b->task = task;
    b->places.window = window;
    b->last = -1;
    return b;
}

void svi_baseline_free(svi_baseline **b) {
    svi_free(*b);
    *b = NULL;
}

double svi_baseline_memory(svs_task task, int64_t window) {
    return (double)baseline_bytes(task, window);
}

void svi_baseline_reset(svi_baseline *b) {
    *b = (struct svi_baseline){.task = b->task, .places.window = b->places.window, .last = -1};
}

/* *b keeps its own (empty) ring: copying the struct does not copy the ring's values. */
void svi_baseline_take_over(svi_baseline *b, const svi_baseline *of) {
    const struct svi_stat_ring places = b->places;
    *b = *of;
    b->places = places;
    b->fresh = (struct squares){0};
}

void svi_baseline_class(svi_baseline *b, int truth, int predicted) {
    const bool hit = truth == predicted, same = truth == b->last;
    b->last = truth;
    b->n++;
    b->hits += hit;
    b->same += same;
    b->both += hit && same;
}

/* The ring is full to its end: turns its values into suffix sums, in place, and restarts the fresh sum. */
static void baseline_wrap(svi_baseline *b) {
    b->fresh = (struct squares){0};
    for (int64_t i = b->places.window - 1; i-- > 0;) {
        b->ring[i].same += b->ring[i + 1].same;
        b->ring[i].mean += b->ring[i + 1].mean;
    }
}

/* Sum and sum of squares suffice for the mean gain and its standard error. */
static inline void baseline_gain_add(struct gain *g, double gain) {
    g->sum += gain;
    g->squares += gain * gain;
}

/* Both baselines predict from earlier targets alone: `target` and `mean` are updated last, as prequential
 * scoring demands. */
void svi_baseline_value(svi_baseline *b, double truth, double predicted) {
    /* All three errors belong to the same sample, so their differences have less variance than each of
     * them. */
    const double own = (truth - predicted) * (truth - predicted);
    const double off = truth - b->mean;
    if (b->targets > 0) {
        const double gap = truth - b->target;
        const struct squares s = {gap * gap, off * off};
        b->n++;
        b->all.same += s.same;
        b->all.mean += s.mean;
        b->fresh.same += s.same;
        b->fresh.mean += s.mean;
        baseline_gain_add(&b->gain_same, s.same - own);
        baseline_gain_add(&b->gain_mean, s.mean - own);
        b->ring[b->places.slot] = s;
        if (svi_stat_ring_advance(&b->places))
            baseline_wrap(b);
    }
    /* Welford's update of the mean; also for the first target, which is not compared. */
    b->target = truth;
    b->mean += off / (double)++b->targets;
}

struct svi_baseline_errors svi_baseline_errors(const svi_baseline *b) {
    const double n = (double)b->n, m = (double)b->places.filled; /* 0: NAN */
    /* While the ring is not full, everything in the window is fresh. Then the slot written next, the oldest
     * sample, heads the suffix sum of the samples before the wrap. */
    const struct squares none = {0}, *old = svi_stat_ring_full(&b->places) ? &b->ring[b->places.slot] : &none;
    return (struct svi_baseline_errors){.same = sqrt(b->all.same / n),
                                        .mean = sqrt(b->all.mean / n),
                                        .same_window = sqrt((b->fresh.same + old->same) / m),
                                        .mean_window = sqrt((b->fresh.mean + old->mean) / m)};
}

/* The mean of n values of 1 (won), -1 (lost) and 0, and the standard error of that mean. */
struct svi_advantage svi_advantage_of_pairs(int64_t n, int64_t won, int64_t lost) {
    const double m = (double)n, by = (double)(won - lost) / m;
    return (struct svi_advantage){
        .n = n, .by = by, .error = sqrt(fmax(0, (double)(won + lost) / m - by * by) / m)};
}

/* Both are right on `own` samples, so these cancel: the learner alone is right on hits - own, the class alone
 * on support - own. */
struct svi_advantage svi_baseline_commonest(int64_t n, int64_t hits, int64_t support, int64_t own) {
    return svi_advantage_of_pairs(n, hits - own, support - own);
}

/* The mean of the differences of squared errors and its standard error; one sample has none. */
static struct svi_advantage baseline_gain(const svi_baseline *b, const struct gain *g) {
    const double n = (double)b->n, by = g->sum / n, spread = g->squares / n - by * by;
    const bool known = b->n > 1 && isfinite(spread); /* squares of squares overflow from 1e77 on */
    return (struct svi_advantage){
        .n = b->n, .by = by, .error = known ? sqrt(fmax(0, spread) / (n - 1)) : INFINITY};
}

/* `both` counts samples that both got right, which leaves the discordant pairs. */
struct svi_advantage svi_baseline_same(const svi_baseline *b) {
    return b->task == SVS_REGRESS ? baseline_gain(b, &b->gain_same)
                                  : svi_advantage_of_pairs(b->n, b->hits - b->both, b->same - b->both);
}

/* The 0.975 quantile of Student's t, to 3 %. */
static double baseline_t(double freedom) {
    return 1.96 + 2.4 / freedom + 8.3 / (freedom * freedom * freedom);
}

/* Lower end of the interval of Agresti and Min: half a pair is added to each of the four cells, so n grows by
 * 2 and the discordant pairs by 1. */
static double baseline_pairs_worse(int64_t n, int64_t won, int64_t lost) {
    const double m = (double)n + 2, more = (double)(lost - won), differ = (double)(lost + won) + 1;
    return (more - 1.96 * sqrt(differ - more * more / m)) / m;
}

double svi_baseline_worse(const svi_baseline *b) {
    if (b->n == 0)
        return NAN;
    if (b->task != SVS_REGRESS)
        return baseline_pairs_worse(b->n, b->hits - b->both, b->same - b->both);
    const struct svi_advantage a = svi_baseline_same(b);
    const double least = b->n > 1 ? -a.by - baseline_t((double)a.n - 1) * a.error : -INFINITY;
    /* The denominator is the sum of both mean squared errors: own = same - a.by. An exact 0 stays 0 where
     * both are perfect and the denominator is 0 too. */
    return least == 0 ? 0 : least / (2 * b->all.same / (double)b->n - a.by);
}

struct svi_advantage svi_baseline_mean(const svi_baseline *b) {
    return baseline_gain(b, &b->gain_mean);
}

static void baseline_archive_values(struct svi_archive *a, svi_baseline *b) {
    svi_archive_int64(a, "targets", &b->targets, 0, COUNT_MAX);
    svi_archive_finite(a, "target", &b->target, 1);
    svi_archive_finite(a, "mean", &b->mean, 1);
    svi_archive_doubles(a, "gain on same", (double *)&b->gain_same, 2);
    svi_archive_doubles(a, "gain on mean", (double *)&b->gain_mean, 2);
    svi_archive_doubles(a, "squares", (double *)&b->all, 2);
    svi_archive_doubles(a, "fresh squares", (double *)&b->fresh, 2);
    if (svi_stat_ring_archive(a, &b->places))
        svi_archive_doubles(a, "window of squares", (double *)b->ring, 2 * b->places.filled);
}

void svi_baseline_archive(struct svi_archive *a, svi_baseline *b) {
    if (svi_archive_loading(a))
        svi_baseline_reset(b);
    svi_archive_int64(a, "compared", &b->n, 0, COUNT_MAX);
    if (b->task == SVS_REGRESS) {
        baseline_archive_values(a, b);
        return;
    }
    svi_archive_int(a, "label before", &b->last, -1, UINT16_MAX);
    svi_archive_int64(a, "right", &b->hits, 0, b->n);
    svi_archive_int64(a, "same as before", &b->same, 0, b->n);
    svi_archive_int64(a, "both", &b->both, 0, b->hits < b->same ? b->hits : b->same);
}
