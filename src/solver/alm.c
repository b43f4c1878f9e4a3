#include "base/alloc.h"
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "linalg/rows.h"
#include "solver/newton.h"
#include "solver/loss.h"

#define BLOCK 128

struct alm {
    struct svi_work *w;
    double mu;
    double *s, *rhs, *gram, *factor, *best;
    double objective, best_objective;
};

static double ridge(const struct svi_work *w, int j) {
    return w->problem->bias == SVS_BIAS_FREE && j == w->d ? 0 : 1;
}

static bool factorize(struct alm *a, double over_mu) {
    int n = a->w->dim;
    memcpy(a->factor, a->gram, (size_t)n * n * sizeof(double));
    for (int j = 0; j < n; j++) {
        double *g = a->factor + (size_t)j * (n + 1);
        *g += ridge(a->w, j) * over_mu + 1e-15 * *g;
    }
    return svi_factor_spd(a->factor, n);
}

/* one pass */
static void pass(struct alm *a, bool first) {
    struct svi_work *w = a->w;
    const svs_problem *p = w->problem;
    double f[BLOCK], z[BLOCK], loss = 0, norm = 0, mu = a->mu;
    memset(a->rhs, 0, svi_padded(w->dim) * sizeof(double));
    for (int64_t i = 0; i < p->rows.n; i += BLOCK) {
        int64_t count = p->rows.n - i < BLOCK ? p->rows.n - i : BLOCK;
        svi_rows_multiply(w->kernels, &p->rows, i, count, w->v, w->bias_value, f);
        for (int64_t k = 0; k < count; k++) {
            double y = p->y[i + k], m = 1 - y * f[k], alpha = w->alpha[i + k];
            loss += w->cost[i + k] * svi_loss(p, y, f[k]);
            if (!first)
                alpha += mu * (m - a->s[i + k]);
            w->alpha[i + k] = alpha;
            double s = svi_prox(p->p, m + alpha / mu, w->cost[i + k] / mu);
            a->s[i + k] = s;
            z[k] = y * (1 - s + alpha / mu);
        }
        svi_rows_add(w->kernels, &p->rows, i, count, z, a->rhs, w->bias_value);
    }
    for (int j = 0; j < w->dim; j++)
        norm += ridge(w, j) * w->v[j] * w->v[j];
    a->objective = loss + norm / 2;
    if (a->objective < a->best_objective) {
        a->best_objective = a->objective;
        memcpy(a->best, w->v, svi_padded(w->dim) * sizeof(double));
    }
}

svs_code svi_solve_alm(struct svi_work *w, svs_error *err) {
    size_t n = w->problem->rows.n;
    int dim = w->dim;
    struct alm a = {.w = w, .best_objective = INFINITY};
    a.s = svi_alloc_array(n, 8);
    a.rhs = svi_vector(dim);
    a.best = svi_vector(dim);
    a.gram = svi_alloc_array((size_t)dim * dim, 8);
    a.factor = svi_alloc_array((size_t)dim * dim, 8);
    int its = getenv("ITS") ? atoi(getenv("ITS")) : 10;
    double mu0 = getenv("MU") ? atof(getenv("MU")) : (w->problem->p == 1 ? .3 : 1);
    double mun = getenv("MUN") ? atof(getenv("MUN")) : 10;
    double C = w->problem->C;
    svi_rows_gram(w->kernels, &w->problem->rows, NULL, n, NULL, w->bias_value, a.gram, err);
    if (getenv("TRACE2"))
        fprintf(stderr, "gram %.2f ms\n", svi_work_seconds(w) * 1e3);
    svi_rows_add(w->kernels, &w->problem->rows, 0, n, w->problem->y, w->v, w->bias_value);
    if (!factorize(&a, 1 / (2 * C)))
        return svi_fail(err, SVS_NUMERIC, "gram");
    svi_solve_factor(a.factor, dim, w->v);
    if (getenv("TRACE2"))
        fprintf(stderr, "ls %.2f ms\n", svi_work_seconds(w) * 1e3);
    svs_start st = {.w = w->v};
    (void)st;
    for (size_t i = 0; i < n; i++) {
        double m = 1 - w->problem->y[i] * svi_row_dot(w->kernels, &w->problem->rows, i, w->v, w->bias_value),
               p = w->problem->p;
        w->alpha[i] = m > 0 ? (p == 1   ? w->cost[i]
                               : p == 2 ? 2 * w->cost[i] * m
                                        : w->cost[i] * p * pow(m, p - 1))
                            : 0;
    }
    a.mu = mu0 * C;
    factorize(&a, 1 / a.mu);
    for (int k = 0; k < its; k++) {
        pass(&a, k == 0);
        w->iterations++;
        if (svi_work_stop(w, a.objective, NAN, 10000))
            break;
        memcpy(w->v, a.rhs, svi_padded(dim) * sizeof(double));
        svi_solve_factor(a.factor, dim, w->v);
    }
    if (its)
        memcpy(w->v, a.best, svi_padded(dim) * sizeof(double));
    for (size_t i = 0; i < n; i++)
        w->alpha[i] = fmin(fmax(w->alpha[i], 0), w->problem->p == 1 ? w->cost[i] : 1e300);
    (void)mun;
    struct svi_newton_end end;
    struct svi_newton_plan plan = {
        .sample = svi_sample_every(w, 1), .tol = w->o->tol, .share = -1, .sharpness = 4};
    svs_code code = svi_newton(w, &plan, &end, err);
    svi_free(a.s);
    svi_free(a.rhs);
    svi_free(a.best);
    svi_free(a.gram);
    svi_free(a.factor);
    return code;
}
