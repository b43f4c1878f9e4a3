/* describe.h: what a bank tells of itself (learner/bank_description.h). */
#ifndef SVI_DESCRIBE_H
#define SVI_DESCRIBE_H

#include "bank/bank.h"
#include "learner/bank_description.h"

/* Weights of members that nothing else holds in raw units. Zero-initialised is empty. */
struct svi_bank_weights {
    double *of;
    size_t capacity;
};

/* Into `t`, but for version and serves; what it points to is valid until host, bank or `w` are changed.
 * SVS_NO_MEMORY. */
svs_code svi_bank_describe(const svi_bank *b, svs_learner *host, struct svi_bank_weights *w,
                           struct svi_bank_description *t, svs_error *err);
void svi_bank_weights_clear(struct svi_bank_weights *w);
double svi_bank_weights_memory(int d, int classes); /* bytes at most */

/* What the members that run said of the row at hand. */
void svi_bank_member_table(const svi_bank *b, struct svi_member_scores *m);

#endif
