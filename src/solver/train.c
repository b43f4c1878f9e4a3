/* From labelled examples to a model. What all problems of one training share is made first (svi_shared_make):
 * the rows as the solver sees them, standardised or not, and for `alm` one Gram matrix. Then one problem
 * after the other, two classes one, K classes K, regression one, from where an earlier training left off; at
 * last the model, linear in raw units or of the rows that support any problem. Cross-validation (crossval.c)
 * trains many times on what is shared.
 *
 * To read: svs_train, svi_train, train_solve. */
#include "svmstream/train.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/owned_model.h"
#include "linalg/sparse_rows.h"
#include "solver/kernel_model.h"
#include "solver/train_internal.h"

#define GRAM_MAX 1500 /* coordinates up to which `alm` is given one Gram matrix for all its problems */

/* ---- standardised columns */

/* Means and sums of squares about them, in two passes, so that large offsets do not cancel. Sparse rows keep
 * mean 0: centring would make every 0 an entry. */
static void standard_measure(struct svi_standard *s, const svs_rows *r) {
    const double n = (double)r->n;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < r->n; i++) {
            const struct svi_entries e = svi_row_entries(r, i);
            for (int64_t k = 0; k < e.count; k++) {
                int64_t j = e.column ? e.column[k] : k;
                double x = e.value[k] - s->mean[j];
                if (pass == 0 && r->dense)
                    s->mean[j] += e.value[k] / n; /* sums to no more than the largest value: no overflow */
                else if (pass == 1)
                    s->inverse[j] += x * x / n;
            }
        }
}

/* Squares to factors. The rounded mean of a constant column leaves a deviation that is nothing but rounding:
 * factor 0, or it would be blown up to 1 and pass for a feature. */
static void standard_invert(struct svi_standard *s, const svs_rows *r) {
    for (int j = 0; j < s->d; j++) {
        int64_t i = r->dense ? 1 : 0; /* ends at the first value that differs */
        while (r->dense && i < r->n && r->dense[i * r->stride + j] == r->dense[j])
            i++;
        s->inverse[j] = s->inverse[j] == 0 || i >= r->n ? 0 : 1 / sqrt(s->inverse[j]);
    }
}

/* `unscaled`: d flags of columns that stay as they are, or NULL. The caller frees the pool. SVS_NO_MEMORY. */
static svs_code standard_make(struct svi_standard *s, const svs_rows *rows, bool scale,
                              const uint8_t *unscaled, svs_error *err) {
    const int64_t stride = (rows->d + 7) / 8 * 8;
    int64_t kept = rows->dense ? rows->n * stride : 1;
    *s = (struct svi_standard){.rows = *rows, .d = rows->d};
    if (!scale)
        return SVS_OK;
    SVI_POOL_DOUBLES(&s->pool, (size_t)rows->d, &s->mean, &s->inverse);
    /* of sparse rows as many values as lie before the furthest end, so that offsets stay */
    for (int64_t i = 0; i < rows->n && !rows->dense; i++)
        kept = svi_row_span(rows, i)[1] >= kept ? svi_row_span(rows, i)[1] + 1 : kept;
    /* Copies, as the caller's rows are not ours; dense ones padded, for the kernels. */
    s->values = svi_pool_doubles(&s->pool, (size_t)kept);
    SVI_TRY(svi_pool_code(&s->pool, "the scaled rows", err));
    standard_measure(s, rows);
    standard_invert(s, rows);
    for (int j = 0; unscaled && j < rows->d; j++)
        if (unscaled[j]) {
            s->mean[j] = 0;
            s->inverse[j] = 1;
        }
    for (int64_t i = 0; i < rows->n && rows->dense; i++)
        for (int j = 0; j < rows->d; j++)
            s->values[i * stride + j] = (rows->dense[i * rows->stride + j] - s->mean[j]) * s->inverse[j];
    for (int64_t i = 0; i < rows->n && !rows->dense; i++)
        for (int64_t k = svi_row_span(rows, i)[0]; k < svi_row_span(rows, i)[1]; k++)
            s->values[k] = rows->value[k] * s->inverse[rows->column[k]];
    if (rows->dense) {
        s->rows.dense = s->values;
        s->rows.stride = stride;
        s->rows.padded = true;
    } else {
        s->rows.value = s->values;
    }
    return SVS_OK;
}

