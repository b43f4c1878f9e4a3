/* mixture.h: the last layer of a classifier's bank: a mixture of probabilities by log loss.
 *
 * The first expert is the combination of the bank (a vote and three stacks of least squares, as
 * probabilities). Two logistic stacks (logistic_stack.h) on the members' scores follow. Two base
 * rates are the last: the shares of the classes over all samples and over the last ones. They are
 * mixed by fixed share (share.h) with the log loss. A base rate as an expert bounds the log loss
 * where the members know nothing, as with a rare class. The logistic stacks start from the base
 * rate and learn what departs from it.
 *
 * WEIGHTS. A sample of weight c counts c / (running mean of c, weighted by c) in all of this. A
 * factor common to all weights thus cancels, and a rare heavy sample counts about once. With
 * weights the probabilities are those of the weighted classes.
 *
 * Deterministic; nothing is allocated after _new. One object, one thread at a time. */
#ifndef SVI_MIXTURE_H
#define SVI_MIXTURE_H

#include "bank/logistic_stack.h"
#include "bank/share.h"

#define SVI_MIXTURE_STACKS 2

/* The experts in their order. */
enum {
    SVI_MIXTURE_COMBINED,
    SVI_MIXTURE_LOGISTIC,
    SVI_MIXTURE_RATES = SVI_MIXTURE_LOGISTIC + SVI_MIXTURE_STACKS, /* over all samples, then the last ones */
    SVI_MIXTURE_EXPERTS = SVI_MIXTURE_RATES + 2
};

typedef struct svi_mixture svi_mixture;

struct svi_mixture_options {
    int members, max_classes; /* 1 or more; 2 or more */
    svs_isa isa;
};

/* NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_mixture *svi_mixture_new(const struct svi_mixture_options *o, svs_error *err);
void svi_mixture_free(svi_mixture **m);
void svi_mixture_reset(svi_mixture *m);

/* Probabilities of a row: scores is rows x members (NAN: the member says nothing), combined the `classes`
 * probabilities of the combination, each above 0; rows is 1 for two classes, else classes. Fills
 * proba[classes], each above 0, their sum 1 but for rounding. */
void svi_mixture_score(svi_mixture *m, const double *scores, const double *combined, int classes,
                       double *proba);

/* The weight of a sample, > 0, in units of the mean, this one included: 1 where all weigh the same, at most
 * 10. Once a sample, before it is learned or counted. */
double svi_mixture_weigh(svi_mixture *m, double weight);

/* Learns the class of the row of the last svi_mixture_score; c of svi_mixture_weigh. */
void svi_mixture_learn(svi_mixture *m, int truth, double c);

/* Counts a sample that was not scored, or of a class that had no score: only the base rates learn it. */
void svi_mixture_count(svi_mixture *m, int truth, double c);

/* What is published (bank/describe.h). Valid until the next change. */
const struct svi_share *svi_mixture_shares(const svi_mixture *m);
const svi_logistic *svi_mixture_logistic(const svi_mixture *m);
double svi_mixture_keep(int stack); /* of logistic stack 0 or 1 */

/* Samples by class of base rate 0 (all samples) or 1 (the last ones); the rates are in proportion. */
const double *svi_mixture_counts(const svi_mixture *m, int which);

void svi_mixture_archive(struct svi_archive *a, svi_mixture *m);
double svi_mixture_memory(const struct svi_mixture_options *o); /* bytes at most */

#endif
