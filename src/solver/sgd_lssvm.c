/* SGD-LSSVM (Nguyen et al. 2015; ALGORITHMS 6) solves Q alpha = 1, Q_ij = y_i y_j (K_ij + bias^2) +
 * nu_i [i = j], nu_i = 1/(2 cost_i). It takes steepest steps on the t = 2 largest gradients. When
 * these crawl (high C), conjugate gradients finish. Invariant: g = Q alpha - 1, up to rounding.
 * sgd_lssvm_refresh makes it from scratch.
 *
 * To read: sgd_lssvm_solve, sgd_lssvm_steepest with its step, sgd_lssvm_conjugate. */
#include <math.h>
#include <stdio.h>

#include "solver/kernel_rows.h"
#include "solver/solver_internal.h"

#define T               2      /* coordinates of one step: t = 1 or 2 is best */
#define MIN_CACHED_ROWS 32     /* rows that the cache holds in any case */
#define DEFAULT_MAX     200000 /* steps */
#define CG_MAX          2000
#define REPORT          64 /* steps between two reports */

struct sgd_lssvm {
    struct svi_work *w;
    struct svi_pool pool;
    struct svi_kernel_rows k;
    int64_t n;
    double *g; /* Q alpha - 1 */
    double *change, *r, *d, *qd;
};

static double sgd_lssvm_nu(const struct sgd_lssvm *s, int64_t i) {
    return 1 / (2 * s->w->cost[i]);
}

static double sgd_lssvm_largest(const struct sgd_lssvm *s, const double *g) {
    double worst = 0;
    for (int64_t i = 0; i < s->n; i++)
        worst = fmax(worst, fabs(g[i]));
    return worst;
}

/* out = Q in. */
static void sgd_lssvm_product(struct sgd_lssvm *s, const double *in, double *out) {
    const double *y = s->w->problem->y;
    for (int64_t i = 0; i < s->n; i++)
        s->change[i] = y[i] * in[i];
    svi_kernel_rows_product(&s->k, s->change, out);
    for (int64_t i = 0; i < s->n; i++)
        out[i] = y[i] * out[i] + sgd_lssvm_nu(s, i) * in[i];
}

/* From scratch: thousands of updates leave their rounding in g. */
static void sgd_lssvm_refresh(struct sgd_lssvm *s) {
    sgd_lssvm_product(s, s->w->alpha, s->g);
    for (int64_t i = 0; i < s->n; i++)
        s->g[i] -= 1;
}

/* The T rows with the largest |g|, the largest first; on a tie the earlier row. */
static int sgd_lssvm_choose(const struct sgd_lssvm *s, int64_t *set) {
    int count = 0;
    for (int64_t i = 0; i < s->n; i++) {
        double size = fabs(s->g[i]);
        if (count == T && size <= fabs(s->g[set[T - 1]]))
            continue;
        int at = count < T ? count++ : T - 1;
        for (; at > 0 && fabs(s->g[set[at - 1]]) < size; at--)
            set[at] = set[at - 1];
        set[at] = i;
    }
    return count;
}

/* alpha_B -= theta g_B, with theta = |g_B|^2 / (g_B' Q_BB g_B), the best length along it; then g -= theta
 * Q_:B g_B, which needs the kernel rows of B alone. */
static void sgd_lssvm_step(struct sgd_lssvm *s) {
    const double *y = s->w->problem->y, *row[T];
    double square = 0, curvature = 0;
    int64_t set[T];
    const int count = sgd_lssvm_choose(s, set);
    svi_kernel_rows_get(&s->k, set, count, row);
    for (int b = 0; b < count; b++) {
        const double g = s->g[set[b]];
        square += g * g;
        curvature += sgd_lssvm_nu(s, set[b]) * g * g;
        for (int c = 0; c < count; c++)
            curvature += g * y[set[b]] * row[b][set[c]] * y[set[c]] * s->g[set[c]];
    }
    const double theta = square / curvature;
    /* All moves first: g changes below, and with it what the second one is made of. */
    double move[T];
    for (int b = 0; b < count; b++)
        move[b] = theta * s->g[set[b]];
    for (int b = 0; b < count; b++) {
        const double c = move[b] * y[set[b]];
        s->w->alpha[set[b]] -= move[b];
        for (int64_t i = 0; i < s->n; i++)
            s->g[i] -= c * y[i] * row[b][i];
        s->g[set[b]] -= sgd_lssvm_nu(s, set[b]) * move[b];
    }
}

/* Steps until the gradient is small, or they are no longer worth it: a step costs T rows, an iteration of
 * conjugate gradients n. False: not finished. */
