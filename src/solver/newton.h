/* newton.h: the augmented Lagrangian minimised in w and e together, by Newton steps.
 *
 * e is eliminated by its closed form (loss.h). The augmented Lagrangian (Nie et al. 2014, Eq. 8) at
 * multipliers alpha is then
 *
 *     phi(v) = R(v) + sum_i M_i(tau_i),   M_i' = a_i = mu (tau_i - s_i),
 *     tau_i = 1 - y_i f_i + alpha_i / mu.
 *
 * It is once differentiable, with the generalised Hessian R'' + sum_i h_i x_i x_i', h_i = mu (1 -
 * ds/dtau). For p = 1 h_i is mu on the band J = {0 < a_i < cost_i} and 0 elsewhere. For p = 2 mu
 * may be infinite, and this is Newton's method on the primal itself. Every point gives a feasible
 * dual point a and so a certified gap for nothing.
 *
 * At the inner minimum v = sum y a x. Then alpha <- a, mu grows so that a smaller band remains, and
 * the gap falls faster than linearly. A gap of 1e-8 takes some tens of steps, whatever the scales
 * of the columns.
 *
 * Cost: a step is two passes over the rows and a rank update of the Gram matrix of the band for the rows that
 * entered or left it. */
#ifndef SVI_NEWTON_H
#define SVI_NEWTON_H

#include "solver/solver_internal.h"

/* A subproblem: every `step`-th row, each counting `step` times. */
struct svi_sample {
    svs_rows rows;
    int64_t n, step;
};

struct svi_sample svi_sample_every(const struct svi_work *w, int64_t step);

/* Start and stopping rule. */
struct svi_newton_plan {
    struct svi_sample sample;
    double tol;    /* gap <= tol * objective */
    int64_t steps; /* limit; 0 = a high default */
    /* alpha starts as this share of cost, 0 to 1, for a v near the solution without multipliers; below 0: as
     * w->alpha */
    double share;
    /* the first mu, in units of the mean cost: the band is 1/sharpness wide; not for p = 2 */
    double sharpness;
};

struct svi_newton_end {
    bool reached; /* the gap met plan->tol; otherwise w->stop says why it ended */
    double share; /* sum of the multipliers in units of all costs: small when the classes are (nearly)
                     separable */
};

/* Starts at w->v; leaves the v with the smallest gap there and, with step 1, its multipliers in w->alpha. */
svs_code svi_newton(struct svi_work *w, const struct svi_newton_plan *plan, struct svi_newton_end *end,
                    svs_error *err);

#endif
