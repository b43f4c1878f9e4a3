/* least_squares.h: the squared loss in closed form, for any weights of the rows. */
#ifndef SVI_LEAST_SQUARES_H
#define SVI_LEAST_SQUARES_H

#include "solver/solver_internal.h"

/* w->v, from where it is, becomes the solution of (I + sum weight_i x_i x_i') v = sum weight_i y_i x_i.
 * SVS_NO_MEMORY, SVS_NUMERIC. */
svs_code svi_least_squares(struct svi_work *w, const double *weight, svs_error *err);

#endif
