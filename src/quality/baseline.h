/* baseline.h: compares the learner with predictions that need no learner: "the same as before" (the last
 * label or target), the commonest class, and the mean of the targets so far. A learner that does not beat
 * these has learned nothing useful.
 *
 * The commonest class is chosen in hindsight: the class with the most labels in the stretch. The first target
 * of a regression has no predecessor and is not compared. */
#ifndef SVI_BASELINE_H
#define SVI_BASELINE_H

#include "base/archive.h"
#include "svmstream/learner.h"

typedef struct svi_baseline svi_baseline;

/* window: samples of the windowed figures, >= 1. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_baseline *svi_baseline_new(svs_task task, int64_t window, svs_error *err);
void svi_baseline_free(svi_baseline **b);
void svi_baseline_reset(svi_baseline *b);

/* Moves the totals of `of` into *b, a new object with another window; the windowed figures restart. After
 * this `of` may only be freed. */
void svi_baseline_take_over(svi_baseline *b, const svi_baseline *of);

/* One scored sample: class indices, predicted -1 = no class; or the target and its prediction. */
void svi_baseline_class(svi_baseline *b, int truth, int predicted);
void svi_baseline_value(svi_baseline *b, double truth, double predicted);

/* Root mean squared errors of the baselines of a regression, in units of the target, over all samples and
 * over the window. NAN: no sample was compared yet. */
struct svi_baseline_errors {
    double same, same_window, mean, mean_window;
};
struct svi_baseline_errors svi_baseline_errors(const svi_baseline *b);

/* The learner's advantage over a baseline and the standard error of it, as if samples were independent.
 * classify: difference of the shares of right samples; regress: mean difference of squared errors. n: samples
 * compared, 0 = none. */
struct svi_advantage {
    int64_t n;
    double by, error;
};
struct svi_advantage svi_baseline_same(const svi_baseline *b);
struct svi_advantage svi_baseline_mean(const svi_baseline *b); /* regress */

/* The learner, `hits` right among n, against always predicting a class with `support` labels, of which the
 * learner got `own` right. Only samples on which exactly one of the two is right count (McNemar 1947). */
struct svi_advantage svi_baseline_commonest(int64_t n, int64_t hits, int64_t support, int64_t own);

/* Among n samples the learner alone was right on `won`, the other alone on `lost`. */
struct svi_advantage svi_advantage_of_pairs(int64_t n, int64_t won, int64_t lost);

/* Lower 97.5 % confidence bound of how far the learner's error is above that of "the same as
 * before". Few samples give a low bound. In classification it is a share of the samples (Wald's
 * interval for pairs with half a pair of each kind added, Agresti and Min 2005). In a regression it
 * is relative to the sum of both mean squared errors (Student's t). NAN: nothing was compared. */
double svi_baseline_worse(const svi_baseline *b);

/* Does the advantage exceed two standard errors? */
static inline bool svi_advantage_shows(struct svi_advantage a) {
    return a.n > 0 && a.by > 2 * a.error;
}

void svi_baseline_archive(struct svi_archive *a, svi_baseline *b);

double svi_baseline_memory(svs_task task, int64_t window); /* bytes */

#endif
