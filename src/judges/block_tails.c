/* Block maxima and their tails.
 *
 * Of each series the maxima of the blocks stand together, by the place of the block; what is looked at in
 * each row (how high a value must be to tell anything, how much it may count) stands in rows of all series.
 * A fit is made when a block ends, and only for series whose upper maxima have changed; the mixture over
 * shapes is worked out when a value lies beyond the tail of the lightest shape, which is rare.
 */
#include "judges/block_tails.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define LEAST  4 /* blocks before anything is beyond them */
#define SHAPES 8
#define ROWS   5 /* of series, beside the maxima */

/* k of n maxima make the tail. */
static int tails_top(int n) {
    return n >= 16 ? n / 4 : n >= 8 ? 4 : n / 2;
}

svs_code svi_block_tails_init(struct svi_block_tails *t, int series, double least, svs_error *err) {
    *t = (struct svi_block_tails){
        .series = series, .least = least, .longest = SVI_BLOCK_LEAST, .length = SVI_BLOCK_LEAST};
    t->maxima = svi_alloc_array((size_t)(SVI_BLOCKS + ROWS), (size_t)series * sizeof *t->maxima);
    if (!t->maxima)
        return svi_fail_memory(err, "the tails of the sensors");
    t->now = t->maxima + (size_t)SVI_BLOCKS * (size_t)series;
    t->above = t->now + series;
    t->excess = t->above + series;
    t->most = t->excess + series;
    t->telling = t->most + series;
    for (int j = 0; j < series; j++) {
        t->now[j] = -INFINITY;
        t->above[j] = t->most[j] = t->telling[j] = INFINITY;
    }
    return SVS_OK;
}

void svi_block_tails_clear(struct svi_block_tails *t) {
    svi_free(t->maxima);
    *t = (struct svi_block_tails){0};
}

/* Blocks in which the series had a value: one that came late has fewer than others. */
int svi_block_tails_held(const struct svi_block_tails *t, int series) {
    const float *v = t->maxima + (size_t)series * SVI_BLOCKS;
    int held = 0;
    for (int i = 0; i < t->count; i++)
        held += v[i] != -INFINITY;
    return held;
}

/* The k + 1 largest of the maxima of a series, descending. */
static void tails_largest(const struct svi_block_tails *t, int series, int k, float *top) {
    int held = 0;
    for (int i = 0; i < t->count; i++) {
        const float v = t->maxima[(size_t)series * SVI_BLOCKS + (size_t)i];
        if (v == -INFINITY || (held == k + 1 && v <= top[k]))
            continue;
        int at = held < k + 1 ? held++ : k;
        for (; at > 0 && top[at - 1] < v; at--)
            top[at] = top[at - 1];
        top[at] = v;
    }
}

/* A law without a heavy tail says at most how surprising a value is: k / n (1 + b / k)^-k for an excess of b
 * mean ones. The b at which that is p. */
static double tails_excess_at(double p, int k, int n) {
    const double share = (double)k / n;
    return p >= share ? 0 : k * (pow(share / p, 1.0 / k) - 1);
}

static void tails_fit(struct svi_block_tails *t, int series) {
    float top[SVI_BLOCKS / 4 + 1];
    const int n = svi_block_tails_held(t, series), k = n >= LEAST ? tails_top(n) : 0;
    float sum = 0;
    if (k > 0)
        tails_largest(t, series, k, top);
    for (int i = 0; i < k; i++)
        sum += top[i] - top[k];
    const float mean = k > 0 ? sum / (float)k : 0;
    t->excess[series] = mean;
    t->above[series] = t->telling[series] = t->most[series] = INFINITY;
    if (k < 1)
        return;
    t->above[series] = top[k];
    t->telling[series] =
        top[k] + mean * (float)tails_excess_at(-expm1(-pow(10, -t->least) * (double)t->length), k, n + 1);
    if (sum > 0)
        t->most[series] = top[k] + mean * (float)tails_excess_at(0.25 / n, k, n);
}

/* log of the predictive probability of an excess y, a mean over shapes xi: see novelty/calibration.h. */
static double tails_mixture(const float *y, int k, double mean, double excess) {
    double weight[SHAPES], p[SHAPES], most = -INFINITY, sum = 0, all = 0;
    for (int i = 0; i < SHAPES; i++) {
        const double xi = (i + 0.5) / SHAPES, b = xi / ((1 - xi) * mean);
        double product = 1; /* of at most SVI_BLOCKS / 4 numbers that are 1e10 or so at most */
        for (int j = 0; j < k; j++)
            product *= 1 + b * y[j];
        const double total = log(product);
        weight[i] = k * log(b / total) - total;
        p[i] = -k * log1p(log1p(b * excess) / total);
        most = fmax(most, weight[i]);
    }
    for (int i = 0; i < SHAPES; i++) {
        const double w = exp(weight[i] - most);
        sum += w * exp(p[i]);
        all += w;
    }
    return log(sum / all);
}

