/* adwin.h: ADWIN2, written after Bifet, Gavalda: Learning from time-changing data with adaptive
 * windowing (SDM 2007). An exponential histogram has ADWIN_EACH buckets of a size, and every
 * boundary is looked at after every sample. The cut is that of equation (3.1), with the variance of
 * the window and delta' = delta / ln n. */
#ifndef TEST_SUPPORT_ADWIN_H
#define TEST_SUPPORT_ADWIN_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define ADWIN_EACH  5
#define ADWIN_SIZES 32

struct adwin {
    double delta;
    int count[ADWIN_SIZES];                     /* buckets of 2^i values */
    double sum[ADWIN_SIZES][ADWIN_EACH + 2];    /* oldest first */
    double n, total, squares;                   /* of the window; values are in [0, 1] */
    double square[ADWIN_SIZES][ADWIN_EACH + 2]; /* sums of squares, for the variance */
};

static inline void adwin_init(struct adwin *a, double delta) {
    memset(a, 0, sizeof *a);
    a->delta = delta;
}

static inline void adwin_drop(struct adwin *a, int i) {
    memmove(&a->sum[i][0], &a->sum[i][1], (size_t)(--a->count[i]) * sizeof(double));
    memmove(&a->square[i][0], &a->square[i][1], (size_t)a->count[i] * sizeof(double));
}

static inline void adwin_push(struct adwin *a, double x) {
    a->sum[0][a->count[0]] = x;
    a->square[0][a->count[0]++] = x * x;
    a->n++;
    a->total += x;
    a->squares += x * x;
    for (int i = 0; i < ADWIN_SIZES - 1 && a->count[i] > ADWIN_EACH; i++) {
        const double sum = a->sum[i][0] + a->sum[i][1], square = a->square[i][0] + a->square[i][1];
        adwin_drop(a, i);
        adwin_drop(a, i);
        a->sum[i + 1][a->count[i + 1]] = sum;
        a->square[i + 1][a->count[i + 1]++] = square;
    }
}

static inline bool adwin_cut(const struct adwin *a, double n0, double sum0) {
    const double n1 = a->n - n0, m = 1 / (1 / n0 + 1 / n1), mean = a->total / a->n;
    const double variance = fmax(0, a->squares / a->n - mean * mean), l = log(2 * log(a->n) / a->delta);
    return fabs(sum0 / n0 - (a->total - sum0) / n1) > sqrt(2 / m * variance * l) + 2 / (3 * m) * l;
}

/* One more value. 1: the window was cut and its mean has risen; -1: cut and fallen; 0: not cut. */
static inline int adwin_step(struct adwin *a, double x) {
    int change = 0;
    adwin_push(a, x);
    for (bool cut = a->n > 2; cut;) {
        double n0 = 0, sum0 = 0, before = a->total / a->n;
        cut = false;
        for (int i = ADWIN_SIZES - 1; i >= 0 && !cut; i--)
            for (int k = 0; k < a->count[i] && !cut; k++) {
                n0 += ldexp(1, i);
                sum0 += a->sum[i][k];
                cut = n0 < a->n && adwin_cut(a, n0, sum0);
            }
        if (!cut)
            break;
        int oldest = ADWIN_SIZES - 1;
        while (a->count[oldest] == 0)
            oldest--;
        a->n -= ldexp(1, oldest);
        a->total -= a->sum[oldest][0];
        a->squares -= a->square[oldest][0];
        adwin_drop(a, oldest);
        change = a->total / a->n > before ? 1 : -1;
    }
    return change;
}

#endif
