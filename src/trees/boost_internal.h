/* boost_internal.h: the parts of a fit: binned rows (boost_bins.c) and the growth of one tree (boost_tree.c).
 */
#ifndef SVI_BOOST_INTERNAL_H
#define SVI_BOOST_INTERNAL_H

#include "trees/boost.h"
#include "trees/boost_loops.h"

#define SVI_BOOST_GROUP_BINS                                                                                 \
    4096 /* bins of a group: 32 KiB of sums, so that they stay in the fastest cache */

/* Blocks of the scratch, by what they hold. */
enum {
    SVI_BOOST_INDEX,   /* n: places of the rows taken, in the ring */
    SVI_BOOST_KEYS,    /* 2 n: sorting */
    SVI_BOOST_CODES,   /* n x columns: positions in the histogram of the group */
    SVI_BOOST_TALL,    /* columns x n: bins */
    SVI_BOOST_COLUMNS, /* columns */
    SVI_BOOST_GROUPS,  /* columns at most */
    SVI_BOOST_EDGES,   /* columns x bins: upper ends of bins */
    SVI_BOOST_SUMS,    /* leaves x bins of all groups: histograms */
    SVI_BOOST_ORDER,   /* n: rows by leaf */
    SVI_BOOST_SPARE,   /* n: partition */
    SVI_BOOST_PAIRS,   /* n: gradient and curvature of a row */
    SVI_BOOST_SLOPES,  /* n x (2 scores + 4): weights, targets, scores, probabilities, gradients */
    SVI_BOOST_LEAVES,  /* leaves of a tree */
    SVI_BOOST_GROWN,   /* nodes of a tree */
    SVI_BOOST_STARTS,  /* lists x n */
    SVI_BOOST_NODES    /* nodes of all trees */
};

/* A column with more than one bin. */
struct svi_boost_column {
    int32_t column;  /* of the rows given */
    int32_t group;   /* its group */
    int32_t base;    /* position of its first bin in the group */
    int32_t bins;    /* of values; a bin of missing ones follows when `missing` */
    int32_t missing; /* 1: some are */
    int32_t common;  /* the bin of most rows; -1: no bin has nearly all */
    int64_t edge;    /* index of its first edge: bin b holds values <= edge[b] */
};

struct svi_boost_group {
    int32_t columns, bins;
    int32_t list;  /* -1: rows are stored whole; else which of the lists, and common bins are left out */
    int64_t codes; /* offset of its rows in `codes` */
    int64_t sums;  /* offset of its bins in a histogram */
};

struct svi_boost_binned {
    int32_t n, columns, groups, lists;
    int64_t bins; /* of all groups */
    const int32_t *index;
    const struct svi_boost_column *column;
    const struct svi_boost_group *group;
    const float *edge;
    const uint8_t *tall;   /* by column: the bins of its n rows */
    const uint16_t *codes; /* by group: n x columns of the group, or lists */
    const int64_t *start;  /* by list n + 2: where each row begins in the codes of its group */
};

/* A node of a tree that grows: an inner one has children, a leaf has column -1. */
struct svi_boost_grown {
    int32_t column, left, right;
    bool missing_left;
    float threshold;
    double value;         /* of a leaf, without rate */
    int32_t begin, count; /* its rows in the order of the tree */
};

struct svi_boost_tree {
    const struct svi_boost_options *o;
    const struct svi_boost_binned *rows;
    const struct svi_boost_loops *loops;
    const uint64_t *pair;  /* n: gradient in the upper, curvature in the lower 32 bits */
    double g_unit, h_unit; /* gradient = g_unit x stored */
    double ridge, min_hessian;
    uint64_t *sums;
    int32_t *order, *spare;
    void *leaves;
    struct svi_boost_grown *node; /* out: 2 leaves - 1 at most */
    int count;                    /* out */
};

/* At least `size` bytes in a block of the scratch, content lost; NULL: no memory. */
void *svi_boost_block(struct svi_boost_scratch *s, int block, size_t size);

/* Lists the rows that take part: their number. */
int32_t svi_boost_take(const struct svi_boost_options *o, const struct svi_boost_rows *r, int32_t *index);

/* Bins the rows of index (b->n, b->index). SVS_NO_MEMORY. */
svs_code svi_boost_bin(const struct svi_boost_options *o, const struct svi_boost_rows *r,
                       struct svi_boost_scratch *s, struct svi_boost_binned *b, svs_error *err);

/* Groups the binned columns (b->column, b->tall). SVS_NO_MEMORY. */
svs_code svi_boost_group(struct svi_boost_scratch *s, struct svi_boost_binned *b,
                         struct svi_boost_column *column, svs_error *err);

size_t svi_boost_leaf_size(void); /* of an entry of `leaves` */
void svi_boost_grow(struct svi_boost_tree *t);

#endif
