/* logistic_stack.h: logistic regressions on the scores of other models, learned one labelled sample at a
 * time by online Newton steps. Next to the least squares of stack.h they rank where one class is rare: a
 * member that speaks log odds stands near log(share) then, and what matters is by how much a row departs
 * from that.
 *
 * Inputs are standardised: with the running mean and deviation of a member's scores over rows and classes,
 *
 *     u_i(k) = (s_i(k) - mean_i) / deviation_i   within +-SVI_LOGISTIC_BOUND, 0 for a score that is NAN.
 *
 * With a base log odds o (two classes) or o_k (more), which the caller adds, the regression with weights w
 * says
 *
 *     two classes:  logit p = o + w'(u, 1),        more:  p(k) ~ exp(o_k + w'(u(k), 1)),
 *
 * with one w for all classes, where the constant cancels and its weight stays 0. A sample of class y and
 * weight v moves w by P g,
 *
 *     two:   g = v (y - p) u,             P^-1 = ridge I + sum v p (1 - p) u u',
 *     more:  g = v (u(y) - mean u),       P^-1 = ridge I + sum v p(k) (u(k) - mean u) (u(k) - mean u)',
 *
 * mean u = sum p(k) u(k), where the sums fade by `keep` a sample. At fixed numbers of samples P is made from
 * the sums again, so rounding does not grow and P never exceeds 1 / ridge by more than what has faded
 * between two of them. Deterministic; nothing is allocated after _new. One object, one thread at a time. */
#ifndef SVI_LOGISTIC_STACK_H
#define SVI_LOGISTIC_STACK_H

#include "base/archive.h"
#include "svmstream/alsvm.h"

#define SVI_LOGISTIC_MAX   4
#define SVI_LOGISTIC_BOUND 8.0

typedef struct svi_logistic svi_logistic;

struct svi_logistic_options {
    int members;                   /* m, 1 or more */
    int rows_max;                  /* rows of a sample at most: 1, or the number of classes */
    int count;                     /* regressions, 1 to SVI_LOGISTIC_MAX */
    double keep[SVI_LOGISTIC_MAX]; /* in (0.99, 1] */
    double ridge;                  /* > 0 */
    svs_isa isa;
};

/* NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_logistic *svi_logistic_new(const struct svi_logistic_options *o, svs_error *err);
void svi_logistic_free(svi_logistic **l);
void svi_logistic_reset(svi_logistic *l); /* forgets everything */

/* The row to be scored: scores is rows x m (NAN: the member says nothing). Valid until the next one. */
void svi_logistic_row(svi_logistic *l, const double *scores, int rows);

/* out[r] = w'(u, 1) of regression i for each row of the last svi_logistic_row. */
void svi_logistic_score(const svi_logistic *l, int i, double *out);

/* Regression i learns the class of the last row: proba are its probabilities, of two classes (one row) or as
 * many as rows; truth is one of them. weight > 0. All regressions learn a sample; then svi_logistic_end adds
 * its scores to mean and deviation. */
void svi_logistic_learn(svi_logistic *l, int i, const double *proba, int truth, double weight);
void svi_logistic_end(svi_logistic *l);

/* The weights of regression i: one a member, then the constant. Mean and 1 / deviation (0: not
 * known yet) of each member's scores. Valid until the next change. */
const double *svi_logistic_weights(const svi_logistic *l, int i);
const double *svi_logistic_means(const svi_logistic *l);
const double *svi_logistic_scales(const svi_logistic *l);

/* Saves or loads. Load into an object from svi_logistic_new with the same options. */
void svi_logistic_archive(struct svi_archive *a, svi_logistic *l);

double svi_logistic_memory(const struct svi_logistic_options *o); /* bytes at most */

#endif
