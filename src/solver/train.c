#include "svmstream/train.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/model_owned.h"
#include "linalg/rows.h"
#include "solver/kernel_model.h"
#include "solver/standard.h"

#define GRAM_MAX 1500 /* coordinates up to which `alm` is given one Gram matrix for all classes */

void svs_train_options_default(svs_train_options *o) {
    *o = (svs_train_options){.C = 1, .loss = SVS_HINGE, .p = 2, .bias_value = 1};
    svs_solve_options_default(&o->solve);
}

struct training {
    const svs_examples *e;
    const svs_train_options *o;
    struct svi_standard standard; /* rows as the solver sees them */
    double *y, *cost, *gram;
    svs_trained *out;
};

static int count_problems(const svs_examples *e) {
    return e->task == SVS_REGRESS || e->class_count == 2 ? 1 : e->class_count;
}

static svs_code check(const svs_examples *e, svs_error *err) {
    int present = 0;
    if (e->rows.n < 1)
        return svi_fail(err, SVS_EMPTY, "there are no examples to learn from");
    if (e->task == SVS_REGRESS)
        return SVS_OK;
    for (int k = 0; k < e->class_count; k++) {
        int64_t i = 0;
        while (i < e->rows.n && e->label[i] != k)
            i++;
        present += i < e->rows.n;
    }
    for (int64_t i = 0; i < e->rows.n; i++)
        if (e->label[i] < 0 || e->label[i] >= e->class_count)
            return svi_fail(err, SVS_BAD_LABEL, "example %lld has no label", (long long)i);
    if (present < 2)
        return svi_fail(err, SVS_ONE_CLASS, "all %lld examples have the same label: two classes are needed",
                        (long long)e->rows.n);
    return SVS_OK;
}

static svs_code reserve(struct training *t, svs_error *err) {
    const size_t n = (size_t)t->e->rows.n;
    const int count = count_problems(t->e);
    t->y = svi_alloc_array(n, sizeof *t->y);
    t->cost = svi_alloc_array(n, sizeof *t->cost);
    t->out->solutions = svi_alloc_array((size_t)count, sizeof *t->out->solutions);
    t->out->count = count;
    return t->y && t->cost && t->out->solutions
               ? svi_standard_make(&t->standard, &t->e->rows, t->o->scale, err)
               : svi_fail_memory(err, "the training");
}

/* One Gram matrix serves every class. */
static svs_code share_gram(struct training *t, svs_error *err) {
    const size_t n = (size_t)t->e->rows.d + 1;
    if (t->o->solve.solver != SVS_SOLVER_ALM || t->out->count < 2 || n > GRAM_MAX)
        return SVS_OK;
    t->gram = svi_alloc_array(n * n, sizeof *t->gram);
    if (!t->gram)
        return svi_fail_memory(err, "the Gram matrix");
    return svi_rows_gram(svi_kernels_get(SVS_ISA_BEST), &t->standard.rows, NULL, t->e->rows.n, NULL, 1,
                         t->gram, err);
}

static void set_targets(struct training *t, int problem) {
    const svs_examples *e = t->e;
    const int positive = t->out->count == 1 ? 1 : problem;
    for (int64_t i = 0; i < e->rows.n; i++) {
        t->y[i] = e->task == SVS_REGRESS ? e->target[i] : e->label[i] == positive ? 1 : -1;
        t->cost[i] = e->weight ? e->weight[i] : 1;
        if (e->task == SVS_CLASSIFY && t->o->class_weight)
            t->cost[i] *= t->o->class_weight[e->label[i]];
    }
}

static svs_code solve(struct training *t, int problem, const svs_trained *before, svs_error *err) {
    const svs_train_options *o = t->o;
    const bool weighted = t->e->weight || (t->e->task == SVS_CLASSIFY && o->class_weight);
    const svs_solution *last = before && problem < before->count ? &before->solutions[problem] : NULL;
    svs_start start = {.gram = t->gram};
    set_targets(t, problem);
    if (last && last->n == t->e->rows.n) {
        start.w = last->w;
        start.b = last->b;
        start.alpha = last->alpha;
    }
    const svs_problem p = {.rows = t->standard.rows,
                           .y = t->y,
                           .cost = weighted ? t->cost : NULL,
                           .C = o->C,
                           .loss = t->e->task == SVS_REGRESS ? SVS_SQUARED : o->loss,
                           .p = o->p,
                           .penalty = o->penalty,
                           .bias = o->bias,
                           .bias_value = o->bias_value,
                           .kernel = o->kernel};
    return svs_solve(&p, &o->solve, &start, &t->out->solutions[problem], err);
}

