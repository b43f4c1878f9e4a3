#include "solver/fpgm.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#define PENALTY     0.1 /* mu: the paper's */
#define ROUNDS      40  /* of the multiplier */
#define FIRST_STEPS 24  /* of the projected gradient, before the face is tried */
#define STEPS       600 /* for each later multiplier */
#define FACES       3   /* multipliers after which the face is tried */
#define LOOK        8   /* steps between two looks at the violation */
#define DOUBLINGS   4   /* of L, when it was too small to converge */
#define POWER_STEPS 3
#define MARGIN      1.05 /* power iteration comes from below */

static double clamp(double x, double upper) {
    return x < 0 ? 0 : x > upper ? upper : x;
}

static double residual(const struct svi_fpgm *s, const double *a) {
    return cblas_ddot(s->n, s->y, 1, a, 1) + s->rest;
}

double svi_fpgm_residual(const struct svi_fpgm *s) {
    return residual(s, s->a);
}

/* L = lambda_max(Q) + mu n, from a power iteration that starts at y. */
static double lipschitz(const struct svi_fpgm *s) {
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

void svi_fpgm_gradient(const struct svi_fpgm *s, const double *a, double *g) {
    memcpy(g, s->chi, (size_t)s->n * sizeof *g);
    cblas_dsymv(CblasRowMajor, CblasUpper, s->n, 1, s->q, s->n, a, 1, 1, g, 1);
}

/* Of the augmented Lagrangian. */
static void gradient(const struct svi_fpgm *s, const double *b, double *g) {
    svi_fpgm_gradient(s, b, g);
    cblas_daxpy(s->n, PENALTY * residual(s, b) - s->lambda, s->y, 1, g, 1);
}

double svi_fpgm_violation(const struct svi_fpgm *s, const double *g) {
    double worst = 0;
    for (int i = 0; i < s->n; i++) {
        double v = s->a[i] <= 0 ? -g[i] : s->a[i] >= s->upper[i] ? g[i] : fabs(g[i]);
        worst = v > worst ? v : worst;
    }
    return worst;
}

/* Projected gradient steps with momentum, restarted when it points uphill. Returns the violation at a. */
static double descend(struct svi_fpgm *s, double L, int steps) {
    double *b = s->work, *g = s->work + s->n, *next = s->work + 2 * s->n, t = 1, nu = INFINITY;
    memcpy(b, s->a, (size_t)s->n * sizeof *b);
    for (int k = 1; k <= steps; k++) {
        double uphill = 0;
        gradient(s, b, g);
        for (int i = 0; i < s->n; i++) {
            next[i] = clamp(b[i] - g[i] / L, s->upper[i]);
            uphill += (b[i] - next[i]) * (next[i] - s->a[i]);
        }
        double faster = uphill > 0 ? 1 : 0.5 * (1 + sqrt(1 + 4 * t * t)),
               momentum = uphill > 0 ? 0 : (t - 1) / faster;
        for (int i = 0; i < s->n; i++) {
            b[i] = next[i] + momentum * (next[i] - s->a[i]);
            s->a[i] = next[i];
        }
        t = faster;
        if (k % LOOK == 0 || k == steps) {
            gradient(s, s->a, g);
            nu = svi_fpgm_violation(s, g);
            if (nu < s->tol)
                return nu;
        }
    }
    return nu;
}

bool svi_fpgm_solve(struct svi_fpgm *s) {
    double L = lipschitz(s);
    int doubled = 0;
    for (int k = 0; k < ROUNDS; k++) {
        double nu = descend(s, L, k == 0 ? FIRST_STEPS : STEPS), g = residual(s, s->a);
        s->lambda -= PENALTY * g;
        if (fmax(nu, fabs(g)) < s->tol)
            return true;
        if (k < FACES && svi_face_solve(s))
            return true;
        if (k > 0 && nu >= s->tol && doubled++ < DOUBLINGS)
            L *= 2; /* the power iteration was too far below */
    }
    return false;
}
