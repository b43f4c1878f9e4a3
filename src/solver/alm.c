/* Algorithms 1 and 2 of Nie et al. 2014, which differ in the w-step: exact (alm), or one gradient step
 * (alm-inexact).
 *
 * Algorithm 1 starts from the least-squares solution with the multipliers of its hinge residuals. Some
 * iterations reach 1e-2; the rest is done by Newton steps on the same Lagrangian (newton.h), unless the
 * options forbid it.
 *
 * Four parts:
 *
 *  - the e-step and its bookkeeping, which both algorithms share;
 *  - the exact w-step v = argmin |X v - z|^2 + R-norm(v)^2 / mu, by a factor of the Gram matrix or,
 *    when D is large, by LSQR;
 *  - the iteration of Algorithm 1, which makes scores, e-step and X'z in one pass;
 *  - Algorithm 2. */
#include "solver/solver_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "linalg/cholesky.h"
#include "solver/certificate.h"
#include "solver/loss.h"
#include "solver/newton.h"

#define BLOCK          128
#define BEFORE_NEWTON  8
#define DEFAULT_MAX    3000
#define INEXACT_MAX    5000
#define FRESH          50   /* iterations after which the scores are computed again from v */
#define DIRECT_MAX     1500 /* coordinates up to which the Gram matrix is factored */
#define LSQR_MAX       60
#define LSQR_TOLERANCE 1e-4 /* |A'r| falls to this share */
#define INLINE         static inline __attribute__((always_inline))

/* ---- the e-step, the multipliers and the bookkeeping of both algorithms
 *
 * With alpha_i = -y_i lambda_i and e_i = y_i s_i one iteration at scores f is
 *     alpha <- alpha + mu (1 - y f - s)        (Eq. 9, of the iteration before)
 *     s     <- prox(1 - y f + alpha / mu)      (Eqs. 10-13)
 *     z     <- y (1 - s + alpha / mu)          (the target of Eq. 14)
 * and then a w-step towards min |X v - z|^2 + R-norm(v)^2 / mu.
 *
 * After an exact w-step R v = X'(y alpha), so the clipped alpha is a good dual point. The iteration
 * holds mu (0.3 C at p = 1 to C at p = 2). A mu that grows without bound freezes the iterate far
 * from the optimum. */

struct alm {
    struct svi_work *w;
    struct svi_pool pool;
    double mu;
    bool begun;        /* s is that of an iteration */
    double *f, *s, *z; /* n */
    double *best;      /* padded: the v with the lowest objective so far */
    double best_objective;
    double *scratch; /* for the certificate */
};

/* Takes memory in a->pool, which the caller frees. */
static svs_code alm_reserve(struct alm *a, struct svi_work *w, svs_error *err) {
    a->w = w;
    a->mu = w->mu = w->o->mu > 0 ? w->o->mu : (0.3 + 0.7 * (w->problem->p - 1)) * w->problem->C;
    a->best_objective = INFINITY;
    SVI_POOL_DOUBLES(&a->pool, (size_t)w->n, &a->f, &a->s, &a->z);
    a->best = svi_pool_vector(&a->pool, w->dim);
    a->scratch = svi_pool_doubles(&a->pool, svi_certify_doubles(w));
    return svi_pool_code(&a->pool, "the augmented Lagrangian", err);
}

/* The e-step of some rows. First the multipliers follow the constraint that the previous w-step
 * left (Eq. 9). Then s minimises loss and penalty, and z becomes the target of the next w-step. An
 * argument of its own for p lets the compiler make one version for 1, one for 2, and one for what
 * lies between. */
INLINE double alm_step_rows(struct alm *a, double p, int64_t first, int64_t count) {
    const struct svi_work *w = a->w;
    const double mu = a->mu, before = a->begun ? 1 : 0;
    double loss = 0;
    for (int64_t i = first; i < first + count; i++) {
        double y = w->problem->y[i], margin = 1 - y * a->f[i], cost = w->cost[i];
        double alpha = w->alpha[i] + before * mu * (margin - a->s[i]);
        double s = svi_prox(p, margin + alpha / mu, cost / mu);
        loss += cost * svi_hinge(p, margin);
        w->alpha[i] = alpha;
        a->s[i] = s;
        a->z[i] = y * (1 - s + alpha / mu);
    }
    return loss;
}

