/* Algorithm 2 of Nie et al. 2014: the w-step is one gradient step of optimal length (Eqs. 16-18), with g =
 * X'(f - z) + R v / mu and length g'g / (|X g|^2 + g'R g / mu). Two products with X and none that needs D x D
 * memory. It wants columns of like scale. */
#include <stdio.h>
#include <string.h>

#include "solver/papers/alm.h"

#define BLOCK       128
#define DEFAULT_MAX 5000
#define FRESH       50 /* iterations after which the scores are computed again from v */

struct alm_inexact {
    struct svi_alm a;
    double *g, *xg;           /* padded; n */
    double difference[BLOCK]; /* f - z of a block */
};

/* e-step and gradient; returns the loss. */
static double alm_inexact_gradient(struct alm_inexact *x) {
    struct svi_work *w = x->a.w;
    double loss = 0;
    svi_work_clear(w, x->g);
    for (int j = 0; j < w->penalised; j++)
        x->g[j] = w->v[j] / x->a.mu;
    for (int64_t i = 0; i < w->n; i += BLOCK) {
        int64_t count = svi_work_block(w, i, BLOCK);
        loss += svi_alm_step(&x->a, i, count);
        for (int64_t k = i; k < i + count; k++)
            x->difference[k - i] = x->a.f[k] - x->a.z[k];
        svi_work_add(w, i, count, x->difference, x->g);
    }
    return loss;
}

static void alm_inexact_descend(struct alm_inexact *x) {
    struct svi_work *w = x->a.w;
    double square = 0, curvature = 0;
    svi_work_scores(w, 0, w->n, x->g, x->xg);
    for (int j = 0; j < w->dim; j++) {
        square += x->g[j] * x->g[j];
        curvature += j < w->penalised ? x->g[j] * x->g[j] / x->a.mu : 0;
    }
    for (int64_t i = 0; i < w->n; i++)
        curvature += x->xg[i] * x->xg[i];
    if (!(curvature > 0))
        return;
    const double s = square / curvature;
    for (int j = 0; j < w->dim; j++)
        w->v[j] -= s * x->g[j];
    for (int64_t i = 0; i < w->n; i++)
        x->a.f[i] -= s * x->xg[i];
}

static svs_code alm_inexact_solve(struct svi_work *w, svs_error *err) {
    struct alm_inexact x = {0};
    x.g = svi_pool_vector(&x.a.pool, w->dim);
    x.xg = svi_pool_doubles(&x.a.pool, (size_t)w->n);
    svs_code code = svi_alm_reserve(&x.a, w, err);
    if (code == SVS_OK) {
        svi_work_scores(w, 0, w->n, w->v, x.a.f);
        while (!svi_alm_stop(&x.a, alm_inexact_gradient(&x), DEFAULT_MAX)) {
            alm_inexact_descend(&x);
            if (w->iterations % FRESH == 0)
                svi_work_scores(w, 0, w->n, w->v, x.a.f);
        }
        svi_alm_finish(&x.a);
        if (w->stop == SVS_STOP_ITERATIONS)
            snprintf(w->note, sizeof w->note,
                     "gradient steps need columns of like scale: use --scale, or the solver alm");
    }
    svi_pool_free(&x.a.pool);
    return code;
}

const struct svi_method svi_method_ALM_INEXACT = {
    .solve = alm_inexact_solve,
    .can = SVI_LINEAR | SVI_ANY_HINGE | SVI_ANY_BIAS,
    .does = "the hinge loss with p from 1 to 2, linear, any bias",
};
