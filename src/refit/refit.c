/* A refit: the window solved as a batch, on any thread, from a snapshot.
 *
 * The rows of the snapshot are standardised in place, as the learner does. Then one problem is
 * solved for each row of the model. It starts warm, from the weights of the last refit and from its
 * dual variables, matched by sample numbers. Everything new is built in a struct run. It replaces
 * what was kept only when all rows are solved, so a failure leaves the job as it was.
 *
 * The outcome of a refit is also a record of the journal: its weights and figures without the solver's
 * state, because a replay does not solve again.
 *
 * Read in order: the job, starting values, refit_run (bottom up), the record, memory. */
#include "refit/refit.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/archive.h"
#include "base/arrays.h"
#include "base/clock.h"
#include "base/worker.h"
#include "refit/gram_cache.h"
#include "learner/ring.h"
#include "wire/archive_file.h"

#define COLUMNS 8 /* columns standardised at once; rows are padded to a multiple */
#define MIN_WEIGHT                                                                                           \
    1e-30 /* lower bound of a sample's cost, which must be above 0 however far the sample has faded */

enum { ROWS, OF_ROW }; /* second axis: features of W, samples of alpha */
static const struct svi_array result_table[] = {
#define OWNER struct svi_refit_result
    SVI_ARRAY_WITH(OWNER, W, "W", SVI_ARRAY_ANY, 0, SVI_AXIS(ROWS), SVI_AXIS(OF_ROW)),
    SVI_ARRAY_WITH(OWNER, b, "b", SVI_ARRAY_ANY, 0, SVI_AXIS(ROWS)),
#undef OWNER
};
static const struct svi_arrays result_arrays = SVI_ARRAYS_ALIGNED(result_table, "a refit");
static const struct svi_array duals_table[] = {
    SVI_ARRAY(struct svi_refit_duals, alpha, NULL, SVI_AXIS(ROWS), SVI_AXIS(OF_ROW)),
    SVI_ARRAY(struct svi_refit_duals, number, NULL, SVI_AXIS(OF_ROW)),
};
static const struct svi_arrays duals_arrays = SVI_ARRAYS_ALIGNED(duals_table, "a refit");

/* The working state of one run. */
struct run {
    struct svi_refit *r;
    struct svi_pool pool;
    svs_rows rows;
    double *y, *cost, *w;        /* n targets; n costs; d weights to start from */
    double *mean, *inverse;      /* stride values: units of the snapshot, 0 in the padding */
    bool curved;                 /* r->curvature is in use for this problem */
    struct svi_refit_result out; /* the new model */
    struct svi_refit_duals duals;
    double seconds;
};

struct svi_refit_how svi_refit_how_of(const struct svi_settings *s) {
    struct svi_refit_how how = {.solver = (svs_solver)s->refit, .tol = s->refit_tol};
    (void)svi_settings_loss(s, &how.p, NULL);
    return how;
}

struct svi_refit *svi_refit_new(const struct svi_settings *s, svs_error *err) {
    struct svi_refit *r = svi_alloc(sizeof *r);
    if (!r) {
        svi_fail_memory(err, "the refit");
        return NULL;
    }
    r->how = svi_refit_how_of(s);
    r->C = s->C;
    r->renewed.capacity = (int)s->max_features;
    /* For all features that the stream may get: marking one while a worker has the job must not allocate. */
    r->renewed.flags = svi_alloc_array((size_t)r->renewed.capacity, sizeof *r->renewed.flags);
    if (r->renewed.flags)
        return r;
    svi_fail_memory(err, "the refit");
    svi_refit_free(&r);
    return NULL;
}

static void renewed_clear(struct svi_renewed *n) {
    if (n->any)
        memset(n->flags, 0, (size_t)n->capacity * sizeof *n->flags);
    n->any = false;
}

