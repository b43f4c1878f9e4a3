/* reference.h: plain long double answers that the fast code is held against. */
#ifndef TEST_REFERENCE_H
#define TEST_REFERENCE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* xorshift64*: the same numbers everywhere. */
static inline uint64_t ref_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

static inline double ref_uniform(uint64_t *state) {
    return (double)(ref_next(state) >> 11) * 0x1p-53;
}

static inline double ref_gauss(uint64_t *state) {
    double u = ref_uniform(state) + 0x1p-60, v = ref_uniform(state);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* g (n x n, lower) += s x x' and r += s t x, in long double. */
static inline void ref_add(long double *g, long double *r, int n, const double *x, double t, double s) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++)
            g[i * n + j] += (long double)s * x[i] * x[j];
        r[i] += (long double)s * t * x[i];
    }
}

/* x = g^-1 r by Cholesky; g is destroyed. */
static inline void ref_solve(long double *g, const long double *r, int n, long double *x) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            long double s = g[i * n + j];
            for (int k = 0; k < j; k++)
                s -= g[i * n + k] * g[j * n + k];
            g[i * n + j] = i == j ? sqrtl(s) : s / g[j * n + j];
        }
    for (int i = 0; i < n; i++) {
        x[i] = r[i];
        for (int k = 0; k < i; k++)
            x[i] -= g[i * n + k] * x[k];
        x[i] /= g[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            x[i] -= g[k * n + i] * x[k];
        x[i] /= g[i * n + i];
    }
}

/* |a - b| / |b| */
static inline double ref_distance(const double *a, const long double *b, int n) {
    long double d = 0, s = 0;
    for (int i = 0; i < n; i++) {
        d += (a[i] - b[i]) * (a[i] - b[i]);
        s += b[i] * b[i];
    }
    return s > 0 ? (double)sqrtl(d / s) : (double)sqrtl(d);
}

#endif
