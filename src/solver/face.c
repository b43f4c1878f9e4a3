#include <math.h>
#include <string.h>

#include <cblas.h>

#include "linalg/cholesky.h"
#include "solver/fpgm.h"

/* Of the mean diagonal. Rows that are alike make Q_FF singular: along its null space this leaves a step so long
 * that it ends at a bound, which is where the linear term leads. */
#define RIDGE 1e-10

struct face {
    struct svi_fpgm *s;
    int *free, *state;       /* indices of the free variables; n: is it free? */
    int count;
    double *matrix, *g, *p, *z;
    bool cautious;           /* release one at a time */
};

static bool inside(const struct svi_fpgm *s, int i) {
    return s->a[i] > 0 && s->a[i] < s->upper[i];
}

/* The factor of Q_FF. */
static bool factor(struct face *f) {
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

/* p: the step to the minimum on this face with y'a + rest = 0, and its multiplier: Q_FF p = lambda y_F - g_F,
 * y_F'p = -residual. */
static bool newton(struct face *f) {
    struct svi_fpgm *s = f->s;
    double yp = 0, yz = 0;
    svi_fpgm_gradient(s, s->a, f->g);
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
    const double lambda = (-svi_fpgm_residual(s) - yp) / yz;
    if (!(yz > 0) || !isfinite(lambda))
        return false;
    for (int a = 0; a < f->count; a++)
        f->p[a] += lambda * f->z[a];
    s->lambda = lambda;
    return true;
}

/* How much of p the box allows from variable i: 1 = all of it. */
static double allowed(const struct svi_fpgm *s, int i, double p) {
    if (p < 0 && s->a[i] + p < 0)
        return s->a[i] / -p;
    return p > 0 && s->a[i] + p > s->upper[i] ? (s->upper[i] - s->a[i]) / p : 1;
}

/* Goes along p to the first bound, where what is in the way stays. True: all the way. */
static bool advance(struct face *f) {
    struct svi_fpgm *s = f->s;
    double t = 1;
    for (int a = 0; a < f->count; a++)
        t = fmin(t, allowed(s, f->free[a], f->p[a]));
    f->cautious = f->cautious || t <= 0;
    for (int a = 0; a < f->count; a++) {
        const int i = f->free[a];
        const bool stays = t < 1 && allowed(s, i, f->p[a]) <= t;
        if (stays)
            f->state[i] = 0;
        s->a[i] = stays ? (f->p[a] < 0 ? 0 : s->upper[i])
                        : fmin(fmax(s->a[i] + t * f->p[a], 0), s->upper[i]);
    }
    return t >= 1;
}

/* Frees the variables that want to leave their bounds. How many. */
static int release(struct face *f) {
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

bool svi_face_solve(struct svi_fpgm *s) {
    double *const at = s->work + (size_t)s->n * (size_t)s->n;
    struct face f = {.s = s, .free = s->index, .state = s->index + s->n, .matrix = s->work,
                     .g = at, .p = at + s->n, .z = at + 2 * s->n};
    for (int i = 0; i < s->n; i++)
        f.state[i] = inside(s, i);
    for (int k = 0; k < 3 * s->n + 20; k++) {
        if (!factor(&f) || (f.count > 0 && !newton(&f)))
            return false;
        if (f.count > 0 && !advance(&f))
            continue;
        svi_fpgm_gradient(s, s->a, f.g);
        cblas_daxpy(s->n, -s->lambda, s->y, 1, f.g, 1);
        if (release(&f) == 0)
            return svi_fpgm_violation(s, f.g) < s->tol && fabs(svi_fpgm_residual(s)) < s->tol;
    }
    return false;
}
