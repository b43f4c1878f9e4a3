#include "solver/certificate.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "solver/loss.h"

#define BLOCK 256
#define LANES 4

/* Sums by blocks: the sum of a block is small against the total, so rounding grows with the number of
 * blocks, not of rows. */
double svi_objective(const struct svi_work *w, const double *v) {
    const svs_problem *p = w->problem;
    double f[BLOCK], total = 0, penalty = 0;
    for (int j = 0; j < w->penalised; j++)
        penalty += p->penalty == SVS_L1 ? fabs(v[j]) : 0.5 * v[j] * v[j];
    for (int64_t i = 0; i < w->n; i += BLOCK) {
        int64_t count = svi_work_block(w, i, BLOCK);
        double sum = 0;
        svi_work_scores(w, i, count, v, f);
        for (int64_t k = 0; k < count; k++)
            sum += w->cost[i + k] * svi_loss(p, p->y[i + k], f[k]);
        total += sum;
    }
    return penalty + total;
}

/* Scales the heavier side down until sum y alpha = 0. Scaling down stays inside the box; raising the other
 * side might not. */
void svi_balance(const struct svi_work *w, double *alpha) {
    const svs_problem *p = w->problem;
    double side[2] = {0, 0};
    for (int64_t i = 0; i < w->n; i++)
        side[p->y[i] > 0] += alpha[i];
    int heavy = side[1] > side[0];
    /* Both sums are equal afterwards; without any multiplier on the heavy side both are 0 already. */
    double keep = side[heavy] > 0 ? side[!heavy] / side[heavy] : 1;
    for (int64_t i = 0; i < w->n; i++)
        if ((p->y[i] > 0) == heavy)
            alpha[i] *= keep;
}

/* The dual value for R = |w|_1, of alpha scaled down until no coordinate of u = sum y alpha x exceeds 1:
 * then the conjugate of |w|_1 is 0. */
static double certificate_dual_l1(const struct svi_work *w, const double *alpha, const double *u) {
    double largest = 1, sum = 0;
    for (int j = 0; j < w->penalised; j++)
        largest = fmax(largest, fabs(u[j]));
    for (int64_t i = 0; i < w->n; i++)
        sum += svi_gain(w->problem->p, w->cost[i], alpha[i] / largest);
    return sum;
}

/* D(alpha) = sum gain(alpha) - 1/2 |u|^2, u = sum y alpha (x, bias_value). */
static double certificate_dual_value(const struct svi_work *w, const double *alpha, double *u) {
    const svs_problem *p = w->problem;
    double s[BLOCK], total = 0;
    svi_work_clear(w, u);
    for (int64_t i = 0; i < w->n; i += BLOCK) {
        int64_t count = svi_work_block(w, i, BLOCK);
        double sum = 0;
        for (int64_t k = 0; k < count; k++) {
            s[k] = p->y[i + k] * alpha[i + k];
            sum += svi_gain(p->p, w->cost[i + k], alpha[i + k]);
        }
        svi_work_add(w, i, count, s, u);
        total += sum;
    }
    if (p->penalty == SVS_L1)
        return certificate_dual_l1(w, alpha, u);
    /* with a free bias sum y alpha is 0, up to rounding */
    return total - 0.5 * svi_dot(u, u, w->penalised);
}

/* Squared loss: with the residual r = y - f the coefficient of x_i is a = 2 cost r, its gain a y - a^2 / (4
 * cost). */
static double certificate_dual_squared(const struct svi_work *w, const double *v, double *a, double *u) {
    const svs_problem *p = w->problem;
    double total = 0, sum = 0;
    svi_work_scores(w, 0, w->n, v, a);
    for (int64_t i = 0; i < w->n; i++)
        a[i] = 2 * w->cost[i] * (p->y[i] - a[i]);
    if (p->bias == SVS_BIAS_FREE) { /* sum a = 0, by an equal shift of all */
        for (int64_t i = 0; i < w->n; i++)
            sum += a[i];
        for (int64_t i = 0; i < w->n; i++)
            a[i] -= sum / (double)w->n;
    }
    svi_work_clear(w, u);
    for (int64_t i = 0; i < w->n; i++)
        total += a[i] * p->y[i] - a[i] * a[i] / (4 * w->cost[i]);
    svi_work_add(w, 0, w->n, a, u);
    return total - 0.5 * svi_dot(u, u, w->penalised);
}