/* w (d) and b of the scaled problem into `W` and `out_b`: W_j = w_j inverse_j, b' = b - sum W_j mean_j, the
 * same scores on raw rows. */
static void standard_back(const struct svi_standard *s, const double *w, double b, double *W, double *out_b) {
    *out_b = b;
    for (int j = 0; j < s->d; j++) {
        W[j] = s->inverse ? w[j] * s->inverse[j] : w[j];
        if (s->mean)
            *out_b -= W[j] * s->mean[j];
    }
}

/* ---- what the problems of a training share */

void svs_train_options_default(svs_train_options *o) {
    *o = (svs_train_options){.C = 1, .loss = SVS_HINGE, .p = 2, .bias_value = 1};
    svs_solve_options_default(&o->solve);
}

struct training {
    struct svi_pool pool;
    const svs_examples *e;
    const svs_train_options *o;
    const struct svi_shared *shared;
    double *y, *cost, *alpha; /* n each */
    double *factor;           /* class_count: of C, by class */
    svs_trained *out;
};

/* Two classes are one problem; K classes K, each against the rest. */
static int train_count_problems(const svs_examples *e) {
    return e->task == SVS_REGRESS || e->class_count == 2 ? 1 : e->class_count;
}

/* Before anything is computed: what the frame would only find in the midst of the work, or in the last
 * class. */
static svs_code train_check(const svs_examples *e, const svs_train_options *o, svs_error *err) {
    if (e->rows.n < 1)
        return svi_fail(err, SVS_EMPTY, "there are no examples to learn from");
    if (o->kernel.kind != SVS_LINEAR && o->scale)
        return svi_fail(err, SVS_INVALID,
                        "--scale is for linear models: scale the data of a kernel model beforehand");
    if (o->kernel.kind != SVS_LINEAR && e->task == SVS_REGRESS)
        return svi_fail(err, SVS_INVALID, "regression is linear: omit the kernel");
    svs_code code = svs_rows_check(&e->rows, err); /* before anything is computed from them */
    if (code != SVS_OK || e->task == SVS_REGRESS)
        return code;
    if (o->balanced && o->class_weight)
        return svi_fail(err, SVS_INVALID, "class weights are either balanced or given: not both");
    bool differ = false;
    for (int64_t i = 0; i < e->rows.n; i++) {
        if (e->label[i] < 0 || e->label[i] >= e->class_count)
            return svi_fail(err, SVS_BAD_LABEL, "example %lld has no label", (long long)i);
        differ = differ || e->label[i] != e->label[0];
    }
    return differ
               ? SVS_OK
               : svi_fail(err, SVS_ONE_CLASS, "all %lld examples have the same label: two classes are needed",
                          (long long)e->rows.n);
}

/* What does not depend on problem or C is made once, for all problems of a training or a path. */
svs_code svi_shared_make(struct svi_shared *s, const svs_examples *e, const svs_train_options *o, int paths,
                         svs_error *err) {
    const size_t n = (size_t)e->rows.d + 1;
    *s = (struct svi_shared){0};
    svs_code code = train_check(e, o, err);
    if (code == SVS_OK)
        code = standard_make(&s->standard, &e->rows, o->scale, o->unscaled, err);
    /* The Gram matrix holds no label, no weight and no C: one serves every class along the whole path. */
    if (code != SVS_OK || o->solve.solver != SVS_SOLVER_ALM || o->kernel.kind != SVS_LINEAR || n > GRAM_MAX ||
        (paths < 2 && train_count_problems(e) < 2))
        return code;
    s->gram = svi_alloc_array(n * n, sizeof *s->gram);
    if (!s->gram)
        return svi_fail_memory(err, "the Gram matrix");
    return svi_rows_gram(&s->standard.rows, NULL, e->rows.n, NULL, 1, s->gram, err);
}

void svi_shared_clear(struct svi_shared *s) {
    svi_pool_free(&s->standard.pool);
    svi_free(s->gram);
    *s = (struct svi_shared){0};
}

/* Regression has no classes to weigh. */
static bool train_weighs_classes(const struct training *t) {
    return t->e->task == SVS_CLASSIFY && (t->o->class_weight || t->o->balanced);
}

/* The factor of C of each class: the given one, or n / (K n_k), where K counts the classes that have
 * examples. */
