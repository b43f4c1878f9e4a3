/* Parts: the tail, what counts as seen, blocks. A block of rows leaves one number a series, its highest
 * value. When there are 128 blocks, pairs are merged, so their number stays bounded while their length grows
 * with the stream. The record is the highest of all. A value above it is compared with a bound from the tail
 * of the upper half of these numbers (novelty/tail.h), which is fitted only then. */
#include "alerts/records.h"

#include <math.h>
#include <stdlib.h>

#include "base/statistics.h"
#include "novelty/tail.h"

#define FIRST_LENGTH 8    /* rows of the first blocks */
#define EXCESSES     8    /* fewest excesses that give a tail */
#define SHAPES       4    /* of the mixture */
#define SAFETY       4.0  /* the 4 in the rule of records.h: the tail of block maxima is an estimate */
#define RENEW        32   /* blocks after which a bound is computed again */
#define DOUBLINGS    24   /* a bound lies within this many doublings of the largest excess */
#define TOGETHER     32   /* factors that share a logarithm: none exceeds 1 + k, so their product is finite */
#define ROUNDING     1e-9 /* of the range: smaller differences are no steps */
#define EARLY        8    /* blocks of the first length after which a bound is computed again */
#define HALVINGS     12   /* steps of bisection: 24 doublings to 0.6 % of one */

/* ---- the tail */

static const struct svi_tail_form records_form = {
    .parts = SHAPES, .denominator = 2 * SHAPES, .together = TOGETHER, .light = true};

/* The excess with probability p, but at least `largest`: by bisection on a scale of doublings, since the
 * probability falls monotonically. Returns the upper end, where the probability is at most p. */
static double records_excess(const struct svi_tail_law *law, int k, double largest, double p) {
    double low = 0, high = DOUBLINGS;
    if (svi_tail_beyond(&records_form, law, k, largest) <= p)
        return largest;
    for (int i = 0; i < HALVINGS; i++) {
        const double at = (low + high) / 2;
        *(svi_tail_beyond(&records_form, law, k, largest * exp2(at)) > p ? &low : &high) = at;
    }
    return largest * exp2(high);
}

static double *records_blocks(const struct svi_records *r, int series) {
    return r->blocks + (size_t)series * (size_t)r->width;
}

double svi_records_bound(const struct svi_records *r, const struct svi_records_clock *c, int series,
                         int all) {
    double of[SVI_RECORDS_BLOCKS], slope[SHAPES], total[SHAPES], weight[SHAPES], largest = 0, sum = 0;
    /* m blocks with values; a block in which the series was missing says nothing. */
    int m = 0, k = 0;
    for (int b = 0; b < c->blocks; b++) {
        of[m] = records_blocks(r, series)[b];
        m += of[m] > -INFINITY;
    }
    if (m < SVI_RECORDS_MIN_BLOCKS || all < 1)
        return INFINITY;
    /* Selection leaves the upper half behind the median, in any order: its sums need no sorted list. Excesses
     * overwrite the front of the same array, whose lower half is not needed any more. */
    (void)svi_select_rank(of, m, m / 2);
    const double middle = of[m / 2];
    for (int b = m / 2; b < m; b++)
        if (of[b] > middle) {
            largest = of[b] - middle > largest ? of[b] - middle : largest;
            sum += of[b] - middle;
            of[k++] = of[b] - middle;
        }
    if (k < EXCESSES)
        return INFINITY;
    for (int i = 0; i < SHAPES; i++) {
        /* b = xi / (1 - xi) / mean excess, with mean = sum / k. */
        const double xi = svi_tail_shape(&records_form, i);
        slope[i] = xi / (1 - xi) * k / sum;
    }
    const struct svi_tail_law law = {slope, total, weight};
    const struct svi_tail_seen seen = {of, k, 0, sum};
    svi_tail_fit(&records_form, &law, &seen);
    /* The rule of records.h, solved for P: a share of the false alerts for each of `all` series and
     * m blocks. */
    const double target = SVI_RECORDS_SHARE / (SAFETY * all * m) * (m + 1) / (k + 1);
    const double bound = middle + records_excess(&law, k, largest, target);
    const double record = svi_records_most(r, series);
    return bound > record ? bound : record;
}

