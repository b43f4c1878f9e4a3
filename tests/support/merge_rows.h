/* merge_rows.h: rows spread over parts, the records that the parts would publish, and what a solution of all
 * rows is: in long double (the truth), and in double as a single process would compute it. */
#ifndef TEST_SUPPORT_MERGE_ROWS_H
#define TEST_SUPPORT_MERGE_ROWS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linalg/cholesky.h"
#include "merge/merge.h"
#include "reference.h"

struct rows {
    int n, d, classes; /* classes 0: a regression */
    double *x, *t, *w; /* n x d; class index or target; weights */
};

/* Gaussian rows with levels and units of their own; of condition about `cond` in standardised coordinates, by
 * features that nearly repeat others. */
static void rows_make(struct rows *r, int n, int d, int classes, double cond, bool weighted, uint64_t seed) {
    uint64_t s = seed * 2654435761u + 1;
    *r = (struct rows){n,
                       d,
                       classes,
                       malloc(sizeof(double) * (size_t)n * (size_t)d),
                       malloc(sizeof(double) * (size_t)n),
                       malloc(sizeof(double) * (size_t)n)};
    const double apart = 1 / sqrt(cond);
    for (int i = 0; i < n; i++) {
        double *x = r->x + (size_t)i * (size_t)d, score = 0;
        for (int j = 0; j < d; j++)
            x[j] = ref_gauss(&s);
        for (int j = d / 2; j < d; j++) /* the second half is near the first */
            x[j] = x[j - d / 2] + apart * x[j];
        for (int j = 0; j < d; j++) {
            score += (j % 3 - 1) * x[j];
            x[j] = (j % 4 == 0   ? 1e3
                    : j % 4 == 1 ? 1e-2
                                 : 1) *
                   (x[j] + (j % 5 ? 1.5 : -20)); /* units, levels */
        }
        score += .3 * ref_gauss(&s);
        r->t[i] = !classes ? 7 + score : classes == 2 ? score > 0 : score > 1 ? 2 : score < -1 ? 1 : 0;
        r->w[i] = weighted ? .1 + 3 * ref_uniform(&s) : 1;
    }
}

static void rows_free(struct rows *r) {
    free(r->x);
    free(r->t);
    free(r->w);
}

/* The record of rows first, first + step, ... below `end`, as a part would publish it: two passes, in double.
 */
static void rows_sums(const struct rows *r, int first, int end, int step, struct svi_window_sums *s) {
    const int d = r->d;
    assert_int_equal(svi_window_sums_shape(s, d, r->classes, NULL), SVS_OK);
    for (int i = first; i < end; i += step) {
        s->n++;
        s->weight += r->w[i];
        for (int j = 0; j < d; j++)
            s->center[j] += r->w[i] * r->x[(size_t)i * (size_t)d + (size_t)j];
    }
    for (int j = 0; j < d && s->weight > 0; j++)
        s->center[j] /= s->weight;
    double *z = malloc(sizeof(double) * (size_t)(d + 1));
    for (int i = first; i < end; i += step) {
        const double w = r->w[i];
        const int k = (int)r->t[i];
        double *square = s->square;
        for (int j = 0; j < d; j++)
            s->sum[j] += w * (z[j] = r->x[(size_t)i * (size_t)d + (size_t)j] - s->center[j]);
        for (int j = 0; j < d; j++)
            for (int l = 0; l <= j; l++)
                *square++ += w * z[j] * z[l];
        if (r->classes)
            s->class_weight[k] += w;
        else
            s->target_weight += w * r->t[i], s->target_square += w * r->t[i] * r->t[i];
        for (int j = 0; j < d; j++)
            *(r->classes ? &s->class_sum[(size_t)k * (size_t)d + (size_t)j] : &s->target_sum[j]) +=
                w * z[j] * (r->classes ? 1 : r->t[i]);
    }
    free(z);
}

