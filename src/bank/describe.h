/* describe.h: a bank's published description of itself (learner/bank_description.h). */
#ifndef SVI_DESCRIBE_H
#define SVI_DESCRIBE_H

#include "bank/bank.h"
#include "learner/bank_description.h"

/* Memory for members' weights in raw units that no member holds itself. Zero-initialised is empty. */
struct svi_bank_weights {
    double *of;
    size_t capacity;
    struct svi_bank_trees *trees; /* NULL: none were described yet */
};

/* The same for boosted trees, by forest. */
struct svi_bank_trees {
    int64_t sent[SVI_BANK_FORESTS];   /* version that subscribers have; a new process sends it once more */
    uint8_t *nodes[SVI_BANK_FORESTS]; /* packed */
    int32_t *zero[SVI_BANK_FORESTS];  /* masked columns */
};

/* Marks in the description which forests were sent before, and remembers that all are now. */
void svi_bank_weights_sent(struct svi_bank_weights *w, struct svi_bank_description *t);

/* Fills `t` except version and serves. What it points to is valid until host, bank or `w` change.
 * SVS_NO_MEMORY. */
svs_code svi_bank_describe(const svi_bank *b, svs_learner *host, struct svi_bank_weights *w,
                           struct svi_bank_description *t, svs_error *err);
void svi_bank_weights_clear(struct svi_bank_weights *w);
double svi_bank_weights_memory(int d, int classes); /* bytes at most */

/* Names and scores of the running members for the row scored last. */
void svi_bank_member_table(const svi_bank *b, struct svi_member_scores *m);

#endif
