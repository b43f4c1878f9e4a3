/* NESVM (Zhou, Tao, Wu): Nesterov's method on smoothed losses, with homotopy: the smoothing mu falls
 * geometrically and each round starts where the one before ended.
 *
 *  - C-SVM, |v|^2/2 + C sum hinge: u_i = clip((1 - y f)/(mu |x_i|_inf), 0, 1) (Eqs. 5-6), gradient
 *    v - sum c u y x
 *  - LP-SVM, |v|_1 + C sum hinge: besides u_j = clip(v_j / mu, -1, 1) (Eq. 24)
 *  - LS-SVM, |v|^2/2 + C sum (1 - y f)^2: smooth as it is
 *
 * Step lengths come from L = 1 (or 1/mu) + (1/mu) lambda_max(X' diag(c_i/|x_i|_inf) X). Power
 * iteration approaches it from below, so MARGIN times its result is used. The bounds of the paper
 * (Eqs. 48, 52) are looser by up to n. The c_i u_i are dual variables, so every check gives a gap.
 * With a kernel (small n) v holds s_i = y_i alpha_i, f = K s and the penalty is s'K s / 2 (section
 * II-C, repaired). */

/* To read: nesvm_homotopy, nesvm_round_of_steps, nesvm_gradient; nesvm_forward and nesvm_backward are X and
 * its transpose, or the kernel matrix. Invariant: `best` is the point with the smallest certified gap so far.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cblas.h>

#include "base/fail.h"
#include "solver/certificate.h"
#include "solver/kernel_rows.h"

#define MU_FIRST         1.0
#define MU_FALL          0.8
#define MU_PER_TOL       5 /* the smoothing that leaves about a quarter of tol */
#define MIN_MU           1e-9
#define ROUND            40 /* iterations for one mu */
#define LAST_ROUND       500
#define IDLE_ROUNDS      4  /* without a better gap: the floor is reached */
#define CHECK_ITERATIONS 20 /* iterations between two looks at the gap in the last round */
#define DEFAULT_MAX      20000
#define POWER_STEPS      30
#define MARGIN           1.1

struct nesvm {
    struct svi_work *w;
    struct svi_pool pool;
    int64_t n;
    int dim;              /* variables: w->dim, or n (+ 1 for a free bias) with a kernel */
    double *k;            /* n x n kernel matrix, or NULL */
    double mu, L, lambda; /* lambda_max(X' diag(c/|x|_inf) X) */
    double *inf;          /* n: |x_i|_inf, with its appended constant; 1 for the squared loss */
    double *f, *coef;     /* n */
    double *v, *g, *sum, *y, *center, *best; /* dim, padded */
    double *work;                            /* for the certificate */
    double best_gap, best_objective;
};

/* ---- X and its transpose */

/* f = X v; with a kernel K v, plus the free bias, which stands behind the n coefficients. */
static void nesvm_forward(struct nesvm *s, const double *v, double *f) {
    const struct svi_work *w = s->w;
    if (!s->k) {
        svi_work_scores(w, 0, s->n, v, f);
        return;
    }
    cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)s->n, (int)s->n, 1, s->k, (int)s->n, v, 1, 0, f, 1);
    for (int64_t i = 0; i < s->n && s->dim > s->n; i++)
        f[i] += v[s->n];
}

/* g += X' coef. */
static void nesvm_backward(struct nesvm *s, const double *coef, double *g) {
    const struct svi_work *w = s->w;
    if (!s->k) {
        svi_work_add(w, 0, s->n, coef, g);
        return;
    }
    cblas_dgemv(CblasRowMajor, CblasTrans, (int)s->n, (int)s->n, 1, s->k, (int)s->n, coef, 1, 1, g, 1);
    for (int64_t i = 0; i < s->n && s->dim > s->n; i++)
        g[s->n] += coef[i];
}

static bool nesvm_squared(const struct nesvm *s) {
    return s->w->problem->loss == SVS_SQUARED;
}

/* The gradient of the penalty into g: v, clip(v / mu, -1, 1) for the smoothed |v|_1 (Eq. 24), or K s with a
 * kernel. A free bias is not penalised. */
static void nesvm_penalty_gradient(struct nesvm *s, const double *v, double *g) {
    memset(g, 0, (size_t)svi_padded(s->dim) * sizeof *g);
    if (s->k) {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)s->n, (int)s->n, 1, s->k, (int)s->n, v, 1, 0, g, 1);
        return;
    }
    for (int j = 0; j < s->dim; j++) {
        double t = s->w->problem->penalty == SVS_L1 ? v[j] / s->mu : v[j];
        if (s->w->problem->penalty == SVS_L1)
            t = t > 1 ? 1 : t < -1 ? -1 : t;
        g[j] = j < s->w->penalised ? t : 0;
    }
}

