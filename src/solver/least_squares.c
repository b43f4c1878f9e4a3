/* The learner's problem in batch (Le et al. 2015). It is over all rows (alsvm) or over those that
 * the model gets wrong (falsvm): (I + 2 sum c_i x_i x_i') v = 2 sum c_i y_i x_i, c_i = C cost_i.
 * While D is small the matrix is gathered in one pass and factored. The factor is the
 * preconditioner of conjugate gradients on the rows themselves. In two or three steps these take
 * the rounding of the Gram matrix back out. When D is large they run without a preconditioner. */
#include "solver/solver_internal.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "solver/certificate.h"
#include "svmstream/alsvm.h"

#define DIRECT_MAX 1500
#define STEPS      500
#define JITTER     1e-15
#define FALSVM_MAX 6000 /* of the recursion's matrix */
#define CHUNK      64   /* rows of one block of the recursion */

struct least_squares {
    struct svi_work *w;
    struct svi_pool pool;
    const double *weight;   /* n: 2 c_i, or 0 for a row that does not count */
    double *factor;         /* dim x dim, NULL when D is large */
    double *r, *z, *d, *ad; /* padded: residual, preconditioned residual, direction, its image */
    double *f;              /* n */
};

/* out = v + sum weight x x'v, or with `target` the residual sum weight x (y - x'v) - v. */
static void least_squares_apply(struct least_squares *s, const double *v, const double *target, double *out) {
    const struct svi_work *w = s->w;
    svi_work_scores(w, 0, w->n, v, s->f);
    for (int64_t i = 0; i < w->n; i++)
        s->f[i] = s->weight[i] * (target ? target[i] - s->f[i] : s->f[i]);
    for (int j = 0; j < w->dim; j++)
        out[j] = target ? -v[j] : v[j];
    for (int j = w->dim; j < svi_padded(w->dim); j++)
        out[j] = 0;
    svi_work_add(w, 0, w->n, s->f, out);
}

/* z = M^-1 r, M the factored Gram matrix plus I, or I. */
static void least_squares_precondition(const struct least_squares *s) {
    svi_work_copy(s->w, s->z, s->r);
    if (s->factor)
        svi_solve_factor(s->factor, s->w->dim, s->z);
}

/* Preconditioned conjugate gradients from w->v. |r|^2 / 2 bounds what the objective can still fall by. */
static void least_squares_descend(struct least_squares *s) {
    struct svi_work *w = s->w;
    const int n = w->dim;
    least_squares_apply(s, w->v, w->problem->y, s->r);
    least_squares_precondition(s);
    svi_work_copy(w, s->d, s->z);
    double rz = svi_dot(s->r, s->z, n), objective = svi_objective(w, w->v);
    for (int k = 0; k < STEPS && rz > 0; k++) {
        /* The Hessian is at least I, so the objective lies at most |r|^2 / 2 above its minimum. */
        double left = 0.5 * svi_dot(s->r, s->r, n);
        if (left <= 0.1 * w->o->tol * objective || (rz <= 1e-30 * objective && k > 0))
            break;
        least_squares_apply(s, s->d, NULL, s->ad);
        double t = rz / svi_dot(s->d, s->ad, n), before = rz;
        objective -= 0.5 * t * rz; /* what an exact step along d takes off a quadratic */
        for (int j = 0; j < n; j++)
            w->v[j] += t * s->d[j];
        least_squares_apply(s, w->v, w->problem->y, s->r); /* from the rows: that is what makes it exact */
        least_squares_precondition(s);
        rz = svi_dot(s->r, s->z, n);
        for (int j = 0; j < n; j++)
            s->d[j] = s->z[j] + rz / before * s->d[j];
        w->iterations++;
    }
}

/* w->v, from where it is, becomes the solution of (I + sum weight_i x_i x_i') v = sum weight_i y_i x_i.
 * SVS_NO_MEMORY, SVS_NUMERIC. */
static svs_code least_squares_close(struct svi_work *w, const double *weight, svs_error *err) {
    struct least_squares s = {.w = w, .weight = weight};
    const size_t dim = (size_t)w->dim;
    s.f = svi_pool_doubles(&s.pool, (size_t)w->n);
    SVI_POOL_DOUBLES(&s.pool, (size_t)svi_padded(w->dim), &s.r, &s.z, &s.d, &s.ad);
    if (dim <= DIRECT_MAX)
        s.factor = svi_pool_doubles(&s.pool, dim * dim);
    svs_code code = svi_pool_code(&s.pool, "the least-squares solution", err);
    if (code == SVS_OK && s.factor)
        code = svi_rows_gram(&w->problem->rows, NULL, w->n, weight, w->bias_value, s.factor, err);
    if (code == SVS_OK && s.factor &&
        !svi_factor_ridge(s.factor, w->dim, &(struct svi_diagonal){1, w->dim, 0, JITTER}))
        code =
            svi_fail(err, SVS_NUMERIC,
                     "the Gram matrix cannot be factored: the features differ too much in size, use --scale");
    if (code == SVS_OK)
        least_squares_descend(&s);
    w->stop = SVS_STOP_CLOSED;
    svi_pool_free(&s.pool);
    return code;
}

