/* Algorithm 1 of Nie et al. 2014: exact w-step, one pass over the rows an iteration; it starts from the
 * least-squares solution with the multipliers of its hinge residuals. Some iterations reach 1e-2; the rest is
 * done by Newton steps on the same Lagrangian (newton.h), unless the options forbid it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "linalg/rows.h"
#include "solver/alm.h"
#include "solver/loss.h"
#include "solver/newton.h"

#define BLOCK         128
#define BEFORE_NEWTON 8
#define DEFAULT_MAX   3000

/* One iteration: scores, e-step, w-step, in one pass over the rows where X'z is gathered on the way. True:
 * stop. */
static bool iterate(struct svi_alm *a, struct svi_wstep *s, int64_t most) {
    const struct svi_work *w = a->w;
    const svs_rows *rows = &w->problem->rows;
    double loss = 0;
    if (svi_wstep_gathers(s))
        memset(s->rhs, 0, (size_t)svi_padded(w->dim) * sizeof *s->rhs);
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        int64_t count = rows->n - i < BLOCK ? rows->n - i : BLOCK;
        svi_rows_multiply(w->kernels, rows, i, count, w->v, w->bias_value, a->f + i);
        loss += svi_alm_step(a, i, count);
        if (svi_wstep_gathers(s))
            svi_rows_add(w->kernels, rows, i, count, a->z + i, s->rhs, w->bias_value);
    }
    if (svi_alm_stop(a, loss, most))
        return true;
    svi_wstep_solve(s, 1 / a->mu, a->z, a->f);
    return false;
}

/* v from the squared loss, alpha from its hinge residuals. */
static svs_code least_squares(struct svi_alm *a, struct svi_wstep *s, svs_error *err) {
    struct svi_work *w = a->w;
    const svs_problem *p = w->problem;
    const double ridge = 1 / (2 * p->C);
    svs_code code = svi_wstep_factor(s, ridge, err);
    if (code != SVS_OK)
        return code;
    if (svi_wstep_gathers(s)) {
        memset(s->rhs, 0, (size_t)svi_padded(w->dim) * sizeof *s->rhs);
        svi_rows_add(w->kernels, &p->rows, 0, p->rows.n, p->y, s->rhs, w->bias_value);
    }
    svi_wstep_solve(s, ridge, p->y, a->f); /* f = 0 = X v */
    svi_rows_multiply(w->kernels, &p->rows, 0, p->rows.n, w->v, w->bias_value, a->f);
    for (int64_t i = 0; i < p->rows.n; i++)
        w->alpha[i] = svi_dual_of(p->p, w->cost[i], 1 - p->y[i] * a->f[i]);
    return SVS_OK;
}

static svs_code passes(struct svi_work *w, struct svi_alm *a, struct svi_wstep *s, int64_t most,
                       svs_error *err) {
    svs_code code = svi_alm_reserve(a, w, err);
    if (code == SVS_OK)
        code = svi_wstep_reserve(s, w, err);
    if (code == SVS_OK && !w->warm)
        code = least_squares(a, s, err);
    if (code == SVS_OK)
        code = svi_wstep_factor(s, 1 / a->mu, err);
    if (code == SVS_OK) {
        while (!iterate(a, s, most))
            ;
        svi_alm_finish(a);
    }
    return code;
}

svs_code svi_solve_alm(struct svi_work *w, svs_error *err) {
    struct svi_alm a = {0};
    struct svi_wstep s = {0};
    struct svi_newton_end end;
    const bool limited = w->o->max_iterations > 0 && w->o->max_iterations <= BEFORE_NEWTON;
    svs_code code = passes(w, &a, &s, w->o->finish && !limited ? BEFORE_NEWTON : DEFAULT_MAX, err);
    svi_wstep_release(&s);
    svi_alm_release(&a);
    if (code != SVS_OK || !w->o->finish || limited || w->stop != SVS_STOP_ITERATIONS)
        return code;
    const int64_t passes_made = w->iterations;
    const struct svi_newton_plan plan = {
        .sample = svi_sample_every(w, 1), .tol = w->o->tol, .share = -1, .sharpness = 4};
    code = svi_newton(w, &plan, &end, err);
    snprintf(w->note, sizeof w->note, "%lld iterations, then %lld Newton steps", (long long)passes_made,
             (long long)(w->iterations - passes_made));
    return code;
}
