/* baseline.h: what would have been said without a learner, beside what it said: "the same as before" (the
 * last label or target that came), the commonest class, the mean of the targets so far. A learner that is no
 * better than these has learned nothing that they do not know.
 *
 * The commonest class is the one of hindsight: the class with the most labels in the stretch. The first
 * target of a regression has none before it and is not compared. */
#ifndef SVI_BASELINE_H
#define SVI_BASELINE_H

#include "base/archive.h"
#include "svmstream/learner.h"

typedef struct svi_baseline svi_baseline;

/* window: samples of the windowed figures, >= 1. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_baseline *svi_baseline_new(svs_task task, int64_t window, svs_error *err);
void svi_baseline_free(svi_baseline **b);
void svi_baseline_reset(svi_baseline *b);

/* What `of` counts over all goes on in *b, a new one with another window, whose figures begin again. `of` is
 * only to be freed then. */
void svi_baseline_take_over(svi_baseline *b, const svi_baseline *of);

void svi_baseline_class(svi_baseline *b, int truth, int predicted);
void svi_baseline_value(svi_baseline *b, double truth, double predicted);

/* Root mean squared errors of a regression, over all and over the window. NAN: none yet. */
struct svi_baseline_errors {
    double same, same_window, mean, mean_window;
};
struct svi_baseline_errors svi_baseline_errors(const svi_baseline *b);

/* By how much the learner is better than a baseline, and the standard error of that, as if samples were
 * independent. classify: share of the samples; regress: of squared errors. n: samples compared, 0 = none. */
struct svi_advantage {
    int64_t n;
    double by, error;
};
struct svi_advantage svi_baseline_same(const svi_baseline *b);
struct svi_advantage svi_baseline_mean(const svi_baseline *b); /* regress */

/* The learner, `hits` right among n, against always saying a class with `support` labels, of which it got
 * `own` right. Only samples of which one was right and the other was not tell (McNemar 1947). */
struct svi_advantage svi_baseline_commonest(int64_t n, int64_t hits, int64_t support, int64_t own);

/* Of n samples one was right and the other was not: `won` the former, `lost` the latter. */
struct svi_advantage svi_advantage_of_pairs(int64_t n, int64_t won, int64_t lost);

/* By how much the learner's error is above that of "the same as before", with 97.5 % confidence at least that
 * much, so that few samples say little: share of the samples (Wald's interval for pairs, with half a pair of
 * each kind more, Agresti and Min 2005); regress: of the sum of both mean squared errors (by Student's t).
 * NAN: nothing was compared. */
double svi_baseline_worse(const svi_baseline *b);

/* Does the advantage exceed two standard errors? */
static inline bool svi_advantage_shows(struct svi_advantage a) {
    return a.n > 0 && a.by > 2 * a.error;
}

void svi_baseline_archive(struct svi_archive *a, svi_baseline *b);

double svi_baseline_memory(svs_task task, int64_t window); /* bytes */

#endif
