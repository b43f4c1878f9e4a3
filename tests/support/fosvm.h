/* fosvm.h: rows of known shapes, models of them, and all that a model says made again in long double. */
#ifndef TEST_SUPPORT_FOSVM_H
#define TEST_SUPPORT_FOSVM_H

#include "support/problem.h"

#include "svmstream/novelty.h"

#define MOST 1200

/* Rows of three clusters, of heavy tails, or on a circle, deterministic. */
enum shape { CLUSTERS, TAILS, CIRCLE, SHAPES };

static inline double *cloud(enum shape shape, int n, int d, uint64_t seed) {
    double *x = calloc((size_t)(n * d), sizeof *x);
    uint64_t state = seed * 2654435761u + 88172645463325252ull;
    for (int i = 0; i < n; i++) {
        const int cluster = (int)(test_random(&state) % 3);
        const double turn = 6.283185307179586 * test_uniform(&state);
        for (int j = 0; j < d; j++) {
            const double g = test_normal(&state);
            if (shape == CLUSTERS)
                x[i * d + j] = (j % 3 == cluster ? 4 : 0) + 0.5 * g;
            else if (shape == TAILS)
                x[i * d + j] = g / sqrt(test_uniform(&state));
            else
                x[i * d + j] = (j % 2 ? sin(turn) : cos(turn)) + 0.05 * g;
        }
    }
    return x;
}

static inline svs_rows view(const double *x, int n, int d) {
    return (svs_rows){.n = n, .d = d, .dense = x, .stride = d};
}

/* Gamma given, the rows as they are, all of them. */
static inline svs_novelty_options plain(svs_novelty_kernel kernel, double gamma, double theta) {
    svs_novelty_options o;
    svs_novelty_options_default(&o);
    o.kernel = kernel;
    o.gamma_rule = SVS_GAMMA_GIVEN;
    o.gamma = gamma;
    o.theta = theta;
    o.trim = 0;
    o.scale = false;
    o.max = 0;
    return o;
}

static inline svs_novelty_model *train(const svs_rows *r, const svs_novelty_options *o) {
    svs_novelty_model *m = NULL;
    svs_error err = {0};
    if (svs_novelty_train(r, NULL, o, &m, &err) != SVS_OK)
        fail_msg("%s", err.text);
    return m;
}

static inline void score(const svs_novelty_model *m, const svs_rows *r, double *novelty, double *surprise) {
    assert_int_equal(svs_novelty_score(m, r, 0, r->n, novelty, surprise, NULL), SVS_OK);
}

/* ---- everything again, by plain loops in long double */

static inline void place(const svs_novelty_model *m, const double *x, long double *u) {
    for (int j = 0; j < m->d; j++) {
        u[j] = x[j];
        if (!m->center)
            continue;
        const long double v = ((long double)x[j] - m->center[j]) * m->inverse[j];
        u[j] = 3 * asinhl(v / 3) + (v > 8 ? v - 8 : v < -8 ? v + 8 : 0);
    }
}

static inline long double kernel(const svs_novelty_model *m, double gamma, const long double *a,
                                 const double *b) {
    long double l1 = 0, l2 = 0, ab = 0, aa = 0, bb = 0;
    for (int j = 0; j < m->d; j++) {
        l1 += fabsl(a[j] - b[j]);
        l2 += (a[j] - b[j]) * (a[j] - b[j]);
        ab += a[j] * b[j];
        aa += a[j] * a[j];
        bb += (long double)b[j] * b[j];
    }
    if (m->kernel == SVS_NOVELTY_POLYNOMIAL)
        return powl((1 + gamma * ab) / sqrtl((1 + gamma * aa) * (1 + gamma * bb)), m->degree);
    return expl(-gamma * (m->kernel == SVS_NOVELTY_RBF ? l2 : l1));
}

static inline long double membership(const svs_novelty_model *m, int g, const double *x) {
    const svs_novelty_member *e = &m->member[g];
    long double u[64], sum = 0;
    place(m, x, u);
    for (int i = 0; i < e->count; i++)
        sum += e->z[i] * kernel(m, e->gamma, u, e->support + (size_t)i * (size_t)m->stride);
    return sum;
}

static inline long double mean_surprise(const svs_novelty_model *m, const double *x) {
    long double sum = 0;
    for (int g = 0; g < m->members; g++)
        sum -= m->member[g].share * logl(membership(m, g, x));
    return sum;
}

/* The optimality conditions over the support, which with z > 0 and all rows inside are the whole proof. */
static inline void assert_certified(const svs_novelty_model *m, double tolerance) {
    for (int g = 0; g < m->members; g++) {
        const svs_novelty_member *e = &m->member[g];
        long double sum = 0, worst = 0;
        for (int i = 0; i < e->count; i++) {
            const double *s = e->support + (size_t)i * (size_t)m->stride;
            long double at[64], u = 0;
            for (int j = 0; j < m->stride; j++)
                assert_true(j < m->d || s[j] == 0);
            for (int j = 0; j < m->d; j++)
                at[j] = s[j];
            for (int k = 0; k < e->count; k++)
                u += e->z[k] * kernel(m, e->gamma, at, e->support + (size_t)k * (size_t)m->stride);
            assert_true(e->z[i] > 0);
            worst = fmaxl(worst, fabsl(u - 1));
            sum += e->z[i];
        }
        assert_true(worst <= tolerance && e->violation <= tolerance);
        assert_true(fabsl(e->rho * sum - 1) < 1e-12L);
    }
}

#endif
