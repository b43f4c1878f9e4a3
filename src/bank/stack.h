/* stack.h: a least-squares model on the scores of other models: ALSVM again (svmstream/alsvm.h) at D =
 * members + 1, over the last samples, with exact removal.
 *
 *     f(k) = w' (s_1(k), ..., s_m(k), 1)
 *
 * s_i(k) is the score that member i gave class k. One weight vector serves all classes: a sample of K
 * classes, K > 2, gives K rows, with target +1 for its own class and -1 for the others; two classes, or a
 * regression, give one row. For the rows x_r with targets t_r and weights c_r of the samples held,
 *
 *     w = argmin sum_r c_r (t_r - w'x_r)^2 + ridge |w|^2,
 *
 * a ridge that suits scores of about unit size. Rows are held once, in a ring that several stacks with
 * different windows share; a stack without a window holds sums instead. A fresh solve at fixed sample
 * numbers bounds rounding error. Deterministic. One object, one thread at a time. */
#ifndef SVI_STACK_H
#define SVI_STACK_H

#include "base/archive.h"
#include "svmstream/alsvm.h"

#define SVI_STACKS_MAX       4
#define SVI_STACKS_COUNT_MAX ((int64_t)1 << 60)

typedef struct svi_stacks svi_stacks;

struct svi_stacks_options {
    int members;                     /* m, 1 or more */
    int count;                       /* stacks, 1 to SVI_STACKS_MAX */
    int64_t windows[SVI_STACKS_MAX]; /* samples; descending, with 0 = all first */
    double ridge;                    /* > 0 */
    int rows_max;                    /* capacity in rows, for all samples together */
    svs_isa isa;
};

/* NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_stacks *svi_stacks_new(const struct svi_stacks_options *o, svs_error *err);
void svi_stacks_free(svi_stacks **s);
void svi_stacks_reset(svi_stacks *s); /* forgets all samples; sample numbers continue */

/* Scores of stack i: x is rows x members, scores has `rows` values. */
void svi_stacks_score(const svi_stacks *s, int i, const double *x, int rows, double *scores);

/* All stacks learn a sample: x as above, t its `rows` targets, weight > 0, `number` above that of the last
 * one. Samples that leave a window, by number, are removed from it. SVS_NO_MEMORY: the sample is not
 * learned. */
svs_code svi_stacks_learn(svi_stacks *s, const double *x, const double *t, int rows, double weight,
                          int64_t number, svs_error *err);

/* Removes a sample from every stack that holds it. A sample that has left the ring stays in the stack
 * without a window. */
void svi_stacks_forget(svi_stacks *s, int64_t number);

/* True if the sample of this number is held and can still be removed. */
bool svi_stacks_holds(const svi_stacks *s, int64_t number);

/* The weights of stack i: one a member, then the constant. Valid until the next change. */
const double *svi_stacks_weights(const svi_stacks *s, int i);

/* For tests: the largest difference between the weights of stack i and those of a fresh solve, relative to
 * the largest weight. NAN: no memory. */
double svi_stacks_check(const svi_stacks *s, int i);

/* Saves or loads. Load into stacks from svi_stacks_new with the same options. */
void svi_stacks_archive(struct svi_archive *a, svi_stacks *s);

double svi_stacks_memory(const struct svi_stacks_options *o); /* bytes at most */

#endif
