/* Rows as bins (boost.h).
 *
 * Each column is sorted once, value and row in one 64-bit word, by radix: that gives the distinct values,
 * from them the edges, and in the same order the bins of the rows, without a search. Equal values always
 * share a bin, so an edge, midway between two neighbouring values, separates rows as exactly as any
 * threshold.
 *
 * A column with one bin takes part in nothing. Bins are kept twice: by column, a byte each, for the partition
 * of rows by one column, and by group for the histograms (boost_groups.c). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "trees/boost_internal.h"

#define RADIX_BITS 11
#define RADIX      (1 << RADIX_BITS)

void *svi_boost_block(struct svi_boost_scratch *s, int block, size_t size) {
    if (s->size[block] < size) {
        svi_free(s->block[block]);
        s->block[block] = svi_alloc(size);
        s->size[block] = s->block[block] ? size : 0;
    }
    return s->block[block];
}

void svi_boost_scratch_clear(struct svi_boost_scratch *s) {
    for (int i = 0; i < SVI_BOOST_BLOCKS; i++)
        svi_free(s->block[i]);
    *s = (struct svi_boost_scratch){0};
}

static bool boost_bins_takes(const struct svi_boost_options *o, const struct svi_boost_rows *r, int64_t at) {
    if ((r->live && !r->live[at]) || (r->weight && !(r->weight[at] > 0 && r->weight[at] <= FLT_MAX)))
        return false;
    if (o->task == SVS_REGRESS)
        return isfinite(r->target[at]);
    return r->label[at] >= 0 && r->label[at] < (o->classes > 2 ? o->classes : 2);
}

int32_t svi_boost_take(const struct svi_boost_options *o, const struct svi_boost_rows *r, int32_t *index) {
    int32_t n = 0;
    for (int64_t i = 0, at = r->first; i < r->count; i++, at++) {
        at -= at >= r->capacity ? r->capacity : 0;
        if (boost_bins_takes(o, r, at))
            index[n++] = (int32_t)at;
    }
    return n;
}

/* ---- sorting */

