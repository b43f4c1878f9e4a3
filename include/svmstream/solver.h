/* solver.h: the batch solvers, with one interface: a two-class (or real-valued) problem and an optional
 * start in, a solution with its certificate out.
 *
 *     min_{w,b}  R(w)  +  C sum_i cost_i loss(y_i, w'x_i + b)
 *
 *     R:    |w|^2/2 (SVS_L2; with an appended bias (|w|^2 + b^2)/2),
 *           or |w|_1 (SVS_L1; with an appended bias |w|_1 + |b|)
 *     loss: (1 - y f)_+^p, y in {-1, +1}, 1 <= p <= 2 (hinge: p = 1 is "L1 loss", p = 2 "L2 loss"),
 *           or (y - f)^2 (squared)
 *
 * For nonlinear kernels the same in the kernel's feature space. Objectives always follow the paper's formula,
 * so figures of different solvers can be compared.
 *
 * Duality, hinge with R = SVS_L2. Dual variables are alpha_i >= 0, with alpha_i <= C cost_i when p = 1, and
 * sum_i y_i alpha_i = 0 when the bias is free. Let
 *
 *     u = sum_i y_i alpha_i x_i,   s_i = (alpha_i / (p C cost_i))^(1/(p-1)) (0 for p = 1)
 *     D(alpha) = sum_i alpha_i (1 - (1 - 1/p) s_i) - |u|^2/2
 *
 * Then D(alpha) <= optimum <= objective, so gap = objective - D(alpha) bounds the distance of a solution from
 * the optimum. At the optimum w = u and alpha_i = C cost_i p (1 - y_i f_i)_+^(p-1) for p > 1. With the
 * squared loss alpha_i = 2 C cost_i (1 - y_i f_i), of either sign.
 *
 * Stopping: gap <= tol * objective. The test uses the current point only, never the first one, so a good
 * start stops sooner. Since the final objective never exceeds objective(0) = C sum cost_i, it is also
 * relative to w = 0.
 *
 * Each call uses one thread; no state outlives a call. */
#ifndef SVMSTREAM_SOLVER_H
#define SVMSTREAM_SOLVER_H

#include <stdbool.h>

#include "svmstream/kernel.h"
#include "svmstream/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(CONSTANT, name, "what it is") */
#define SVS_SOLVERS(X)                                                                                       \
    X(AUTO, "auto", "picks one by loss, size, density and kernel, and says which and why")                   \
    X(ALM, "alm", "augmented Lagrangian, exact step (Nie et al. 2014, Algorithm 1), Newton finish")          \
    X(ALM_INEXACT, "alm-inexact", "augmented Lagrangian, gradient step of optimal length (Algorithm 2)")     \
    X(NEWTON, "newton",                                                                                      \
      "augmented Lagrangian, both steps at once by Newton's method, from samples to all rows")               \
    X(DCD, "dcd", "dual coordinate descent with shrinking (Hsieh et al. 2008)")                              \
    X(NESVM, "nesvm", "Nesterov's method on the smoothed hinge, homotopy (Zhou, Tao, Wu 2010)")              \
    X(ALSVM, "alsvm", "least squares in closed form by one pass (Le et al. 2015)")                           \
    X(FALSVM, "falsvm", "the same over misclassified samples only")                                          \
    X(ALFPGM, "alfpgm", "kernel SVM: decomposition, augmented Lagrangian, fast projected gradient (2022)")   \
    X(SGD_LSSVM, "sgd-lssvm",                                                                                \
      "kernel least squares: steepest sub-gradient, conjugate gradients (Nguyen et al. 2015)")

typedef enum svs_solver {
#define X(constant, name, text) SVS_SOLVER_##constant,
    SVS_SOLVERS(X)
#undef X
        SVS_SOLVER_COUNT
} svs_solver;

/* The name ("alm-inexact") and the sentence of a solver. Static. */
SVS_API const char *svs_solver_name(svs_solver s);
SVS_API const char *svs_solver_text(svs_solver s);
/* The solver of that name, or SVS_SOLVER_COUNT. */
SVS_API svs_solver svs_solver_find(const char *name);

typedef enum svs_loss { SVS_HINGE = 0, SVS_SQUARED } svs_loss;
typedef enum svs_penalty { SVS_L2 = 0, SVS_L1 } svs_penalty;
typedef enum svs_bias {
    SVS_BIAS_APPENDED = 0, /* a constant feature `bias_value`, penalised like the others: LIBLINEAR's -B */
    SVS_BIAS_FREE,         /* not penalised: LIBSVM's, and Nie et al. */
    SVS_BIAS_NONE
} svs_bias;