void svi_refit_settle(struct svi_refit *r) {
    /* As if the feature had always been 0: weight 0 in the result, nothing in the Gram matrix. */
    const struct svi_refit_result *result = &r->result;
    for (int j = 0; r->renewed.any && j < r->renewed.capacity; j++) {
        if (!r->renewed.flags[j])
            continue;
        for (int k = 0; r->have && j < result->d && k < result->rows; k++)
            result->W[(int64_t)k * result->d + j] = 0;
        /* The curvature mixes all features: it cannot forget one. */
        svi_gram_cache_renew(&r->gram, j);
        svi_kept_curvature_forget(&r->curvature);
    }
    renewed_clear(&r->renewed);
}

void svi_refit_forget(struct svi_refit *r) {
    r->have = false;
    svi_gram_cache_free(&r->gram);
    svi_kept_curvature_forget(&r->curvature);
}

void svi_refit_free(struct svi_refit **pr) {
    struct svi_refit *r = *pr;
    if (!r)
        return;
    svi_snapshot_clear(&r->snapshot);
    svi_arrays_free(&result_arrays, &r->result);
    svi_arrays_free(&duals_arrays, &r->duals);
    svi_gram_cache_free(&r->gram);
    svi_kept_curvature_free(&r->curvature);
    svi_free(r->renewed.flags);
    svi_free(r);
    *pr = NULL;
}

static svs_code refit_reserve(struct run *u, svs_error *err) {
    const struct svi_snapshot *s = &u->r->snapshot;
    const int32_t weights[] = {u->out.rows, s->d}, duals[] = {u->out.rows, (int32_t)s->count};
    /* Scratch in the pool, freed after the run; result and duals apart, since they outlive it. */
    SVI_POOL_DOUBLES(&u->pool, (size_t)s->count, &u->y, &u->cost);
    SVI_POOL_DOUBLES(&u->pool, (size_t)s->stride, &u->w, &u->mean, &u->inverse);
    SVI_TRY(svi_pool_code(&u->pool, "a refit", err));
    SVI_TRY(svi_arrays_alloc(&result_arrays, &u->out, weights, err));
    return svi_arrays_alloc(&duals_arrays, &u->duals, duals, err);
}

/* Starting duals of a row of the model: the kept one of each sample, NAN for a new one, which the solver
 * computes. Both lists ascend by number. */
static void start_duals(struct run *u, int row) {
    const struct svi_refit *r = u->r;
    double *to = u->duals.alpha + (int64_t)row * r->snapshot.count;
    const double *from = r->duals.alpha + (int64_t)row * r->duals.held;
    const int64_t *same = r->curvature.same;
    if (u->curved && r->curvature.at[row].known) { /* samples not shared are new, or have another label or
                                                      weight: an old dual is of no use */
        for (int64_t i = 0; i < r->snapshot.count; i++)
            to[i] = same[i] >= 0 ? from[same[i]] : NAN;
        return;
    }
    for (int64_t i = 0, k = 0; i < r->snapshot.count; i++) {
        while (k < r->duals.held && r->duals.number[k] < r->snapshot.number[i])
            k++;
        bool known = k < r->duals.held && r->duals.number[k] == r->snapshot.number[i];
        to[i] = known ? from[k] : NAN;
    }
}

/* Starting weights: the last model, converted from raw units to those of the snapshot. Returns the
 * constant. */
static double start_weights(struct run *u, int row) {
    const struct svi_snapshot *s = &u->r->snapshot;
    const double *W = u->r->result.W + (int64_t)row * s->d;
    double b = u->r->result.b[row];
    for (int j = 0; j < s->d; j++) {
        u->w[j] = W[j] / s->inverse[j];
        b += W[j] * s->mean[j];
    }
    return b;
}

/* The inverse of start_weights: w' = w inverse, and the means go to the constant. */
static void keep_weights(struct run *u, int row, const svs_solution *solved) {
    const struct svi_snapshot *s = &u->r->snapshot;
    double *W = u->out.W + (int64_t)row * s->d, *b = &u->out.b[row];
    *b = solved->b;
    for (int j = 0; j < s->d; j++) {
        W[j] = solved->w[j] * s->inverse[j];
        *b -= W[j] * s->mean[j];
    }
}

static bool refit_go_on(void *user, const svs_progress *now) {
    (void)now;
    return !atomic_load(&((struct svi_refit *)user)->cancel);
}

