#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/nearest.h"
#include "linalg/rows.h"
#include "solver/auto.h"
#include "solver/start.h"
#include "solver/work.h"

enum { APPENDED = 1 << SVS_BIAS_APPENDED, FREE = 1 << SVS_BIAS_FREE, NONE = 1 << SVS_BIAS_NONE };

/* What each method can do, and in words. */
static const struct method {
    svs_code (*solve)(struct svi_work *w, svs_error *err);
    bool linear, nonlinear;   /* kernels */
    bool hinge, between;      /* hinge with p = 1; with p = 2; with any p between as well */
    bool hinge2, squared, l1; /* hinge with p = 2; squared loss; R = |w|_1 */
    int bias;
    const char *does;
} methods[SVS_SOLVER_COUNT] = {
    [SVS_SOLVER_ALM] = {svi_solve_alm, .linear = true, .hinge = true, .hinge2 = true, .between = true,
                        .bias = APPENDED | FREE | NONE,
                        .does = "the hinge loss with p from 1 to 2, linear, any bias"},
    [SVS_SOLVER_ALM_INEXACT] = {svi_solve_alm_inexact, .linear = true, .hinge = true, .hinge2 = true,
                                .between = true, .bias = APPENDED | FREE | NONE,
                                .does = "the hinge loss with p from 1 to 2, linear, any bias"},
    [SVS_SOLVER_NEWTON] = {svi_solve_newton, .linear = true, .hinge = true, .hinge2 = true, .between = true,
                           .bias = APPENDED | FREE | NONE,
                           .does = "the hinge loss with p from 1 to 2, linear, any bias"},
    [SVS_SOLVER_DCD] = {svi_solve_dcd, .linear = true, .hinge = true, .hinge2 = true, .bias = APPENDED | NONE,
                        .does = "the hinge loss with p = 1 or 2, linear, bias appended or none"},
    [SVS_SOLVER_NESVM] = {svi_solve_nesvm, .linear = true, .nonlinear = true, .hinge = true, .squared = true,
                          .l1 = true, .bias = APPENDED | FREE | NONE,
                          .does = "the hinge loss with p = 1 (penalty l2 or l1) and the squared loss (l2)"},
    [SVS_SOLVER_ALSVM] = {svi_solve_alsvm, .linear = true, .squared = true, .bias = APPENDED | NONE,
                          .does = "the squared loss, linear, bias appended or none"},
    [SVS_SOLVER_FALSVM] = {svi_solve_falsvm, .linear = true, .squared = true, .bias = APPENDED | NONE,
                           .does =
                               "the squared loss over misclassified samples, linear, bias appended or none"},
    [SVS_SOLVER_ALFPGM] = {svi_solve_alfpgm, .linear = true, .nonlinear = true, .hinge = true, .bias = FREE,
                           .does = "the hinge loss with p = 1, any kernel, bias free"},
    [SVS_SOLVER_SGD_LSSVM] = {svi_solve_sgd_lssvm, .linear = true, .nonlinear = true, .squared = true,
                              .bias = APPENDED, .does = "the squared loss, any kernel, bias appended"},
};

static const char *const names[SVS_SOLVER_COUNT] = {
#define X(constant, name, text) name,
    SVS_SOLVERS(X)
#undef X
};

static const char *const texts[SVS_SOLVER_COUNT] = {
#define X(constant, name, text) text,
    SVS_SOLVERS(X)
#undef X
};

const char *svs_solver_name(svs_solver s) {
    return (unsigned)s < SVS_SOLVER_COUNT ? names[s] : "";
}

const char *svs_solver_text(svs_solver s) {
    return (unsigned)s < SVS_SOLVER_COUNT ? texts[s] : "";
}

svs_solver svs_solver_find(const char *name) {
    int s = 0;
    while (s < SVS_SOLVER_COUNT && strcmp(names[s], name) != 0)
        s++;
    return (svs_solver)s;
}

const char *svs_stop_text(svs_stop s) {
    static const char *const stops[] = {"tolerance reached",   "iterations used up",    "time used up",
                                        "no further progress", "stopped by the caller", "closed form"};
    return (unsigned)s < sizeof stops / sizeof *stops ? stops[s] : "";
}

void svs_solve_options_default(svs_solve_options *o) {
    *o = (svs_solve_options){
        .solver = SVS_SOLVER_AUTO, .tol = 1e-3, .seed = 1, .cache_mib = 256, .pairs = 50, .finish = true};
}

double svi_work_seconds(const struct svi_work *w) {
    return svi_monotonic() - w->started;
}

bool svi_work_stop(struct svi_work *w, double objective, double gap, int64_t default_iterations) {
    const svs_solve_options *o = w->o;
    double seconds = svi_work_seconds(w);
    const svs_progress progress = {o->solver, w->iterations, objective, gap, seconds};
    if (o->progress && !o->progress(o->user, &progress)) {
        w->stop = SVS_STOP_USER;
        return true;
    }
    if (w->iterations >= (o->max_iterations > 0 ? o->max_iterations : default_iterations)) {
        w->stop = SVS_STOP_ITERATIONS;
        return true;
    }
    if (o->max_seconds > 0 && seconds >= o->max_seconds) {
        w->stop = SVS_STOP_SECONDS;
        return true;
    }
    return false;
}