static int records_by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double svi_records_step(const struct svi_records *r, const struct svi_records_clock *c, int up, int down) {
    double of[2 * SVI_RECORDS_BLOCKS + 2], step = INFINITY;
    int n = 0;
    for (int b = 0; b < c->blocks; b++) {
        of[n] = records_blocks(r, up)[b];
        n += of[n] > -INFINITY;
        of[n] = -records_blocks(r, down)[b];
        n += of[n] < INFINITY;
    }
    of[n] = svi_records_most(r, up);
    n += of[n] > -INFINITY;
    of[n] = -svi_records_most(r, down);
    n += of[n] < INFINITY;
    qsort(of, (size_t)n, sizeof *of, records_by_value);
    /* Smaller differences are the rounding of a computation before the values were sent. */
    const double least = n > 0 ? ROUNDING * (of[n - 1] - of[0]) : 0;
    for (int i = 1; i < n; i++)
        step = of[i] - of[i - 1] > least ? fmin(step, of[i] - of[i - 1]) : step;
    return step;
}

void svi_records_take(struct svi_records *r, int series, double v) {
    if (v > r->now[series])
        r->now[series] = v;
    /* The record may have risen: from here on anything above it is checked again, since the old bound is
     * stale. */
    r->check[series] = svi_records_most(r, series);
}

void svi_records_end_reported(struct svi_records *r, int series, double v) {
    /* The second highest of the values reported so far counts as seen: one gross error never does, and what
     * occurs twice is part of the series. */
    double *suspect = &r->suspect[series];
    const double twice = v < *suspect ? v : *suspect;
    *suspect = v > *suspect ? v : *suspect;
    if (twice > svi_records_most(r, series))
        svi_records_take(r, series, twice);
}

void svi_records_settle(struct svi_records *r, const struct svi_records_clock *c, int series, double v) {
    /* In every second block, so that about half of the maxima are v or higher and it lies near their median.
     * Blocks without a value stay empty. */
    double *block = records_blocks(r, series);
    for (int b = 0; b < c->blocks; b += 2)
        if (block[b] > -INFINITY && v > block[b])
            block[b] = v;
    svi_records_take(r, series, v);
}

/* ---- blocks */

void svi_records_end_block(struct svi_records *r, const struct svi_records_clock *c, int first, int count) {
    /* c->blocks is still the place of the block that ends; the clock turns after all series. `renew`: bounds
     * depend on the number of blocks, so at times a value between record and bound is checked again. */
    const bool full = c->blocks + 1 == SVI_RECORDS_BLOCKS;
    const bool renew = (c->blocks + 1) % (c->length == FIRST_LENGTH ? EARLY : RENEW) == 0;
    for (int j = first; j < first + count; j++) {
        double *block = records_blocks(r, j), *most = &r->most[j], *now = &r->now[j];
        block[c->blocks] = *now;
        *most = *now > *most ? *now : *most;
        *now = -INFINITY;
        if (renew)
            r->check[j] = *most;
        for (int b = 0; full && b < SVI_RECORDS_BLOCKS / 2; b++)
            block[b] = block[2 * b] > block[2 * b + 1] ? block[2 * b] : block[2 * b + 1];
    }
}

void svi_records_clock_begin(struct svi_records_clock *c) {
    *c = (struct svi_records_clock){.length = FIRST_LENGTH};
}

void svi_records_clock_turn(struct svi_records_clock *c) {
    c->since = 0;
    if (++c->blocks < SVI_RECORDS_BLOCKS)
        return;
    c->blocks /= 2;
    c->length *= 2;
}

/* ---- archive */

void svi_records_clock_archive(struct svi_archive *a, struct svi_records_clock *c) {
    svi_archive_int(a, "blocks", &c->blocks, 0, SVI_RECORDS_BLOCKS - 1);
    svi_archive_int64(a, "block", &c->length, 1, INT64_MAX / 4);
    svi_archive_int64(a, "into", &c->since, 0, INT64_MAX / 4);
}
