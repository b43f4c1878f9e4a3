/* loss.h: the loss, its conjugate and its proximal step, sample by sample.
 *
 * The e-step of the augmented Lagrangian (Nie et al. 2014, Eqs. 10-13) is written here in terms of
 * the margin, with e_i = y_i s_i and the multiplier lambda_i = -y_i alpha_i:
 *
 *     s = argmin  cost s_+^p + mu/2 (s - tau)^2,   tau = 1 - y f + alpha / mu.
 *
 * The multiplier that goes with it is mu (tau - s). It lies in [0, cost] for p = 1 and is >= 0 for
 * p > 1. */
#ifndef SVI_LOSS_H
#define SVI_LOSS_H

#include <math.h>

#include "svmstream/solver.h"

/* gamma = cost / mu; 1 < p < 2, tau > 0. */
double svi_prox_between(double p, double tau, double gamma);

static inline double svi_positive(double x) {
    return x > 0 ? x : 0;
}

/* (1 - y f)_+^p from the margin 1 - y f. */
static inline double svi_hinge(double p, double margin) {
    double s = svi_positive(margin);
    return p == 1 ? s : p == 2 ? s * s : pow(s, p);
}

/* The loss of a score, of either kind. */
static inline double svi_loss(const svs_problem *p, double y, double f) {
    return p->loss == SVS_SQUARED ? (y - f) * (y - f) : svi_hinge(p->p, 1 - y * f);
}

/* Hinge: contribution of alpha >= 0 to the dual: alpha (1 - (1 - 1/p) (alpha / (p cost))^(1/(p-1))). */
static inline double svi_gain(double p, double cost, double alpha) {
    if (p == 1)
        return alpha;
    double s = p == 2 ? alpha / (2 * cost) : pow(alpha / (p * cost), 1 / (p - 1));
    return alpha * (1 - (1 - 1 / p) * s);
}

/* Hinge: the dual variable of a margin 1 - y f, minus the derivative of cost * loss by y f. At p = 1 an end
 * of the box. */
static inline double svi_dual_of(double p, double cost, double margin) {
    double s = svi_positive(margin);
    if (p == 1)
        return margin > 0 ? cost : 0;
    return cost * p * (p == 2 ? s : pow(s, p - 1));
}

static inline double svi_prox(double p, double tau, double gamma) {
    if (p == 1)
        return tau > gamma ? tau - gamma : tau < 0 ? tau : 0;
    if (tau <= 0)
        return tau;
    return p == 2 ? tau / (1 + 2 * gamma) : svi_prox_between(p, tau, gamma);
}

#endif