/* e-step for rows first .. first + count - 1 whose scores are in f: alpha, s, z. Returns their loss. */
static double alm_step(struct alm *a, int64_t first, int64_t count) {
    const double p = a->w->problem->p;
    return p == 1   ? alm_step_rows(a, 1, first, count)
           : p == 2 ? alm_step_rows(a, 2, first, count)
                    : alm_step_rows(a, p, first, count);
}

/* After a pass over all rows with this loss: objective, best point, and at intervals the gap. True: stop,
 * w->stop says why. */
static bool alm_stop(struct alm *a, double loss, int64_t default_iterations) {
    struct svi_work *w = a->w;
    const double objective = 0.5 * svi_dot(w->v, w->v, w->penalised) + loss;
    struct svi_certificate c = {.gap = NAN};
    a->begun = true;
    if (objective < a->best_objective) {
        a->best_objective = objective;
        svi_work_copy(w, a->best, w->v);
    }
    const int64_t done = ++w->iterations;
    /* The gap costs as much as the iteration: asked for after 1, 2, 4, 8 iterations and after every 8th. */
    if (done % 8 == 0 || (done < 8 && (done & (done - 1)) == 0))
        svi_certify(w, a->best, w->alpha, a->scratch, &c);
    const bool stop = svi_work_stop(w, a->best_objective, c.gap, default_iterations);
    if (!svi_work_reached(w, a->best_objective, c.gap))
        return stop;
    w->stop = SVS_STOP_TOL;
    return true;
}

/* The best point into w->v, its multipliers clipped into w->alpha. */
static void alm_finish(struct alm *a) {
    struct svi_work *w = a->w;
    if (a->best_objective < INFINITY)
        svi_work_copy(w, w->v, a->best);
    for (int64_t i = 0; i < w->n; i++) {
        double alpha = svi_positive(w->alpha[i]);
        w->alpha[i] = w->problem->p == 1 && alpha > w->cost[i] ? w->cost[i] : alpha;
    }
}

/* ---- the exact w-step */

struct wstep {
    struct svi_work *w;
    struct svi_pool pool;
    double *gram, *factor;                   /* dim x dim, NULL = LSQR */
    double *rhs;                             /* padded: X'z, for the factor */
    double *u, *xv, *lv, *direction, *image; /* LSQR: n; n; padded three times */
};

/* Takes start->gram if there is one. */
static svs_code wstep_reserve(struct wstep *s, struct svi_work *w, svs_error *err) {
    const size_t dim = (size_t)w->dim;
    struct svi_pool *pool = &s->pool;
    s->w = w;
    if (dim > DIRECT_MAX) {
        SVI_POOL_DOUBLES(pool, (size_t)w->n, &s->u, &s->xv);
        SVI_POOL_DOUBLES(pool, (size_t)svi_padded(w->dim), &s->lv, &s->direction, &s->image);
        return svi_pool_code(pool, "the w-step (LSQR)", err);
    }
    SVI_POOL_DOUBLES(pool, dim * dim, &s->gram, &s->factor);
    s->rhs = svi_pool_vector(pool, w->dim);
    svs_code code = svi_pool_code(pool, "the w-step (Gram matrix)", err);
    if (code == SVS_OK && !w->start->gram)
        return svi_rows_gram(&w->problem->rows, NULL, w->n, NULL, w->bias_value, s->gram, err);
    for (size_t i = 0; i < dim && code == SVS_OK; i++)
        /* Kept for all problems of a training, so it knows no bias value. */
        for (size_t j = 0; j <= i; j++) { /* the start's Gram matrix has a plain 1 at the end of each row */
            double g = w->start->gram[i * ((size_t)w->d + 1) + j];
            g *= i == (size_t)w->d ? w->bias_value : 1;
            s->gram[i * dim + j] = g * (j == (size_t)w->d ? w->bias_value : 1);
        }
    return code;
}

/* Makes the factor for this 1/mu. SVS_NUMERIC. */
static svs_code wstep_factor(struct wstep *s, double inverse_mu, svs_error *err) {
    const size_t n = (size_t)s->w->dim;
    if (!s->gram)
        return SVS_OK;
    for (struct svi_diagonal add = {inverse_mu, s->w->penalised, 0, 1e-15}; add.jitter < 1e-6;
         add.jitter *= 100) {
        memcpy(s->factor, s->gram, n * n * sizeof *s->factor);
        if (svi_factor_ridge(s->factor, s->w->dim, &add))
            return SVS_OK;
    }
    return svi_fail(err, SVS_NUMERIC,
                    "the Gram matrix cannot be factored: the features differ too much in size");
}

