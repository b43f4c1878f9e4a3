#include <float.h>
#include <math.h>
#include <string.h>

#include "linalg/rows.h"
#include "solver/loss.h"
#include "solver/work.h"

#define BLOCK 256

static double penalty(const struct svi_work *w, const double *v) {
    int penalised = w->problem->bias == SVS_BIAS_FREE ? w->d : w->dim;
    double sum = 0;
    for (int j = 0; j < penalised; j++)
        sum += w->problem->penalty == SVS_L1 ? fabs(v[j]) : 0.5 * v[j] * v[j];
    return sum;
}

double svi_objective(const struct svi_work *w, const double *v) {
    const svs_problem *p = w->problem;
    double f[BLOCK], total = 0;
    for (int64_t i = 0; i < p->rows.n; i += BLOCK) {
        int64_t count = p->rows.n - i < BLOCK ? p->rows.n - i : BLOCK;
        double sum = 0;
        svi_rows_multiply(w->kernels, &p->rows, i, count, v, w->bias_value, f);
        for (int64_t k = 0; k < count; k++)
            sum += w->cost[i + k] * svi_loss(p, p->y[i + k], f[k]);
        total += sum;
    }
    return penalty(w, v) + total;
}

static void fill(const struct svi_work *w, const double *v, double *alpha) {
    const svs_problem *p = w->problem;
    for (int64_t i = 0; i < p->rows.n; i += BLOCK) {
        int64_t count = p->rows.n - i < BLOCK ? p->rows.n - i : BLOCK;
        svi_rows_multiply(w->kernels, &p->rows, i, count, v, w->bias_value, alpha + i);
        for (int64_t k = i; k < i + count; k++)
            alpha[k] = svi_dual_of(p->p, w->cost[k], 1 - p->y[k] * alpha[k]);
    }
}

/* The free bias asks for sum y alpha = 0: the heavier side gives way. */
static void balance(const struct svi_work *w, double *alpha) {
    const svs_problem *p = w->problem;
    double side[2] = {0, 0};
    for (int64_t i = 0; i < p->rows.n; i++)
        side[p->y[i] > 0] += alpha[i];
    int heavy = side[1] > side[0];
    double keep = side[heavy] > 0 ? side[!heavy] / side[heavy] : 1;
    for (int64_t i = 0; i < p->rows.n; i++)
        if ((p->y[i] > 0) == heavy)
            alpha[i] *= keep;
}

/* Scaled until no coordinate of u exceeds 1: then the conjugate of |w|_1 is 0. */
static double dual_l1(const struct svi_work *w, const double *alpha, const double *u) {
    int penalised = w->problem->bias == SVS_BIAS_FREE ? w->d : w->dim;
    double largest = 1, sum = 0;
    for (int j = 0; j < penalised; j++)
        largest = fmax(largest, fabs(u[j]));
    for (int64_t i = 0; i < w->problem->rows.n; i++)
        sum += svi_gain(w->problem->p, w->cost[i], alpha[i] / largest);
    return sum;
}

static double dual_value(const struct svi_work *w, const double *alpha, double *u) {
    const svs_problem *p = w->problem;
    double s[BLOCK], total = 0, square = 0;
    memset(u, 0, (size_t)svi_padded(w->dim) * sizeof *u);
    for (int64_t i = 0; i < p->rows.n; i += BLOCK) {
        int64_t count = p->rows.n - i < BLOCK ? p->rows.n - i : BLOCK;
        double sum = 0;
        for (int64_t k = 0; k < count; k++) {
            s[k] = p->y[i + k] * alpha[i + k];
            sum += svi_gain(p->p, w->cost[i + k], alpha[i + k]);
        }
        svi_rows_add(w->kernels, &p->rows, i, count, s, u, w->bias_value);
        total += sum;
    }
    if (p->penalty == SVS_L1)
        return dual_l1(w, alpha, u);
    int penalised = p->bias == SVS_BIAS_FREE ? w->d : w->dim; /* sum y alpha is 0 then, up to rounding */
    for (int j = 0; j < penalised; j++)
        square += u[j] * u[j];
    return total - 0.5 * square;
}

/* Squared loss: with the residual r = y - f the coefficient of x_i is a = 2 cost r, its gain a y - a^2 / (4
 * cost). */
static double dual_squared(const struct svi_work *w, const double *v, double *a, double *u) {
    const svs_problem *p = w->problem;
    double total = 0, square = 0, sum = 0;
    for (int64_t i = 0; i < p->rows.n; i += BLOCK) {
        int64_t count = p->rows.n - i < BLOCK ? p->rows.n - i : BLOCK;
        svi_rows_multiply(w->kernels, &p->rows, i, count, v, w->bias_value, a + i);
        for (int64_t k = i; k < i + count; k++)
            a[k] = 2 * w->cost[k] * (p->y[k] - a[k]);
    }
    if (p->bias == SVS_BIAS_FREE) { /* sum a = 0, by an equal shift of all */
        for (int64_t i = 0; i < p->rows.n; i++)
            sum += a[i];
        for (int64_t i = 0; i < p->rows.n; i++)
            a[i] -= sum / (double)p->rows.n;
    }
    memset(u, 0, (size_t)svi_padded(w->dim) * sizeof *u);
    for (int64_t i = 0; i < p->rows.n; i++)
        total += a[i] * p->y[i] - a[i] * a[i] / (4 * w->cost[i]);
    svi_rows_add(w->kernels, &p->rows, 0, p->rows.n, a, u, w->bias_value);
    for (int j = 0; j < (p->bias == SVS_BIAS_FREE ? w->d : w->dim); j++)
        square += u[j] * u[j];
    return total - 0.5 * square;
}

static void clip(const struct svi_work *w, double *alpha) {
    const svs_problem *p = w->problem;
    for (int64_t i = 0; i < p->rows.n && p->loss == SVS_HINGE; i++)
        alpha[i] = fmin(fmax(alpha[i], 0), p->p == 1 ? w->cost[i] : DBL_MAX);
}

void svi_certify(const struct svi_work *w, const double *v, const double *alpha, double *work,
                 struct svi_certificate *out) {
    const svs_problem *p = w->problem;
    double *u = work, *mine = work + svi_padded(w->dim);
    out->objective = svi_objective(w, v);
    if (p->loss == SVS_SQUARED) {
        out->dual = dual_squared(w, v, mine, u);
    } else {
        if (alpha)
            memcpy(mine, alpha, (size_t)p->rows.n * sizeof *mine);
        else
            fill(w, v, mine);
        clip(w, mine);
        if (p->bias == SVS_BIAS_FREE)
            balance(w, mine);
        out->dual = dual_value(w, mine, u);
    }
    out->gap = out->objective - out->dual;
}