/* coef_i = y_i c_i u_i at scores f, u_i = clip((1 - y f) / (mu |x_i|_inf), 0, 1) (Eqs. 5, 6 and 10, with the
 * |x_i|_inf that the thresholds of Eq. 10 lack). Squared loss: 2 c (y - f), exactly. */
static void nesvm_coefficients(struct nesvm *s, const double *f) {
    const struct svi_work *w = s->w;
    for (int64_t i = 0; i < s->n; i++) {
        const double y = w->problem->y[i];
        double u = (1 - y * f[i]) / (s->mu * s->inf[i]);
        u = u < 0 ? 0 : u > 1 ? 1 : u;
        s->coef[i] = nesvm_squared(s) ? 2 * w->cost[i] * (y - f[i]) : y * w->cost[i] * u;
    }
}

/* grad = penalty' - X' coef (the sign is turned here, as nesvm_backward adds). */
static void nesvm_gradient(struct nesvm *s) {
    nesvm_forward(s, s->v, s->f);
    nesvm_coefficients(s, s->f);
    nesvm_penalty_gradient(s, s->v, s->g);
    for (int64_t i = 0; i < s->n; i++)
        s->coef[i] = -s->coef[i];
    nesvm_backward(s, s->coef, s->g);
}

/* lambda_max(X' diag(c / |x|_inf) X), for the squared loss of X' diag(2 c) X, by power iteration from a
 * vector with no symmetry that data might share. */
static double nesvm_largest_eigenvalue(struct nesvm *s) {
    double *v = s->y, *g = s->g, value = 0;
    for (int j = 0; j < s->dim; j++)
        v[j] = 1 + 0.1 * (j % 7);
    for (int k = 0; k < POWER_STEPS; k++) {
        double norm = cblas_dnrm2(s->dim, v, 1);
        if (!(norm > 0))
            return 0;
        cblas_dscal(s->dim, 1 / norm, v, 1);
        nesvm_forward(s, v, s->f);
        for (int64_t i = 0; i < s->n; i++)
            s->f[i] *= s->w->cost[i] * (nesvm_squared(s) ? 2 : 1 / s->inf[i]);
        memset(g, 0, (size_t)svi_padded(s->dim) * sizeof *g);
        nesvm_backward(s, s->f, g);
        value = cblas_dnrm2(s->dim, g, 1);
        memcpy(v, g, (size_t)s->dim * sizeof *v);
    }
    return value;
}

static double nesvm_penalty_eigenvalue(struct nesvm *s) {
    double most = 0;
    if (!s->k)
        return s->w->problem->penalty == SVS_L1 ? 1 / s->mu : 1;
    for (int64_t i = 0; i < s->n; i++) { /* the largest row sum bounds it */
        double sum = cblas_dasum((int)s->n, s->k + i * s->n, 1);
        most = sum > most ? sum : most;
    }
    return most;
}

/* ---- the certificate */

/* With a kernel, from scores and coefficients: the objective of v, and the dual value of the box variables y
 * coef; with a free bias the heavier side is scaled down first, so that they are feasible. */
static void nesvm_certify_kernel(struct nesvm *s, struct svi_certificate *out) {
    const struct svi_work *w = s->w;
    double *a = s->work, *ka = s->work + s->n, square = 0, loss = 0, side[2] = {0, 0}, total = 0,
           dual_square = 0;
    const double b = s->dim > s->n ? s->v[s->n] : 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double y = w->problem->y[i], e = 1 - y * s->f[i];
        square += s->v[i] * (s->f[i] - b);
        loss += w->cost[i] * (nesvm_squared(s) ? e * e : e > 0 ? e : 0);
        side[y > 0] += fabs(s->coef[i]);
    }
    const int heavy = side[1] > side[0];
    const double keep = s->dim > s->n && side[heavy] > 0 ? side[!heavy] / side[heavy] : 1;
    for (int64_t i = 0; i < s->n; i++) {
        const double y = w->problem->y[i];
        a[i] = s->coef[i] * ((y > 0) == heavy ? keep : 1);
        total += y * a[i] - (nesvm_squared(s) ? a[i] * a[i] / (4 * w->cost[i]) : 0);
    }
    cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)s->n, (int)s->n, 1, s->k, (int)s->n, a, 1, 0, ka, 1);
    dual_square = cblas_ddot((int)s->n, a, 1, ka, 1);
    out->objective = 0.5 * square + loss;
    out->dual = total - 0.5 * dual_square;
    out->gap = out->objective - out->dual;
}

/* A check: keeps the point with the smallest gap so far, with the dual variables of this moment. True: the
 * gap meets the tolerance. */
