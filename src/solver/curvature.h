/* curvature.h: the Hessian of the losses, kept from one solve to the next nearly equal one.
 *
 * The generalised Hessian of the squared hinge is I + 2 sum cost_i z_i z_i' over the rows whose margin is
 * below 1. While a window slides, few rows are removed, added, or cross the margin, so the sum is updated by
 * one rank-one change for each of them. */
#ifndef SVI_CURVATURE_H
#define SVI_CURVATURE_H

#include "linalg/cholesky.h"
#include "svmstream/solver.h"

#define SVI_CURVATURE_DIM 1500 /* largest number of coordinates for which a Hessian is made and factored */

/* The caller owns the arrays. It sets the weight of an added row to 0, and subtracts a removed row from
 * `gram` before the solve. */
struct svi_curvature {
    /* gram and weight are consistent, and start.alpha has the multipliers of start.w, NAN where they have to
     * be computed. False: the content is not used, and a method need not make it. */
    bool known;
    double *gram;   /* dim x dim, row-major, lower triangle: sum weight_i z_i z_i', z = (x, bias_value) */
    double *weight; /* n */
};

/* Sets the weights of all n rows: updates gram by the rows whose weight changes, or computes it from scratch
 * if these are as many as the rows with a weight. SVS_NO_MEMORY: no longer `known`. */
svs_code svi_curvature_update(struct svi_curvature *c, const svs_rows *rows, double bias_value,
                              const double *weight, svs_error *err);

/* step = -(unit gram + diagonal `add`)^-1 g, n coordinates; factor: n x n doubles of scratch. False: the
 * matrix cannot be factored. */
bool svi_curvature_step(const struct svi_curvature *c, double unit, const struct svi_diagonal *add, int n,
                        const double *g, double *factor, double *step);

/* svs_solve for a caller that solves nearly the same problem repeatedly; c may be NULL. Only `newton` with p
 * = 2 and no free bias uses the curvature, and leaves that of its last step. */
svs_code svi_curvature_solve(struct svi_curvature *c, const svs_problem *p, const svs_solve_options *o,
                             const svs_start *start, svs_solution *out, svs_error *err);

#endif