static void wstep_scale(double *x, int64_t n, double by) {
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

/* A = [X; sqrt(1/mu) R], so u = (u, lower) has n + dim entries. (u, lower) <- A x - a (u, lower). Returns the
 * norm. */
static double wstep_forward(struct wstep *s, double root, const double *x, double a) {
    const struct svi_work *w = s->w;
    const int64_t n = w->n;
    double sum = 0;
    svi_work_scores(w, 0, n, x, s->xv);
    for (int64_t i = 0; i < n; i++) {
        s->u[i] = s->xv[i] - a * s->u[i];
        sum += s->u[i] * s->u[i];
    }
    for (int j = 0; j < w->dim; j++) {
        s->image[j] = (j < w->penalised ? root * x[j] : 0) - a * s->image[j];
        sum += s->image[j] * s->image[j];
    }
    return sqrt(sum);
}

/* lv <- A'(u, lower) - b lv. Returns the norm. */
static double wstep_backward(struct wstep *s, double root, double b) {
    const struct svi_work *w = s->w;
    for (int j = 0; j < w->dim; j++)
        s->lv[j] = (j < w->penalised ? root * s->image[j] : 0) - b * s->lv[j];
    svi_work_add(w, 0, w->n, s->u, s->lv);
    return sqrt(svi_dot(s->lv, s->lv, w->dim));
}

static void wstep_normalise(struct wstep *s, double beta) {
    if (beta > 0) {
        wstep_scale(s->u, s->w->n, 1 / beta);
        wstep_scale(s->image, s->w->dim, 1 / beta);
    }
}

/* LSQR (Paige & Saunders 1982) for the correction of v: min |A dv - (z - f; -sqrt(1/mu) v)|. */
static void wstep_lsqr(struct wstep *s, double inverse_mu, const double *z, const double *f) {
    struct svi_work *w = s->w;
    const int64_t n = w->n;
    const double root = sqrt(inverse_mu);
    double beta = 0, alpha, first;
    for (int64_t i = 0; i < n; i++)
        s->u[i] = z[i] - f[i];
    for (int j = 0; j < w->dim; j++)
        s->image[j] = j < w->penalised ? -root * w->v[j] : 0;
    beta = hypot(sqrt(svi_dot(s->u, s->u, n)), sqrt(svi_dot(s->image, s->image, w->dim)));
    wstep_normalise(s, beta);
    svi_work_clear(w, s->lv);
    first = alpha = wstep_backward(s, root, 0);
    if (alpha > 0)
        wstep_scale(s->lv, w->dim, 1 / alpha);
    svi_work_copy(w, s->direction, s->lv);
    double phi_bar = beta, rho_bar = alpha, start = beta * first;
    for (int k = 0; k < LSQR_MAX && alpha > 0 && beta > 0; k++) {
        beta = wstep_forward(s, root, s->lv, alpha);
        wstep_normalise(s, beta);
        alpha = wstep_backward(s, root, beta);
        if (alpha > 0)
            wstep_scale(s->lv, w->dim, 1 / alpha);
        /* The plane rotation that eliminates beta from the bidiagonal system; what it leaves gives the
         * length of this step and the next direction. */
        double rho = hypot(rho_bar, beta), c = rho_bar / rho, sine = beta / rho, theta = sine * alpha;
        double step = c * phi_bar / rho;
        for (int j = 0; j < w->dim; j++) {
            w->v[j] += step * s->direction[j];
            s->direction[j] = s->lv[j] - theta / rho * s->direction[j];
        }
        rho_bar = -c * alpha;
        phi_bar *= sine;
        /* An estimate of |A'r|, which is 0 at the solution. */
        if (fabs(phi_bar * alpha * c) <= LSQR_TOLERANCE * start)
            return;
    }
}

/* v for the targets z; f: the scores of the present v. With a factor rhs = X'z must have been gathered. */
static void wstep_solve(struct wstep *s, double inverse_mu, const double *z, const double *f) {
    if (!s->gram) {
        wstep_lsqr(s, inverse_mu, z, f);
        return;
    }
    svi_work_copy(s->w, s->w->v, s->rhs);
    svi_solve_factor(s->factor, s->w->dim, s->w->v);
}

/* ---- the iteration */

/* One iteration: scores, e-step, w-step, in one pass over the rows where X'z is gathered on the way. True:
 * stop. */
static bool alm_iterate(struct alm *a, struct wstep *s, int64_t most) {
    const struct svi_work *w = a->w;
    double loss = 0;
    if (s->gram)
        svi_work_clear(w, s->rhs);
    for (int64_t i = 0; i < w->n; i += BLOCK) {
        int64_t count = svi_work_block(w, i, BLOCK);
        svi_work_scores(w, i, count, w->v, a->f + i);
        loss += alm_step(a, i, count);
        if (s->gram)
            svi_work_add(w, i, count, a->z + i, s->rhs);
    }
    if (alm_stop(a, loss, most))
        return true;
    wstep_solve(s, 1 / a->mu, a->z, a->f);
    return false;
}

/* A cold start: v from the squared loss, alpha from its hinge residuals, as near to the optimum as a closed
 * form leads. */
static svs_code alm_least_squares(struct alm *a, struct wstep *s, svs_error *err) {
    struct svi_work *w = a->w;
    const svs_problem *p = w->problem;
    const double ridge = 1 / (2 * p->C);
    SVI_TRY(wstep_factor(s, ridge, err));
    if (s->gram) {
        svi_work_clear(w, s->rhs);
        svi_work_add(w, 0, w->n, p->y, s->rhs);
    }
    wstep_solve(s, ridge, p->y, a->f); /* f = 0 = X v */
    svi_work_scores(w, 0, w->n, w->v, a->f);
    for (int64_t i = 0; i < w->n; i++)
        w->alpha[i] = svi_dual_of(p->p, w->cost[i], 1 - p->y[i] * a->f[i]);
    return SVS_OK;
}

/* The paper's iteration reaches 1e-2 fast and crawls from there, so after BEFORE_NEWTON iterations Newton
 * steps on the same Lagrangian continue, from the same v and alpha. The options may forbid it (finish), or
 * leave no iterations for it. */
static svs_code alm_solve(struct svi_work *w, svs_error *err) {
    struct alm a = {0};
    struct wstep s = {0};
    struct svi_newton_end end;
    const bool limited = w->o->max_iterations > 0 && w->o->max_iterations <= BEFORE_NEWTON;
    const int64_t most = w->o->finish && !limited ? BEFORE_NEWTON : DEFAULT_MAX;
    svs_code code = alm_reserve(&a, w, err);
    if (code == SVS_OK)
        code = wstep_reserve(&s, w, err);
    if (code == SVS_OK && !w->warm)
        code = alm_least_squares(&a, &s, err);
    if (code == SVS_OK)
        code = wstep_factor(&s, 1 / a.mu, err);
    if (code == SVS_OK) {
        while (!alm_iterate(&a, &s, most))
            ;
        alm_finish(&a);
    }
    svi_pool_free(&s.pool);
    svi_pool_free(&a.pool);
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

const struct svi_method svi_method_ALM = {
    .solve = alm_solve,
    .can = SVI_LINEAR | SVI_ANY_HINGE | SVI_ANY_BIAS,
    .does = "the hinge loss with p from 1 to 2, linear, any bias",
};

/* ---- Algorithm 2: the w-step is one gradient step of optimal length (Eqs. 16-18), with g = X'(f - z) + R v
 * / mu and length g'g / (|X g|^2 + g'R g / mu). Two products with X and none that needs D x D memory. It
 * wants columns of like scale. */

struct alm_inexact {
    struct alm a;
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
        loss += alm_step(&x->a, i, count);
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
    /* The length that minimises the quadratic along g (Eq. 18). Scores move by X g, which the length needed
     * anyway. */
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
    svs_code code = alm_reserve(&x.a, w, err);
    if (code == SVS_OK) {
        svi_work_scores(w, 0, w->n, w->v, x.a.f);
        while (!alm_stop(&x.a, alm_inexact_gradient(&x), INEXACT_MAX)) {
            alm_inexact_descend(&x);
            if (w->iterations % FRESH == 0)
                svi_work_scores(w, 0, w->n, w->v, x.a.f);
        }
        alm_finish(&x.a);
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