/* An unsigned number in the order of the values; infinities as the largest, -0 as 0. */
static uint32_t boost_bins_key(float v) {
    uint32_t bits;
    v = v > FLT_MAX ? FLT_MAX : v < -FLT_MAX ? -FLT_MAX : v + 0.0f;
    memcpy(&bits, &v, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float boost_bins_value(uint32_t key) {
    float v;
    key = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    memcpy(&v, &key, sizeof v);
    return v;
}

/* Sorts by the upper 32 bits; digits that all words share cost nothing. Returns where the result lies. */
static uint64_t *boost_bins_sort(uint64_t *from, uint64_t *to, int32_t n) {
    for (int shift = 32; shift < 64; shift += RADIX_BITS) {
        int32_t start[RADIX] = {0}, sum = 0;
        for (int32_t i = 0; i < n; i++)
            start[(from[i] >> shift) & (RADIX - 1)]++;
        if (start[(from[0] >> shift) & (RADIX - 1)] == n)
            continue;
        for (int k = 0; k < RADIX; k++) {
            const int32_t have = start[k];
            start[k] = sum;
            sum += have;
        }
        for (int32_t i = 0; i < n; i++)
            to[start[(from[i] >> shift) & (RADIX - 1)]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* ---- edges */

/* Midway between two neighbouring values, a <= result < b. */
static float boost_bins_midway(uint64_t below, uint64_t above) {
    const float a = boost_bins_value((uint32_t)(below >> 32)), b = boost_bins_value((uint32_t)(above >> 32));
    const float middle = (float)(((double)a + (double)b) / 2);
    return middle >= a && middle < b ? middle : a;
}

static bool boost_bins_same(uint64_t a, uint64_t b) {
    return a >> 32 == b >> 32;
}

static bool boost_bins_few(const uint64_t *word, int32_t n, int most) {
    int32_t distinct = 1;
    for (int32_t i = 1; i < n && distinct <= most; i++)
        distinct += !boost_bins_same(word[i], word[i - 1]);
    return distinct <= most;
}

/* Cuts n >= 1 sorted words at quantiles: edges of at most `most` bins, the last at FLT_MAX, and where each
 * bin ends in the order. Returns the number of bins. With few distinct values each has its own bin; otherwise
 * a value with more rows than a bin should have ends the bin before it. */
static int boost_bins_cut(const uint64_t *word, int32_t n, int most, float *edge, int32_t *end) {
    const bool own = boost_bins_few(word, n, most);
    int32_t target = own ? 1 : (n + most - 1) / most;
    int bins = 0;
    for (int32_t i = 0, begin = 0, next; i < n && bins < most - 1; i = next) {
        for (next = i + 1; next < n && boost_bins_same(word[next], word[i]); next++)
            ;
        if (next == n)
            break;
        /* The value at `next` is heavy when it fills `target` places from there. */
        const bool full = next - begin >= target;
        const bool heavy = n - next >= target && boost_bins_same(word[next], word[next + target - 1]);
        if (!full && !heavy)
            continue;
        edge[bins] = boost_bins_midway(word[i], word[next]);
        end[bins++] = begin = next;
        if (!own)
            target = (n - begin + most - bins - 1) / (most - bins);
    }
    edge[bins] = FLT_MAX;
    end[bins++] = n;
    return bins;
}

/* ---- columns */

#define AT_ONCE      16   /* columns read together: a cache line of a row */
#define COMMON_SHARE 0.75 /* of the rows in one bin: the column may be kept without it */

struct boost_bins_work {
    const struct svi_boost_rows *r;
    struct svi_boost_binned *b;
    uint64_t *word, *other; /* n each: sorting */
    float *value;           /* AT_ONCE x n: columns being binned */
    struct svi_boost_column *column;
    float *edge;
    uint8_t *tall;
    int64_t edges;
};

/* Reads columns j to j + count - 1 of the rows, each to n values one after another. */
static void boost_bins_read(const struct boost_bins_work *w, int j, int count) {
    const size_t n = (size_t)w->b->n;
    for (size_t i = 0; i < n; i++) {
        const float *x = w->r->x + (size_t)w->b->index[i] * (size_t)w->r->stride + (size_t)j;
        for (int k = 0; k < count; k++)
            w->value[(size_t)k * n + i] = x[k];
    }
}

/* Lists a column as words to sort. Returns the number of values that are not missing; their words are in
 * w->word. */
static int32_t boost_bins_list(const struct boost_bins_work *w, const float *value) {
    int32_t known = 0;
    for (int32_t i = 0; i < w->b->n; i++) {
        w->word[known] = (uint64_t)boost_bins_key(value[i]) << 32 | (uint32_t)i;
        known += value[i] == value[i];
    }
    return known;
}

/* The bin of most rows, -1: of less than COMMON_SHARE of them. */
static int32_t boost_bins_common(const int32_t *end, int bins, int32_t n) {
    const int32_t known = end[bins - 1];
    int32_t best = bins, count = n - known;
    for (int b = 0; b < bins; b++) {
        const int32_t own = end[b] - (b > 0 ? end[b - 1] : 0);
        if (own > count) {
            best = b;
            count = own;
        }
    }
    return count >= COMMON_SHARE * n ? best : -1;
}

static void boost_bins_column(const struct svi_boost_options *o, struct boost_bins_work *w, int column,
                              const float *value) {
    int32_t end[SVI_BOOST_BINS_MAX];
    const int32_t n = w->b->n, known = boost_bins_list(w, value);
    if (known == 0)
        return;
    const uint64_t *sorted = boost_bins_sort(w->word, w->other, known);
    const int bins = boost_bins_cut(sorted, known, o->bins, w->edge + w->edges, end);
    if (bins + (known < n) < 2)
        return;
    uint8_t *tall = w->tall + (size_t)w->b->columns * (size_t)n;
    if (known < n)
        memset(tall, bins, (size_t)n);
    for (int32_t bin = 0, i = 0; bin < bins; bin++)
        for (; i < end[bin]; i++)
            tall[(uint32_t)sorted[i]] = (uint8_t)bin;
    w->column[w->b->columns++] = (struct svi_boost_column){.column = column,
                                                           .bins = bins,
                                                           .missing = known < n,
                                                           .common = boost_bins_common(end, bins, n),
                                                           .edge = w->edges};
    w->edges += bins;
}

svs_code svi_boost_bin(const struct svi_boost_options *o, const struct svi_boost_rows *r,
                       struct svi_boost_scratch *s, struct svi_boost_binned *b, svs_error *err) {
    const size_t n = (size_t)b->n, d = (size_t)r->d;
    struct boost_bins_work w = {.r = r, .b = b};
    w.word = svi_boost_block(s, SVI_BOOST_KEYS, (2 * n + 1) * sizeof *w.word + AT_ONCE * n * sizeof *w.value);
    w.column = svi_boost_block(s, SVI_BOOST_COLUMNS, (d + 1) * sizeof *w.column);
    w.edge = svi_boost_block(s, SVI_BOOST_EDGES, (d + 1) * (size_t)o->bins * sizeof *w.edge);
    w.tall = svi_boost_block(s, SVI_BOOST_TALL, n * d + 1);
    if (!w.word || !w.column || !w.edge || !w.tall)
        return svi_fail_memory(err, "the bins of the trees");
    w.other = w.word + n + 1;
    w.value = (float *)(w.other + n);
    for (int j = 0; j < r->d; j += AT_ONCE) {
        const int count = r->d - j < AT_ONCE ? r->d - j : AT_ONCE;
        boost_bins_read(&w, j, count);
        for (int k = 0; k < count; k++)
            boost_bins_column(o, &w, j + k, w.value + (size_t)k * n);
    }
    b->column = w.column;
    b->edge = w.edge;
    b->tall = w.tall;
    return svi_boost_group(s, b, w.column, err);
}