/* Targets +-1 and costs of one class against the rest; of two classes, class 1 against class 0. Returns
 * how many are positive. */
static int64_t refit_set_targets(struct run *u, int row) {
    const struct svi_snapshot *s = &u->r->snapshot;
    const int positive = s->class_count < 3 ? 1 : row;
    int64_t count = 0;
    for (int64_t i = 0; i < s->count; i++) {
        u->y[i] = s->label[i] == positive ? 1 : -1;
        u->cost[i] = s->weight[i] > MIN_WEIGHT ? s->weight[i] : MIN_WEIGHT;
        count += s->label[i] == positive;
    }
    return count;
}

static svs_code solve_row(struct run *u, int row, svs_error *err) {
    struct svi_refit *r = u->r;
    const struct svi_snapshot *s = &r->snapshot;
    svs_start start = {.gram = svi_gram_cache_gram(r->gram)};
    svs_solution solved;
    svs_solve_options o;
    /* No sample of the class in the window: w = 0, b = -1 says "not this class", without a problem to
     * solve. */
    if (refit_set_targets(u, row) == 0 && s->class_count > 2) {
        u->out.b[row] = -1;
        return SVS_OK;
    }
    /* Warm start only from the same problem. Between two refits features and classes can only be added (a
     * prune makes the policy forget all), so comparing their numbers suffices. */
    if (r->have && r->result.d == s->d && r->result.class_count == s->class_count) {
        start.b = start_weights(u, row);
        start.w = u->w;
        start_duals(u, row);
        start.alpha = u->duals.alpha + (int64_t)row * s->count;
    }
    /* The bias is the weight of a constant 1 and penalised, as in the online model. */
    const svs_problem p = {
        .rows = u->rows, .y = u->y, .cost = u->cost, .C = r->C, .p = r->how.p, .bias_value = 1};
    svs_solve_options_default(&o);
    o.solver = r->how.solver;
    o.tol = r->how.tol;
    /* The solver's progress is only used to cancel it. */
    o.progress = refit_go_on;
    o.user = r;
    svs_code code =
        svi_curvature_solve(u->curved ? &r->curvature.at[row] : NULL, &p, &o, &start, &solved, err);
    if (code != SVS_OK)
        return code;
    u->seconds += solved.seconds;
    u->out.objective += solved.objective;
    u->out.gap += solved.gap;
    u->out.iterations += solved.iterations;
    u->out.method = solved.solver;
    /* A solution without certificate never replaces a model. */
    if (solved.converged) {
        keep_weights(u, row, &solved);
        memcpy(u->duals.alpha + (int64_t)row * s->count, solved.alpha,
               (size_t)s->count * sizeof *u->duals.alpha);
    } else {
        code = svi_fail(err, SVS_NOT_CONVERGED, "%s ended with a gap of %.2g of the objective: %.150s",
                        svs_solver_name(solved.solver), solved.gap / solved.objective, solved.note);
    }
    svs_solution_clear(&solved);
    return code;
}

/* Success: new result and duals replace what was kept; the run keeps nothing that its cleanup would free. */
static void refit_take_over(struct run *u) {
    struct svi_refit *r = u->r;
    /* The duals' samples are known by their numbers in the next refit (start_duals). */
    memcpy(u->duals.number, r->snapshot.number, (size_t)r->snapshot.count * sizeof *u->duals.number);
    u->duals.held = r->snapshot.count;
    u->out.milliseconds = 1e3 * u->seconds;
    svi_arrays_free(&result_arrays, &r->result);
    svi_arrays_free(&duals_arrays, &r->duals);
    r->result = u->out;
    r->duals = u->duals;
    u->out = (struct svi_refit_result){0};
    u->duals = (struct svi_refit_duals){0};
    if (u->curved)
        svi_kept_curvature_take(&r->curvature, &r->snapshot);
    else
        svi_kept_curvature_forget(&r->curvature);
    /* A curvature is of one C: the next run compares. */
    r->curvature_C = r->C;
    r->have = true;
}

/* Carries the curvature over, where the solver can use it: Newton steps on the squared hinge (p = 2),
 * whose Hessian hardly changes from window to window. Its time counts as part of the solution. */
