/* The growth of one tree (boost.h).
 *
 * A leaf is a run of `order`, and has a histogram: for each bin of each column the sums of its rows'
 * gradients and curvatures, packed into one word (the upper half has a sign, the lower has not, and neither
 * overflows). Of a leaf that is split only the smaller child is counted, row by row; the larger one is the
 * difference. Partition keeps the order of rows, so that a leaf's rows lie in rising places of memory.
 *
 * Gains are compared in stored units: a common factor does not change which is the largest. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "trees/boost_internal.h"

#define MIN_GAIN 1e-10 /* as a share of the gradient's energy: below it, rounding */

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

static void boost_tree_count(const struct svi_boost_tree *t, const struct svi_boost_grown *node, int slot) {
    uint64_t *sums = boost_tree_sums(t, slot);
    memset(sums, 0, (size_t)t->rows->bins * sizeof *sums);
    for (int g = 0; g < t->rows->groups; g++) {
        const struct svi_boost_group *group = &t->rows->group[g];
        boost_tree_count_group(t->rows->codes + group->codes, group->columns, t->order + node->begin,
                               node->count, t->pair, sums + group->sums);
    }
}

static void boost_tree_subtract(const struct svi_boost_tree *t, int from, int slot) {
    uint64_t *restrict whole = boost_tree_sums(t, from);
    const uint64_t *part = boost_tree_sums(t, slot);
    for (int64_t b = 0; b < t->rows->bins; b++)
        whole[b] -= part[b];
}

/* ---- splits */

struct boost_tree_bounds {
    double ridge, least_h, g, h;
    uint64_t sum;
};

/* Gain of the left side `left` plus the constant part of the parent; 0 where a side is too small. */
static double boost_tree_gain(const struct boost_tree_bounds *b, uint64_t left) {
    const double gl = boost_tree_g(left), hl = boost_tree_h(left), gr = b->g - gl, hr = b->h - hl;
    if (hl < b->least_h || hr < b->least_h)
        return 0;
    const double dl = hl + b->ridge, dr = hr + b->ridge;
    return (gl * gl * dr + gr * gr * dl) / (dl * dr);
}

static void boost_tree_offer(struct boost_tree_split *s, double gain, int32_t column, int32_t bin,
                             bool left) {
    if (gain > s->gain)
        *s = (struct boost_tree_split){gain, column, bin, left};
}

static void boost_tree_scan(const struct svi_boost_column *c, const uint64_t *sums, int32_t column,
                            const struct boost_tree_bounds *b, struct boost_tree_split *best) {
    const uint64_t missing = c->missing ? sums[c->bins] : 0;
    uint64_t left = 0;
    for (int32_t bin = 0; bin < c->bins - (missing == 0); bin++) {
        if (sums[bin] == 0)
            continue;
        left += sums[bin];
        boost_tree_offer(best, boost_tree_gain(b, left), column, bin, false);
        if (missing != 0)
            boost_tree_offer(best, boost_tree_gain(b, left + missing), column, bin, true);
        else if (best->column == column && best->bin == bin)
            best->missing_left = 2 * boost_tree_h(left) >= b->h;
    }
}

static void boost_tree_find(const struct svi_boost_tree *t, struct boost_tree_leaf *leaf) {
    const struct svi_boost_grown *node = &t->node[leaf->node];
    const uint64_t *sums = boost_tree_sums(t, leaf->slot);
    struct boost_tree_bounds b = {.ridge = t->ridge, .sum = leaf->sum};
    b.g = boost_tree_g(leaf->sum);
    b.h = boost_tree_h(leaf->sum);
    b.least_h = fmax(fmax(t->min_hessian, t->o->min_rows * b.h / node->count), 1);
    const double own = b.g * b.g / (b.h + b.ridge);
    struct boost_tree_split best = {.gain = own * (1 + 1e-9) + MIN_GAIN, .column = -1};
    for (int32_t k = 0; k < t->rows->columns && node->count >= 2; k++) {
        const struct svi_boost_column *c = &t->rows->column[k];
        boost_tree_scan(c, sums + t->rows->group[c->group].sums + c->base, k, &b, &best);
    }
    best.gain = best.column < 0 ? 0 : best.gain - own;
    leaf->split = best;
}

/* ---- growth */

/* Reorders the rows of the node: those of the left side first. Returns their number and *sum. */
static int32_t boost_tree_partition(const struct svi_boost_tree *t, const struct svi_boost_grown *node,
                                    const struct boost_tree_split *s, uint64_t *sum) {
    const struct svi_boost_column *c = &t->rows->column[s->column];
    const struct svi_boost_group *g = &t->rows->group[c->group];
    const uint16_t *codes = t->rows->codes + g->codes + c->place;
    const int last = c->base + s->bin, missing = s->missing_left ? c->base + c->bins : -1;
    int32_t *order = t->order + node->begin;
    int32_t left = 0, right = 0;
    uint64_t add = 0;
    for (int32_t i = 0; i < node->count; i++) {
        const int32_t row = order[i];
        const int code = codes[(size_t)row * (size_t)g->columns];
        const bool go_left = code <= last || code == missing;
        order[left] = row;
        t->spare[right] = row;
        left += go_left;
        right += !go_left;
        add += go_left ? t->pair[row] : 0;
    }
    memcpy(order + left, t->spare, (size_t)right * sizeof *order);
    *sum = add;
    return left;
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
    uint64_t sum;
    const int32_t left = boost_tree_partition(t, &node, &parent.split, &sum);
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
    boost_tree_count(t, &t->node[leaves[left_smaller ? at : next].node], next);
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
    boost_tree_count(t, &t->node[0], 0);
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