static bool nesvm_look(struct nesvm *s, double *gap) {
    struct svi_work *w = s->w;
    struct svi_certificate c;
    nesvm_forward(s, s->v, s->f);
    nesvm_coefficients(s, s->f);
    if (s->k) {
        nesvm_certify_kernel(s, &c);
    } else {
        for (int64_t i = 0; i < s->n; i++)
            s->coef[i] *= w->problem->y[i];
        svi_certify(w, s->v, s->coef, s->work, &c);
    }
    *gap = c.gap;
    if (c.gap < s->best_gap) {
        s->best_gap = c.gap;
        s->best_objective = w->objective = c.objective;
        w->dual = c.dual;
        memcpy(s->best, s->v, (size_t)svi_padded(s->dim) * sizeof *s->best);
        for (int64_t i = 0; i < s->n; i++)
            w->alpha[i] = s->k ? w->problem->y[i] * s->v[i] : s->coef[i];
    }
    return svi_work_reached(w, s->best_objective, s->best_gap);
}

/* ---- the method */

/* Eqs. 33-35 from v, which is also the prox-centre: a centre at 0, as the paper writes w*, would throw a
 * warm start away. */
static bool nesvm_round_of_steps(struct nesvm *s, int64_t steps, bool last) {
    struct svi_work *w = s->w;
    double gap = NAN;
    s->L = nesvm_penalty_eigenvalue(s) + MARGIN * s->lambda / (nesvm_squared(s) ? 1 : s->mu);
    memcpy(s->center, s->v, (size_t)svi_padded(s->dim) * sizeof *s->center);
    memset(s->sum, 0, (size_t)svi_padded(s->dim) * sizeof *s->sum);
    for (int64_t k = 0; k < steps; k++) {
        nesvm_gradient(s);
        /* y = v - g / L, z = center - sum (i + 1) / 2 g_i / L, v = 2 / (k + 3) z + (k + 1) / (k + 3) y */
        const double weight = 0.5 * (double)(k + 1), share = 2 / (double)(k + 3);
        for (int j = 0; j < s->dim; j++) {
            s->sum[j] += weight * s->g[j];
            double y = s->v[j] - s->g[j] / s->L, z = s->center[j] - s->sum[j] / s->L;
            s->v[j] = share * z + (1 - share) * y;
        }
        w->iterations++;
        bool now = last ? k % CHECK_ITERATIONS == CHECK_ITERATIONS - 1 : k == steps - 1;
        if (now && nesvm_look(s, &gap)) {
            w->stop = SVS_STOP_TOL;
            return true;
        }
        if (svi_work_stop(w, s->best_objective, now ? gap : NAN, DEFAULT_MAX))
            return true;
    }
    return false;
}

/* Homotopy: mu falls by MU_FALL each round (geometrically, where Eq. 44's mu_0 / (t + 1) ends far from the
 * optimum), until its floor, which leaves about a quarter of the tolerance. A warm start begins near the
 * floor: large smoothing would lead it away. */
static void nesvm_homotopy(struct nesvm *s) {
    struct svi_work *w = s->w;
    const double end = w->o->mu > 0 ? w->o->mu : fmax(MIN_MU, MU_PER_TOL * w->o->tol);
    double gap;
    s->mu = nesvm_squared(s) ? 1 : fmax(end, w->warm ? fmin(MU_FIRST, 8 * end) : MU_FIRST);
    s->lambda = nesvm_largest_eigenvalue(s);
    if (w->warm && nesvm_look(s, &gap)) {
        w->stop = SVS_STOP_TOL;
        return;
    }
    for (; !nesvm_squared(s) && s->mu > end; s->mu = fmax(end, MU_FALL * s->mu))
        if (nesvm_round_of_steps(s, ROUND, false))
            return;
    for (int idle = 0; idle < IDLE_ROUNDS;) { /* each round starts again from where it is: its momentum is
                                                 of use for a while only */
        const double before = s->best_gap;
        if (nesvm_round_of_steps(s, LAST_ROUND, true))
            return;
        idle = s->best_gap > 0.99 * before ? idle + 1 : 0;
    }
    w->stop = SVS_STOP_STALLED;
}