double svi_block_tails_surprise(const struct svi_block_tails *t, int series, float v, double over) {
    float top[SVI_BLOCKS / 4 + 1];
    if (!(v > t->telling[series]))
        return 0;
    const int held = svi_block_tails_held(t, series), n = held + 1, k = tails_top(held);
    const double excess = v - t->above[series], mean = t->excess[series];
    if (!(mean > 0)) /* all alike: what is beyond them has a rank and no tail */
        return log10((double)n * (double)t->length);
    const double begins = log((double)k / n / (double)t->length);
    if (k * log1p(excess / mean / k) - begins <= over * M_LN10)
        return 0;
    tails_largest(t, series, k, top);
    for (int i = 0; i < k; i++)
        top[i] -= top[k];
    const double even = 1 - excess / (2 * mean); /* a law that ends says less of what lies at the beginning */
    const double block = (double)k / n * fmax(exp(tails_mixture(top, k, mean, excess)), even);
    return -log10(-log1p(-block) / (double)t->length);
}

static void tails_merge(struct svi_block_tails *t) {
    for (int j = 0; j < t->series; j++) {
        float *m = t->maxima + (size_t)j * SVI_BLOCKS;
        for (int i = 0; i < SVI_BLOCKS / 2; i++)
            m[i] = m[2 * i] > m[2 * i + 1] ? m[2 * i] : m[2 * i + 1];
    }
    t->count = t->at = SVI_BLOCKS / 2;
    t->length *= 2;
}

/* The present block is over. A series whose upper maxima stay what they are keeps its fit. */
static void tails_end_block(struct svi_block_tails *t) {
    float *place = t->maxima + t->at;
    const bool full = t->count == SVI_BLOCKS;
    t->at = (t->at + 1) % SVI_BLOCKS;
    t->count += !full;
    for (int j = 0; j < t->series; j++) {
        float *v = &place[(size_t)j * SVI_BLOCKS];
        const bool above = t->now[j] > t->above[j] || (full && *v >= t->above[j]);
        /* the shares change: as a fit that is made again of what was kept */
        const bool grows = !full || (*v == -INFINITY) != (t->now[j] == -INFINITY);
        *v = t->now[j];
        t->now[j] = -INFINITY;
        if (above || grows || t->above[j] == INFINITY)
            tails_fit(t, j);
    }
    t->row = 0;
    if (t->count < SVI_BLOCKS || t->at != 0 || t->length >= t->longest)
        return;
    tails_merge(t);
    for (int j = 0; j < t->series; j++)
        tails_fit(t, j);
}

void svi_block_tails_add(struct svi_block_tails *t, const float *v) {
    float *now = t->now;
    const float *most = t->most;
    for (int j = 0; j < t->series; j++) {
        const float at_most = v[j] < most[j] ? v[j] : most[j];
        now[j] = at_most > now[j] ? at_most : now[j];
    }
    if (++t->row == t->length)
        tails_end_block(t);
}

void svi_block_tails_forget(struct svi_block_tails *t, int series) {
    for (int i = 0; i < t->count; i++)
        t->maxima[(size_t)series * SVI_BLOCKS + (size_t)i] = -INFINITY;
    t->now[series] = -INFINITY;
    tails_fit(t, series);
}

void svi_block_tails_widen(struct svi_block_tails *to, const struct svi_block_tails *from, int parts) {
    const size_t narrow = (size_t)(from->series / parts), wide = (size_t)(to->series / parts);
    to->longest = from->longest;
    to->length = from->length;
    to->row = from->row;
    to->count = from->count;
    to->at = from->at;
    for (size_t i = 0; i < (size_t)SVI_BLOCKS * (size_t)to->series; i++)
        to->maxima[i] = -INFINITY;
    for (size_t i = 0; i < (size_t)parts; i++) {
        memcpy(to->maxima + i * wide * SVI_BLOCKS, from->maxima + i * narrow * SVI_BLOCKS,
               narrow * SVI_BLOCKS * sizeof *to->maxima);
        memcpy(to->now + i * wide, from->now + i * narrow, narrow * sizeof *to->now);
    }
    for (int j = 0; j < to->series; j++)
        tails_fit(to, j);
}

/* The floats of an archive are finite: -INFINITY is stored as the lowest of them. */
static void tails_swap(float *v, size_t count, float from, float to) {
    for (size_t i = 0; i < count; i++)
        v[i] = v[i] == from ? to : v[i];
}

void svi_block_tails_archive(struct svi_archive *a, struct svi_block_tails *t) {
    const size_t held = (size_t)t->series;
    svi_archive_int64(a, "longest", &t->longest, SVI_BLOCK_LEAST, INT64_MAX / 256);
    svi_archive_int64(a, "length", &t->length, SVI_BLOCK_LEAST, INT64_MAX / 256);
    svi_archive_int64(a, "row", &t->row, 0, INT64_MAX / 256);
    svi_archive_int(a, "blocks", &t->count, 0, SVI_BLOCKS);
    svi_archive_int(a, "at", &t->at, 0, SVI_BLOCKS - 1);
    if (!svi_archive_check(a, t->row < t->length, "a block of rows is overdue"))
        return;
    tails_swap(t->maxima, SVI_BLOCKS * held, -INFINITY, -FLT_MAX);
    tails_swap(t->now, held, -INFINITY, -FLT_MAX);
    svi_archive_floats(a, "maxima", t->maxima, (int64_t)SVI_BLOCKS * t->series);
    svi_archive_floats(a, "now", t->now, t->series);
    tails_swap(t->maxima, SVI_BLOCKS * held, -FLT_MAX, -INFINITY);
    tails_swap(t->now, held, -FLT_MAX, -INFINITY);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        for (int j = 0; j < t->series; j++)
            tails_fit(t, j);
}

double svi_block_tails_memory(int series) {
    return (double)(SVI_BLOCKS + ROWS) * series * sizeof(float);
}
