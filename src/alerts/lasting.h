/* lasting.h: evidence that accumulates over samples: a conformal CUSUM of the p-values of rows.
 *
 * One row within its range is weak evidence, an hour of rows at the same edge is strong. Each p is
 * turned into an e-value f(p), a number that is large for a small p and whose mean is 1 on
 * exchangeable samples. f is a mixture of the power calibrators of Vovk, Gammerman, Shafer 2005. S
 * accumulates them (Vovk 2021, "Testing randomness online", the CUSUM procedure):
 *
 *     f(p) = mean of e p^(e-1) over e in {0.1, 0.3, 0.5, 0.7},     S <- max(1, S) f(p)^(1/tau)         (1)
 *
 * TIES. A conformal p-value is known only up to its place among equal scores, its own included. The
 * smoothed p is uniform between `low`, the share of scores above it, and `high`, p itself. The mean
 * of f over that interval is used, so no random number is drawn, and its mean is exactly 1 for
 * discrete data too. The largest of 2000 scores multiplies S by 299, the largest of 30 by 10.
 *
 * GUARANTEE, on independent ranks (such as those of successive exchangeable samples) and with tau = 1. Read
 * backwards, the products of the last k factors are a martingale in k, and S is the largest of them. By
 * Ville's inequality, at each sample,
 *
 *     P(S >= c) <= 1/c                                                                                 (2)
 *
 * so 1/S is a p-value of that sample, and `surprise` is log10 S. The expected number of samples
 * with S >= c is at most 1/c a sample, and so is that of alarms. The mean number of samples until
 * the first alarm is at least c. The reason is that S never exceeds the Shiryaev-Roberts sum R <-
 * (1 + R) f, and R - n is a martingale. Everything below only lowers S, sample by sample, which
 * keeps all this.
 *
 * FEW SCORES. Ranks against the same few scores are not independent. If the highest of 30 scores
 * happens to be low, every tenth sample exceeds it. Ranks among all earlier samples, each of which
 * becomes a score, are independent. With fewer than 500 scores, therefore, only the samples that
 * calibrate count (every second one), from the 8th score on.
 *
 * DEPENDENCE. Rows of a machine are autocorrelated. One odd moment gives many samples with a small
 * p and would count many times. tau is the effective number of samples that repeat the same
 * evidence, estimated from the stream. The estimate is the variance of sums of 2^k successive log f
 * over that of independent ones, and the largest over k is taken (batch means: Geyer 1992,
 * "Practical Markov chain Monte Carlo"). If samples at least tau apart are independent, every
 * product of f^(1/tau) is a geometric mean of tau products of independent factors. Its mean is at
 * most 1 (Hoelder), and
 *
 *     P(S >= c) <= e ln(c) / c                                                                         (3)
 *
 * (a bound of the supremum, not of one product; from E sup^s <= 1/(1-s) for each of the tau martingales, with
 * s = 1 - 1/ln c). With an estimated tau this is no guarantee; the manual's page on guarantees has
 * measurements.
 *
 * END. S is at most 1e12. When S has fallen to 1/1000 of its highest value since it rose above 1, the
 * disturbance is over and S is 1 again. */
#ifndef SVI_LASTING_H
#define SVI_LASTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"

#define SVI_LASTING_SCALES 13 /* sums of 1, 2 ... 4096 samples */

/* Sums of 2^k successive values. */
struct svi_lasting_scale {
    double part;         /* the incomplete sum */
    double blocks;       /* complete sums, old ones fading */
    double sum, squares; /* sum and sum of squares of these */
};

/* A sample's rank among the calibration scores. */
struct svi_lasting_rank {
    double low, high; /* its smoothed p is uniform between them, 0 <= low < high <= 1 */
    int scores;       /* calibration scores */
    bool calibrates;  /* the sample will become one of them */
    bool disturbed;   /* it is part of a run that is not chance, so tau is not estimated from it */
};

struct svi_lasting {
    double evidence;       /* ln S after the last sample; negative: S < 1 */
    double highest;        /* largest ln S since it rose above 0 */
    int64_t seen, counted; /* samples; those that tau is estimated from */
    int64_t since;         /* samples before the first one of the present evidence */
    double tau;            /* >= 1 */
    struct svi_lasting_scale scale[SVI_LASTING_SCALES];
};

void svi_lasting_init(struct svi_lasting *l);

/* Adds a sample by its rank, if it counts (FEW SCORES). O(1). */
void svi_lasting_add(struct svi_lasting *l, const struct svi_lasting_rank *r);

/* log10 S, at least 0: -log10 of a p-value of the last sample. */
double svi_lasting_surprise(const struct svi_lasting *l);

/* Samples of the present evidence, >= 1. */
int svi_lasting_over(const struct svi_lasting *l);

void svi_lasting_archive(struct svi_archive *a, struct svi_lasting *l);

#endif
