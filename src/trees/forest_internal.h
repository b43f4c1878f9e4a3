/* forest_internal.h: a forest of trees with at most 16 leaves, evaluated without descending.
 *
 * All inner nodes of a tree are compared at once, which gives one bit each (1: right). A leaf is reached when
 * the bits of the nodes above it have its pattern: (bits & care) == want. Exactly one leaf matches, and its
 * value, in units, is added to a sum for its place among the leaves. Sums are whole numbers, so the result
 * has the bits that descending gives. Only for AVX-512; elsewhere svi_forest_masks_make makes nothing. */
#ifndef SVI_FOREST_INTERNAL_H
#define SVI_FOREST_INTERNAL_H

#include "trees/forest.h"

#define SVI_FOREST_PICKED 128 /* values of a row that registers hold */
#define SVI_FOREST_LANES  16  /* leaves of a tree, at most; one more than its inner nodes */

/* A tree. Unused nodes compare column 0 with the largest float, and no leaf cares for them; unused leaves
 * want a bit that they do not care for. */
struct svi_forest_mask {
    int32_t column[SVI_FOREST_LANES]; /* or place in `used` */
    float threshold[SVI_FOREST_LANES];
    int32_t value[SVI_FOREST_LANES]; /* in units */
    uint16_t care[SVI_FOREST_LANES], want[SVI_FOREST_LANES];
};

struct svi_forest_masks {
    double unit;       /* 2^exponent */
    int32_t *used;     /* wide rows: the columns of all nodes, rising; NULL: columns are those of the row */
    int32_t count;     /* values that masks refer to */
    uint16_t *missing; /* by tree: bit i set when node i sends missing values right */
    struct svi_forest_mask *tree;
};

/* Derives f->masks where trees are small enough and the machine has the instructions. SVS_NO_MEMORY. */
svs_code svi_forest_masks_make(struct svi_forest *f, svs_error *err);
void svi_forest_masks_free(struct svi_forest_masks **m);
void svi_forest_masks_score(const struct svi_forest *f, const float *x, double *scores);
double svi_forest_masks_memory(const struct svi_forest *f);

/* The sum of the trees of a score, in units, for a row in the places of the masks. Compiled for AVX-512:
 * called only where svi_forest_masks_make has made masks. */
int64_t svi_forest_masks_sum(const struct svi_forest *f, int score, const float *x);

#endif
