/* Rows as bins (boost.h).
 *
 * Each column is sorted once, value and row in one 64-bit word, by radix: that gives the distinct values,
 * from them the edges, and in the same order the bins of the rows, without a search. Equal values always
 * share a bin, so an edge, midway between two neighbouring values, separates rows as exactly as any
 * threshold.
 *
 * Columns are gathered in groups whose histograms fit the fastest cache. In a group rows are stored whole:
 * one row touches one place of each column's histogram, so neighbouring additions do not wait for each
 * other. What is stored is the position in the histogram of the group, which saves adding an offset.
 *
 * A column with one bin takes part in nothing. */
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
static float boost_bins_midway(float a, float b) {
    const float middle = (float)(((double)a + (double)b) / 2);
    return middle >= a && middle < b ? middle : a;
}

/* Cuts n sorted words at quantiles: edges of at most `most` bins, the last at FLT_MAX. Returns their number.
 * A value with more rows than a bin should have ends the bin before it. */
static int boost_bins_cut(const uint64_t *word, int32_t n, int most, float *edge) {
    int32_t distinct = 0;
    for (int32_t i = 0; i < n && distinct <= most; i++)
        distinct += i == 0 || word[i] >> 32 != word[i - 1] >> 32;
    const bool own = distinct <= most;
    int bins = 0;
    for (int32_t i = 0, begin = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && word[next] >> 32 == word[i] >> 32; next++)
            ;
        if (next == n)
            break;
        int32_t after = next + 1;
        const double target = (double)(n - begin) / (most - bins);
        while (!own && after < n && after - next < target && word[after] >> 32 == word[next] >> 32)
            after++;
        const bool full = next - begin >= target, heavy = after - next >= target;
        if (bins < most - 1 && (own || full || heavy)) {
            edge[bins++] = boost_bins_midway(boost_bins_value((uint32_t)(word[i] >> 32)),
                                             boost_bins_value((uint32_t)(word[next] >> 32)));
            begin = next;
        }
    }
    edge[bins++] = FLT_MAX;
    return bins;
}

/* ---- columns */

struct boost_bins_work {
    const struct svi_boost_rows *r;
    struct svi_boost_binned *b;
    uint64_t *word, *other;
    struct svi_boost_column *column;
    struct svi_boost_group *group;
    float *edge;
    uint8_t *plain; /* n: bins of a column */
    int64_t edges;
};

/* Sorts column j: the values first, missing ones after them. Returns the number of values. */
static int32_t boost_bins_gather(struct boost_bins_work *w, int j, const uint64_t **sorted) {
    int32_t known = 0, n = w->b->n, missing = n;
    for (int32_t i = 0; i < n; i++) {
        const float v = w->r->x[(size_t)w->b->index[i] * (size_t)w->r->stride + (size_t)j];
        if (v == v)
            w->word[known++] = (uint64_t)boost_bins_key(v) << 32 | (uint32_t)i;
        else
            w->other[--missing] = (uint32_t)i;
    }
    /* Missing rows are kept where sorting does not write: at the end of the block they were listed in. */
    for (int32_t i = missing; i < n; i++)
        w->word[i] = w->other[i];
    uint64_t *at = known > 0 ? boost_bins_sort(w->word, w->other, known) : w->word;
    if (at != w->word)
        memcpy(w->word, at, (size_t)known * sizeof *at);
    *sorted = w->word;
    return known;
}

/* Adds column j to the current group, or a new one; its codes are written by boost_bins_place. */
static void boost_bins_add(struct boost_bins_work *w, int j, int bins, bool missing) {
    struct svi_boost_binned *b = w->b;
    const int all = bins + missing;
    struct svi_boost_group *g = &w->group[b->groups - 1];
    if (b->groups == 0 || g->bins + all > SVI_BOOST_GROUP_BINS) {
        g = &w->group[b->groups++];
        *g = (struct svi_boost_group){.sums = b->bins};
    }
    w->column[b->columns++] = (struct svi_boost_column){.column = j,
                                                        .group = b->groups - 1,
                                                        .place = g->columns++,
                                                        .base = g->bins,
                                                        .bins = bins,
                                                        .missing = missing,
                                                        .edge = w->edges};
    g->bins += all;
    b->bins += all;
    w->edges += bins;
}

