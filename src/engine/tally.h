/* tally.h: sums that do not drift, cumulative and over a sliding window.
 *
 * A windowed sum never subtracts. The window is a ring that is filled from the front again and again. What
 * came since the last wrap is summed as it comes; what is left of the round before is read from suffix sums,
 * which the wrap made in place: slot i then holds the sum over i .. end, and is only overwritten when sample
 * i leaves. So an outlier leaves no rounding behind, and a sample costs two additions on average. Means and
 * squared deviations merge likewise (the pairwise update of Chan, Golub and LeVeque). */
#ifndef SVI_TALLY_H
#define SVI_TALLY_H

#include <stdint.h>

/* A sum with its rounding error carried along (Kahan); for terms of one sign. */
struct svi_sum {
    double sum, lost;
};

static inline void svi_sum_add(struct svi_sum *s, double value) {
    double corrected = value - s->lost;
    double sum = s->sum + corrected;
    s->lost = (sum - s->sum) - corrected;
    s->sum = sum;
}

/* Number, mean and sum of squared deviations from it. */
struct svi_spread {
    double n, mean, squares;
};

static inline void svi_spread_merge(struct svi_spread *a, struct svi_spread b) {
    double n = a->n + b.n;
    if (b.n == 0)
        return;
    double gap = b.mean - a->mean, share = b.n / n;
    a->mean += gap * share;
    a->squares += b.squares + gap * gap * a->n * share;
    a->n = n;
}

#endif