static bool sgd_lssvm_steepest(struct sgd_lssvm *s) {
    struct svi_work *w = s->w;
    const int64_t worth = w->o->finish ? 2 * s->n : DEFAULT_MAX;
    for (int64_t k = 0; k < worth; k++) {
        double worst = sgd_lssvm_largest(s, s->g);
        if (worst < w->o->tol) {
            w->stop = SVS_STOP_TOL;
            return true;
        }
        sgd_lssvm_step(s);
        w->iterations++;
        if ((k % REPORT == 0 || w->o->max_iterations > 0) && svi_work_stop(w, NAN, NAN, DEFAULT_MAX))
            return true;
    }
    w->stop = SVS_STOP_ITERATIONS;
    return !w->o->finish;
}

static void sgd_lssvm_conjugate(struct sgd_lssvm *s) {
    struct svi_work *w = s->w;
    /* The steps have updated g many thousand times: CG starts from a fresh residual. */
    sgd_lssvm_refresh(s);
    for (int64_t i = 0; i < s->n; i++)
        s->d[i] = s->r[i] = -s->g[i];
    /* Plain conjugate gradients on Q alpha = 1, from the alpha that the steps have reached. */
    double rr = svi_dot(s->r, s->r, s->n);
    for (int k = 0; k < CG_MAX; k++) {
        /* Half the tolerance: the residual of CG drifts from the true one, which sgd_lssvm_certify makes
         * again. */
        if (sgd_lssvm_largest(s, s->r) < 0.5 * w->o->tol) {
            w->stop = SVS_STOP_TOL;
            return;
        }
        sgd_lssvm_product(s, s->d, s->qd);
        rr = svi_conjugate_step(w->alpha, s->r, s->d, s->qd, s->n, rr);
        w->iterations++;
        if (svi_work_stop(w, NAN, NAN, INT64_MAX))
            return;
    }
    w->stop = SVS_STOP_ITERATIONS;
}

/* Objective, dual value and bias, from scratch: y f = g + 1 - nu alpha. */
static void sgd_lssvm_certify(struct sgd_lssvm *s) {
    struct svi_work *w = s->w;
    double square = 0, loss = 0, sum = 0, penalty = 0, constant = 0;
    sgd_lssvm_refresh(s);
    for (int64_t i = 0; i < s->n; i++) {
        const double a = w->alpha[i], yf = s->g[i] + 1 - sgd_lssvm_nu(s, i) * a;
        square += a * yf;
        penalty += sgd_lssvm_nu(s, i) * a * a;
        sum += a;
        loss += w->cost[i] * (1 - yf) * (1 - yf);
        constant += w->problem->y[i] * a;
    }
    w->objective = 0.5 * square + loss;
    w->dual = sum - 0.5 * (square + penalty);
    w->kkt = sgd_lssvm_largest(s, s->g);
    w->v[0] = w->bias_value * w->bias_value * constant;
    if (w->problem->kernel.kind != SVS_LINEAR)
        return;
    w->v[0] = 0;
    svi_work_add_duals(w, w->bias_value, w->v);
}

static svs_code sgd_lssvm_solve(struct svi_work *w, svs_error *err) {
    struct sgd_lssvm s = {.w = w, .n = w->n};
    SVI_POOL_DOUBLES(&s.pool, (size_t)s.n, &s.g, &s.change, &s.r, &s.d, &s.qd);
    svs_code code = svi_pool_code(&s.pool, "the kernel least squares", err);
    if (code == SVS_OK)
        code = svi_kernel_rows_init(&s.k, &w->problem->rows, &w->problem->kernel,
                                    w->bias_value * w->bias_value, w->o->cache_mib, MIN_CACHED_ROWS, err);
    if (code == SVS_OK) {
        sgd_lssvm_refresh(&s);
        bool done = sgd_lssvm_steepest(&s);
        const int64_t steps = w->iterations;
        if (!done)
            sgd_lssvm_conjugate(&s);
        sgd_lssvm_certify(&s);
        if (done)
            snprintf(w->note, sizeof w->note, "%lld steepest steps", (long long)steps);
        else
            snprintf(w->note, sizeof w->note, "%lld steepest steps, finished by %lld conjugate gradients",
                     (long long)steps, (long long)(w->iterations - steps));
    }
    svi_pool_free(&s.pool);
    svi_kernel_rows_clear(&s.k);
    return code;
}

const struct svi_method svi_method_SGD_LSSVM = {
    .solve = sgd_lssvm_solve,
    .can = SVI_LINEAR | SVI_NONLINEAR | SVI_SQUARES | SVI_APPENDED,
    .does = "the squared loss, any kernel, bias appended",
};
