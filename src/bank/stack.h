/* stack.h: a least-squares model on top of the scores of others: ALSVM again (svmstream/alsvm.h) at
 * D = members + 1, over the last samples, with exact removal.
 *
 *     f(k) = w' (s_1(k), ..., s_m(k), 1)
 *
 * s_i(k) is what member i gave class k. One weight vector serves all classes: a sample of K classes, K > 2,
 * gives K rows with target +1 for its own class and -1 for the others; two classes, or a regression, give
 * one. For rows x_r with targets t_r and weights c_r, of the samples that are held,
 *
 *     w = argmin sum_r c_r (t_r - w'x_r)^2 + ridge |w|^2,
 *
 * a ridge that fits scores of about unit size. Rows are held once, in a ring that several stacks with windows
 * of their own share; a stack without a window holds sums. Kept to rounding error by a fresh solve at fixed
 * sample numbers. Deterministic. One object, one thread at a time. */
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
    int64_t windows[SVI_STACKS_MAX]; /* samples, descending; 0 = all, which come first */
    double ridge;                    /* > 0 */
    int rows_max;                    /* rows that are held at most, of all samples */
    svs_isa isa;
};

/* NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_stacks *svi_stacks_new(const struct svi_stacks_options *o, svs_error *err);
void svi_stacks_free(svi_stacks **s);
void svi_stacks_reset(svi_stacks *s); /* as new; sample numbers go on */

/* Scores of stack i for the rows x, `rows` x members. */
void svi_stacks_score(const svi_stacks *s, int i, const double *x, int rows, double *scores);

/* All stacks learn a sample: x as above, t its `rows` targets, weight > 0, `number` above that of the one
 * before. What leaves the windows, which go by numbers, is removed. SVS_NO_MEMORY: it is not learned. */
svs_code svi_stacks_learn(svi_stacks *s, const double *x, const double *t, int rows, double weight,
                          int64_t number, svs_error *err);

/* Takes a sample out of every stack that holds it; one that is held no more stays in the stack without a
 * window. */
void svi_stacks_forget(svi_stacks *s, int64_t number);

/* Is a sample of that number held, of those that can be taken out? */
bool svi_stacks_holds(const svi_stacks *s, int64_t number);

/* The weights of stack i: members and the constant. */
const double *svi_stacks_weights(const svi_stacks *s, int i);

/* For tests: the largest difference between the weights of stack i and a fresh solve, relative to the largest
 * weight. */
double svi_stacks_check(const svi_stacks *s, int i);

/* Loading goes into one from svi_stacks_new with the same options. */
void svi_stacks_archive(struct svi_archive *a, svi_stacks *s);

double svi_stacks_memory(const struct svi_stacks_options *o); /* bytes at most */

#endif
