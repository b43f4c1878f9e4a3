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
 * discovery, a further coin for every so many tests is spent evenly until the next discovery. The promise is
 * then
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
 * LIMITS: p-values that share calibration scores are not independent; the share was measured instead, through
 * alert.h, 2000 scores, every tenth sample calibrating, fdr 0.1 (share of false alerts, mean over streams;
 * the share of the disturbances found). Strength: distance in 0.999-quantiles of the normal score.
 *
 *     disturbances             |normal|, 2  |normal|, 4  exponential, 4  chi-square(10), 4  |Student t(3)|, 4
 *     0.1 %, single samples
 *     1 %, single samples
 *     0.1 %, runs of 20
 *     1 %, runs of 20
 *     5 %, runs of 20
 */
#ifndef SVI_DISCOVERY_H
#define SVI_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
