#include "engine/refit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/gram_cache.h"
#include "engine/worker.h"

#define WEIGHT_LEAST 1e-30 /* what has decayed below it counts for nothing, but a cost is above 0 */

/* What one run works with. */
struct run {
    struct svi_refit *r;
    svs_rows rows;
    double *y, *cost, *alpha, *w; /* n; n; rows x n; d */
    double *W, *b;                /* the new model */
    double seconds;
};

svs_code svi_refit_loss(const char *text, double *p, svs_error *err) {
    char *end;
    *p = strcmp(text, "l1") == 0 ? 1 : strcmp(text, "l2") == 0 ? 2 : strtod(text, &end);
    if (text[0] != 'l' && (end == text || *end))
        *p = NAN;
    if (*p >= 1 && *p <= 2)
        return SVS_OK;
    return svi_fail(err, SVS_SETTING, "refit.loss is l1, l2 or a number from 1 to 2, not '%.40s'", text);
}

struct svi_refit *svi_refit_new(const struct svi_settings *s, svs_error *err) {
    /* in the order of the words of the setting `refit` */
    static const svs_solver solvers[] = {SVS_SOLVER_AUTO, SVS_SOLVER_ALM,   SVS_SOLVER_ALM_INEXACT,
                                         SVS_SOLVER_DCD,  SVS_SOLVER_NESVM, SVS_SOLVER_AUTO};
    struct svi_refit *r = svi_alloc(sizeof *r);
    if (!r) {
        svi_fail_memory(err, "the refit");
        return NULL;
    }
    r->solver = solvers[s->refit];
    r->C = s->C;
    r->tol = s->refit_tol;
    if (svi_refit_loss(s->refit_loss, &r->p, err) != SVS_OK)
        svi_refit_free(&r);
    return r;
}

void svi_refit_forget(struct svi_refit *r) {
    r->have = false;
    svi_gram_cache_free(&r->gram);
}

void svi_refit_free(struct svi_refit **pr) {
    struct svi_refit *r = *pr;
    if (!r)
        return;
    svi_snapshot_clear(&r->snapshot);
    svi_free(r->W);
    svi_free(r->b);
    svi_free(r->number);
    svi_free(r->alpha);
    svi_gram_cache_free(&r->gram);
    svi_free(r);
    *pr = NULL;
}

static int rows_of(int class_count) {
    return class_count < 3 ? 1 : class_count;
}

static void standardise(struct svi_snapshot *s) {
    for (int64_t i = 0; i < s->count; i++) {
        double *x = s->rows + i * s->stride;
        for (int j = 0; j < s->d; j++)
            x[j] = (x[j] - s->mean[j]) * s->inverse[j];
    }
}

static svs_code reserve(struct run *u, svs_error *err) {
    const struct svi_snapshot *s = &u->r->snapshot;
    const size_t n = (size_t)s->count, rows = (size_t)rows_of(s->class_count), d = (size_t)s->d;
    u->y = svi_alloc_array(n, sizeof *u->y);
    u->cost = svi_alloc_array(n, sizeof *u->cost);
    u->alpha = svi_alloc_array(n * rows, sizeof *u->alpha);
    u->w = svi_alloc_array(d, sizeof *u->w);
    u->W = svi_alloc_array(d * rows, sizeof *u->W);
    u->b = svi_alloc_array(rows, sizeof *u->b);
    return u->y && u->cost && u->alpha && u->w && u->W && u->b ? SVS_OK : svi_fail_memory(err, "a refit");
}

static void release(struct run *u) {
    void *const all[] = {u->y, u->cost, u->alpha, u->w, u->W, u->b};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
}

/* Is what is kept of the same problem? Features and classes only ever grow, and their number tells. */
static bool fits(const struct svi_refit *r) {
    return r->have && r->d == r->snapshot.d && r->class_count == r->snapshot.class_count;
}

/* The duals kept, sample by sample; both lists ascend by number. */
static void start_duals(struct run *u, int row) {
    const struct svi_refit *r = u->r;
    double *to = u->alpha + (int64_t)row * r->snapshot.count;
    for (int64_t i = 0, k = 0; i < r->snapshot.count; i++) {
        while (k < r->held && r->number[k] < r->snapshot.number[i])
            k++;
        bool known = k < r->held && r->number[k] == r->snapshot.number[i];
        to[i] = known ? r->alpha[(int64_t)row * r->held + k] : NAN;
    }
}

/* The raw model in the coordinates of the snapshot. */
static double start_weights(struct run *u, int row) {
    const struct svi_snapshot *s = &u->r->snapshot;
    const double *W = u->r->W + (int64_t)row * s->d;
    double b = u->r->b[row];
    for (int j = 0; j < s->d; j++) {
        u->w[j] = W[j] / s->inverse[j];
        b += W[j] * s->mean[j];
    }
    return b;
}

static void keep_weights(struct run *u, int row, const svs_solution *solved) {
    const struct svi_snapshot *s = &u->r->snapshot;
    double *W = u->W + (int64_t)row * s->d;
    u->b[row] = solved->b;
    for (int j = 0; j < s->d; j++) {
        W[j] = solved->w[j] * s->inverse[j];
        u->b[row] -= W[j] * s->mean[j];
    }
}

static bool go_on(void *user, const svs_progress *now) {
    (void)now;
    return !atomic_load(&((struct svi_refit *)user)->cancel);
}

