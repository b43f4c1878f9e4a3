/* member_block.h: the first-order members: three blocks of models (bank/block.h), on the row, on its
 * products, and on random Fourier features. */
#ifndef SVI_MEMBER_BLOCK_H
#define SVI_MEMBER_BLOCK_H

#include "bank/block.h"
#include "bank/member_ops.h"

extern const struct svi_member_ops svi_member_raw, svi_member_products, svi_member_fourier;

/* The bank's block of Fourier features; it has neither features nor heads while its members do not run. */
struct svi_block *svi_member_block_fourier(const struct svi_member_context *c);

#endif
