#include "solver/fpgm.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#define PENALTY     0.1 /* mu: the paper's */
#define ROUNDS      40  /* of the multiplier */
#define STEPS       600 /* of the projected gradient, for one multiplier */
#define DOUBLINGS   4   /* of L, when it was too small to converge */
#define POWER_STEPS 3
#define MARGIN      1.05 /* power iteration comes from below */

static double clamp(double x, double upper) {
    return x < 0 ? 0 : x > upper ? upper : x;
}

static double residual(const struct svi_fpgm *s, const double *a) {
    return cblas_ddot(s->n, s->y, 1, a, 1) + s->rest;
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

static void gradient(const struct svi_fpgm *s, const double *b, double *g) {
    double pull = PENALTY * residual(s, b) - s->lambda;
    memcpy(g, s->chi, (size_t)s->n * sizeof *g);
    cblas_dsymv(CblasRowMajor, CblasUpper, s->n, 1, s->q, s->n, b, 1, 1, g, 1);
    cblas_daxpy(s->n, pull, s->y, 1, g, 1);
}

/* Eq. 11: |g| inside the box, what points into it at its ends. */
static double violation(const struct svi_fpgm *s, const double *a, const double *g) {
    double worst = 0;
    for (int i = 0; i < s->n; i++) {
        double v = a[i] <= 0 ? -g[i] : a[i] >= s->upper[i] ? g[i] : fabs(g[i]);
        worst = v > worst ? v : worst;
    }
    return worst;
}

/* Projected gradient steps with momentum, restarted when it points uphill. Returns the violation at a. */
static double descend(struct svi_fpgm *s, double L) {
    double *b = s->work, *g = s->work + s->n, *next = s->work + 2 * s->n, *at_a = s->work + 3 * s->n, t = 1,
           nu = INFINITY;
    memcpy(b, s->a, (size_t)s->n * sizeof *b);
    for (int k = 0; k < STEPS; k++) {
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
        if (k % 8 == 7 || k == STEPS - 1) {
            gradient(s, s->a, at_a);
            nu = violation(s, s->a, at_a);
            if (nu < s->tol)
                return nu;
        }
    }
    return nu;
}

void svi_fpgm_solve(struct svi_fpgm *s) {
    double L = lipschitz(s);
    int doubled = 0;
    for (int k = 0; k < ROUNDS; k++) {
        double nu = descend(s, L), g = residual(s, s->a);
        s->lambda -= PENALTY * g;
        if (nu >= s->tol && doubled++ < DOUBLINGS)
            L *= 2; /* the power iteration was too far below */
        if (fmax(nu, fabs(g)) < s->tol)
            return;
    }
}
