/* newton_primal.h: Newton's method on the squared hinge itself, from a start near the solution. */
#ifndef SVI_NEWTON_PRIMAL_H
#define SVI_NEWTON_PRIMAL_H

#include "solver/solver_internal.h"

/* Can it solve this problem? That needs p = 2, R = L2, no free bias, a curvature to keep, and a Hessian small
 * enough to be factored. */
bool svi_newton_primal_takes(const struct svi_work *w);

/* Starts at w->v with its multipliers in w->alpha. *reached: w->v and w->alpha meet the tolerance, which is
 * certified (w->proven); otherwise v is no worse than the start, and w->stop has the reason. */
svs_code svi_newton_primal(struct svi_work *w, bool *reached, svs_error *err);

#endif