/* ---- what can be asked */

static svs_code check_numbers(const svs_problem *p, const svs_solve_options *o, svs_error *err) {
    if (!(p->C > 0) || !isfinite(p->C))
        return svi_fail(err, SVS_INVALID, "C is %g; it must be a number above 0", p->C);
    if (p->loss == SVS_HINGE && !(p->p >= 1 && p->p <= 2))
        return svi_fail(err, SVS_INVALID, "the exponent p of the hinge loss is %g; it must lie from 1 to 2",
                        p->p);
    if (p->bias == SVS_BIAS_APPENDED && !(p->bias_value > 0 && isfinite(p->bias_value)))
        return svi_fail(err, SVS_INVALID, "the appended bias is %g; it must be a number above 0",
                        p->bias_value);
    if (!(o->tol > 0) || !isfinite(o->tol))
        return svi_fail(err, SVS_INVALID, "the tolerance is %g; it must be a number above 0", o->tol);
    if (!(o->cache_mib >= 1))
        return svi_fail(err, SVS_INVALID, "the kernel cache is %g MiB; it must be 1 at least", o->cache_mib);
    if (o->pairs < 1)
        return svi_fail(err, SVS_INVALID, "%d pairs; the working set needs 1 at least", o->pairs);
    if (o->max_iterations < 0 || !(o->max_seconds >= 0) || !(o->mu >= 0))
        return svi_fail(err, SVS_INVALID, "limits of iterations and seconds and mu must not be negative");
    return SVS_OK;
}

static svs_code check_kernel(const svs_kernel *k, svs_error *err) {
    if ((unsigned)k->kind > SVS_RBF)
        return svi_fail(err, SVS_INVALID, "kernel %d is none", (int)k->kind);
    if (k->kind != SVS_LINEAR && !(k->gamma >= 0 && isfinite(k->gamma)))
        return svi_fail(err, SVS_INVALID, "gamma is %g; it must be above 0 (or 0 for 1/d)", k->gamma);
    if (k->kind == SVS_POLYNOMIAL && (k->degree < 1 || k->degree > 20 || !isfinite(k->coef0)))
        return svi_fail(err, SVS_INVALID,
                        "the polynomial kernel takes a degree from 1 to 20 and a finite coef0");
    return SVS_OK;
}

