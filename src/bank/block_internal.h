/* block_internal.h: what the sources of bank/block share. */
#ifndef SVI_BLOCK_INTERNAL_H
#define SVI_BLOCK_INTERNAL_H

#include "bank/block.h"
#include "base/arrays.h"
#include "linalg/kernels.h"

#define BLOCK_FADE (1 << 20) /* rows after which the products' moments fade */

/* Length of f for d features, with the 1 and padding. */
int svi_block_length(enum svi_block_kind kind, int d);

/* The weights of a head's model. */
static inline float *svi_block_row(const struct svi_block *b, int head, int row) {
    return b->weights + (size_t)(head * b->row_capacity + row) * (size_t)b->stride;
}

/* Heads before this one that are AdaGrad. */
static inline int svi_block_adagrads(const struct svi_block_options *o, int head) {
    int count = 0;
    for (int h = 0; h < head; h++)
        count += o->head[h].step == SVI_STEP_ADAGRAD;
    return count;
}

/* Its sums, where it is one of them. */
static inline float *svi_block_sum(const struct svi_block *b, int head, int row) {
    return b->sums + (size_t)(svi_block_adagrads(&b->o, head) * b->row_capacity + row) * (size_t)b->stride;
}

/* Room for d features and that number of models a head, with all that there is. */
svs_code svi_block_reserve(struct svi_block *b, int d, int rows, svs_error *err);

/* What its arrays go by. Moments are of products, cosines, rows kept and features of Fourier features: else
 * these are 0. */
enum {
    BLOCK_LENGTH,
    BLOCK_HEADS,
    BLOCK_ADAGRADS,
    BLOCK_ROWS,
    BLOCK_PADDED_ROWS,
    BLOCK_MOMENTS,
    BLOCK_COSINES,
    BLOCK_KEPT,
    BLOCK_PADDED,
    BLOCK_DIMS
};
extern const struct svi_arrays svi_block_arrays;
/* With a capacity of d features and that number of models a head. */
void svi_block_dims(const struct svi_block_options *o, int d, int rows, int32_t *dims);

/* Row i of those kept until the Fourier features can be drawn. */
static inline float *svi_block_kept(const struct svi_block *b, int i) {
    return b->kept + (size_t)i * (size_t)svi_round_up(b->capacity, SVI_FLOATS_PAD);
}

/* Where a head's scores of the last row are. */
static inline float *svi_block_scores(const struct svi_block *b, int head) {
    return b->scores + (size_t)head * (size_t)svi_round_up(b->row_capacity, SVI_FLOATS_PAD);
}

/* The cosines' frequencies for the d of now and the spread found; those of columns below `from` are there,
 * made when d was `from`. */
void svi_block_draw(struct svi_block *b, int from);

/* The median distance among the rows kept that are not the same; 1 where all are. */
double svi_block_spread(const struct svi_block *b);

#endif
