/* work.h: what every method shares: the checked problem, the clock and stopping rule, and the certificate.
 *
 * A method is one file with one function `svi_solve_NAME(struct svi_work *)` and one row in the table of
 * solver.c, which says what it can do. The frame (solver.c) checks the problem against that row, makes the
 * start (start.c), calls the method, recomputes objective, dual and gap from scratch (certificate.c) and
 * fills the solution. */
#ifndef SVI_SOLVER_WORK_H
#define SVI_SOLVER_WORK_H

#include "linalg/rows.h"
#include "svmstream/solver.h"

/* One solve. The method reads the upper part and leaves its result in the lower. */
struct svi_work {
    const svs_problem *problem; /* checked; kernel.gamma is never 0 */
    const svs_solve_options *o; /* solver is the method's own, never auto */
    const svs_start *start;     /* never NULL */
    const struct svi_kernels *kernels;
    int d, dim;        /* features; coordinates of w and bias together: d, or d + 1 with a bias of any kind */
    double bias_value; /* the constant that multiplies coordinate d: bias_value (appended), 1 (free); unused
                          otherwise */
    double *cost;      /* n upper bounds C cost_i */

    /* In: the start (w = 0 without one), with start.alpha clipped or, where NAN or absent with a given w,
     * taken from the hinge residual. Out: the best point found. v[0 .. d) = w, v[d] = weight of the constant,
     * so f = w'x + v[d] bias_value. Room for svi_padded(dim) values, zero behind dim, aligned. Nonlinear
     * kernels: v holds the bias alone at v[0], and it is f's constant. */
    double *v;
    double *alpha; /* n; in [0, cost_i] for p = 1, >= 0 for p > 1, any sign for the squared loss */
    bool warm;     /* a start was given: w or alpha */

    /* Out. */
    double objective, dual; /* what the method believes; the frame recomputes both for linear problems */
    double kkt, mu;         /* as in svs_solution; NAN unless set */
    int64_t iterations;
    svs_stop stop;
    char note[160];

    double started, told; /* clock */
};

/* Seconds since the solve began. */
double svi_work_seconds(const struct svi_work *w);

/* To be called about once an iteration: tells the progress callback (objective, gap may be NAN) and looks at
 * the limits. True: stop now; w->stop says why. `default_iterations` holds when the options set none. Call it
 * AFTER w->iterations was advanced. */
bool svi_work_stop(struct svi_work *w, double objective, double gap, int64_t default_iterations);

/* Is gap <= tol * objective? */
static inline bool svi_work_reached(const struct svi_work *w, double objective, double gap) {
    return gap <= w->o->tol * objective;
}

/* certificate.c: from scratch, at (v, alpha), any linear problem. */
struct svi_certificate {
    double objective, dual, gap;
};

/* objective of v: R(v) + sum cost_i loss_i. */
double svi_objective(const struct svi_work *w, const double *v);

/* Objective and dual value. alpha is first repaired (in a copy) so that it is feasible: clipped into its box;
 * with a free bias the heavier side is scaled down until sum y alpha = 0; with R = L1 it counts as scaled
 * until |sum y alpha x|_inf <= 1. alpha == NULL: made from v by alpha_i = cost_i p (1 - y f)_+^(p-1). Squared
 * loss: the dual variables are made from v in any case. `work`: svi_padded(dim) + n doubles, aligned. */
void svi_certify(const struct svi_work *w, const double *v, const double *alpha, double *work,
                 struct svi_certificate *out);

/* The methods. SVS_OK, SVS_NO_MEMORY, SVS_NUMERIC (with a text). */
svs_code svi_solve_alm(struct svi_work *w, svs_error *err);
svs_code svi_solve_alm_inexact(struct svi_work *w, svs_error *err);
svs_code svi_solve_newton(struct svi_work *w, svs_error *err);
svs_code svi_solve_dcd(struct svi_work *w, svs_error *err);
svs_code svi_solve_nesvm(struct svi_work *w, svs_error *err);
svs_code svi_solve_alsvm(struct svi_work *w, svs_error *err);
svs_code svi_solve_falsvm(struct svi_work *w, svs_error *err);
svs_code svi_solve_alfpgm(struct svi_work *w, svs_error *err);
svs_code svi_solve_sgd_lssvm(struct svi_work *w, svs_error *err);

#endif