/* The dual point is repaired first (certificate.h): a gap proves nothing unless alpha is feasible. */
void svi_certify(const struct svi_work *w, const double *v, const double *alpha, double *scratch,
                 struct svi_certificate *out) {
    const svs_problem *p = w->problem;
    double *u = scratch, *mine = scratch + svi_padded(w->dim);
    out->objective = svi_objective(w, v);
    if (p->loss == SVS_SQUARED) {
        out->dual = certificate_dual_squared(w, v, mine, u);
    } else {
        if (!alpha)
            svi_work_scores(w, 0, w->n, v, mine);
        for (int64_t i = 0; i < w->n; i++)
            mine[i] =
                svi_boxed(w, i, alpha ? alpha[i] : svi_dual_of(p->p, w->cost[i], 1 - p->y[i] * mine[i]));
        if (p->bias == SVS_BIAS_FREE)
            svi_balance(w, mine);
        out->dual = certificate_dual_value(w, mine, u);
    }
    /* Never below 0 but by rounding (weak duality). */
    out->gap = out->objective - out->dual;
}

/* Costs a pass over the rows or two, once a solve. */
svs_code svi_certify_best(const struct svi_work *w, struct svi_certificate *out, svs_error *err) {
    const svs_problem *p = w->problem;
    struct svi_certificate of_v;
    double *scratch = svi_alloc_array(svi_certify_doubles(w), sizeof *scratch);
    if (!scratch)
        return svi_fail_memory(err, "the certificate");
    svi_certify(w, w->v, w->alpha, scratch, out);
    /* For p > 1 the multipliers that belong to v may prove more than those a method kept; for p = 1 they
     * jump between 0 and C, and prove nothing near the margin. */
    if (p->loss == SVS_HINGE && p->p > 1 && !svi_work_reached(w, out->objective, out->gap)) {
        svi_certify(w, w->v, NULL, scratch, &of_v);
        if (of_v.dual > out->dual)
            *out = of_v;
    }
    svi_free(scratch);
    return SVS_OK;
}

/* One block: scores become y times multipliers in s. Returns the loss; in lanes, so that no addition waits
 * for the one before it. */
static double certificate_block(const double *restrict y, const double *restrict cost, int64_t count,
                                double *restrict alpha, double *restrict s) {
    double losses[LANES] = {0}, rest = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const double margin = svi_positive(1 - y[i + k] * s[i + k]), half = cost[i + k] * margin;
            alpha[i + k] = 2 * half;
            s[i + k] = y[i + k] * (2 * half);
            losses[k] += half * margin;
        }
    for (; i < count; i++) {
        const double margin = svi_positive(1 - y[i] * s[i]);
        alpha[i] = 2 * cost[i] * margin;
        s[i] = y[i] * alpha[i];
        rest += cost[i] * margin * margin;
    }
    return ((losses[0] + losses[1]) + (losses[2] + losses[3])) + rest;
}

void svi_certify_primal(const struct svi_work *w, const double *v, double *alpha, double *u,
                        struct svi_certificate *out) {
    double s[BLOCK], loss = 0, square = 0;
    svi_work_clear(w, u);
    for (int64_t i = 0; i < w->n; i += BLOCK) {
        const int64_t count = svi_work_block(w, i, BLOCK);
        svi_work_scores(w, i, count, v, s);
        loss += certificate_block(w->problem->y + i, w->cost + i, count, alpha + i, s);
        svi_work_add(w, i, count, s, u);
    }
    for (int j = 0; j < w->dim; j++)
        square += (v[j] - u[j]) * (v[j] - u[j]);
    out->objective = 0.5 * svi_dot(v, v, w->dim) + loss;
    out->gap = 0.5 * square; /* what the losses and their conjugates add to it is 0 */
    out->dual = out->objective - out->gap;
}
