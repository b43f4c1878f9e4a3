/* The frame around every solver. svs_solve checks the numbers and the rows. It then checks the
 * method's row of what it can do against what the problem needs. It picks a method where none was
 * named (solver_auto), makes the start, calls the method, and certifies what the method left.
 *
 * A method is trusted with nothing but its point. For linear problems objective and dual value are
 * computed from scratch here, at the method's alpha. Where that falls short of the tolerance, they
 * are also computed at the alpha that belongs to w. `converged` is what this certificate says, not
 * what the method believed.
 *
 * To read: svs_solve and solver_run at the end, then solver_check_method and solver_auto. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "solver/certificate.h"
#include "solver/loss.h"
#include "solver/solver_internal.h"

/* Above this many coordinates a Newton step costs more than many passes over sparse rows. */
#define GRAM_DIMENSION 1500
#define START_BLOCK    256 /* rows whose duals are made at once */

const struct svi_method svi_method_AUTO = {0}; /* replaced by another before anything is solved */

/* The one list as a table. */
#define X(constant, name, text) &svi_method_##constant,
static const struct svi_method *const solvers[SVS_SOLVER_COUNT] = {SVS_SOLVERS(X)};
#undef X

const char *svs_stop_text(svs_stop s) {
    static const char *const stops[] = {"tolerance reached",     "iteration limit reached",
                                        "time limit reached",    "no further progress",
                                        "stopped by the caller", "closed form"};
    return (unsigned)s < sizeof stops / sizeof *stops ? stops[s] : "";
}

void svs_solve_options_default(svs_solve_options *o) {
    *o = (svs_solve_options){
        .solver = SVS_SOLVER_AUTO, .tol = 1e-3, .seed = 1, .cache_mib = 256, .pairs = 50, .finish = true};
}

/* The user comes first: a progress callback is also how a thread is stopped. */
bool svi_work_stop(struct svi_work *w, double objective, double gap, int64_t default_iterations) {
    const svs_solve_options *o = w->o;
    const double seconds = svi_monotonic() - w->started;
    const svs_progress progress = {o->solver, w->iterations, objective, gap, seconds};
    if (o->progress && !o->progress(o->user, &progress))
        w->stop = SVS_STOP_USER;
    else if (w->iterations >= (o->max_iterations > 0 ? o->max_iterations : default_iterations))
        w->stop = SVS_STOP_ITERATIONS;
    else if (o->max_seconds > 0 && seconds >= o->max_seconds)
        w->stop = SVS_STOP_SECONDS;
    else
        return false;
    return true;
}

/* ---- checks */