static svs_code linear_model(struct training *t, svs_error *err) {
    const svs_examples *e = t->e;
    const svs_trained *out = t->out;
    struct svi_owned_model *m = svi_model_new(e->task, e->rows.d, out->count, e->classes,
                                              e->task == SVS_REGRESS ? 0 : e->class_count, e->features, err);
    if (!m)
        return SVS_NO_MEMORY;
    for (int k = 0; k < out->count; k++)
        svi_standard_back(&t->standard, out->solutions[k].w, out->solutions[k].b,
                          m->W + (size_t)k * (size_t)e->rows.d, &m->b[k]);
    m->model.version = 1;
    m->model.method = svs_solver_name(out->solutions[0].solver);
    m->model.C = t->o->C;
    m->model.seen = m->model.learned = e->rows.n;
    t->out->linear = &m->model;
    return SVS_OK;
}

static bool supports(const svs_trained *out, int64_t i) {
    for (int k = 0; k < out->count; k++)
        if (out->solutions[k].alpha[i] != 0)
            return true;
    return false;
}

/* Every row with a multiplier in any problem, once. */
static void fill_support(struct training *t, struct svi_owned_kernel *m, double *row) {
    const svs_rows *rows = &t->e->rows;
    int64_t at = 0, entry = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        if (!supports(t->out, i))
            continue;
        svs_rows_copy(rows, i, row);
        for (int j = 0; j < rows->d; j++)
            if (row[j] != 0) {
                m->column[entry] = j;
                m->value[entry++] = row[j];
            }
        m->start[at + 1] = entry;
        for (int k = 0; k < t->out->count; k++) {
            const int positive = t->out->count == 1 ? 1 : k;
            double y = t->e->label[i] == positive ? 1 : -1;
            m->coef[(size_t)k * (size_t)m->model.support.n + (size_t)at] = y * t->out->solutions[k].alpha[i];
        }
        at++;
    }
}

static svs_code kernel_model(struct training *t, svs_error *err) {
    const svs_rows *rows = &t->e->rows;
    int64_t n = 0, stored = 0;
    double *row = svi_alloc_array((size_t)rows->d, sizeof *row);
    if (!row)
        return svi_fail_memory(err, "a row");
    for (int64_t i = 0; i < rows->n; i++)
        if (supports(t->out, i)) {
            svs_rows_copy(rows, i, row);
            for (int j = 0; j < rows->d; j++)
                stored += row[j] != 0;
            n++;
        }
    struct svi_owned_kernel *m =
        svi_kernel_model_new(t->out->count, n, rows->d, stored, t->e->classes, t->e->class_count, err);
    if (m) {
        fill_support(t, m, row);
        svi_kernel_model_norms(m);
        for (int k = 0; k < t->out->count; k++)
            m->b[k] = t->out->solutions[k].b;
        m->model.kernel = t->o->kernel;
        m->model.kernel.gamma = t->o->kernel.gamma > 0 ? t->o->kernel.gamma : 1.0 / rows->d;
        m->model.method = svs_solver_name(t->out->solutions[0].solver);
        m->model.C = t->o->C;
        t->out->kernel = &m->model;
    }
    svi_free(row);
    return m ? SVS_OK : SVS_NO_MEMORY;
}

static svs_code run(struct training *t, const svs_trained *before, svs_error *err) {
    svs_code code = reserve(t, err);
    if (code == SVS_OK)
        code = share_gram(t, err);
    for (int k = 0; k < t->out->count && code == SVS_OK; k++)
        code = solve(t, k, before, err);
    if (code != SVS_OK)
        return code;
    return t->o->kernel.kind == SVS_LINEAR ? linear_model(t, err) : kernel_model(t, err);
}

svs_code svs_train(const svs_examples *e, const svs_train_options *o, const svs_trained *start,
                   svs_trained *out, svs_error *err) {
    struct training t = {.e = e, .o = o, .out = out};
    *out = (svs_trained){0};
    svs_code code = check(e, err);
    if (code == SVS_OK && o->scale && o->kernel.kind != SVS_LINEAR)
        code = svi_fail(err, SVS_INVALID,
                        "--scale is for linear models: scale the data of a kernel model before");
    if (code == SVS_OK && o->kernel.kind != SVS_LINEAR && e->task == SVS_REGRESS)
        code = svi_fail(err, SVS_INVALID, "regression is linear here: leave the kernel out");
    if (code == SVS_OK)
        code = run(&t, start, err);
    svi_free(t.y);
    svi_free(t.cost);
    svi_free(t.gram);
    svi_standard_clear(&t.standard);
    if (code != SVS_OK)
        svs_trained_clear(out);
    return code;
}

void svs_trained_clear(svs_trained *t) {
    svs_model_free(&t->linear);
    svs_kernel_model_free(&t->kernel);
    for (int k = 0; k < t->count && t->solutions; k++)
        svs_solution_clear(&t->solutions[k]);
    svi_free(t->solutions);
    *t = (svs_trained){0};
}