/* The targets of one class against the rest. Returns how many are positive. */
static int64_t set_targets(struct run *u, int row) {
    const struct svi_snapshot *s = &u->r->snapshot;
    const int positive = s->class_count < 3 ? 1 : row;
    int64_t count = 0;
    for (int64_t i = 0; i < s->count; i++) {
        u->y[i] = s->label[i] == positive ? 1 : -1;
        u->cost[i] = s->weight[i] > WEIGHT_LEAST ? s->weight[i] : WEIGHT_LEAST;
        count += s->label[i] == positive;
    }
    return count;
}

/* A class that the window holds no sample of: nothing speaks for it. */
static void absent_class(struct run *u, int row) {
    memset(u->W + (int64_t)row * u->r->snapshot.d, 0, (size_t)u->r->snapshot.d * sizeof *u->W);
    u->b[row] = -1;
}

static svs_code solve_row(struct run *u, int row, struct svi_refit *out, svs_error *err) {
    struct svi_refit *r = u->r;
    const struct svi_snapshot *s = &r->snapshot;
    svs_start start = {.gram = svi_gram_cache_gram(r->gram)};
    svs_solution solved;
    svs_solve_options o;
    if (set_targets(u, row) == 0 && s->class_count > 2) {
        absent_class(u, row);
        return SVS_OK;
    }
    if (fits(r)) {
        start.b = start_weights(u, row);
        start.w = u->w;
        start_duals(u, row);
        start.alpha = u->alpha + (int64_t)row * s->count;
    }
    const svs_problem p = {
        .rows = u->rows, .y = u->y, .cost = u->cost, .C = r->C, .p = r->p, .bias_value = 1};
    svs_solve_options_default(&o);
    o.solver = r->solver;
    o.tol = r->tol;
    o.progress = go_on;
    o.user = r;
    svs_code code = svs_solve(&p, &o, &start, &solved, err);
    if (code != SVS_OK)
        return code;
    u->seconds += solved.seconds;
    out->objective += solved.objective;
    out->gap += solved.gap;
    out->iterations += solved.iterations;
    out->method = solved.solver;
    if (solved.converged) {
        keep_weights(u, row, &solved);
        memcpy(u->alpha + (int64_t)row * s->count, solved.alpha, (size_t)s->count * sizeof *u->alpha);
    } else {
        code = svi_fail(err, SVS_NOT_CONVERGED, "%s ended with a gap of %.2g of the objective: %.150s",
                        svs_solver_name(solved.solver), solved.gap / solved.objective, solved.note);
    }
    svs_solution_clear(&solved);
    return code;
}

static void swap(double **a, double **b) {
    double *kept = *a;
    *a = *b;
    *b = kept;
}

/* The result takes the place of what was kept. */
static svs_code take_over(struct run *u, const struct svi_refit *out, svs_error *err) {
    struct svi_refit *r = u->r;
    int64_t *number = svi_alloc_array((size_t)r->snapshot.count, sizeof *number);
    if (!number)
        return svi_fail_memory(err, "a refit");
    memcpy(number, r->snapshot.number, (size_t)r->snapshot.count * sizeof *number);
    svi_free(r->number);
    r->number = number;
    r->held = r->snapshot.count;
    swap(&r->alpha, &u->alpha);
    swap(&r->W, &u->W);
    swap(&r->b, &u->b);
    r->have = true;
    r->d = r->snapshot.d;
    r->class_count = r->snapshot.class_count;
    r->rows = rows_of(r->class_count);
    r->objective = out->objective;
    r->gap = out->gap;
    r->iterations = out->iterations;
    r->method = out->method;
    r->milliseconds = 1e3 * u->seconds;
    return SVS_OK;
}

static svs_code run(struct run *u, svs_error *err) {
    struct svi_refit *r = u->r, out = {0};
    struct svi_snapshot *s = &r->snapshot;
    if (s->count == 0)
        return svi_fail(err, SVS_ONE_CLASS, "the window held nothing to refit when it was begun");
    svs_code code = reserve(u, err);
    if (code != SVS_OK)
        return code;
    standardise(s);
    u->rows = (svs_rows){.n = s->count, .d = s->d, .dense = s->rows, .stride = s->stride, .padded = true};
    if (r->solver == SVS_SOLVER_ALM)
        code = svi_gram_cache_update(&r->gram, s, &u->seconds, err);
    for (int row = 0; row < rows_of(s->class_count) && code == SVS_OK; row++)
        code = solve_row(u, row, &out, err);
    return code == SVS_OK ? take_over(u, &out, err) : code;
}

void svi_refit_run(struct svi_refit *r) {
    struct run u = {.r = r};
    r->error = (svs_error){0};
    r->error.code = run(&u, &r->error);
    release(&u);
}

double svi_refit_memory(const struct svi_settings *s, int d, int classes) {
    const double n = (double)s->window, rows = rows_of(classes), dim = d + 1;
    if (s->refit == 0 || s->window == 0 || s->task == SVS_REGRESS)
        return 0;
    double solver = n * 8 * 18 + 3 * 8 * dim * dim; /* the vectors of `newton`, which has the most */
    double gram = s->refit == 1 ? svi_gram_cache_memory(n, d) : 0;
    return sizeof(struct svi_refit) + svi_snapshot_memory(n, d) + n * (8 + 8 + 8 + 2 * 8 * rows) +
           3 * 8 * rows * dim + solver + gram;
}

static void run_job(void *job) {
    svi_refit_run(job);
}

static void cancel_job(void *job) {
    atomic_store(&((struct svi_refit *)job)->cancel, true);
}

const struct svi_trade svi_refit_trade = {"refits", run_job, cancel_job, false};
