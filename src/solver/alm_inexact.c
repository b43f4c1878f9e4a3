/* Algorithm 2 of Nie et al. 2014: the w-step is one gradient step of optimal length (Eqs. 16-18), with g =
 * X'(f - z) + R v / mu and length g'g / (|X g|^2 + g'R g / mu). Two products with X and none that needs D x D
 * memory. It wants columns of like scale. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/rows.h"
#include "solver/alm.h"

#define BLOCK       128
#define DEFAULT_MAX 5000
#define FRESH       50 /* iterations after which the scores are computed anew from v */

struct inexact {
    struct svi_alm a;
    double *g, *xg, *difference;
};

static void scores(struct inexact *x) {
    struct svi_work *w = x->a.w;
    svi_rows_multiply(w->kernels, &w->problem->rows, 0, w->problem->rows.n, w->v, w->bias_value, x->a.f);
}

/* e-step and gradient; returns the loss. */
static double gradient(struct inexact *x) {
    struct svi_work *w = x->a.w;
    const svs_rows *rows = &w->problem->rows;
    const int penalised = w->problem->bias == SVS_BIAS_FREE ? w->d : w->dim;
    double loss = 0;
    memset(x->g, 0, (size_t)svi_padded(w->dim) * sizeof *x->g);
    for (int j = 0; j < penalised; j++)
        x->g[j] = w->v[j] / x->a.mu;
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        int64_t count = rows->n - i < BLOCK ? rows->n - i : BLOCK;
        loss += svi_alm_step(&x->a, i, count);
        for (int64_t k = i; k < i + count; k++)
            x->difference[k - i] = x->a.f[k] - x->a.z[k];
        svi_rows_add(w->kernels, rows, i, count, x->difference, x->g, w->bias_value);
    }
    return loss;
}

static void descend(struct inexact *x) {
    struct svi_work *w = x->a.w;
    const int64_t n = w->problem->rows.n;
    const int penalised = w->problem->bias == SVS_BIAS_FREE ? w->d : w->dim;
    double square = 0, curvature = 0;
    svi_rows_multiply(w->kernels, &w->problem->rows, 0, n, x->g, w->bias_value, x->xg);
    for (int j = 0; j < w->dim; j++) {
        square += x->g[j] * x->g[j];
        curvature += j < penalised ? x->g[j] * x->g[j] / x->a.mu : 0;
    }
    for (int64_t i = 0; i < n; i++)
        curvature += x->xg[i] * x->xg[i];
    if (!(curvature > 0))
        return;
    const double s = square / curvature;
    for (int j = 0; j < w->dim; j++)
        w->v[j] -= s * x->g[j];
    for (int64_t i = 0; i < n; i++)
        x->a.f[i] -= s * x->xg[i];
}

static void iterate(struct inexact *x) {
    scores(x);
    while (!svi_alm_stop(&x->a, gradient(x), DEFAULT_MAX)) {
        descend(x);
        if (x->a.w->iterations % FRESH == 0)
            scores(x);
    }
    svi_alm_finish(&x->a);
    if (x->a.w->stop == SVS_STOP_ITERATIONS)
        snprintf(x->a.w->note, sizeof x->a.w->note,
                 "gradient steps need columns of like scale: use --scale, or the solver alm");
}

svs_code svi_solve_alm_inexact(struct svi_work *w, svs_error *err) {
    struct inexact x = {0};
    svs_code code = svi_alm_reserve(&x.a, w, err);
    x.g = svi_vector(w->dim);
    x.xg = svi_alloc_array((size_t)w->problem->rows.n, sizeof *x.xg);
    x.difference = svi_alloc_array(BLOCK, sizeof *x.difference);
    if (code == SVS_OK && !(x.g && x.xg && x.difference))
        code = svi_fail_memory(err, "the gradient step");
    if (code == SVS_OK)
        iterate(&x);
    svi_free(x.g);
    svi_free(x.xg);
    svi_free(x.difference);
    svi_alm_release(&x.a);
    return code;
}