static svs_code refit_recall_curvature(struct run *u, svs_error *err) {
    struct svi_refit *r = u->r;
    const struct svi_snapshot *s = &r->snapshot;
    const double start = svi_monotonic();
    const bool newton = r->how.solver == SVS_SOLVER_AUTO || r->how.solver == SVS_SOLVER_NEWTON;
    u->curved =
        newton && r->how.p == 2 && svi_kept_curvature_fits(s->d, u->out.rows, (double)s->count, s->stride);
    if (!u->curved)
        return SVS_OK;
    const bool have =
        r->have && r->curvature_C == r->C && r->result.d == s->d && r->result.class_count == s->class_count;
    svs_code code = svi_kept_curvature_slide(&r->curvature, s, u->out.rows, have, err);
    u->seconds += svi_monotonic() - start;
    return code;
}

/* Standardises the rows in place, COLUMNS at a time with the padding included, so that the inner loop is a
 * vector operation; in the padding x, mean and inverse are 0, so it stays 0. */
static void refit_standardise(struct run *u) {
    const struct svi_snapshot *s = &u->r->snapshot;
    const double *mean = u->mean, *inverse = u->inverse;
    svi_array_copy(u->mean, s->mean, (size_t)s->d * sizeof *mean);
    svi_array_copy(u->inverse, s->inverse, (size_t)s->d * sizeof *inverse);
    for (int64_t i = 0; i < s->count; i++)
        for (int j = 0; j < s->stride; j += COLUMNS) {
            double *restrict x = s->rows + i * s->stride + j;
            for (int k = 0; k < COLUMNS; k++)
                x[k] = (x[k] - mean[j + k]) * inverse[j + k];
        }
}

static svs_code refit_run(struct run *u, svs_error *err) {
    struct svi_refit *r = u->r;
    struct svi_snapshot *s = &r->snapshot;
    /* The policy clears the snapshot of a refit that must fail in the regular way
     * (svi_refit_policy_restart). */
    if (s->count == 0)
        return svi_fail(err, SVS_ONE_CLASS, "the window held nothing to refit when it was begun");
    u->out.d = s->d;
    u->out.class_count = s->class_count;
    u->out.rows = svi_rows_of(s->class_count);
    svs_code code = refit_reserve(u, err);
    if (code != SVS_OK)
        return code;
    /* After all memory is there: it destroys the raw rows of the snapshot. */
    refit_standardise(u);
    u->rows = (svs_rows){.n = s->count, .d = s->d, .dense = s->rows, .stride = s->stride, .padded = true};
    /* What is shared by the rows of the model comes first: the Gram matrix, the curvature. */
    if (r->how.solver == SVS_SOLVER_ALM)
        code = svi_gram_cache_update(&r->gram, s, &u->seconds, err);
    if (code == SVS_OK)
        code = refit_recall_curvature(u, err);
    for (int row = 0; row < u->out.rows && code == SVS_OK; row++)
        code = solve_row(u, row, err);
    if (code == SVS_OK)
        refit_take_over(u);
    else
        svi_kept_curvature_forget(&r->curvature);
    return code;
}

void svi_refit_run(struct svi_refit *r) {
    struct run u = {.r = r};
    r->error = (svs_error){0};
    r->error.code = refit_run(&u, &r->error);
    /* `out` and `duals` are empty after a success (refit_take_over), half-built after a failure. */
    svi_pool_free(&u.pool);
    svi_arrays_free(&result_arrays, &u.out);
    svi_arrays_free(&duals_arrays, &u.duals);
}

/* ---- the outcome as a record of a journal */

