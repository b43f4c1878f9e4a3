/* Newton steps on the squared hinge, at one pass over the rows a step.
 *
 * A pass (svi_certify_primal) makes scores, multipliers, u = sum y a x, objective and gap at once,
 * block by block. It is the frame's own certificate, so nothing is computed again when it is the
 * last one. The step is the whole Newton step. A step that does not lower the objective is
 * shortened. If a shortened step does not lower it either, or after STEPS steps, this gives up.
 * From far away a line search over the kept scores is better (newton.c).
 *
 * After a window has slid, the multipliers a at the start are known. Then u is their sum, the first
 * gradient is v - u, and the objective is 1/2 |v|^2 + sum a_i^2 / (4 cost_i). That holds because
 * loss_i = cost_i m_i^2 and a_i = 2 cost_i m_i. So two steps cost two passes, and the second pass
 * is the proof. */
#include "solver/newton_primal.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

#include "solver/certificate.h"

#define BLOCK       256
#define STEPS       6
#define SHORTER     1    /* times that a step is shortened */
#define ARMIJO      1e-4 /* of the slope: what a step must lower the objective by */
#define JITTER      1e-14
#define DEFAULT_MAX 2000

struct primal {
    struct svi_work *w;
    struct svi_pool pool;
    struct svi_certificate at;   /* at v */
    double *u, *g, *step, *next; /* padded: sum y a x at v; gradient; direction; v + t step */
    double *factor;              /* dim x dim */
    double *weight;              /* n: of the Hessian */
    int64_t begun;               /* w->iterations */
};

bool svi_newton_primal_takes(const struct svi_work *w) {
    const svs_problem *p = w->problem;
    return w->curvature && p->loss == SVS_HINGE && p->p == 2 && p->penalty == SVS_L2 &&
           p->bias != SVS_BIAS_FREE && w->dim <= SVI_CURVATURE_DIM;
}

static svs_code primal_reserve(struct primal *s, svs_error *err) {
    const size_t n = (size_t)s->w->n, dim = (size_t)s->w->dim, padded = (size_t)svi_padded(s->w->dim);
    SVI_POOL_DOUBLES(&s->pool, padded, &s->u, &s->g, &s->step, &s->next);
    s->weight = svi_pool_doubles(&s->pool, n);
    s->factor = svi_pool_doubles(&s->pool, dim * dim);
    return svi_pool_code(&s->pool, "the Newton steps", err);
}

/* u and the objective at v from the multipliers that belong to it, without scores: a_i = 2 cost_i m_i, so
 * cost_i m_i^2 = a_i^2 / (4 cost_i). */
static void primal_recall(struct primal *s) {
    const struct svi_work *w = s->w;
    double sum = 0, c[BLOCK];
    svi_work_clear(w, s->u);
    for (int64_t i = 0; i < w->n; i += BLOCK) {
        const int64_t count = svi_work_block(w, i, BLOCK);
        double losses = 0;
        for (int64_t k = 0; k < count; k++) {
            const double a = w->alpha[i + k];
            c[k] = w->problem->y[i + k] * a;
            losses += a * a / (4 * w->cost[i + k]);
        }
        svi_work_add(w, i, count, c, s->u);
        sum += losses;
    }
    s->at.objective = 0.5 * svi_dot(w->v, w->v, w->dim) + sum;
}

/* step = -(I + 2 sum cost x x')^-1 g over the rows that have a multiplier (margin below 1): the generalised
 * Hessian of the squared hinge. False in *solved: it has no factor. */
static svs_code primal_direction(struct primal *s, bool *solved, svs_error *err) {
    const struct svi_work *w = s->w;
    const int dim = w->dim;
    for (int64_t i = 0; i < w->n; i++)
        s->weight[i] = (w->alpha[i] > 0) * w->cost[i];
    SVI_TRY(svi_curvature_update(w->curvature, &w->problem->rows, w->bias_value, s->weight, err));
    for (int j = 0; j < dim; j++)
        s->g[j] = w->v[j] - s->u[j];
    const struct svi_diagonal add = {1, dim, 0, JITTER};
    *solved = svi_curvature_step(w->curvature, 2, &add, dim, s->g, s->factor, s->step);
    return SVS_OK;
}

/* v moves along the step, by less where that does not lower the objective. *done: this was the last step. */
static bool primal_move(struct primal *s, bool *done) {
    struct svi_work *w = s->w;
    const double before = s->at.objective, slope = svi_dot(s->g, s->step, w->dim);
    double t = 1;
    for (int i = 0; i <= SHORTER && slope < 0; i++) {
        for (int j = 0; j < w->dim; j++)
            s->next[j] = w->v[j] + t * s->step[j];
        svi_certify_primal(w, s->next, w->alpha, s->u, &s->at);
        w->iterations++;
        const bool stop = svi_work_stop(w, s->at.objective, s->at.gap, DEFAULT_MAX);
        /* Armijo's condition. A point that is proven is taken even so: nothing is left to gain. */
        const bool lower = s->at.objective <= before + ARMIJO * t * slope;
        w->proven = svi_work_reached(w, s->at.objective, s->at.gap);
        *done = w->proven || stop;
        if (lower || w->proven)
            svi_work_copy(w, w->v, s->next);
        if (lower || *done)
            return true;
        /* The minimum of the parabola through both values and the first slope, within a tenth and a half. */
        const double rise = s->at.objective - before - t * slope;
        t *= fmin(fmax(-0.5 * t * slope / rise, 0.1), 0.5);
    }
    return false;
}

static svs_code primal_steps(struct primal *s, svs_error *err) {
    struct svi_work *w = s->w;
    bool done = false, solved = true, moved = true;
    svs_code code = SVS_OK;
    w->stop = SVS_STOP_STALLED;
    for (int i = 0; i < STEPS && !done && moved && code == SVS_OK; i++) {
        code = primal_direction(s, &solved, err);
        moved = code == SVS_OK && solved && primal_move(s, &done);
    }
    if (w->proven)
        w->stop = SVS_STOP_TOL;
    return code;
}

svs_code svi_newton_primal(struct svi_work *w, bool *reached, svs_error *err) {
    struct primal s = {.w = w};
    svs_code code = primal_reserve(&s, err);
    w->proven = false;
    if (code == SVS_OK) {
        primal_recall(&s);
        code = primal_steps(&s, err);
    }
    w->objective = s.at.objective;
    w->dual = s.at.dual;
    *reached = w->proven;
    svi_pool_free(&s.pool);
    return code;
}