/* ---- the solver alsvm: all rows */

static svs_code least_squares_solve(struct svi_work *w, svs_error *err) {
    struct svi_pool pool = {0};
    double *weight = svi_pool_doubles(&pool, (size_t)w->n), *f = svi_pool_doubles(&pool, (size_t)w->n);
    svs_code code = svi_pool_code(&pool, "the least-squares solution", err);
    bool labels = true;
    for (int64_t i = 0; i < w->n && code == SVS_OK; i++) {
        weight[i] = 2 * w->cost[i];
        labels = labels && fabs(w->problem->y[i]) == 1;
    }
    if (code == SVS_OK)
        code = least_squares_close(w, weight, err);
    if (code == SVS_OK && labels)
        svi_work_scores(w, 0, w->n, w->v, f);
    for (int64_t i = 0; i < w->n && code == SVS_OK && labels; i++)
        w->alpha[i] = weight[i] * (1 - w->problem->y[i] * f[i]);
    if (!labels) { /* then there are no multipliers */
        svi_free(w->alpha);
        w->alpha = NULL;
    }
    svi_pool_free(&pool);
    return code;
}

const struct svi_method svi_method_ALSVM = {
    .solve = least_squares_solve,
    .can = SVI_LINEAR | SVI_SQUARES | SVI_APPENDED | SVI_NONE,
    .does = "the squared loss, linear, bias appended or none",
};

/* ---- the solver falsvm: the recursion over the rows in their order, learning only what the present model
 * gets wrong. What it has learned is then solved for in closed form, so that the answer carries no rounding
 * of the recursion. */

/* The recursion over one chunk of rows; marks what was learned. x: CHUNK x dim. */
static svs_code falsvm_learn(struct svi_work *w, svs_alsvm *m, int64_t first, double *x, double *weight,
                             svs_error *err) {
    const svs_problem *p = w->problem;
    svs_operation op[CHUNK] = {{0}};
    bool skip[CHUNK] = {false};
    const int count = (int)svi_work_block(w, first, CHUNK);
    for (int k = 0; k < count; k++) {
        double *row = x + (size_t)k * (size_t)w->dim;
        svs_rows_copy(&p->rows, first + k, row);
        if (w->bias_value != 0)
            row[w->d] = w->bias_value;
        op[k] = (svs_operation){.x = row, .t = p->y + first + k, .weight = w->cost[first + k] / p->C};
    }
    svs_code code = svs_alsvm_block(m, op, count, true, skip, NULL, err);
    for (int k = 0; k < count; k++)
        weight[first + k] = skip[k] ? 0 : 2 * w->cost[first + k];
    return code;
}

static svs_code falsvm_solve(struct svi_work *w, svs_error *err) {
    int64_t learned = 0;
    if (w->dim > FALSVM_MAX)
        return svi_fail(err, SVS_LIMIT, "falsvm keeps a matrix of %d x %d; use alsvm or dcd", w->dim, w->dim);
    struct svi_pool pool = {0};
    double *x = svi_pool_doubles(&pool, (size_t)CHUNK * (size_t)w->dim);
    double *weight = svi_pool_doubles(&pool, (size_t)w->n); /* 2 c_i of what is learned, 0 of the others */
    svs_alsvm *m = svs_alsvm_new(w->dim, 1, 1 / (2 * w->problem->C), SVS_ISA_BEST, err);
    svs_code code = m ? svi_pool_code(&pool, "the weights of the rows", err) : SVS_NO_MEMORY;
    for (int64_t i = 0; i < w->n && code == SVS_OK; i += CHUNK)
        code = falsvm_learn(w, m, i, x, weight, err);
    svs_alsvm_free(&m);
    if (code == SVS_OK)
        code = least_squares_close(w, weight, err);
    for (int64_t i = 0; i < w->n && code == SVS_OK; i++)
        learned += weight[i] > 0;
    snprintf(w->note, sizeof w->note, "learned %lld of %lld rows", (long long)learned, (long long)w->n);
    svi_pool_free(&pool);
    svi_free(w->alpha);
    w->alpha = NULL;
    return code;
}

const struct svi_method svi_method_FALSVM = {
    .solve = falsvm_solve,
    .can = SVI_LINEAR | SVI_SQUARES | SVI_APPENDED | SVI_NONE,
    .does = "the squared loss over misclassified samples, linear, bias appended or none",
};