static void train_set_factors(struct training *t) {
    const svs_examples *e = t->e;
    double classes = 0;
    memset(t->factor, 0, ((size_t)e->class_count + 1) * sizeof *t->factor);
    for (int64_t i = 0; i < e->rows.n; i++)
        classes += t->factor[e->label[i]]++ == 0;
    for (int k = 0; k < e->class_count; k++)
        t->factor[k] = t->o->class_weight ? t->o->class_weight[k]
                                          : (double)e->rows.n / (classes * fmax(1, t->factor[k]));
}

/* y and cost of one problem. Returns whether there is an example of its positive class. */
static bool train_set_targets(struct training *t, int problem) {
    const svs_examples *e = t->e;
    const int positive = t->out->count == 1 ? 1 : problem;
    bool met = e->task == SVS_REGRESS;
    for (int64_t i = 0; i < e->rows.n; i++) {
        t->y[i] = e->task == SVS_REGRESS ? e->target[i] : e->label[i] == positive ? 1 : -1;
        met = met || t->y[i] > 0;
        t->cost[i] = e->weight ? e->weight[i] : 1;
        if (train_weighs_classes(t))
            t->cost[i] *= t->factor[e->label[i]];
    }
    return met;
}

/* A class that no example is of, as it happens in a fold: nothing speaks for it, so it scores -1. */
static svs_code train_absent_class(const struct training *t, svs_solution *s, svs_error *err) {
    const bool linear = t->o->kernel.kind == SVS_LINEAR;
    *s = (svs_solution){.solver = t->o->solve.solver,
                        .b = -1,
                        .n = t->e->rows.n,
                        .objective = NAN,
                        .dual = -INFINITY,
                        .gap = NAN,
                        .kkt = NAN,
                        .mu = NAN,
                        .stop = SVS_STOP_CLOSED,
                        .converged = true,
                        .note = "no example is of this class: it scores -1"};
    s->w = linear ? svi_alloc_array((size_t)t->e->rows.d, sizeof *s->w) : NULL;
    s->alpha = svi_alloc_array((size_t)s->n, sizeof *s->alpha);
    return s->alpha && (s->w || !linear) ? SVS_OK : svi_fail_memory(err, "the training");
}

/* The start where an earlier solution left off. At the optimum alpha = C cost loss'(f), and f hardly depends
 * on C once C is not small: multipliers are carried over in proportion to C. */
static void train_take_start(struct training *t, const svs_trained *before, int problem, svs_start *start) {
    const svs_solution *last = before && problem < before->count ? &before->solutions[problem] : NULL;
    if (!last || last->n != t->e->rows.n)
        return;
    const double C = before->linear ? before->linear->C : before->kernel->C;
    for (int64_t i = 0; i < last->n && last->alpha; i++)
        t->alpha[i] = last->alpha[i] * (t->o->C / C);
    start->w = last->w;
    start->b = last->b;
    start->alpha = last->alpha ? t->alpha : NULL;
}

