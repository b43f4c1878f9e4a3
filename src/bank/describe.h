/* describe.h: what a bank tells of itself (wire/bank_map.h). */
#ifndef SVI_DESCRIBE_H
#define SVI_DESCRIBE_H

#include "bank/bank.h"
#include "bank/block.h"
#include "bank/share.h"
#include "bank/slope.h"
#include "bank/stack.h"
#include "bank/windows.h"
#include "wire/bank_map.h"

/* Weights of members that nothing else holds in raw units. Zero-initialised is empty. */
struct svi_bank_weights {
    double *of;
    size_t room;
};

/* The parts of a bank that it is told from; they are the bank's. */
struct svi_bank_parts {
    svs_task task;
    uint32_t on; /* members that run, as bits */
    const struct svi_windows *windows;
    const struct svi_block *raw, *fourier; /* the first-order models of the row, and of Fourier features */
    const struct svi_standardiser *standard;
    const struct svi_stacks *stacks;
    int64_t stack_windows[SVI_BANK_STACKS];
    const struct svi_share *votes, *experts;
    const struct svi_slope *slope; /* SVI_BANK_EXPERTS; of no use to a regression */
    double clip, center, unit;
};

void svi_bank_parts(const svi_bank *b, struct svi_bank_parts *p); /* in bank.c */

/* Into `t`, but for version and serves; what it points to is valid until host, bank or `w` are changed.
 * SVS_NO_MEMORY. */
svs_code svi_bank_describe(const svi_bank *b, svs_learner *host, struct svi_bank_weights *w,
                           struct svi_bank_told *t, svs_error *err);
void svi_bank_weights_clear(struct svi_bank_weights *w);
double svi_bank_weights_memory(int d, int classes); /* bytes at most */

/* What the members that run said of the row at hand. */
void svi_bank_said(const svi_bank *b, struct svi_members_said *m);

#endif
