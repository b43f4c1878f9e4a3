/* The learner's problem in batch (Le et al. 2015): (I + 2 sum c_i x_i x_i') v = 2 sum c_i y_i x_i, c_i = C
 * cost_i. While D is small the matrix is gathered in one pass and factored, and the factor is the
 * preconditioner of conjugate gradients on the rows themselves, which take the rounding of the Gram matrix
 * back out in two or three steps; when D is large they run without one.
 *
 * FALSVM: the recursion over the rows in their order, learning only what the present model gets wrong; what
 * it has learned is then solved for as above, so that the answer carries no rounding of the recursion. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "linalg/rows.h"
#include "solver/work.h"
#include "svmstream/alsvm.h"

#define DIRECT_MAX 1500
#define STEPS      500
#define CHUNK      64
#define JITTER     1e-15

struct squares {
    struct svi_work *w;
    double *weight;         /* n: 2 c_i, or 0 for a row that is not learned */
    double *factor;         /* dim x dim, NULL when D is large */
    double *r, *z, *d, *ad; /* padded: residual, preconditioned residual, direction, its image */
    double *f;              /* n */
};

static svs_code reserve(struct squares *s, svs_error *err) {
    const size_t n = (size_t)s->w->problem->rows.n, dim = (size_t)s->w->dim;
    double **const vectors[] = {&s->r, &s->z, &s->d, &s->ad};
    bool got =
        (s->weight = svi_alloc_array(n, sizeof(double))) && (s->f = svi_alloc_array(n, sizeof(double)));
    for (size_t i = 0; i < 4; i++)
        got = (*vectors[i] = svi_vector((int)dim)) && got;
    if (dim <= DIRECT_MAX)
        got = (s->factor = svi_alloc_array(dim * dim, sizeof(double))) && got;
    return got ? SVS_OK : svi_fail_memory(err, "the least-squares solution");
}

static void release(struct squares *s) {
    double *const all[] = {s->weight, s->factor, s->r, s->z, s->d, s->ad, s->f};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
}

static svs_code factor(struct squares *s, svs_error *err) {
    const struct svi_work *w = s->w;
    const size_t n = (size_t)w->dim;
    if (!s->factor)
        return SVS_OK;
    svs_code code = svi_rows_gram(w->kernels, &w->problem->rows, NULL, w->problem->rows.n, s->weight,
                                  w->bias_value, s->factor, err);
    for (size_t j = 0; j < n && code == SVS_OK; j++)
        s->factor[j * (n + 1)] += 1 + JITTER * s->factor[j * (n + 1)];
    if (code == SVS_OK && !svi_factor_spd(s->factor, (int)n))
        code =
            svi_fail(err, SVS_NUMERIC,
                     "the Gram matrix cannot be factored: the features differ too much in size, use --scale");
    return code;
}

/* out = v + sum weight x x'v, or with `target` the residual sum weight x (y - x'v) - v. */
static void apply(struct squares *s, const double *v, const double *target, double *out) {
    const struct svi_work *w = s->w;
    const svs_rows *rows = &w->problem->rows;
    svi_rows_multiply(w->kernels, rows, 0, rows->n, v, w->bias_value, s->f);
    for (int64_t i = 0; i < rows->n; i++)
        s->f[i] = s->weight[i] * (target ? target[i] - s->f[i] : s->f[i]);
    for (int j = 0; j < w->dim; j++)
        out[j] = target ? -v[j] : v[j];
    for (int j = w->dim; j < svi_padded(w->dim); j++)
        out[j] = 0;
    svi_rows_add(w->kernels, rows, 0, rows->n, s->f, out, w->bias_value);
}

static void precondition(const struct squares *s) {
    memcpy(s->z, s->r, (size_t)svi_padded(s->w->dim) * sizeof *s->z);
    if (s->factor)
        svi_solve_factor(s->factor, s->w->dim, s->z);
}

static double dot(const double *a, const double *b, int n) {
    double sum = 0;
    for (int j = 0; j < n; j++)
        sum += a[j] * b[j];
    return sum;
}

/* Preconditioned conjugate gradients from w->v. |r|^2 / 2 bounds what the objective can still fall by. */
static void solve(struct squares *s) {
    struct svi_work *w = s->w;
    const int n = w->dim;
    apply(s, w->v, w->problem->y, s->r);
    precondition(s);
    memcpy(s->d, s->z, (size_t)svi_padded(n) * sizeof *s->d);
    double rz = dot(s->r, s->z, n), objective = svi_objective(w, w->v);
    for (int k = 0; k < STEPS && rz > 0; k++) {
        double left = 0.5 * dot(s->r, s->r, n);
        if (left <= 0.1 * w->o->tol * objective || (rz <= 1e-30 * objective && k > 0))
            break;
        apply(s, s->d, NULL, s->ad);
        double t = rz / dot(s->d, s->ad, n), before = rz;
        objective -= 0.5 * t * rz; /* what an exact step along d takes off a quadratic */
        for (int j = 0; j < n; j++)
            w->v[j] += t * s->d[j];
        apply(s, w->v, w->problem->y, s->r); /* anew: that is what makes it exact */
        precondition(s);
        rz = dot(s->r, s->z, n);
        for (int j = 0; j < n; j++)
            s->d[j] = s->z[j] + rz / before * s->d[j];
        w->iterations++;
    }
}

