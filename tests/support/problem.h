/* problem.h: small random two-class problems for tests of solvers, and the objective by plain long double
 * loops. */
#ifndef TEST_SUPPORT_PROBLEM_H
#define TEST_SUPPORT_PROBLEM_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "svmstream/svmstream.h"

struct test_data {
    int64_t n;
    int d;
    double *x, *y, *cost; /* n x d row-major; n; n */
    int64_t *start;       /* the same rows, sparse */
    int32_t *column;
    double *value;
};

static inline uint64_t test_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545F4914F6CDD1Dull;
}

static inline double test_uniform(uint64_t *state) { /* (0, 1) */
    return ((double)(test_random(state) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double test_normal(uint64_t *state) {
    return sqrt(-2 * log(test_uniform(state))) * cos(6.283185307179586 * test_uniform(state));
}

/* Rows with a share of `density` non-zeros; labels by a random direction, a share of `flips` of them turned
 * round. Both classes occur. */
static inline struct test_data test_data_make(int64_t n, int d, double density, double flips, uint64_t seed) {
    struct test_data t = {n,
                          d,
                          calloc((size_t)(n * d), 8),
                          calloc((size_t)n, 8),
                          calloc((size_t)n, 8),
                          calloc((size_t)n + 1, 8),
                          calloc((size_t)(n * d), 4),
                          calloc((size_t)(n * d), 8)};
    double *direction = calloc((size_t)d, 8);
    uint64_t state = seed * 2654435761u + 88172645463325252ull;
    for (int j = 0; j < d; j++)
        direction[j] = test_normal(&state);
    for (int64_t i = 0; i < n; i++) {
        double f = 0.3 * test_normal(&state);
        t.start[i + 1] = t.start[i];
        for (int j = 0; j < d; j++) {
            if (test_uniform(&state) >= density)
                continue;
            double v = t.x[i * d + j] = test_normal(&state);
            f += direction[j] * v;
            t.column[t.start[i + 1]] = j;
            t.value[t.start[i + 1]++] = v;
        }
        t.y[i] = (f > 0) != (test_uniform(&state) < flips) ? 1 : -1;
        t.cost[i] = 0.25 + 2 * test_uniform(&state);
    }
    t.y[0] = 1;
    t.y[n - 1] = -1;
    free(direction);
    return t;
}

static inline void test_data_free(struct test_data *t) {
    void *const all[] = {t->x, t->y, t->cost, t->start, t->column, t->value};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static inline svs_rows test_rows(const struct test_data *t, bool sparse) {
    if (sparse)
        return (svs_rows){.n = t->n, .d = t->d, .start = t->start, .column = t->column, .value = t->value};
    return (svs_rows){.n = t->n, .d = t->d, .dense = t->x, .stride = t->d};
}

/* Hinge, L2, C = 1, bias 1 appended. */
static inline svs_problem test_problem(const struct test_data *t, double p, bool sparse) {
    return (svs_problem){
        .rows = test_rows(t, sparse), .y = t->y, .C = 1, .loss = SVS_HINGE, .p = p, .bias_value = 1};
}

static inline long double test_objective(const svs_problem *p, const double *w, double b) {
    double *x = calloc((size_t)p->rows.d, 8);
    double v = p->bias == SVS_BIAS_APPENDED ? b / p->bias_value : 0;
    bool l1 = p->penalty == SVS_L1;
    long double sum = l1 ? fabs(v) : 0.5L * v * v;
    for (int j = 0; j < p->rows.d; j++)
        sum += l1 ? fabs(w[j]) : 0.5L * w[j] * w[j];
    for (int64_t i = 0; i < p->rows.n; i++) {
        long double f = b, c = p->C * (p->cost ? p->cost[i] : 1);
        svs_rows_copy(&p->rows, i, x);
        for (int j = 0; j < p->rows.d; j++)
            f += (long double)w[j] * x[j];
        long double s = 1 - p->y[i] * f, e = p->y[i] - f;
        sum += p->loss == SVS_SQUARED ? c * e * e : s > 0 ? c * powl(s, p->p) : 0;
    }
    free(x);
    return sum;
}

static inline svs_solution test_solve(const svs_problem *p, svs_solver solver, double tol,
                                      const svs_start *start) {
    svs_solve_options o;
    svs_solution s;
    svs_error e = {0};
    svs_solve_options_default(&o);
    o.solver = solver;
    o.tol = tol;
    if (svs_solve(p, &o, start, &s, &e) != SVS_OK)
        fail_msg("%s: %s", svs_solver_name(solver), e.text);
    return s;
}

#endif
