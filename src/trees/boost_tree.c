/* The growth of one tree (boost.h).
 *
 * A leaf is a run of `order`, and has a histogram: for each bin of each column the sums of its
 * rows' gradients and curvatures. Both sums are packed into one word. The upper half has a sign,
 * the lower has not, and neither overflows. Of a leaf that is split only the smaller child is
 * counted, row by row. The larger one is the difference. Partition keeps the order of rows, so that
 * a leaf's rows lie in rising places of memory.
 *
 * Gains are compared in stored units: a common factor does not change which is the largest. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/fetch.h"
#include "trees/boost_internal.h"

#define MIN_GAIN 1e-9 /* as a share of the leaf's own G^2 / (H + ridge): below it, rounding */

#define AHEAD 8 /* rows whose codes are loaded ahead: those of a leaf lie apart */

struct boost_tree_split {
    double gain; /* 0: none */
    int32_t column, bin;
    bool missing_left;
};

struct boost_tree_leaf {
    int32_t node, slot;
    uint64_t sum;
    struct boost_tree_split split;
};

size_t svi_boost_leaf_size(void) {
    return sizeof(struct boost_tree_leaf);
}

static double boost_tree_g(uint64_t sum) {
    return (double)(int32_t)(sum >> 32);
}

static double boost_tree_h(uint64_t sum) {
    return (double)(uint32_t)sum;
}

static uint64_t *boost_tree_sums(const struct svi_boost_tree *t, int slot) {
    return t->sums + (int64_t)slot * t->rows->bins;
}

/* ---- histograms */

static void boost_tree_count_group(const uint16_t *codes, int width, const int32_t *order, int32_t count,
                                   const uint64_t *pair, uint64_t *restrict sums) {
    for (int32_t i = 0; i < count; i++) {
        const uint16_t *code = codes + (size_t)order[i] * (size_t)width;
        const uint64_t add = pair[order[i]];
        if (i + AHEAD < count)
            svi_fetch(codes + (size_t)order[i + AHEAD] * (size_t)width, sizeof *codes * (size_t)width);
        int k = 0;
        for (; k + 4 <= width; k += 4) {
            sums[code[k]] += add;
            sums[code[k + 1]] += add;
            sums[code[k + 2]] += add;
            sums[code[k + 3]] += add;
        }
        for (; k < width; k++)
            sums[code[k]] += add;
    }
}

static void boost_tree_count_list(const uint16_t *codes, const int64_t *start, const int32_t *order,
                                  int32_t count, const uint64_t *pair, uint64_t *restrict sums) {
    for (int32_t i = 0; i < count; i++) {
        const uint64_t add = pair[order[i]];
        if (i + AHEAD < count)
            svi_fetch(codes + start[order[i + AHEAD]], 1);
        const uint16_t *end = codes + start[order[i] + 1];
        for (const uint16_t *code = codes + start[order[i]]; code < end; code++)
            sums[*code] += add;
    }
}

/* The common bins of lists: what is left of the leaf. */
static void boost_tree_fill(const struct svi_boost_tree *t, uint64_t *sums, uint64_t leaf) {
    for (int32_t k = 0; k < t->rows->columns && t->rows->lists > 0; k++) {
        const struct svi_boost_column *c = &t->rows->column[k];
        const struct svi_boost_group *g = &t->rows->group[c->group];
        uint64_t *own = sums + g->sums + c->base, others = 0;
        if (g->list < 0)
            continue;
        for (int b = 0; b < c->bins + c->missing; b++)
            others += own[b];
        own[c->common] = leaf - others;
    }
}

static void boost_tree_count(const struct svi_boost_tree *t, const struct boost_tree_leaf *leaf) {
    const struct svi_boost_binned *rows = t->rows;
    const struct svi_boost_grown *node = &t->node[leaf->node];
    const int32_t *order = t->order + node->begin;
    uint64_t *sums = boost_tree_sums(t, leaf->slot);
    memset(sums, 0, (size_t)rows->bins * sizeof *sums);
    for (int g = 0; g < rows->groups; g++) {
        const struct svi_boost_group *group = &rows->group[g];
        const uint16_t *codes = rows->codes + group->codes;
        if (group->list < 0)
            boost_tree_count_group(codes, group->columns, order, node->count, t->pair, sums + group->sums);
        else
            boost_tree_count_list(codes, rows->start + group->list * ((int64_t)rows->n + 2), order,
                                  node->count, t->pair, sums + group->sums);
    }
    boost_tree_fill(t, sums, leaf->sum);
}

static void boost_tree_subtract(const struct svi_boost_tree *t, int from, int slot) {
    t->loops->subtract(boost_tree_sums(t, from), boost_tree_sums(t, slot), t->rows->bins);
}

/* ---- splits */

/* The side of missing values where the leaf has none: the heavier one. */
static bool boost_tree_heavier_left(const uint64_t *sums, int bin, double h) {
    double left = 0;
    for (int b = 0; b <= bin; b++)
        left += boost_tree_h(sums[b]);
    return 2 * left >= h;
}

