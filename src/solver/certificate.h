/* certificate.h: objective, dual value and duality gap of a point, computed from scratch, for any linear
 * problem. */
#ifndef SVI_CERTIFICATE_H
#define SVI_CERTIFICATE_H

#include <float.h>

#include "solver/solver_internal.h"

struct svi_certificate {
    double objective, dual, gap;
};

/* Objective of v: R(v) + sum cost_i loss_i. */
double svi_objective(const struct svi_work *w, const double *v);

/* Objective and dual value at (v, alpha). A copy of alpha is made feasible first: it is clipped
 * into its box. With a free bias the heavier side is scaled down until sum y alpha = 0. With R = L1
 * alpha is scaled until |sum y alpha x|_inf <= 1.
 *
 * alpha == NULL: computed from v by alpha_i = cost_i p (1 - y f)_+^(p-1). With the squared loss the
 * dual variables are always computed from v. `scratch`: svi_certify_doubles(w) doubles, aligned. */
void svi_certify(const struct svi_work *w, const double *v, const double *alpha, double *scratch,
                 struct svi_certificate *out);

/* The certificate of w->v with w->alpha; if that misses the tolerance and p > 1, with the multipliers
 * computed from v, provided that they give a smaller gap. SVS_NO_MEMORY. */
svs_code svi_certify_best(const struct svi_work *w, struct svi_certificate *out, svs_error *err);

/* The certificate with the multipliers computed from v, which are written to alpha (n values), and u = sum y
 * alpha (x, bias_value), in one pass over the rows. Only for the hinge with p = 2, R = L2, and no free bias:
 * there v - u is the gradient of the objective, and half its squared norm the gap. */
void svi_certify_primal(const struct svi_work *w, const double *v, double *alpha, double *u,
                        struct svi_certificate *out);

static inline size_t svi_certify_doubles(const struct svi_work *w) {
    return (size_t)svi_padded(w->dim) + (size_t)w->n;
}

/* Scales the alpha of the heavier side down until sum y alpha = 0, as a free bias requires. */
void svi_balance(const struct svi_work *w, double *alpha);

/* alpha clipped into the box of row i; the squared loss has none. */
static inline double svi_boxed(const struct svi_work *w, int64_t i, double alpha) {
    if (w->problem->loss == SVS_SQUARED)
        return alpha;
    const double most = w->problem->p == 1 ? w->cost[i] : DBL_MAX;
    return !(alpha > 0) ? 0 : alpha > most ? most : alpha;
}

#endif