static void refit_record_archive(struct svi_archive *a, svs_error *error, struct svi_refit_result *r,
                                 int64_t max_features, int64_t max_classes) {
    int code = (int)error->code, method = (int)r->method;
    svi_archive_int(a, "code", &code, SVS_OK, SVS_CODE_COUNT - 1);
    /* A failed refit is its code and text only. */
    svi_archive_text(a, "text", error->text, sizeof error->text);
    error->code = (svs_code)code;
    if (!svi_archive_ok(a) || code != SVS_OK)
        return;
    svi_archive_int(a, "d", &r->d, 1, (int)max_features);
    svi_archive_int(a, "class count", &r->class_count, 2, (int)max_classes);
    /* The bytes are not trusted: no memory for more weights than they can hold. */
    r->rows = svi_rows_of(r->class_count);
    const int32_t dims[] = {r->rows, r->d};
    const int64_t weights = (int64_t)r->rows * r->d;
    svi_archive_check(a, weights <= svi_archive_left(a) / 8, "the weights are truncated");
    if (svi_archive_loading(a) && svi_archive_ok(a))
        svi_arrays_alloc(&result_arrays, r, dims, a->err);
    if (!svi_archive_ok(a))
        return;
    svi_arrays_archive(a, &result_arrays, r, dims, dims);
    svi_archive_double(a, "objective", &r->objective);
    svi_archive_double(a, "gap", &r->gap);
    svi_archive_int64(a, "iterations", &r->iterations, 0, INT64_MAX / 4);
    svi_archive_double(a, "milliseconds", &r->milliseconds);
    svi_archive_int(a, "method", &method, 0, SVS_SOLVER_COUNT - 1);
    r->method = (svs_solver)method;
}

svs_code svi_refit_pack(struct svi_refit *r, struct svi_bytes *out) {
    struct svi_archive_out to;
    svi_refit_settle(r);
    /* Copies: an archive function may write to what it saves. */
    struct svi_refit_result result = r->result;
    svs_error error = r->error, err;
    svi_archive_out_begin(&to, out, "refit", &err);
    refit_record_archive(&to.archive, &error, &result, 0, 0);
    return svi_archive_out_end(&to);
}

svs_code svi_refit_unpack(struct svi_refit *r, const void *bytes, size_t size, int64_t max_features,
                          int64_t max_classes, svs_error *err) {
    struct svi_archive_in from;
    struct svi_refit_result result = {0}, before = r->result;
    svs_error error = {0}, local;
    svi_archive_in_begin(&from, bytes, size, "refit", err ? err : &local);
    refit_record_archive(&from.archive, &error, &result, max_features, max_classes);
    svs_code code = svi_archive_in_end(&from);
    const bool solved = code == SVS_OK && error.code == SVS_OK;
    if (code == SVS_OK) {
        svi_refit_forget(r);
        renewed_clear(&r->renewed); /* the record was packed without them */
        r->error = error;
    }
    /* Whichever of the two is not used any more is freed. */
    if (solved)
        r->result = result;
    svi_arrays_free(&result_arrays, solved ? &before : &result);
    return code;
}

/* ---- memory; a worker */

double svi_refit_memory(const struct svi_settings *s, int d, int classes) {
    const double n = (double)s->window, rows = svi_rows_of(classes), dim = d + 1;
    if (svi_settings_merges(s)) /* the model, and the one that takes its place */
        return 2 * 8 * rows * (dim + 1);
    if (s->refit == SVI_REFIT_NONE || s->window == 0 || s->task == SVS_REGRESS ||
        s->method == SVI_METHOD_AUTO)
        return 0;
    double solver =
        n * 8 * 18 + 3 * 8 * dim * dim; /* vectors and matrices of `newton`, the solver that needs most */
    double gram = s->refit == SVS_SOLVER_ALM ? svi_gram_cache_memory(n, d) : 0;
    if (svi_kept_curvature_fits(d, svi_rows_of(classes), n,
                                (d + 7) / 8 * 8)) /* refit.loss may change later */
        gram += svi_kept_curvature_memory(n, d, svi_rows_of(classes));
    return sizeof(struct svi_refit) + svi_snapshot_memory(n, d) + n * (8 + 8 + 8 + 2 * 8 * rows) +
           3 * 8 * rows * dim + solver + gram;
}

static void run_job(void *job) {
    svi_refit_run(job);
}

static void cancel_job(void *job) {
    atomic_store(&((struct svi_refit *)job)->cancel, true);
}

const struct svi_worker_task svi_refit_task = {"refits", run_job, cancel_job, false};
