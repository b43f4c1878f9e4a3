/* statistics.h: order and spread of a handful of numbers, none of them NaN. */
#ifndef SVI_STATISTICS_H
#define SVI_STATISTICS_H

#include <stdint.h>

/* Mean and squared deviations from it, added up one by one (Welford 1962). Zero-initialised is empty. */
struct svi_moments {
    double n, mean, squares;
};

static inline void svi_moments_add(struct svi_moments *m, double value) {
    const double gap = value - m->mean;
    m->mean += gap / ++m->n;
    m->squares += gap * (value - m->mean);
}

/* The standard deviation of n >= 1 values. */
double svi_deviation(const double *v, int64_t n);

/* The value of rank `rank`, 0 to n - 1; v changes its order: before it come smaller or equal ones, behind it
 * larger or equal ones. About 3 n steps (Hoare 1961, the middle one of three as pivot). */
double svi_select_rank(double *v, int64_t n, int64_t rank);

#endif