static void boost_tree_find(const struct svi_boost_tree *t, struct boost_tree_leaf *leaf) {
    const struct svi_boost_grown *node = &t->node[leaf->node];
    const uint64_t *slot = boost_tree_sums(t, leaf->slot), *sums;
    struct svi_boost_scan s = {.g = boost_tree_g(leaf->sum), .h = boost_tree_h(leaf->sum), .ridge = t->ridge};
    const double own = s.g * s.g / (s.h + s.ridge);
    struct boost_tree_split best = {.column = -1};
    s.least_h = fmax(fmax(t->min_hessian, t->o->min_rows * s.h / node->count), 1);
    s.gain = own * (1 + MIN_GAIN) + 1;
    for (int32_t k = 0; k < t->rows->columns && s.h >= 2 * s.least_h; k++) {
        const struct svi_boost_column *c = &t->rows->column[k];
        sums = slot + t->rows->group[c->group].sums + c->base;
        const uint64_t missing = c->missing ? sums[c->bins] : 0;
        const double before = s.gain;
        /* Without missing rows the last bin has no right side. */
        t->loops->scan(&s, sums, c->bins - (missing == 0), 0);
        if (s.gain > before)
            best = (struct boost_tree_split){s.gain - own, k, s.bin,
                                             missing == 0 && boost_tree_heavier_left(sums, s.bin, s.h)};
        const double right = s.gain;
        if (missing != 0)
            t->loops->scan(&s, sums, c->bins - 1, missing);
        if (s.gain > right)
            best = (struct boost_tree_split){s.gain - own, k, s.bin, true};
    }
    leaf->split = best;
}

/* ---- growth */

/* The sums of the left side, from the histogram of the leaf. */
static uint64_t boost_tree_left_sum(const struct svi_boost_tree *t, const struct boost_tree_leaf *leaf) {
    const struct svi_boost_column *c = &t->rows->column[leaf->split.column];
    const uint64_t *sums = boost_tree_sums(t, leaf->slot) + t->rows->group[c->group].sums + c->base;
    uint64_t sum = leaf->split.missing_left && c->missing ? sums[c->bins] : 0;
    for (int b = 0; b <= leaf->split.bin; b++)
        sum += sums[b];
    return sum;
}

/* Reorders the rows of the node: those of the left side first, each side in the order it had. Returns the
 * number of the left side. Both sides are written at each row, without a branch that depends on it. */
static int32_t boost_tree_partition(const struct svi_boost_tree *t, const struct svi_boost_grown *node,
                                    const struct boost_tree_split *s) {
    const uint8_t *bins = t->rows->tall + (size_t)s->column * (size_t)t->rows->n;
    const int missing = s->missing_left ? t->rows->column[s->column].bins : -1;
    int32_t *restrict order = t->order + node->begin, *restrict spare = t->spare;
    const int last = s->bin;
    size_t left = 0, right = 0;
    for (size_t i = 0; i < (size_t)node->count; i++) {
        const int32_t row = order[i];
        const int bin = bins[row];
        const size_t go_left = (size_t)((bin <= last) | (bin == missing));
        order[left] = row;
        spare[right] = row;
        left += go_left;
        right += go_left ^ 1;
    }
    memcpy(order + left, spare, right * sizeof *order);
    return (int32_t)left;
}

static struct boost_tree_leaf boost_tree_leaf_at(struct svi_boost_tree *t, int32_t begin, int32_t count,
                                                 uint64_t sum, int slot) {
    const double g = boost_tree_g(sum) * t->g_unit, h = boost_tree_h(sum) * t->h_unit;
    t->node[t->count] = (struct svi_boost_grown){
        .column = -1, .value = -g / (h + t->ridge * t->h_unit), .begin = begin, .count = count};
    return (struct boost_tree_leaf){.node = t->count++, .slot = slot, .sum = sum};
}

/* Splits leaves[at]; leaves[next] becomes its right child. `last`: nothing more will be split. */
static void boost_tree_split(struct svi_boost_tree *t, struct boost_tree_leaf *leaves, int at, int next,
                             bool last) {
    const struct boost_tree_leaf parent = leaves[at];
    const struct svi_boost_column *c = &t->rows->column[parent.split.column];
    const struct svi_boost_grown node = t->node[parent.node];
    const uint64_t sum = boost_tree_left_sum(t, &parent);
    const int32_t left = boost_tree_partition(t, &node, &parent.split);
    const bool left_smaller = left <= node.count - left;
    struct svi_boost_grown *grown = &t->node[parent.node];
    grown->column = c->column;
    grown->missing_left = parent.split.missing_left;
    grown->threshold = t->rows->edge[c->edge + parent.split.bin];
    grown->left = t->count;
    grown->right = t->count + 1;
    leaves[at] = boost_tree_leaf_at(t, node.begin, left, sum, left_smaller ? next : parent.slot);
    leaves[next] = boost_tree_leaf_at(t, node.begin + left, node.count - left, parent.sum - sum,
                                      left_smaller ? parent.slot : next);
    if (last)
        return;
    boost_tree_count(t, &leaves[left_smaller ? at : next]);
    boost_tree_subtract(t, parent.slot, next);
    boost_tree_find(t, &leaves[at]);
    boost_tree_find(t, &leaves[next]);
}

void svi_boost_grow(struct svi_boost_tree *t) {
    struct boost_tree_leaf *leaves = t->leaves;
    uint64_t sum = 0;
    for (int32_t i = 0; i < t->rows->n; i++) {
        t->order[i] = i;
        sum += t->pair[i];
    }
    t->count = 0;
    leaves[0] = boost_tree_leaf_at(t, 0, t->rows->n, sum, 0);
    boost_tree_count(t, &leaves[0]);
    boost_tree_find(t, &leaves[0]);
    for (int have = 1; have < t->o->leaves; have++) {
        int best = 0;
        for (int k = 1; k < have; k++)
            if (leaves[k].split.gain > leaves[best].split.gain)
                best = k;
        if (!(leaves[best].split.gain > 0))
            return;
        boost_tree_split(t, leaves, best, have, have + 1 == t->o->leaves);
    }
}