/* W (rows x d), then b (rows), of all rows. */
#define ROWS_SOLVE(name, real, root)                                                                         \
    static __attribute__((unused)) void name(const struct rows *r, double C, svs_scale scale, real *out) {   \
        const int d = r->d, n = d + 1, rows = r->classes > 2 ? r->classes : 1;                               \
        real *mean = calloc((size_t)n, sizeof *mean), *inverse = calloc((size_t)n, sizeof *inverse),         \
             *g = calloc((size_t)n * (size_t)n, sizeof *g),                                                  \
             *right = calloc((size_t)n * (size_t)rows, sizeof *g), *z = calloc((size_t)n, sizeof *z),        \
             weight = 0;                                                                                     \
        for (int i = 0; i < r->n; i++) {                                                                     \
            weight += r->w[i];                                                                               \
            for (int j = 0; j < d; j++)                                                                      \
                mean[j] += (real)r->w[i] * r->x[(size_t)i * (size_t)d + (size_t)j];                          \
        }                                                                                                    \
        for (int j = 0; j < d; j++)                                                                          \
            mean[j] /= weight;                                                                               \
        for (int i = 0; i < r->n; i++)                                                                       \
            for (int j = 0; j < d; j++) {                                                                    \
                const real e = r->x[(size_t)i * (size_t)d + (size_t)j] - mean[j];                            \
                inverse[j] += r->w[i] * e * e;                                                               \
            }                                                                                                \
        for (int j = 0; j < d; j++) {                                                                        \
            inverse[j] = scale == SVS_SCALE_NONE ? 1 : 1 / root(inverse[j] / weight);                        \
            mean[j] = scale == SVS_SCALE_NONE ? 0 : mean[j];                                                 \
        }                                                                                                    \
        z[0] = 1;                                                                                            \
        for (int i = 0; i < r->n; i++) {                                                                     \
            for (int j = 0; j < d; j++)                                                                      \
                z[j + 1] = (r->x[(size_t)i * (size_t)d + (size_t)j] - mean[j]) * inverse[j];                 \
            for (int j = 0; j < n; j++)                                                                      \
                for (int l = 0; l <= j; l++)                                                                 \
                    g[(size_t)j * (size_t)n + (size_t)l] += (real)r->w[i] * z[j] * z[l];                     \
            for (int k = 0; k < rows; k++) {                                                                 \
                const real t = !r->classes ? (real)r->t[i] : (int)r->t[i] == (rows > 1 ? k : 1) ? 1 : -1;    \
                for (int j = 0; j < n; j++)                                                                  \
                    right[(size_t)k * (size_t)n + (size_t)j] += r->w[i] * t * z[j];                          \
            }                                                                                                \
        }                                                                                                    \
        for (int j = 0; j < n; j++)                                                                          \
            g[(size_t)j * (size_t)n + (size_t)j] += 1 / (2 * (real)C);                                       \
        name##_factor(g, n);                                                                                 \
        for (int k = 0; k < rows; k++) {                                                                     \
            real *v = right + (size_t)k * (size_t)n, b;                                                      \
            name##_apply(g, n, v);                                                                           \
            b = v[0];                                                                                        \
            for (int j = 0; j < d; j++) {                                                                    \
                out[(size_t)k * (size_t)d + (size_t)j] = v[j + 1] * inverse[j];                              \
                b -= v[j + 1] * inverse[j] * mean[j];                                                        \
            }                                                                                                \
            out[(size_t)rows * (size_t)d + (size_t)k] = b;                                                   \
        }                                                                                                    \
        free(mean), free(inverse), free(g), free(right), free(z);                                            \
    }

static void rows_truth_factor(long double *g, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            long double s = g[(size_t)i * (size_t)n + (size_t)j];
            for (int k = 0; k < j; k++)
                s -= g[(size_t)i * (size_t)n + (size_t)k] * g[(size_t)j * (size_t)n + (size_t)k];
            g[(size_t)i * (size_t)n + (size_t)j] =
                i == j ? sqrtl(s) : s / g[(size_t)j * (size_t)n + (size_t)j];
        }
}

static void rows_truth_apply(const long double *g, int n, long double *x) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= g[(size_t)i * (size_t)n + (size_t)k] * x[k];
        x[i] /= g[(size_t)i * (size_t)n + (size_t)i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            x[i] -= g[(size_t)k * (size_t)n + (size_t)i] * x[k];
        x[i] /= g[(size_t)i * (size_t)n + (size_t)i];
    }
}

static void rows_central_factor(double *g, int n) {
    assert_true(svi_factor_spd(g, n));
}

static void rows_central_apply(const double *g, int n, double *x) {
    svi_solve_factor(g, n, x);
}

ROWS_SOLVE(rows_truth, long double, sqrtl)
ROWS_SOLVE(rows_central, double, sqrt)

/* |a - b| / |b| in the unit of the scores: weights count by the deviation of their feature. */
static __attribute__((unused)) double rows_error(const struct rows *r, const double *a,
                                                 const long double *b) {
    const int d = r->d, rows = r->classes > 2 ? r->classes : 1;
    long double off = 0, size = 0;
    for (int j = 0; j < d; j++) {
        long double mean = 0, square = 0;
        for (int i = 0; i < r->n; i++) {
            const long double x = r->x[(size_t)i * (size_t)d + (size_t)j];
            mean += x / r->n;
            square += x * x / r->n;
        }
        for (int k = 0; k < rows; k++) {
            const long double e = a[k * d + j] - b[k * d + j];
            off += e * e * (square - mean * mean);
            size += b[k * d + j] * b[k * d + j] * (square - mean * mean);
        }
    }
    for (int k = 0; k < rows; k++) {
        off += (a[rows * d + k] - b[rows * d + k]) * (a[rows * d + k] - b[rows * d + k]);
        size += b[rows * d + k] * b[rows * d + k];
    }
    return (double)sqrtl(off / size);
}

#endif
