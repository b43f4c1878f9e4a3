/* solver_internal.h: shared by the frame (solver.c) and the methods: the checked problem, the row of a method
 * in the frame's table, the clock and the stopping rule.
 *
 * A new solver is a row X(NAME, ...) of SVS_SOLVERS (svmstream/solver.h) and a file that defines
 * svi_method_NAME: the problems that it can solve, and the function that solves them. The frame checks the
 * problem against that, makes the start, calls the function, recomputes objective, dual and gap from scratch
 * (certificate.c) and fills in the solution. Methods that `auto` never chooses are in papers/. */
#ifndef SVI_SOLVER_INTERNAL_H
#define SVI_SOLVER_INTERNAL_H

#include "base/pool.h"
#include "linalg/sparse_rows.h"
#include "solver/curvature.h"
#include "svmstream/solver.h"

/* One solve. The method reads the upper part and leaves its result in the lower. */
struct svi_work {
    const svs_problem *problem; /* checked; kernel.gamma is never 0 */
    const svs_solve_options *o; /* solver is the method's own, never auto */
    const svs_start *start;     /* never NULL */
    const struct svi_kernels *kernels;
    int64_t n;     /* rows */
    int d, dim;    /* features; coordinates of w and bias together: d, or d + 1 with a bias of any kind */
    int penalised; /* coordinates in R: dim, but d with a free bias */
    double
        bias_value; /* the constant that multiplies coordinate d: bias_value (appended), 1 (free), 0 (none) */
    double *cost;   /* n upper bounds C cost_i */

    /* In: the start (w = 0 without one), with start.alpha clipped or, where NAN or absent with a given w,
     * computed from the hinge residual. Out: the best point found. v[0 .. d) = w, v[d] = weight of the
     * constant, so f = w'x + v[d] bias_value. svi_padded(dim) values, zero from dim on, aligned. Nonlinear
     * kernels: v[0] is the constant of f, and v has nothing else. */
    double *v;
    double *alpha; /* n; in [0, cost_i] for p = 1, >= 0 for p > 1, any sign for the squared loss */
    bool warm;     /* a start was given: w or alpha */
    struct svi_curvature *curvature; /* kept from solve to solve; NULL: none is */
    bool proven; /* objective and dual are those of svi_certify_primal at v and alpha, so the frame keeps them
                  */

    /* Out. */
    double objective, dual; /* according to the method; the frame recomputes both for linear problems */
    double kkt, mu;         /* as in svs_solution; NAN unless set */
    int64_t iterations;
    svs_stop stop;
    char note[160];

    double started; /* svi_monotonic() when the solve began */
};

/* What a method can do; a problem needs one bit of each group, and SVI_L1 for R = |w|_1. */
enum {
    SVI_LINEAR = 1, /* kernel */
    SVI_NONLINEAR = 2,
    SVI_HINGE_1 = 4, /* loss: hinge with p = 1, p = 2, and p between them; squared */
    SVI_HINGE_2 = 8,
    SVI_HINGE_BETWEEN = 16,
    SVI_SQUARES = 32,
    SVI_L1 = 64,
    SVI_APPENDED = 128, /* bias */
    SVI_FREE = 256,
    SVI_NONE = 512,
    SVI_ANY_HINGE = SVI_HINGE_1 | SVI_HINGE_2 | SVI_HINGE_BETWEEN,
    SVI_ANY_BIAS = SVI_APPENDED | SVI_FREE | SVI_NONE
};

struct svi_method {
    svs_code (*solve)(struct svi_work *w,
                      svs_error *err); /* SVS_OK, SVS_NO_MEMORY, SVS_NUMERIC with a text */
    unsigned can;
    const char *does; /* the same in words */
};

#define X(constant, name, text) extern const struct svi_method svi_method_##constant;
SVS_SOLVERS(X)
#undef X

/* svs_solve; `curvature` is kept from solve to solve and may be NULL. */
svs_code svi_work_solve(const svs_problem *problem, const svs_solve_options *options, const svs_start *start,
                        struct svi_curvature *curvature, svs_solution *out, svs_error *err);

/* To be called about once an iteration, AFTER w->iterations was advanced: reports to the progress callback
 * (objective, gap may be NAN) and checks the limits. True: stop now; w->stop has the reason.
 * `default_iterations` is the limit if the options set none. */
bool svi_work_stop(struct svi_work *w, double objective, double gap, int64_t default_iterations);

/* Is gap <= tol * objective? */
static inline bool svi_work_reached(const struct svi_work *w, double objective, double gap) {
    return gap <= w->o->tol * objective;
}

/* f = scores at v, of rows first .. first + count - 1. */
static inline void svi_work_scores(const struct svi_work *w, int64_t first, int64_t count, const double *v,
                                   double *f) {
    svi_rows_multiply(w->kernels, &w->problem->rows, first, count, v, w->bias_value, f);
}

/* v += sum s_i (x_i, bias_value) over rows first .. first + count - 1. */
static inline void svi_work_add(const struct svi_work *w, int64_t first, int64_t count, const double *s,
                                double *v) {
    svi_rows_add(w->kernels, &w->problem->rows, first, count, s, v, w->bias_value);
}

/* v += sum y_i alpha_i (x_i, one) over all rows. */
static inline void svi_work_add_duals(const struct svi_work *w, double one, double *v) {
    for (int64_t i = 0; i < w->n; i++) {
        const double s = w->problem->y[i] * w->alpha[i];
        if (w->alpha[i] != 0)
            svi_rows_add(w->kernels, &w->problem->rows, i, 1, &s, v, one);
    }
}

static inline void svi_work_clear(const struct svi_work *w, double *v) {
    memset(v, 0, (size_t)svi_padded(w->dim) * sizeof *v);
}

static inline void svi_work_copy(const struct svi_work *w, double *to, const double *from) {
    memcpy(to, from, (size_t)svi_padded(w->dim) * sizeof *to);
}

/* Rows of the block that begins at row i. */
static inline int64_t svi_work_block(const struct svi_work *w, int64_t i, int64_t block) {
    return w->n - i < block ? w->n - i : block;
}

#endif