/* One problem: targets, start, solve. The Gram matrix passes through the start and is only used by `alm`. */
static svs_code train_solve(struct training *t, int problem, const svs_trained *before, svs_error *err) {
    const svs_train_options *o = t->o;
    const bool weighted = t->e->weight || train_weighs_classes(t);
    svs_start start = {.gram = t->shared->gram};
    if (!train_set_targets(t, problem) && t->out->count > 1)
        return train_absent_class(t, &t->out->solutions[problem], err);
    train_take_start(t, before, problem, &start);
    const svs_problem p = {.rows = t->shared->standard.rows,
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

/* The solver that did the work: absent classes had none. */
static const char *train_method_of(const svs_trained *out) {
    int k = 0;
    while (k + 1 < out->count && isnan(out->solutions[k].objective))
        k++;
    return svs_solver_name(out->solutions[k].solver);
}

/* The solutions as rows of one model in raw units: rows are standardised here, models are not. */
static svs_code train_linear_model(struct training *t, svs_error *err) {
    const svs_examples *e = t->e;
    const svs_trained *out = t->out;
    struct svi_owned_model *m = svi_model_new(e->task, e->rows.d, out->count, e->classes,
                                              e->task == SVS_REGRESS ? 0 : e->class_count, e->features, err);
    if (!m)
        return SVS_NO_MEMORY;
    for (int k = 0; k < out->count; k++)
        standard_back(&t->shared->standard, out->solutions[k].w, out->solutions[k].b,
                      m->W + (size_t)k * (size_t)e->rows.d, &m->b[k]);
    m->model.version = 1;
    m->model.method = train_method_of(out);
    m->model.C = t->o->C;
    m->model.seen = m->model.learned = e->rows.n;
    t->out->linear = &m->model;
    return SVS_OK;
}

/* A row supports the model if any of its problems has a multiplier there. */
static bool train_supports(const svs_trained *out, int64_t i) {
    for (int k = 0; k < out->count; k++)
        if (out->solutions[k].alpha[i] != 0)
            return true;
    return false;
}

/* Copies every row with a multiplier in any problem, once, as a sparse row without zeros; coef is y alpha of
 * each problem. */
static void train_fill_support(struct training *t, struct svi_owned_kernel *m) {
    const svs_rows *rows = &t->e->rows;
    int64_t at = 0, entry = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        if (!train_supports(t->out, i))
            continue;
        const struct svi_entries e = svi_row_entries(rows, i);
        for (int64_t k = 0; k < e.count; k++)
            if (e.value[k] != 0) {
                m->column[entry] = e.column ? e.column[k] : (int32_t)k;
                m->value[entry++] = e.value[k];
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

/* Counted first, then filled: the model is one allocation of exact size. */
static svs_code train_kernel_model(struct training *t, svs_error *err) {
    const svs_rows *rows = &t->e->rows;
    int64_t n = 0, stored = 0;
    for (int64_t i = 0; i < rows->n; i++)
        if (train_supports(t->out, i)) {
            const struct svi_entries e = svi_row_entries(rows, i);
            for (int64_t k = 0; k < e.count; k++)
                stored += e.value[k] != 0;
            n++;
        }
    struct svi_owned_kernel *m =
        svi_kernel_model_new(t->out->count, n, rows->d, stored, t->e->classes, t->e->class_count, err);
    if (!m)
        return SVS_NO_MEMORY;
    train_fill_support(t, m);
    svi_kernel_model_norms(m);
    for (int k = 0; k < t->out->count; k++)
        m->b[k] = t->out->solutions[k].b;
    m->model.kernel = t->o->kernel;
    m->model.kernel.gamma = t->o->kernel.gamma > 0 ? t->o->kernel.gamma : 1.0 / rows->d;
    m->model.method = train_method_of(t->out);
    m->model.C = t->o->C;
    t->out->kernel = &m->model;
    return SVS_OK;
}

/* All or nothing: on failure `out` is cleared, so that a caller frees nothing twice. */
svs_code svi_train(const struct svi_shared *s, const svs_examples *e, const svs_train_options *o,
                   const svs_trained *start, svs_trained *out, svs_error *err) {
    struct training t = {.e = e, .o = o, .shared = s, .out = out};
    *out = (svs_trained){.count = train_count_problems(e)};
    SVI_POOL_DOUBLES(&t.pool, (size_t)e->rows.n, &t.y, &t.cost, &t.alpha);
    SVI_POOL_DOUBLES(&t.pool, (size_t)e->class_count + 1, &t.factor);
    out->solutions = svi_pool_code(&t.pool, "the training", err) == SVS_OK
                         ? svi_alloc_array((size_t)out->count, sizeof *out->solutions)
                         : NULL;
    svs_code code = out->solutions ? SVS_OK : svi_fail_memory(err, "the training");
    if (code == SVS_OK && train_weighs_classes(&t))
        train_set_factors(&t);
    /* One problem after the other, each of them on all rows. */
    for (int k = 0; k < out->count && code == SVS_OK; k++)
        code = train_solve(&t, k, start, err);
    if (code == SVS_OK)
        code = o->kernel.kind == SVS_LINEAR ? train_linear_model(&t, err) : train_kernel_model(&t, err);
    svi_pool_free(&t.pool);
    if (code != SVS_OK)
        svs_trained_clear(out);
    return code;
}

svs_code svs_train(const svs_examples *e, const svs_train_options *o, const svs_trained *start,
                   svs_trained *out, svs_error *err) {
    struct svi_shared shared;
    *out = (svs_trained){0};
    svs_code code = svi_shared_make(&shared, e, o, 1, err);
    if (code == SVS_OK)
        code = svi_train(&shared, e, o, start, out, err);
    svi_shared_clear(&shared);
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
