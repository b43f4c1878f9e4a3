/* forest.h: a fitted ensemble of binary regression trees: the scores of a row, the archive, and the packed
 * form by which others score.
 *
 * SCORES. score_r(x) = base_r + unit * sum over the trees t with t mod rows = r of value_t(x). There is one
 * score for two classes (the log odds of class 1) and for a regression (in the unit of the target), else one
 * a class (log odds before softmax). Values are whole multiples of `unit`, a power of two, whose sums fit
 * 32 bits: they add up exactly, in any order, so every instruction set gives the same bits.
 *
 * NODES. A tree is a run of nodes in preorder: the left child of node i is node i + 1, the right child is
 * node i + right. A row goes left when x[column] <= threshold, right when it is larger; a missing value (NAN)
 * goes to the side of the node. A tree of one node is a constant.
 *
 * PACKED. A node is 12 bytes, little-endian:
 *     bytes 0 to 3   unsigned word: bit 31 marks a leaf, bit 30 that missing values go left, bits 0 to 29
 *                    are the column (0 in a leaf)
 *     bytes 4 to 7   IEEE single: the threshold of an inner node, the value of a leaf
 *     bytes 8 to 11  unsigned: distance to the right child (0 in a leaf)
 * In words: while node i is not a leaf, i += (isnan(x) ? !left : x > threshold) ? right : 1. Values are
 * already multiplied by `unit`: a reader adds them to base_r in double precision.
 *
 * A forest is immutable once made, and any number of threads may score with it. */
#ifndef SVI_FOREST_H
#define SVI_FOREST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"

#define SVI_FOREST_LEAF      (UINT32_C(1) << 31)
#define SVI_FOREST_LEFT      (UINT32_C(1) << 30) /* missing values go left */
#define SVI_FOREST_COLUMN    (SVI_FOREST_LEFT - 1)
#define SVI_FOREST_ROWS_MAX  (1 << 16) /* scores of a row */
#define SVI_FOREST_NODES_MAX (1 << 26)
#define SVI_FOREST_NODE      12 /* bytes of a packed node */

struct svi_forest_node {
    uint32_t word;
    float value; /* or threshold */
    uint32_t right;
};

struct svi_forest_masks; /* derived: trees of at most 16 leaves in the form of the fast kernel */

/* All zero: an empty forest without scores. */
struct svi_forest {
    int32_t rows;     /* scores: >= 1 once made */
    int32_t columns;  /* 1 + the largest column of a node; rows scored have at least this number */
    int32_t trees;    /* a multiple of `rows` */
    int32_t count;    /* nodes */
    int32_t exponent; /* unit = 2^exponent */
    double *base;     /* rows */
    int32_t *first;   /* trees + 1: the first node of each tree, and `count` */
    struct svi_forest_node *node;
    struct svi_forest_masks *masks; /* NULL: scored by descending the nodes */
};

/* Frees the arrays; the forest is then empty. */
void svi_forest_clear(struct svi_forest *f);

/* Allocates a forest of these sizes, content zero, into *f, whose content is not freed. SVS_NO_MEMORY: *f is
 * unchanged. */
svs_code svi_forest_alloc(struct svi_forest *f, int rows, int trees, int count, svs_error *err);

/* Checks everything about a forest whose nodes have been written, and derives what scoring needs.
 * SVS_DAMAGED: no forest. SVS_NO_MEMORY. Either way the caller clears it. */
svs_code svi_forest_finish(struct svi_forest *f, svs_error *err);

/* Scores of one row: x has at least f->columns values, NAN for a missing one; `rows` doubles, all finite.
 * An empty forest writes nothing. */
void svi_forest_score(const struct svi_forest *f, const float *x, double *scores);

/* Saves or loads; loading frees what *f held, also when it fails, and checks everything. `rows` is the number
 * of scores expected, of which an empty forest has none; `columns`: the values of a row, which bound
 * f->columns. */
void svi_forest_archive(struct svi_archive *a, struct svi_forest *f, int rows, int columns);

/* Copies the packed nodes: f->count x SVI_FOREST_NODE bytes. */
void svi_forest_pack(const struct svi_forest *f, uint8_t *out);

/* Bytes that the forest takes. */
double svi_forest_memory(const struct svi_forest *f);

#endif
