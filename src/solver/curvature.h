/* curvature.h: the Hessian of the losses, kept from one solve to the next nearly equal one.
 *
 * The generalised Hessian of the squared hinge is I + 2 sum cost_i z_i z_i' over the rows whose margin is
 * below 1. While a window slides, few rows leave it, come, or change sides, so the sum is brought up to date
 * by these alone: as many rank-one changes as there are such rows. */
#ifndef SVI_CURVATURE_H
#define SVI_CURVATURE_H

#include "linalg/cholesky.h"
#include "svmstream/solver.h"

#define SVI_CURVATURE_DIM 1500 /* coordinates up to which a Hessian is made and factored */

/* The caller owns the arrays. A row that came has weight 0; one that left is to be taken out of `gram`
 * before. */
struct svi_curvature {
    /* gram and weight belong together, and start.alpha holds the multipliers of start.w, NAN where they are
     * to be computed. False: nothing of it is used, and a method may leave it so. */
    bool known;
    double *gram;   /* dim x dim, row-major, lower triangle: sum weight_i z_i z_i', z = (x, bias_value) */
    double *weight; /* n */
};

/* Makes `weight` (n) the weights, by the rows that changed, or from scratch when these are as
 * many as count at all. SVS_NO_MEMORY: it is not known any more. */
svs_code svi_curvature_update(struct svi_curvature *c, const svs_rows *rows, double bias_value,
                              const double *weight, svs_error *err);

/* step = -(unit gram, with that diagonal)^-1 g, of n coordinates; factor: n x n of room. False: it has no
 * factor. */
bool svi_curvature_step(const struct svi_curvature *c, double unit, const struct svi_diagonal *add, int n,
                        const double *g, double *factor, double *step);

/* svs_solve for a caller that solves nearly the same problem again and again; NULL: nothing is kept. The
 * curvature is of use to `newton` with the loss of p = 2 and no free bias; it is left as of the last step. */
svs_code svi_curvature_solve(struct svi_curvature *c, const svs_problem *p, const svs_solve_options *o,
                             const svs_start *start, svs_solution *out, svs_error *err);

#endif
