/* discovery.h: online control of the share of false discoveries: LORD++ (Ramdas, Yang, Wainwright, Jordan
 * 2017, "Online control of the false discovery rate with decaying memory"; Javanmard, Montanari 2018).
 *
 * A sample is a discovery when its p is at most the current level. The levels spend an allowance: half a coin
 * at the start, half a coin for the first discovery, one for each further one. A coin is worth `fdr` and is
 * spent over the tests that follow it. With p-values that are honest given the past, each test adds its level
 * to the expected number of false discoveries, so that after any number of tests
 *
 *     expected false discoveries <= fdr x max(1, discoveries)                                          (1)
 *
 * BOUNDED. LORD++ sums over all past discoveries. Here a coin is spent as a mean of 9 geometric sequences,
 * whose mean lengths are 64, 128 ... 16384 tests. One number for each length holds what all coins together
 * have left of it. The sum is thus exact with 9 numbers, for any number of discoveries, and a test costs 9
 * steps.
 *
 * ALPHA DEATH. On a stream of normal samples, the levels of LORD++ and of SAFFRON fall without end,
 * and after a long quiet time nothing would be found again. After SVI_DISCOVERY_IDLE tests without
 * a discovery, one further coin for every SVI_DISCOVERY_IDLE tests is therefore spent evenly until
 * the next discovery. The bound becomes
 *
 *     expected false discoveries <= fdr x (max(1, discoveries) + quiet tests / SVI_DISCOVERY_IDLE)     (2)
 *
 * This is the share `fdr` where something can be found at least every 30,000 tests, and one false alert in
 * 300,000 tests (`fdr` 0.1) where nothing can be found. The second case includes streams whose anomalies are
 * undetectable: their few alerts are mostly false.
 *
 * The second cause of alpha death is the resolution of conformal p-values. They are never below 1 /
 * (1 + scores), or 1 / 2001, while levels are around 1e-6 to 1e-4. The procedure is therefore given
 * svi_calibration_tail.
 *
 * SAFFRON pays only for p-values below one half, at half the level. That is better where a large
 * part of all samples are anomalies, which alerts are not made for. It also needs p-values that are
 * uniform in the bulk.
 *
 * LIMITS. p-values that share calibration scores are not independent, so the share was measured.
 * There were 10 streams of 200,000 samples each, through alert.h with fdr 0.1 and clear 0.02, and
 * with 2000 scores. Every second sample calibrated, except in runs of 5 or more samples with p <=
 * 0.02. Anomalies added the given multiple of the 0.999-quantile of the normal score. Share of
 * false alerts (mean over the streams), and share of the disturbances found:
 *
 *                            |normal|    |normal|    exponential  chi-square  |Student t|  |Student t|
 *     disturbances           + 2         + 4         + 4          (10) + 4    (3) + 4      (3) + 16
 *     0.1 %, singly          0     0.02  0     0.22  0     0.14   0.002 0.22  0.05  0.01   0     0.10
 *     1 or 5 %, singly       0     0     0     0     0     0      0     0     0     0      0     0
 *     0.1 %, in runs of 20   0     0.37  0     0.97  0     0.56   0     0.92  0.27  0.06   0.08  0.43
 *     1 %, in runs of 20     0.002 0.92  0     1.00  0.006 0.96   0.002 1.00  0.11  0.07   0.04  0.88
 *     5 %, in runs of 20     0.014 1.00  0.016 1.00  0.017 1.00   0.018 1.00  0.09  0.40   0.05  1.00
 *
 * Streams without anomalies: no false alert in 5 million samples of the first four kinds, 2.6 in a million
 * for Student t.
 *
 * The share is thus kept wherever something can be found (0.27 and 0.11 are streams with hardly any
 * alert). Single anomalies of one strength that are a hundredth of the stream are not found. They
 * are a hundredth of the calibration scores too, so a conformal p-value counts them as not novel.
 * Keeping all discoveries out of the calibration would find most of them, but raised the measured
 * share of false alerts to 0.4 and more. */
#ifndef SVI_DISCOVERY_H
#define SVI_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"

#define SVI_DISCOVERY_SPANS 9     /* geometric sequences */
#define SVI_DISCOVERY_IDLE  30000 /* tests */

struct svi_discovery {
    double fdr;                       /* in (0, 1) */
    double left[SVI_DISCOVERY_SPANS]; /* coins left to spend, by sequence */
    int64_t idle;                     /* tests since the last discovery */
    int64_t tested, found;            /* tests; discoveries */
};

void svi_discovery_init(struct svi_discovery *d, double fdr);

/* The largest p, 0 to fdr, that would be a discovery in the next test. Changes nothing. */
double svi_discovery_level(const struct svi_discovery *d);

/* Performs one test, which spends and may earn. True: a discovery. */
bool svi_discovery_test(struct svi_discovery *d, double p);

/* Does not include the options. */
void svi_discovery_archive(struct svi_archive *a, struct svi_discovery *d);

#endif