/* Pass 1 over a column: edges. Pass 2: codes of the rows, once the width of the group is known. To sort only
 * once, codes are written column by column into `tall`, n bytes each, and a group's are turned when it is
 * complete. */
static void boost_bins_codes(const struct boost_bins_work *w, const uint64_t *sorted, int32_t known, int bins,
                             const float *edge, uint8_t *tall) {
    int bin = 0;
    for (int32_t i = 0; i < known; i++) {
        const float v = boost_bins_value((uint32_t)(sorted[i] >> 32));
        while (v > edge[bin])
            bin++;
        tall[(uint32_t)sorted[i]] = (uint8_t)bin;
    }
    for (int32_t i = known; i < w->b->n; i++)
        tall[(uint32_t)sorted[i]] = (uint8_t)bins;
}

#define TURN_ROWS 64

/* The codes of a group from columns to rows. */
static void boost_bins_turn(const struct svi_boost_column *c, int count, int32_t n, const uint8_t *tall,
                            uint16_t *codes) {
    for (int32_t at = 0; at < n; at += TURN_ROWS) {
        const int32_t end = n - at < TURN_ROWS ? n : at + TURN_ROWS;
        for (int k = 0; k < count; k++) {
            const uint8_t *column = tall + (size_t)k * (size_t)n;
            const uint16_t base = (uint16_t)c[k].base;
            for (int32_t i = at; i < end; i++)
                codes[(size_t)i * (size_t)count + (size_t)k] = (uint16_t)(base + column[i]);
        }
    }
}

static void boost_bins_all(const struct svi_boost_options *o, struct boost_bins_work *w, uint16_t *codes) {
    struct svi_boost_binned *b = w->b;
    const size_t n = (size_t)b->n;
    int turned = 0; /* columns whose codes are rows already */
    int64_t at = 0;
    for (int j = 0; j < w->r->d; j++) {
        const uint64_t *sorted;
        const int32_t known = boost_bins_gather(w, j, &sorted);
        const int bins = boost_bins_cut(sorted, known, o->bins, w->edge + w->edges);
        const bool missing = known < b->n;
        const int before = b->groups;
        if (known == 0 || bins + missing < 2)
            continue;
        boost_bins_add(w, j, bins, missing);
        if (b->groups != before && before > 0) {
            const int count = w->group[before - 1].columns;
            boost_bins_turn(w->column + turned, count, b->n, w->plain, codes + at);
            w->group[before - 1].codes = at;
            at += (int64_t)n * count;
            turned += count;
        }
        boost_bins_codes(w, sorted, known, bins, w->edge + w->column[b->columns - 1].edge,
                         w->plain + (size_t)(b->columns - 1 - turned) * n);
    }
    if (b->groups > 0) {
        boost_bins_turn(w->column + turned, b->columns - turned, b->n, w->plain, codes + at);
        w->group[b->groups - 1].codes = at;
    }
}

svs_code svi_boost_bin(const struct svi_boost_options *o, const struct svi_boost_rows *r,
                       struct svi_boost_scratch *s, struct svi_boost_binned *b, svs_error *err) {
    const size_t n = (size_t)b->n, d = (size_t)r->d;
    /* Columns of a group have two bins at least. */
    const size_t wide = d < SVI_BOOST_GROUP_BINS / 2 ? d : SVI_BOOST_GROUP_BINS / 2;
    struct boost_bins_work w = {.r = r, .b = b};
    w.word = svi_boost_block(s, SVI_BOOST_KEYS, 2 * n * sizeof *w.word + n * wide + 64);
    w.column = svi_boost_block(s, SVI_BOOST_COLUMNS, (d + 1) * sizeof *w.column);
    w.group = svi_boost_block(s, SVI_BOOST_GROUPS, (d + 1) * sizeof *w.group);
    w.edge = svi_boost_block(s, SVI_BOOST_EDGES, (d + 1) * (size_t)o->bins * sizeof *w.edge);
    uint16_t *codes = svi_boost_block(s, SVI_BOOST_CODES, (n * d + 1) * sizeof *codes);
    if (!w.word || !w.column || !w.group || !w.edge || !codes)
        return svi_fail_memory(err, "the bins of the trees");
    w.other = w.word + n;
    w.plain = (uint8_t *)(w.other + n);
    boost_bins_all(o, &w, codes);
    b->column = w.column;
    b->group = w.group;
    b->edge = w.edge;
    b->codes = codes;
    return SVS_OK;
}
