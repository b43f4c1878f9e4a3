/* statistics.h: order and spread of a handful of numbers, none of them NaN. */
#ifndef SVI_STATISTICS_H
#define SVI_STATISTICS_H

#include <stdint.h>

/* Number, mean and sum of squared deviations from it. Zero-initialised is empty. */
struct svi_moments {
    double n, mean, squares;
};

/* Adds a value (Welford 1962). */
static inline void svi_moments_add(struct svi_moments *m, double value) {
    const double gap = value - m->mean;
    m->mean += gap / ++m->n;
    m->squares += gap * (value - m->mean);
}

/* Adds the values of b to a (Chan, Golub, LeVeque 1979). */
static inline void svi_moments_merge(struct svi_moments *a, struct svi_moments b) {
    const double n = a->n + b.n;
    if (b.n == 0)
        return;
    const double gap = b.mean - a->mean, share = b.n / n;
    a->mean += gap * share;
    a->squares += b.squares + gap * gap * a->n * share;
    a->n = n;
}

/* The standard deviation (with the divisor n) of n >= 1 values. */
double svi_deviation(const double *v, int64_t n);

/* The value of rank `rank`, 0 to n - 1. Reorders v: smaller or equal values before it, larger or equal ones
 * after it. About 3 n steps (Hoare 1961, pivot: median of three). */
double svi_select_rank(double *v, int64_t n, int64_t rank);

/* The quantile `share` (0 to 1, nearest rank) of n >= 1 values, which are reordered as by svi_select_rank. */
double svi_quantile(double *v, int64_t n, double share);

/* The 5 % and the 95 % quantile (nearest rank) of n values, none NaN, which are reordered. With n < 1 both
 * are NaN. About 10 n steps. */
void svi_normal_range(double *values, int n, double *low, double *high);

#endif
