/* The small problem of alfpgm in two ways (fpgm.h): the augmented Lagrangian with projected
 * gradient steps, and Newton steps on a face. A face is the set of variables that are inside their
 * box. svi_fpgm_solve takes a few projected gradient steps, which show roughly which variables are
 * at a bound. It then tries the face from there. Where the face fails, the projected gradient
 * continues. Invariant of both: s->a stays inside its box.
 *
 * To read: svi_fpgm_solve at the end, fpgm_descend, face_solve. */
#include "solver/fpgm.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "linalg/cholesky.h"

#define PENALTY     0.1 /* mu: the paper's */
#define ROUNDS      40  /* of the multiplier */
#define FIRST_STEPS 24  /* of the projected gradient, before the face is tried */
#define STEPS       600 /* for each later multiplier */
#define FACES       3   /* multipliers after which the face is tried */
#define CHECK_STEPS 8   /* steps between two looks at the violation */
#define DOUBLINGS   4   /* of L, when it was too small to converge */
#define POWER_STEPS 3
#define MARGIN      1.05 /* power iteration comes from below */
/* Of the face, times the mean diagonal. Rows that are alike make Q_FF singular: along its null space this
 * leaves a step so long that it ends at a bound, which is where the linear term leads. */
#define RIDGE 1e-10

/* y'a + rest. */
static double fpgm_residual(const struct svi_fpgm *s, const double *a) {
    return cblas_ddot(s->n, s->y, 1, a, 1) + s->rest;
}

/* L >= lambda_max(Q) + mu n (Eq. 16). The power iteration starts at y, along which the augmented term is
 * largest, and comes from below: hence MARGIN, the largest diagonal entry, and the doublings in
 * svi_fpgm_solve. */
static double fpgm_lipschitz(const struct svi_fpgm *s) {
    double *v = s->work, *qv = s->work + s->n, largest = 0;
    memcpy(v, s->y, (size_t)s->n * sizeof *v);
    for (int k = 0; k < POWER_STEPS; k++) {
        double norm = cblas_dnrm2(s->n, v, 1);
        if (!(norm > 0))
            break;
        cblas_dscal(s->n, 1 / norm, v, 1);
        cblas_dsymv(CblasRowMajor, CblasUpper, s->n, 1, s->q, s->n, v, 1, 0, qv, 1);
        largest = cblas_dnrm2(s->n, qv, 1);
        memcpy(v, qv, (size_t)s->n * sizeof *v);
    }
    for (int i = 0; i < s->n; i++)
        largest = fmax(largest, s->q[(long)i * s->n + i]);
    return MARGIN * largest + PENALTY * s->n;
}

/* g = Q a + chi. */
static void fpgm_plain_gradient(const struct svi_fpgm *s, const double *a, double *g) {
    memcpy(g, s->chi, (size_t)s->n * sizeof *g);
    cblas_dsymv(CblasRowMajor, CblasUpper, s->n, 1, s->q, s->n, a, 1, 1, g, 1);
}

/* The gradient of the augmented Lagrangian. */
static void fpgm_gradient(const struct svi_fpgm *s, const double *b, double *g) {
    fpgm_plain_gradient(s, b, g);
    cblas_daxpy(s->n, PENALTY * fpgm_residual(s, b) - s->lambda, s->y, 1, g, 1);
}

/* Eq. 11: the violation at s->a, given the gradient g of the Lagrangian: |g| inside the box, at its ends
 * what points into it. */
static double fpgm_violation(const struct svi_fpgm *s, const double *g) {
    double worst = 0;
    for (int i = 0; i < s->n; i++) {
        double v = s->a[i] <= 0 ? -g[i] : s->a[i] >= s->upper[i] ? g[i] : fabs(g[i]);
        worst = v > worst ? v : worst;
    }
    return worst;
}

/* Projected gradient steps with momentum (FISTA's t). The momentum is dropped when it points uphill, which
 * saves a third of the steps. Returns the violation at a. */