typedef struct svs_problem {
    svs_rows rows;
    const double *y;    /* n values: -1 or +1; with the squared loss any finite ones */
    const double *cost; /* n factors of C, finite, > 0 (sample weight times class weight); NULL = all 1 */
    double C;           /* finite, > 0 */
    svs_loss loss;
    double p; /* hinge: 1 to 2 */
    svs_penalty penalty;
    svs_bias bias;
    double bias_value; /* appended: > 0, normally 1 */
    svs_kernel kernel; /* SVS_LINEAR: the linear problem in w, solved without kernels except by alfpgm and
                          sgd-lssvm */
} svs_problem;

/* A starting point. Every pointer may be NULL; nothing is written. */
typedef struct svs_start {
    const double *w;     /* d weights */
    double b;            /* with w; the appended constant's share of f, i.e. f = w'x + b in all bias forms */
    const double *alpha; /* n dual variables, clipped into their box; NAN = unknown: taken from the hinge
                            residual under w */
    const double *gram;  /* linear: sum_i z_i z_i' with z = (x, 1), unweighted, (d+1) x (d+1) row-major, lower
                            triangle; the appended or free bias last, a plain 1. Saves `alm` the Gram pass */
} svs_start;

/* The progress report of a running solver. */
typedef struct svs_progress {
    svs_solver solver;
    int64_t iteration;
    double objective; /* best so far; NAN = not known yet */
    double gap;       /* NAN = not known */
    double seconds;   /* since svs_solve was called */
} svs_progress;

typedef struct svs_solve_options {
    svs_solver solver;
    double tol;             /* > 0 */
    int64_t max_iterations; /* of the solver's own kind; 0 = its default */
    double max_seconds;     /* 0 = no limit */
    uint64_t seed;          /* of permutations; the same seed, the same solution */
    double mu;        /* alm, alm-inexact: penalty; nesvm: smoothing at the end; 0 = the solver's choice */
    double cache_mib; /* kernel solvers: memory for kernel rows, >= 1 */
    int pairs;        /* alfpgm: pairs in the working set (50 to 100 is best), >= 1 */
    bool limiter;     /* alfpgm: the paper's MinMaxLimiter instead of carrying the free half over */
    bool finish;      /* sgd-lssvm: conjugate gradients may finish; alm: Newton steps may */
    bool (*progress)(void *user, const svs_progress *now); /* NULL = none; returning false stops the solver */
    void *user;
} svs_solve_options;

/* auto, 1e-3, 0, 0, 1, 0, 256, 50, false, true, NULL. */
SVS_API void svs_solve_options_default(svs_solve_options *o);

typedef enum svs_stop {
    SVS_STOP_TOL = 0,    /* gap <= tol * objective (sgd-lssvm and alfpgm: their KKT residual as well) */
    SVS_STOP_ITERATIONS, /* max_iterations */
    SVS_STOP_SECONDS,    /* max_seconds */
    SVS_STOP_STALLED,    /* rounding or smoothing prevents further progress */
    SVS_STOP_USER,       /* the progress callback returned false */
    SVS_STOP_CLOSED      /* a closed form (alsvm, falsvm): nothing to iterate */
} svs_stop;

/* "tolerance reached", "iteration limit reached", ... Static. */
SVS_API const char *svs_stop_text(svs_stop s);

typedef struct svs_solution {
    svs_solver solver; /* the one used, never auto */
    double *w;         /* d weights, raw units of the rows; NULL for nonlinear kernels */
    double b;          /* f = w'x + b in all bias forms (an appended constant is multiplied out) */
    double *alpha; /* n dual variables; NULL for falsvm and for the squared loss on targets other than -1 and
                      +1 */
    int64_t n;     /* of alpha */
    double objective; /* computed from scratch at (w, b), or at alpha for kernels */
    double dual;      /* D(alpha) computed from scratch; -INFINITY: not known */
    double gap;       /* objective - dual, >= 0 up to rounding */
    double kkt;       /* kernel solvers: m(alpha) - M(alpha), or |Q alpha - 1|_inf; NAN otherwise */
    double mu;        /* nesvm: the smoothing it ended with; alm: the last penalty; NAN otherwise */
    int64_t iterations;
    double seconds;
    svs_stop stop;
    bool converged; /* the certificate, computed at the end, meets tol */
    char note[240]; /* in words: the choice of auto and its reason, the solver that finished, and advice when
                       it has not converged; or "" */
} svs_solution;

/* Solves the problem. Returns SVS_OK even without convergence: check `converged`. Failures: SVS_INVALID (C,
 * p, cost, bias, tol; a combination that the solver does not support, naming one that does), SVS_BAD_LABEL (a
 * hinge label other than -1 and +1), SVS_ONE_CLASS, SVS_NOT_FINITE, SVS_NO_MEMORY, SVS_NUMERIC. On success
 * *out owns its arrays: free them with svs_solution_clear. */
SVS_API svs_code svs_solve(const svs_problem *p, const svs_solve_options *o, const svs_start *start,
                           svs_solution *out, svs_error *err);
SVS_API void svs_solution_clear(svs_solution *s);

#ifdef __cplusplus
}
#endif
#endif
