/* block_internal.h: what the sources of bank/block share. */
#ifndef SVI_BLOCK_INTERNAL_H
#define SVI_BLOCK_INTERNAL_H

#include "bank/block.h"

#define BLOCK_FADE (1 << 20) /* rows after which the products' moments fade */

static inline int svi_block_padded(int n) {
    return (n + SVI_FLOATS_PAD - 1) / SVI_FLOATS_PAD * SVI_FLOATS_PAD;
}

/* Length of f for d features, with the 1 and padding. */
int svi_block_length(enum svi_block_kind kind, int d);

/* How much of f a head uses. */
static inline int svi_block_reach(const struct svi_block *b, int head) {
    const int features = b->o.head[head].features;
    return features > 0 ? SVI_FLOATS_PAD + features : b->length;
}

static inline float *svi_block_at(const struct svi_block *b, size_t offset) {
    return b->memory + offset;
}

/* The weights of a head's model; sums as well, where it is AdaGrad. */
static inline float *svi_block_row(const struct svi_block *b, size_t offset, int row) {
    return b->memory + offset + (size_t)row * (size_t)b->at.length;
}

/* Room for d features and that number of models a head, with all that there is. */
svs_code svi_block_reserve(struct svi_block *b, int d, int rows, svs_error *err);

/* Row i of those kept until the Fourier features can be drawn. */
static inline float *svi_block_kept(const struct svi_block *b, int i) {
    return b->memory + b->at.kept + (size_t)i * (size_t)svi_block_padded(b->at.d);
}

/* Where a head's scores of the last row are. */
static inline float *svi_block_scores(const struct svi_block *b, int head) {
    return b->memory + b->at.scores + (size_t)head * (size_t)svi_block_padded(b->at.rows);
}

/* The cosines' frequencies for the d of now and the spread found; those of columns below `from` are there,
 * made when d was `from`. */
void svi_block_draw(struct svi_block *b, int from);

/* The median distance among the rows kept that are not the same; 1 where all are. */
double svi_block_spread(const struct svi_block *b);

#endif