static double fpgm_descend(struct svi_fpgm *s, double L, int steps) {
    double *b = s->work, *g = s->work + s->n, *next = s->work + 2 * s->n, t = 1, nu = INFINITY;
    memcpy(b, s->a, (size_t)s->n * sizeof *b);
    for (int k = 1; k <= steps; k++) {
        double uphill = 0;
        fpgm_gradient(s, b, g);
        for (int i = 0; i < s->n; i++) {
            const double x = b[i] - g[i] / L;
            next[i] = x < 0 ? 0 : x > s->upper[i] ? s->upper[i] : x;
            uphill += (b[i] - next[i]) * (next[i] - s->a[i]);
        }
        double faster = uphill > 0 ? 1 : 0.5 * (1 + sqrt(1 + 4 * t * t)),
               momentum = uphill > 0 ? 0 : (t - 1) / faster;
        for (int i = 0; i < s->n; i++) {
            b[i] = next[i] + momentum * (next[i] - s->a[i]);
            s->a[i] = next[i];
        }
        t = faster;
        if (k % CHECK_STEPS == 0 || k == steps) {
            fpgm_gradient(s, s->a, g);
            nu = fpgm_violation(s, g);
            if (nu < s->tol)
                return nu;
        }
    }
    return nu;
}

/* ---- faces */

struct face {
    struct svi_fpgm *s;
    int *free, *state; /* indices of the free variables; n: is it free? */
    int count;
    double *matrix, *g, *p, *z;
    bool cautious; /* release one at a time */
};

/* The factor of Q_FF, F the free variables. */
static bool face_factor(struct face *f) {
    const struct svi_fpgm *s = f->s;
    double trace = 0;
    f->count = 0;
    for (int i = 0; i < s->n; i++)
        if (f->state[i])
            f->free[f->count++] = i;
    for (int a = 0; a < f->count; a++) {
        const double *row = s->q + (size_t)f->free[a] * (size_t)s->n;
        for (int b = 0; b <= a; b++)
            f->matrix[(size_t)a * (size_t)f->count + (size_t)b] = row[f->free[b]];
        trace += row[f->free[a]];
    }
    for (int a = 0; a < f->count; a++)
        f->matrix[(size_t)a * (size_t)f->count + (size_t)a] += RIDGE * trace / f->count;
    return svi_factor_spd(f->matrix, f->count);
}

/* The step p to the minimum on this face with y'a + rest = 0, and its multiplier: Q_FF p = lambda y_F - g_F,
 * y_F'p = -residual. Two solves by one factor give p as a function of lambda; the constraint gives lambda. */
static bool face_newton(struct face *f) {
    struct svi_fpgm *s = f->s;
    double yp = 0, yz = 0;
    fpgm_plain_gradient(s, s->a, f->g);
    for (int a = 0; a < f->count; a++) {
        f->p[a] = -f->g[f->free[a]];
        f->z[a] = s->y[f->free[a]];
    }
    svi_solve_factor(f->matrix, f->count, f->p);
    svi_solve_factor(f->matrix, f->count, f->z);
    for (int a = 0; a < f->count; a++) {
        yp += s->y[f->free[a]] * f->p[a];
        yz += s->y[f->free[a]] * f->z[a];
    }
    /* p = p0 + lambda z with Q_FF p0 = -g_F and Q_FF z = y_F; y_F'p = -residual gives lambda. */
    const double lambda = (-fpgm_residual(s, s->a) - yp) / yz;
    if (!(yz > 0) || !isfinite(lambda))
        return false;
    for (int a = 0; a < f->count; a++)
        f->p[a] += lambda * f->z[a];
    s->lambda = lambda;
    return true;
}