/* alpha_i = 2 c_i (1 - y f) where labels are -1 and +1; none otherwise. */
static void duals(struct squares *s) {
    struct svi_work *w = s->w;
    const svs_problem *p = w->problem;
    bool labels = true;
    for (int64_t i = 0; i < p->rows.n; i++)
        labels = labels && fabs(p->y[i]) == 1;
    if (!labels) {
        svi_free(w->alpha);
        w->alpha = NULL;
        return;
    }
    svi_rows_multiply(w->kernels, &p->rows, 0, p->rows.n, w->v, w->bias_value, s->f);
    for (int64_t i = 0; i < p->rows.n; i++)
        w->alpha[i] = s->weight[i] * (1 - p->y[i] * s->f[i]);
}

static svs_code closed_form(struct squares *s, svs_error *err) {
    svs_code code = factor(s, err);
    if (code != SVS_OK)
        return code;
    solve(s);
    s->w->stop = SVS_STOP_CLOSED;
    return SVS_OK;
}

svs_code svi_solve_alsvm(struct svi_work *w, svs_error *err) {
    struct squares s = {.w = w};
    svs_code code = reserve(&s, err);
    if (code == SVS_OK) {
        for (int64_t i = 0; i < w->problem->rows.n; i++)
            s.weight[i] = 2 * w->cost[i];
        code = closed_form(&s, err);
    }
    if (code == SVS_OK)
        duals(&s);
    release(&s);
    return code;
}

/* The recursion over one chunk of rows; marks what was learned. x: CHUNK x dim. */
static svs_code learn(struct squares *s, svs_alsvm *m, int64_t first, double *x, svs_error *err) {
    const struct svi_work *w = s->w;
    const svs_problem *p = w->problem;
    svs_operation op[CHUNK] = {{0}};
    bool skip[CHUNK] = {false};
    int count = p->rows.n - first < CHUNK ? (int)(p->rows.n - first) : CHUNK;
    for (int k = 0; k < count; k++) {
        double *row = x + (size_t)k * (size_t)w->dim;
        svs_rows_copy(&p->rows, first + k, row);
        if (w->bias_value != 0)
            row[w->d] = w->bias_value;
        op[k] = (svs_operation){.x = row, .t = p->y + first + k, .weight = w->cost[first + k] / p->C};
    }
    svs_code code = svs_alsvm_block(m, op, count, true, skip, NULL, err);
    for (int k = 0; k < count; k++)
        s->weight[first + k] = skip[k] ? 0 : 2 * w->cost[first + k];
    return code;
}

static svs_code select_rows(struct squares *s, svs_error *err) {
    struct svi_work *w = s->w;
    double *x = svi_alloc_array((size_t)CHUNK * (size_t)w->dim, sizeof *x);
    svs_alsvm *m = svs_alsvm_new(w->dim, 1, 1 / (2 * w->problem->C), SVS_ISA_BEST, err);
    svs_code code = !x ? svi_fail_memory(err, "a chunk of rows") : m ? SVS_OK : SVS_NO_MEMORY;
    for (int64_t i = 0; i < w->problem->rows.n && code == SVS_OK; i += CHUNK)
        code = learn(s, m, i, x, err);
    svs_alsvm_free(&m);
    svi_free(x);
    return code;
}

svs_code svi_solve_falsvm(struct svi_work *w, svs_error *err) {
    struct squares s = {.w = w};
    int64_t learned = 0;
    if (w->dim > 4 * DIRECT_MAX)
        return svi_fail(err, SVS_LIMIT, "falsvm keeps a matrix of %d x %d; take alsvm or dcd", w->dim,
                        w->dim);
    svs_code code = reserve(&s, err);
    if (code == SVS_OK)
        code = select_rows(&s, err);
    if (code == SVS_OK)
        code = closed_form(&s, err);
    for (int64_t i = 0; i < w->problem->rows.n && code == SVS_OK; i++)
        learned += s.weight[i] > 0;
    snprintf(w->note, sizeof w->note, "learned %lld of %lld rows", (long long)learned,
             (long long)w->problem->rows.n);
    release(&s);
    svi_free(w->alpha);
    w->alpha = NULL;
    return code;
}