static svs_code check_labels(const svs_problem *p, bool labels, svs_error *err) {
    int64_t positive = 0;
    for (int64_t i = 0; i < p->rows.n; i++) {
        if (labels ? fabs(p->y[i]) != 1 : !isfinite(p->y[i]))
            return svi_fail(err, labels ? SVS_BAD_LABEL : SVS_NOT_FINITE, "row %lld: y is %g; %s",
                            (long long)i, p->y[i], labels ? "it must be -1 or +1" : "it must be finite");
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

static bool does_loss(const struct method *m, const svs_problem *p) {
    if (p->loss == SVS_SQUARED)
        return m->squared;
    return p->p == 1 ? m->hinge : p->p == 2 ? m->hinge2 : m->between;
}

static svs_code check_method(const struct method *m, const svs_problem *p, svs_solver s, svs_error *err) {
    char why[160];
    bool kernel = p->kernel.kind == SVS_LINEAR ? m->linear : m->nonlinear;
    bool squared_l1 = p->loss == SVS_SQUARED && p->penalty == SVS_L1;
    if (kernel && does_loss(m, p) && (p->penalty == SVS_L2 || m->l1) && (m->bias >> p->bias & 1) &&
        !squared_l1)
        return SVS_OK;
    return svi_fail(err, SVS_INVALID, "the solver %s does %s; for what is asked take %s", names[s], m->does,
                    squared_l1 ? "the penalty l2" : names[svi_auto(p, why)]);
}

static svs_code check(const svs_problem *p, const svs_solve_options *o, svs_error *err) {
    if (p->rows.n < 1)
        return svi_fail(err, SVS_EMPTY, "there are no examples to learn from");
    if ((unsigned)o->solver >= SVS_SOLVER_COUNT || (unsigned)p->bias > SVS_BIAS_NONE)
        return svi_fail(err, SVS_INVALID, "solver %d or bias %d is none", (int)o->solver, (int)p->bias);
    svs_code code = check_numbers(p, o, err);
    if (code == SVS_OK)
        code = check_kernel(&p->kernel, err);
    if (code == SVS_OK)
        code = svs_rows_check(&p->rows, err);
    return code;
}

/* ---- one solve */

static svs_code reserve(struct svi_work *w, svs_error *err) {
    const svs_problem *p = w->problem;
    w->d = p->rows.d;
    w->dim = w->d + (p->bias != SVS_BIAS_NONE);
    w->bias_value = p->bias == SVS_BIAS_NONE ? 0 : p->bias == SVS_BIAS_FREE ? 1 : p->bias_value;
    w->v = svi_vector(w->dim);
    w->alpha = svi_alloc_array((size_t)p->rows.n, sizeof *w->alpha);
    w->cost = svi_alloc_array((size_t)p->rows.n, sizeof *w->cost);
    if (!w->v || !w->alpha || !w->cost)
        return svi_fail_memory(err, "the solver's vectors");
    for (int64_t i = 0; i < p->rows.n; i++)
        w->cost[i] = p->C * (p->cost ? p->cost[i] : 1);
    return SVS_OK;
}

/* The better of two dual points: the method's, and (p > 1) the one that belongs to v. */
static svs_code certify(struct svi_work *w, svs_error *err) {
    const svs_problem *p = w->problem;
    struct svi_certificate mine, of_v;
    if (w->o->solver == SVS_SOLVER_FALSVM) { /* it solves the problem of what it learned, not this one */
        w->objective = svi_objective(w, w->v);
        return SVS_OK;
    }
    double *work = svi_alloc_array((size_t)svi_padded(w->dim) + (size_t)p->rows.n, sizeof *work);
    if (!work)
        return svi_fail_memory(err, "the certificate");
    svi_certify(w, w->v, w->alpha, work, &mine);
    if (p->loss == SVS_HINGE && p->p > 1 && !svi_work_reached(w, mine.objective, mine.gap)) {
        svi_certify(w, w->v, NULL, work, &of_v);
        if (of_v.dual > mine.dual)
            mine = of_v;
    }
    w->objective = mine.objective;
    w->dual = mine.dual;
    svi_free(work);
    return SVS_OK;
}

static void advise(const struct svi_work *w, svs_solution *out) {
    if (out->converged)
        snprintf(out->note, sizeof out->note, "%s", w->note);
    else
        snprintf(out->note, sizeof out->note, "not converged (%s, gap %.2g of the objective)%s%s",
                 svs_stop_text(w->stop), out->gap / out->objective, w->note[0] ? "; " : "", w->note);
}

static void hand_over(struct svi_work *w, svs_solution *out) {
    bool linear = w->problem->kernel.kind == SVS_LINEAR;
    *out = (svs_solution){.solver = w->o->solver,
                          .n = w->problem->rows.n,
                          .objective = w->objective,
                          .dual = w->dual,
                          .gap = w->objective - w->dual,
                          .kkt = w->kkt,
                          .mu = w->mu,
                          .iterations = w->iterations,
                          .stop = w->stop,
                          .seconds = svi_work_seconds(w)};
    out->b = linear ? (w->bias_value != 0 ? w->v[w->d] * w->bias_value : 0) : w->v[0];
    out->converged = w->stop == SVS_STOP_CLOSED || svi_work_reached(w, out->objective, out->gap);
    advise(w, out);
    if (linear) {
        out->w = w->v;
        w->v = NULL;
    }
    out->alpha = w->alpha;
    w->alpha = NULL;
}

static svs_code run(struct svi_work *w, svs_solution *out, svs_error *err) {
    svs_code code = reserve(w, err);
    if (code == SVS_OK) {
        svi_start(w);
        code = methods[w->o->solver].solve(w, err);
    }
    if (code == SVS_OK && w->problem->kernel.kind == SVS_LINEAR)
        code = certify(w, err);
    if (code == SVS_OK)
        hand_over(w, out);
    svi_free(w->v);
    svi_free(w->alpha);
    svi_free(w->cost);
    return code;
}

svs_code svs_solve(const svs_problem *problem, const svs_solve_options *options, const svs_start *start,
                   svs_solution *out, svs_error *err) {
    static const svs_start cold = {0};
    svs_problem p = *problem;
    svs_solve_options o = *options;
    char why[160] = "";
    const double started = svi_monotonic();
    *out = (svs_solution){0};
    svs_code code = check(&p, &o, err);
    if (code != SVS_OK)
        return code;
    if (p.kernel.kind != SVS_LINEAR && p.kernel.gamma == 0)
        p.kernel.gamma = 1.0 / p.rows.d;
    if (o.solver == SVS_SOLVER_AUTO)
        o.solver = svi_auto(&p, why);
    code = check_method(&methods[o.solver], &p, o.solver, err);
    if (code == SVS_OK)
        code = check_labels(
            &p, p.loss == SVS_HINGE || o.solver == SVS_SOLVER_FALSVM || o.solver == SVS_SOLVER_SGD_LSSVM,
            err);
    if (code != SVS_OK)
        return code;
    struct svi_work w = {.problem = &p,
                         .o = &o,
                         .start = start ? start : &cold,
                         .kernels = svi_kernels_get(SVS_ISA_BEST),
                         .kkt = NAN,
                         .mu = NAN,
                         .dual = -INFINITY,
                         .started = started};
    snprintf(w.note, sizeof w.note, "%s", why);
    return run(&w, out, err);
}

void svs_solution_clear(svs_solution *s) {
    svi_free(s->w);
    svi_free(s->alpha);
    *s = (svs_solution){0};
}