/* One row a rule: what must hold, the number that it is about, and what to say when it does not hold. */
static svs_code solver_check_numbers(const svs_problem *p, const svs_solve_options *o, svs_error *err) {
    const svs_kernel *k = &p->kernel;
    const struct {
        bool good;
        double number;
        const char *text;
    } rules[] = {
        {p->C > 0 && isfinite(p->C), p->C, "C is %g; it must be a number above 0"},
        {p->loss != SVS_HINGE || (p->p >= 1 && p->p <= 2), p->p,
         "the exponent p of the hinge loss is %g; it must lie from 1 to 2"},
        {p->bias != SVS_BIAS_APPENDED || (p->bias_value > 0 && isfinite(p->bias_value)), p->bias_value,
         "the appended bias is %g; it must be a number above 0"},
        {o->tol > 0 && isfinite(o->tol), o->tol, "the tolerance is %g; it must be a number above 0"},
        {o->cache_mib >= 1, o->cache_mib, "the kernel cache is %g MiB; it must be at least 1"},
        {o->pairs >= 1, o->pairs, "%.0f pairs; the working set needs at least 1"},
        {o->max_iterations >= 0 && o->max_seconds >= 0 && o->mu >= 0, 0,
         "limits of iterations and seconds and mu must not be negative"},
        {(unsigned)k->kind <= SVS_RBF, (int)k->kind, "unknown kernel %.0f"},
        {k->kind == SVS_LINEAR || (k->gamma >= 0 && isfinite(k->gamma)), k->gamma,
         "gamma is %g; it must be above 0 (or 0 for 1/d)"},
        {k->kind != SVS_POLYNOMIAL || (k->degree >= 1 && k->degree <= 20 && isfinite(k->coef0)), 0,
         "the polynomial kernel needs a degree from 1 to 20 and a finite coef0"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!rules[i].good)
            return svi_fail(err, SVS_INVALID, rules[i].text, rules[i].number);
    return SVS_OK;
}

/* The first row that is wrong is named: data come from files, whose lines can be looked up. */
static svs_code solver_check_labels(const svs_problem *p, bool labels, svs_error *err) {
    int64_t positive = 0;
    for (int64_t i = 0; i < p->rows.n; i++) {
        if (labels ? fabs(p->y[i]) != 1 : !isfinite(p->y[i]))
            return svi_fail(err, labels ? SVS_BAD_LABEL : SVS_NOT_FINITE, "row %lld: y is %g; %s",
                            (long long)i, p->y[i], labels ? "it must be -1 or +1" : "it must be finite");
        if (fabs(p->y[i]) > SVI_VALUE_MAX)
            return svi_fail(err, SVS_TOO_LARGE, "row %lld: y is %g; a target is at most 1e100", (long long)i,
                            p->y[i]);
        if (p->cost && !(p->cost[i] > 0 && isfinite(p->cost[i])))
            return svi_fail(err, SVS_BAD_WEIGHT,
                            "row %lld: its factor of C is %g; it must be a number above 0", (long long)i,
                            p->cost[i]);
        positive += p->y[i] > 0;
    }
    if (labels && (positive == 0 || positive == p->rows.n))
        return svi_fail(err, SVS_ONE_CLASS, "all %lld examples have the label %+d: two classes are needed",
                        (long long)p->rows.n, positive ? 1 : -1);
    return SVS_OK;
}

/* Cheap checks first; the rows themselves last, as they take a pass. */
static svs_code solver_check(const svs_problem *p, const svs_solve_options *o, svs_error *err) {
    if (p->rows.n < 1)
        return svi_fail(err, SVS_EMPTY, "there are no examples to learn from");
    if ((unsigned)o->solver >= SVS_SOLVER_COUNT || (unsigned)p->bias > SVS_BIAS_NONE)
        return svi_fail(err, SVS_INVALID, "unknown solver %d or bias %d", (int)o->solver, (int)p->bias);
    svs_code code = solver_check_numbers(p, o, err);
    return code == SVS_OK ? svs_rows_check(&p->rows, err) : code;
}

/* ---- which solver */

/* The problem as bits, one of each group, to be compared with what a method can do. */
static unsigned solver_needs(const svs_problem *p) {
    static const unsigned biases[] = {
        [SVS_BIAS_APPENDED] = SVI_APPENDED, [SVS_BIAS_FREE] = SVI_FREE, [SVS_BIAS_NONE] = SVI_NONE};
    const unsigned hinge = p->p == 1 ? SVI_HINGE_1 : p->p == 2 ? SVI_HINGE_2 : SVI_HINGE_BETWEEN;
    return (p->kernel.kind == SVS_LINEAR ? SVI_LINEAR : SVI_NONLINEAR) |
           (p->loss == SVS_SQUARED ? SVI_SQUARES : hinge) | (p->penalty == SVS_L1 ? SVI_L1 : 0) |
           biases[p->bias];
}

/* The method for this problem, by what is cheap: never SVS_SOLVER_AUTO. `why` (of `size` bytes) receives the
 * reason in words. */
static svs_solver solver_auto(const svs_problem *p, char *why, size_t size) {
    if (p->kernel.kind != SVS_LINEAR) {
        snprintf(why, size, "auto: a kernel with the %s loss", p->loss == SVS_SQUARED ? "squared" : "hinge");
        return p->loss == SVS_SQUARED ? SVS_SOLVER_SGD_LSSVM : SVS_SOLVER_ALFPGM;
    }
    if (p->loss == SVS_SQUARED) {
        snprintf(why, size, "auto: squared loss has a closed form");
        return p->bias == SVS_BIAS_FREE ? SVS_SOLVER_NESVM : SVS_SOLVER_ALSVM;
    }
    if (p->penalty == SVS_L1) {
        snprintf(why, size, "auto: the only one that handles |w|_1");
        return SVS_SOLVER_NESVM;
    }
    bool coordinates = (p->p == 1 || p->p == 2) && p->bias != SVS_BIAS_FREE;
    if (p->rows.d > GRAM_DIMENSION && coordinates) {
        double density = (double)svs_rows_stored(&p->rows) / ((double)p->rows.n * p->rows.d);
        snprintf(why, size, "auto: %d features, %.3g of them in a row: coordinate descent costs least",
                 p->rows.d, density * p->rows.d);
        return SVS_SOLVER_DCD;
    }
    snprintf(why, size,
             "auto: %d features: Newton steps are cheap, and the scale of the columns does not matter",
             p->rows.d);
    return SVS_SOLVER_NEWTON;
}

/* The squared loss with |w|_1 has no method at all: the message names the penalty, not another solver. */
static svs_code solver_check_method(const svs_problem *p, svs_solver s, svs_error *err) {
    char why[160];
    const bool squared_l1 = p->loss == SVS_SQUARED && p->penalty == SVS_L1;
    if (!(solver_needs(p) & ~solvers[s]->can) && !squared_l1)
        return SVS_OK;
    return svi_fail(err, SVS_INVALID, "the solver %s handles %s; use %s for this problem", svs_solver_name(s),
                    solvers[s]->does,
                    squared_l1 ? "the penalty l2" : svs_solver_name(solver_auto(p, why, sizeof why)));
}

/* ---- the start */

/* The alpha of `count` rows from row `first` on: the given ones, clipped to their box; where they are NAN or
 * missing, those that belong to the given w. Scores are computed once, from the first unknown row to the
 * last. */
static void start_block(struct svi_work *w, int64_t first, int64_t count) {
    const svs_problem *p = w->problem;
    const double *known = w->start->alpha;
    double f[START_BLOCK];
    int64_t from = first + count, to = first;
    for (int64_t i = first; i < first + count; i++)
        if (known && !isnan(known[i])) {
            w->alpha[i] = svi_boxed(w, i, known[i]);
        } else {
            from = i < from ? i : from;
            to = i + 1;
        }
    if (!w->start->w || p->kernel.kind != SVS_LINEAR || from >= to)
        return;
    svi_work_scores(w, from, to - from, w->v, f);
    for (int64_t i = from; i < to; i++) {
        const double margin = 1 - p->y[i] * f[i - from];
        if (!known || isnan(known[i]))
            w->alpha[i] =
                p->loss == SVS_SQUARED ? 2 * w->cost[i] * margin : svi_dual_of(p->p, w->cost[i], margin);
    }
}

/* Fills v, alpha (both zero before) and `warm` from w->start. The bias is the weight of the constant, so b
 * is divided by its value. */
static void start_from(struct svi_work *w) {
    const svs_start *s = w->start;
    const svs_problem *p = w->problem;
    const bool linear = p->kernel.kind == SVS_LINEAR;
    if (s->w && linear) {
        memcpy(w->v, s->w, (size_t)w->d * sizeof *w->v);
        if (w->bias_value != 0)
            w->v[w->d] = s->b / w->bias_value;
    } else if (!linear) {
        w->v[0] = s->b;
    }
    w->warm = s->w || s->alpha;
    for (int64_t i = 0; i < w->n && w->warm; i += START_BLOCK)
        start_block(w, i, svi_work_block(w, i, START_BLOCK));
}

/* ---- one solve */

static svs_code solver_reserve(struct svi_work *w, svs_error *err) {
    const svs_problem *p = w->problem;
    w->n = p->rows.n;
    w->d = p->rows.d;
    w->dim = w->d + (p->bias != SVS_BIAS_NONE);
    w->penalised = p->bias == SVS_BIAS_FREE ? w->d : w->dim;
    w->bias_value = p->bias == SVS_BIAS_NONE ? 0 : p->bias == SVS_BIAS_FREE ? 1 : p->bias_value;
    w->v = svi_vector(w->dim);
    w->alpha = svi_alloc_array((size_t)w->n, sizeof *w->alpha);
    w->cost = svi_alloc_array((size_t)w->n, sizeof *w->cost);
    if (!w->v || !w->alpha || !w->cost)
        return svi_fail_memory(err, "the solver's vectors");
    for (int64_t i = 0; i < w->n; i++)
        w->cost[i] = p->C * (p->cost ? p->cost[i] : 1);
    return SVS_OK;
}

/* Objective and gap as the frame computes them: a method may believe what it likes. `proven`: it has ended with
 * this very certificate. */
static svs_code solver_certify(struct svi_work *w, svs_error *err) {
    struct svi_certificate best = {.objective = w->objective, .dual = w->dual};
    svs_code code = SVS_OK;
    if (w->o->solver == SVS_SOLVER_FALSVM) /* it solves the problem of what it learned, not this one */
        best.objective = svi_objective(w, w->v);
    else if (!w->proven)
        code = svi_certify_best(w, &best, err);
    w->objective = best.objective;
    w->dual = best.dual;
    return code;
}

/* v and alpha change owner; what stays in w is freed by solver_run. */
static void solver_hand_over(struct svi_work *w, svs_solution *out) {
    bool linear = w->problem->kernel.kind == SVS_LINEAR;
    *out = (svs_solution){.solver = w->o->solver,
                          .n = w->n,
                          .objective = w->objective,
                          .dual = w->dual,
                          .gap = w->objective - w->dual,
                          .kkt = w->kkt,
                          .mu = w->mu,
                          .iterations = w->iterations,
                          .stop = w->stop,
                          .seconds = svi_monotonic() - w->started};
    out->b = linear ? (w->bias_value != 0 ? w->v[w->d] * w->bias_value : 0) : w->v[0];
    /* By the certificate, not by why the method stopped: it may have stopped for time at a point that is
     * good enough. */
    out->converged = w->stop == SVS_STOP_CLOSED || svi_work_reached(w, out->objective, out->gap);
    if (out->converged)
        snprintf(out->note, sizeof out->note, "%s", w->note);
    else
        snprintf(out->note, sizeof out->note, "not converged (%s, gap %.2g of the objective)%s%s",
                 svs_stop_text(w->stop), out->gap / out->objective, w->note[0] ? "; " : "", w->note);
    if (linear) {
        out->w = w->v;
        w->v = NULL;
    }
    out->alpha = w->alpha;
    w->alpha = NULL;
}

/* Whatever happens the three vectors are freed here: those handed over are NULL by then. */
static svs_code solver_run(struct svi_work *w, svs_solution *out, svs_error *err) {
    svs_code code = solver_reserve(w, err);
    if (code == SVS_OK) {
        start_from(w);
        code = solvers[w->o->solver]->solve(w, err);
    }
    if (code == SVS_OK && w->problem->kernel.kind == SVS_LINEAR)
        code = solver_certify(w, err);
    if (code == SVS_OK)
        solver_hand_over(w, out);
    svi_free(w->v);
    svi_free(w->alpha);
    svi_free(w->cost);
    return code;
}

/* The problem and options are copied: gamma and the method are filled in, which the caller's must not show.
 */
svs_code svi_work_solve(const svs_problem *problem, const svs_solve_options *options, const svs_start *start,
                        struct svi_curvature *curvature, svs_solution *out, svs_error *err) {
    static const svs_start cold = {0};
    svs_problem p = *problem;
    svs_solve_options o = *options;
    char why[160] = "";
    const double started = svi_monotonic();
    *out = (svs_solution){0};
    SVI_TRY(solver_check(&p, &o, err));
    if (p.kernel.kind != SVS_LINEAR && p.kernel.gamma == 0)
        p.kernel.gamma = 1.0 / p.rows.d;
    if (o.solver == SVS_SOLVER_AUTO)
        o.solver = solver_auto(&p, why, sizeof why);
    SVI_TRY(solver_check_method(&p, o.solver, err));
    /* Labels last: whether they must be +-1 depends on the method. */
    SVI_TRY(solver_check_labels(
        &p, p.loss == SVS_HINGE || o.solver == SVS_SOLVER_FALSVM || o.solver == SVS_SOLVER_SGD_LSSVM, err));
    struct svi_work w = {.problem = &p,
                         .o = &o,
                         .start = start ? start : &cold,
                         .curvature = curvature,
                         .kernels = svi_kernels_get(SVS_ISA_BEST),
                         .kkt = NAN,
                         .mu = NAN,
                         .dual = -INFINITY,
                         .started = started};
    snprintf(w.note, sizeof w.note, "%s", why);
    return solver_run(&w, out, err);
}

svs_code svs_solve(const svs_problem *problem, const svs_solve_options *options, const svs_start *start,
                   svs_solution *out, svs_error *err) {
    return svi_work_solve(problem, options, start, NULL, out, err);
}

void svs_solution_clear(svs_solution *s) {
    svi_free(s->w);
    svi_free(s->alpha);
    *s = (svs_solution){0};
}
