/* discovery.h: online control of the share of false discoveries: LORD++ (Ramdas, Yang, Wainwright, Jordan
 * 2017, "Online control of the false discovery rate with decaying memory"; Javanmard, Montanari 2018).
 *
 * A sample is called a discovery when its p is at most the level of that moment. The levels spend an
 * allowance: half a coin at the start, half a coin for the first discovery, one for each further one, where a
 * coin is worth `fdr` and is spent over the tests that follow it. With p-values that are honest given the
 * past, each test adds its level to the number of false discoveries that is expected, so that, however often
 * one looks, expected false discoveries <= fdr x max(1, discoveries).
 *
 * BOUNDED: LORD++ sums over all past discoveries. Here the spending of a coin is a mean of 9 geometric
 * sequences whose mean lengths are 64, 128 ... 16384 tests: one number for each length holds what all coins
 * together have left of it, so the sum is exact with 9 numbers, at any number of discoveries, and a test
 * costs 9 steps.
 *
 * ALPHA DEATH: on a stream of normals the levels of LORD++ and of SAFFRON fall without end: after a long
 * quiet time nothing would ever be found again. So when SVI_DISCOVERY_IDLE tests have gone by without a
 * discovery, a further coin for every SVI_DISCOVERY_IDLE tests is spent evenly until the next discovery. The
 * promise is then
 *
 *     expected false discoveries <= fdr x (max(1, discoveries) + quiet tests / SVI_DISCOVERY_IDLE)
 *
 * the share `fdr` where something can be found at least every 30,000 tests, and where nothing can be found,
 * one false alert in 300,000 tests (`fdr` 0.1). A stream with undetectable anomalies is one where nothing can
 * be found: its few alerts are then mostly false.
 *
 * The second cause of alpha death is that a conformal p-value is never below 1 / (1 + scores), 1 / 2001,
 * while the levels are around 1e-6 to 1e-4. Therefore the procedure is given svi_calibration_tail.
 *
 * SAFFRON pays only for p-values below one half, at half the level. That gains when a large part of all
 * samples are anomalies, which is not what alerts are for; and it needs p-values that are even in the bulk,
 * too.
 *
 * LIMITS. p-values that share calibration scores are not independent, so the share was measured: 10 streams
 * of 200,000 samples each, through alert.h with fdr 0.1 and clear 0.02, 2000 scores, every second sample
 * calibrating but for runs of 5 or more samples with p <= 0.02. Anomalies have the given multiple of the
 * 0.999-quantile of the normal score added. Share of false alerts (mean over the streams), share of the
 * disturbances found:
 *
 *                            |normal|    |normal|    exponential  chi-square  |Student t|  |Student t|
 *     disturbances           + 2         + 4         + 4          (10) + 4    (3) + 4      (3) + 16
 *     0.1 %, singly          0     0.02  0     0.22  0     0.14   0.002 0.22  0.05  0.01   0     0.10
 *     1 or 5 %, singly       0     0     0     0     0     0      0     0     0     0      0     0
 *     0.1 %, in runs of 20   0     0.37  0     0.97  0     0.56   0     0.92  0.27  0.06   0.08  0.43
 *     1 %, in runs of 20     0.002 0.92  0     1.00  0.006 0.96   0.002 1.00  0.11  0.07   0.04  0.88
 *     5 %, in runs of 20     0.014 1.00  0.016 1.00  0.017 1.00   0.018 1.00  0.09  0.40   0.05  1.00
 *
 * Streams without anomalies: no false alert in 5 million samples of the first kinds, 2.6 in a million for
 * Student t.
 *
 * So the share is kept wherever something can be found (0.27 and 0.11 are streams with hardly an alert).
 * Single anomalies of one strength that make up a hundredth of the stream are not found: they are a hundredth
 * of the calibration scores, too, which is what "not novel" means to a conformal p-value. Leaving out
 * everything that was called a discovery would find most of them, and was measured to raise the share of
 * false alerts to 0.4 and more. */
#ifndef SVI_DISCOVERY_H
#define SVI_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"

#define SVI_DISCOVERY_SPANS 9
#define SVI_DISCOVERY_IDLE  30000

struct svi_discovery {
    double fdr;                       /* in (0, 1) */
    double left[SVI_DISCOVERY_SPANS]; /* coins left to spend, for each length */
    int64_t idle;                     /* tests since the last discovery */
    int64_t tested, found;
};

void svi_discovery_init(struct svi_discovery *d, double fdr);

/* The largest p that the next test would call a discovery: 0 to fdr. */
double svi_discovery_level(const struct svi_discovery *d);

/* One test: true for a discovery. */
bool svi_discovery_test(struct svi_discovery *d, double p);

/* The options are not part of it. */
void svi_discovery_archive(struct svi_archive *a, struct svi_discovery *d);

#endif