static svs_code nesvm_kernel_matrix(struct nesvm *s, svs_error *err) {
    const svs_problem *p = s->w->problem;
    const double mib = 8.0 * (double)s->n * (double)s->n / 1048576;
    struct svi_kernel_rows rows;
    if (p->kernel.kind == SVS_LINEAR)
        return SVS_OK;
    if (p->penalty == SVS_L1 || p->bias == SVS_BIAS_APPENDED)
        return svi_fail(err, SVS_INVALID,
                        "with a kernel nesvm needs the penalty l2 and a bias that is free or none");
    if (mib > s->w->o->cache_mib)
        return svi_fail(err, SVS_LIMIT,
                        "nesvm keeps the whole kernel matrix, %.0f MiB, but the cache has %.0f: use alfpgm",
                        mib, s->w->o->cache_mib);
    s->k = svi_pool_take(&s->pool, (size_t)s->n, (size_t)s->n * sizeof *s->k);
    svs_code code = svi_pool_code(&s->pool, "the kernel matrix", err);
    if (code != SVS_OK)
        return code;
    code = svi_kernel_rows_init(&rows, &p->rows, &p->kernel, 0, 1, 1, err);
    for (int64_t i = 0; i < s->n && code == SVS_OK; i++) {
        const double *row;
        svi_kernel_rows_get(&rows, &i, 1, &row);
        memcpy(s->k + i * s->n, row, (size_t)s->n * sizeof *row);
    }
    svi_kernel_rows_clear(&rows);
    return code;
}

/* |x_i|_inf with its appended constant, which the smoothing of the row is divided by. 1 for the squared
 * loss, which is not smoothed. */
static void nesvm_row_norms(struct nesvm *s) {
    for (int64_t i = 0; i < s->n; i++) {
        const struct svi_entries e = s->k ? (struct svi_entries){.value = s->k + i * s->n, .count = s->n}
                                          : svi_row_entries(&s->w->problem->rows, i);
        double most = s->k || nesvm_squared(s) ? 0 : s->w->bias_value;
        for (int64_t k = 0; k < e.count; k++)
            most = fabs(e.value[k]) > most ? fabs(e.value[k]) : most;
        s->inf[i] = nesvm_squared(s) || most == 0 ? 1 : most;
    }
}

static svs_code nesvm_reserve(struct nesvm *s, svs_error *err) {
    struct svi_work *w = s->w;
    SVI_TRY(nesvm_kernel_matrix(s, err));
    s->dim = s->k ? (int)s->n + (w->problem->bias == SVS_BIAS_FREE) : w->dim;
    s->work = svi_pool_doubles(&s->pool, (size_t)svi_padded(s->dim) + 2 * (size_t)s->n);
    SVI_POOL_DOUBLES(&s->pool, (size_t)svi_padded(s->dim), &s->v, &s->g, &s->sum, &s->y, &s->center,
                     &s->best);
    SVI_POOL_DOUBLES(&s->pool, (size_t)s->n, &s->inf, &s->f, &s->coef);
    return svi_pool_code(&s->pool, "Nesterov's method", err);
}

static void nesvm_begin(struct nesvm *s) {
    struct svi_work *w = s->w;
    nesvm_row_norms(s);
    if (!s->k)
        svi_work_copy(w, s->v, w->v);
    for (int64_t i = 0; i < s->n && s->k; i++)
        s->v[i] = w->problem->y[i] * w->alpha[i];
    if (s->k && s->dim > s->n)
        s->v[s->n] = w->v[0];
    memcpy(s->best, s->v, (size_t)svi_padded(s->dim) * sizeof *s->best);
}

static void nesvm_finish(struct nesvm *s) {
    struct svi_work *w = s->w;
    if (s->k)
        w->v[0] = s->dim > s->n ? s->best[s->n] : 0;
    else
        svi_work_copy(w, w->v, s->best);
    w->mu = nesvm_squared(s) ? NAN : s->mu;
    if (!nesvm_squared(s) && w->stop != SVS_STOP_TOL)
        snprintf(w->note, sizeof w->note,
                 "smoothing mu %.2g leaves a floor, and columns of different scale slow it down: --scale, or "
                 "newton",
                 s->mu);
    else if (!nesvm_squared(s))
        snprintf(w->note, sizeof w->note, "smoothing mu %.2g at the end", s->mu);
}

static svs_code nesvm_solve(struct svi_work *w, svs_error *err) {
    struct nesvm s = {.w = w, .n = w->n, .best_gap = INFINITY, .best_objective = INFINITY};
    svs_code code = nesvm_reserve(&s, err);
    if (code == SVS_OK) {
        nesvm_begin(&s);
        nesvm_homotopy(&s);
        nesvm_finish(&s);
    }
    svi_pool_free(&s.pool);
    return code;
}

const struct svi_method svi_method_NESVM = {
    .solve = nesvm_solve,
    .can = SVI_LINEAR | SVI_NONLINEAR | SVI_HINGE_1 | SVI_SQUARES | SVI_L1 | SVI_ANY_BIAS,
    .does = "the hinge loss with p = 1 (penalty l2 or l1) and the squared loss (l2)",
};
