/* newton_primal.h: Newton's method on the squared hinge itself, from a start that is near. */
#ifndef SVI_NEWTON_PRIMAL_H
#define SVI_NEWTON_PRIMAL_H

#include "solver/solver_internal.h"

/* Can it take this problem? p = 2, R = L2, no free bias, a curvature to keep, and a Hessian that can be
 * factored.
 */
bool svi_newton_primal_takes(const struct svi_work *w);

/* From w->v on, whose multipliers are in w->alpha. *reached: w->v and w->alpha meet the tolerance, and that
 * is proven (w->proven); otherwise v is no worse than the start, and w->stop says why it ended. */
svs_code svi_newton_primal(struct svi_work *w, bool *reached, svs_error *err);

#endif
