/* lasting.h: evidence that adds up over samples: a conformal CUSUM over the p-values of the row.
 *
 * One row within its range says little; an hour of rows that all lie at the same edge says much. Each p is
 * turned into an e-value, a number whose mean is 1 on exchangeable samples and that is large for a small p:
 * f(p) = mean of e p^(e-1) over e in {0.1, 0.3, 0.5, 0.7} (a mixture of the power
 * calibrators of Vovk, Gammerman, Shafer 2005), and
 *
 *     S <- max(1, S) f(p)^(1/tau)            (Vovk 2021, "Testing randomness online", the CUSUM procedure)
 *
 * TIES. A conformal p-value with c calibration scores is known up to the place among scores that are equal,
 * itself among them: the smoothed p is uniform between `low`, the share of scores that are above it, and
 * `high`, p itself. What is taken is the mean of f over that interval, so no coin is thrown; its mean is 1
 * exactly, for discrete data, too. The largest of 2000 scores multiplies S by 299, of 30 by 10.
 *
 * WHAT IS PROMISED, on independent ranks (those of successive exchangeable samples are), with tau = 1:
 * read backwards, the products of the last k factors are a martingale in k, and S is the largest of them; so
 * by Ville's inequality, at each sample,
 *
 *     P(S >= c) <= 1/c          that is: 1/S is a p-value of that sample, and `surprise` is log10 S.
 *
 * The expected number of samples with S >= c is at most 1/c a sample, hence that of alarms, too; and the mean
 * number of samples until the first alarm is at least c (S never exceeds the Shiryaev-Roberts sum R <- (1 +
 * R) f, and R - n is a martingale). Everything below makes S only smaller, sample by sample, and keeps this.
 *
 * FEW SCORES. Ranks of samples that are held against the same few scores are not independent: where the
 * highest of 30 scores happens to be low, every tenth sample is above it. Ranks among all before, each of
 * which becomes one of the scores, are. So with less than 500 scores only the samples that calibrate count,
 * every second one, and those from the 8th score on.
 *
 * DEPENDENCE. Successive rows of a machine hang together: one odd moment is many samples with a small p, and
 * counts many times. tau is the effective number of samples that say the same: the variance of sums of 2^k
 * successive log f over that of independent ones, the largest over k (Geyer 1992, "Practical Markov chain
 * Monte Carlo", batch means), from the stream itself. When samples at least tau apart are independent, every
 * product of f^(1/tau) is a geometric mean of tau products of independent factors: its mean is at most 1
 * (Hoelder), and
 *
 *     P(S >= c) <= e ln(c) / c
 *
 * (the bound of the supremum, not of one product; from E sup^s <= 1/(1-s) for each of the tau martingales, s
 * = 1 - 1/ln c). For real dependence, whose tau is estimated, it is no promise; measured: see guarantees.
 *
 * END. S is at most 1e12. Evidence of a disturbance that is over goes: when S has fallen to 1/1000 of the
 * highest since it rose above 1, it is 1 again. */
#ifndef SVI_LASTING_H
#define SVI_LASTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"

#define SVI_LASTING_SCALES 13 /* sums of 1, 2 ... 4096 samples */

/* Sums of 2^k successive values. */
struct svi_lasting_scale {
    double part;         /* of the sum that is not complete */
    double blocks;       /* complete ones, old ones fading */
    double sum, squares; /* of these */
};

/* A sample's place among the calibration scores: 0 <= low < high <= 1, its smoothed p is uniform between. */
struct svi_lasting_rank {
    double low, high;
    int scores;      /* calibration scores */
    bool calibrates; /* the sample will be one of them */
    bool disturbed;  /* it is one of a run that is no chance: it does not tell how samples hang together */
};

struct svi_lasting {
    double evidence;       /* ln S after the last sample; below 0: S < 1 */
    double highest;        /* of ln S since it rose above 0 */
    int64_t seen, counted; /* samples; those that tau is from */
    int64_t since;         /* samples before the first that the evidence consists of */
    double tau;            /* >= 1 */
    struct svi_lasting_scale scale[SVI_LASTING_SCALES];
};

void svi_lasting_init(struct svi_lasting *l);

/* One sample's place among the calibration scores. Counts when it adds evidence (FEW SCORES). O(1). */
void svi_lasting_add(struct svi_lasting *l, const struct svi_lasting_rank *r);

/* log10 S, 0 at least: -log10 of a p-value of the last sample. */
double svi_lasting_surprise(const struct svi_lasting *l);

/* Samples that the evidence consists of, >= 1. */
int svi_lasting_over(const struct svi_lasting *l);

void svi_lasting_archive(struct svi_archive *a, struct svi_lasting *l);

#endif