/* How much of p the box allows from variable i: 1 = all of it. */
static double face_allowed(const struct svi_fpgm *s, int i, double p) {
    if (p < 0 && s->a[i] + p < 0)
        return s->a[i] / -p;
    return p > 0 && s->a[i] + p > s->upper[i] ? (s->upper[i] - s->a[i]) / p : 1;
}

/* Moves along p to the first bound; variables that are stopped there leave the face. True: all the way. */
static bool face_advance(struct face *f) {
    struct svi_fpgm *s = f->s;
    double t = 1;
    for (int a = 0; a < f->count; a++)
        t = fmin(t, face_allowed(s, f->free[a], f->p[a]));
    /* A step of length 0 means that the last release was undone at once: from then on variables are released
     * one at a time, or the two could alternate for ever. */
    f->cautious = f->cautious || t <= 0;
    for (int a = 0; a < f->count; a++) {
        const int i = f->free[a];
        const bool stays = t < 1 && face_allowed(s, i, f->p[a]) <= t;
        if (stays)
            f->state[i] = 0;
        s->a[i] = stays ? (f->p[a] < 0 ? 0 : s->upper[i]) : fmin(fmax(s->a[i] + t * f->p[a], 0), s->upper[i]);
    }
    return t >= 1;
}

/* Frees the variables whose multiplier has the wrong sign for their bound. Returns how many. */
static int face_release(struct face *f) {
    const struct svi_fpgm *s = f->s;
    int count = 0, worst = -1;
    double most = s->tol;
    for (int i = 0; i < s->n; i++) {
        const double wish = s->a[i] <= 0 ? -f->g[i] : s->a[i] >= s->upper[i] ? f->g[i] : 0;
        if (f->state[i] || wish < s->tol)
            continue;
        count++;
        f->state[i] = !f->cautious;
        if (wish >= most) {
            most = wish;
            worst = i;
        }
    }
    if (worst >= 0)
        f->state[worst] = 1;
    f->cautious = false;
    return count;
}

/* From s->a, the face being what is inside its box. Each turn either loses a variable (advance) or ends at
 * the face's minimum, where others are released. False: not finished within its limit. */
static bool face_solve(struct svi_fpgm *s) {
    double *const at = s->work + (size_t)s->n * (size_t)s->n;
    struct face f = {.s = s,
                     .free = s->index,
                     .state = s->index + s->n,
                     .matrix = s->work,
                     .g = at,
                     .p = at + s->n,
                     .z = at + 2 * s->n};
    for (int i = 0; i < s->n; i++)
        f.state[i] = s->a[i] > 0 && s->a[i] < s->upper[i];
    for (int k = 0; k < 3 * s->n + 20; k++) {
        if (!face_factor(&f) || (f.count > 0 && !face_newton(&f)))
            return false;
        if (f.count > 0 && !face_advance(&f))
            continue;
        fpgm_plain_gradient(s, s->a, f.g);
        cblas_daxpy(s->n, -s->lambda, s->y, 1, f.g, 1);
        if (face_release(&f) == 0)
            return fpgm_violation(s, f.g) < s->tol && fabs(fpgm_residual(s, s->a)) < s->tol;
    }
    return false;
}

/* ---- both */

/* A few projected steps show roughly which variables are at a bound; the face is tried from there and mostly
 * ends it. Only where it fails do the multiplier's rounds (Eq. 9) go on. */
bool svi_fpgm_solve(struct svi_fpgm *s) {
    double L = fpgm_lipschitz(s);
    int doubled = 0;
    for (int k = 0; k < ROUNDS; k++) {
        double nu = fpgm_descend(s, L, k == 0 ? FIRST_STEPS : STEPS), g = fpgm_residual(s, s->a);
        s->lambda -= PENALTY * g;
        if (fmax(nu, fabs(g)) < s->tol)
            return true;
        if (k < FACES && face_solve(s))
            return true;
        if (k > 0 && nu >= s->tol && doubled++ < DOUBLINGS)
            L *= 2; /* the power iteration was too far below */
    }
    return false;
}
