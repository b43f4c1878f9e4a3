/* Cross-validation and the search for C: each fold is cut out once, its scaled rows and Gram matrix are made
 * once, and every value of C starts from the solution of the one before. Folds are stratified and drawn by
 * the seed alone, so that two runs compare the same rows.
 *
 * To read: crossval_run_folds, crossval_run_fold, crossval_train_path. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"
#include "linalg/sparse_rows.h"
#include "solver/predictor.h"
#include "solver/train_internal.h"

/* A copy of the examples without one fold, in the form (dense or sparse) that they have. */
struct crossval_part {
    struct svi_pool pool;
    svs_examples e;
    double *dense, *value, *target, *weight;
    int64_t *start;
    int32_t *column, *label;
};

static svs_code crossval_reserve(struct crossval_part *p, const svs_examples *e, int64_t n, int64_t stored,
                                 svs_error *err) {
    const bool dense = e->rows.dense != NULL;
    const int64_t stride = dense ? (e->rows.d + 7) / 8 * 8 : 1;
    struct svi_pool *pool = &p->pool;
    if (dense) {
        p->dense = svi_pool_doubles(pool, (size_t)n * (size_t)stride);
    } else {
        p->value = svi_pool_doubles(pool, (size_t)stored);
        p->column = svi_pool_take(pool, (size_t)stored, sizeof *p->column);
        p->start = svi_pool_take(pool, (size_t)n + 1, sizeof *p->start);
    }
    p->label = e->label ? svi_pool_take(pool, (size_t)n, sizeof *p->label) : NULL;
    p->target = e->target ? svi_pool_doubles(pool, (size_t)n) : NULL;
    p->weight = e->weight ? svi_pool_doubles(pool, (size_t)n) : NULL;
    p->e = *e;
    /* Everything of the examples stays but their rows, labels, targets and weights, which are copies. */
    p->e.rows = (svs_rows){n, e->rows.d, p->dense, stride, dense, p->start, p->column, p->value};
    p->e.label = p->label;
    p->e.target = p->target;
    p->e.weight = p->weight;
    return svi_pool_code(pool, "a fold of the examples", err);
}

static void crossval_take_row(struct crossval_part *p, const svs_examples *e, int64_t from, int64_t to) {
    const svs_rows *r = &e->rows;
    if (r->dense) {
        memcpy(p->dense + to * p->e.rows.stride, r->dense + from * r->stride, (size_t)r->d * sizeof(double));
    } else {
        const struct svi_entries x = svi_row_entries(r, from);
        memcpy(p->column + p->start[to], x.column, (size_t)x.count * sizeof *x.column);
        memcpy(p->value + p->start[to], x.value, (size_t)x.count * sizeof *x.value);
        p->start[to + 1] = p->start[to] + x.count;
    }
    if (p->label)
        p->label[to] = e->label[from];
    if (p->target)
        p->target[to] = e->target[from];
    if (p->weight)
        p->weight[to] = e->weight[from];
}

/* Counted first, then copied: the parts are allocated to size. */
static svs_code crossval_cut(struct crossval_part *p, const svs_examples *e, const int32_t *folds, int fold,
                             svs_error *err) {
    int64_t n = 0, stored = 0, to = 0;
    for (int64_t i = 0; i < e->rows.n; i++)
        if (folds[i] != fold) {
            n++;
            stored += svi_row_entries(&e->rows, i).count;
        }
    svs_code code = crossval_reserve(p, e, n, stored, err);
    for (int64_t i = 0; i < e->rows.n && code == SVS_OK; i++)
        if (folds[i] != fold)
            crossval_take_row(p, e, i, to++);
    return code;
}

/* Stratified folds: rows in random order, dealt out class by class. The counter runs on from class to class,
 * so the sizes of folds differ by one at most, and so do those of each class within them. */
svs_code svi_assign_folds(const svs_examples *e, int folds, uint64_t seed, int32_t *fold, svs_error *err) {
    struct svi_random random = {seed};
    const int64_t n = e->rows.n;
    int32_t *order = svi_alloc_array((size_t)n, sizeof *order), next = 0;
    if (!order)
        return svi_fail_memory(err, "the folds");
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i + svi_random_below(&random, (uint32_t)(n - i));
        int32_t row = order[j];
        order[j] = order[i];
        order[i] = row;
    }
    /* Regression has no classes: one round over all rows. */
    for (int k = 0; k < (e->task == SVS_REGRESS ? 1 : e->class_count); k++)
        for (int64_t i = 0; i < n; i++)
            if (e->task == SVS_REGRESS || e->label[order[i]] == k)
                fold[order[i]] = next++ % folds;
    svi_free(order);
    return SVS_OK;
}

struct crossval_tally {
    int64_t n, right;
    double squares, seconds;
    int64_t iterations;
};

struct crossval_path {
    const svs_examples *e;
    const svs_train_options *o;
    const int32_t *folds;
    const double *C;
    struct crossval_tally *tally; /* of each C, over all folds */
    int points;
    double *scores; /* of the rows that are held out, n x rows; or NULL */
};

/* Scores the rows that are held out, and adds up what the training cost. */
static svs_code crossval_count_fold(struct crossval_path *a, int fold, int point, const svs_trained *t,
                                    svs_error *err) {
    struct crossval_tally *tally = &a->tally[point];
    const svs_examples *e = a->e;
    struct svi_predictor p;
    svs_code code = svi_predictor_init(&p, t->linear, t->kernel, err);
    for (int64_t i = 0; i < e->rows.n && code == SVS_OK; i++) {
        if (a->folds[i] != fold)
            continue;
        const int predicted = svi_predictor_row(&p, &e->rows, i);
        tally->n++;
        for (int k = 0; a->scores && k < t->linear->rows; k++)
            a->scores[i * t->linear->rows + k] = p.scores[k];
        if (e->task == SVS_REGRESS)
            tally->squares += (e->target[i] - p.scores[0]) * (e->target[i] - p.scores[0]);
        else
            tally->right += predicted == e->label[i];
    }
    svi_predictor_clear(&p);
    for (int m = 0; m < t->count; m++) {
        tally->seconds += t->solutions[m].seconds;
        tally->iterations += t->solutions[m].iterations;
    }
    return code;
}

/* From the smallest C to the largest, each starting at the solution of the one before. `before` owns that
 * solution until the next is there. */
static svs_code crossval_train_path(struct crossval_path *a, int fold, const struct crossval_part *p,
                                    const struct svi_shared *shared, svs_error *err) {
    svs_trained before = {0}, now = {0};
    svs_train_options mine = *a->o;
    svs_code code = SVS_OK;
    for (int k = 0; k < a->points && code == SVS_OK; k++) {
        mine.C = a->C[k];
        /* The multipliers of the smaller C, scaled, are the start (train_take_start). */
        code = svi_train(shared, &p->e, &mine, k > 0 ? &before : NULL, &now, err);
        if (code != SVS_OK)
            break;
        code = crossval_count_fold(a, fold, k, &now, err);
        svs_trained_clear(&before);
        before = now;
        now = (svs_trained){0};
    }
    svs_trained_clear(&before);
    return code;
}

/* Standardisation and the Gram matrix are of the training part alone: nothing of the held-out rows may
 * enter. */
static svs_code crossval_run_fold(struct crossval_path *a, int fold, svs_error *err) {
    struct crossval_part p = {0};
    struct svi_shared shared = {0};
    svs_code code = crossval_cut(&p, a->e, a->folds, fold, err);
    if (code == SVS_OK)
        code = svi_shared_make(&shared, &p.e, a->o, a->points, err);
    if (code == SVS_OK)
        code = crossval_train_path(a, fold, &p, &shared, err);
    else if (code == SVS_ONE_CLASS) /* classes of two rows and more are in every training part */
        svi_fail(
            err, code,
            "without fold %d all %lld examples have the same label: cross-validation needs two classes of 2 "
            "examples or more",
            fold + 1, (long long)p.e.rows.n);
    svi_shared_clear(&shared);
    svi_pool_free(&p.pool);
    return code;
}

static svs_code crossval_run_folds(const svs_examples *e, const svs_train_options *o, int folds,
                                   const double *C, int points, struct crossval_tally *tally, double *scores,
                                   svs_error *err) {
    if (folds < 2 || folds > e->rows.n)
        return svi_fail(err, SVS_INVALID,
                        "%d folds: at least 2 and at most the number of examples (%lld) are possible", folds,
                        (long long)e->rows.n);
    int32_t *fold = svi_alloc_array((size_t)e->rows.n, sizeof *fold);
    struct crossval_path a = {
        .e = e, .o = o, .folds = fold, .C = C, .tally = tally, .points = points, .scores = scores};
    svs_code code =
        fold ? svi_assign_folds(e, folds, o->solve.seed, fold, err) : svi_fail_memory(err, "the folds");
    for (int k = 0; k < folds && code == SVS_OK; k++)
        code = crossval_run_fold(&a, k, err);
    svi_free(fold);
    return code;
}

static svs_quality crossval_quality(const svs_examples *e, const struct crossval_tally *t) {
    const bool regress = e->task == SVS_REGRESS;
    return (svs_quality){.n = t->n,
                         .right = t->right,
                         .accuracy = regress ? NAN : (double)t->right / (double)t->n,
                         .rmse = regress ? sqrt(t->squares / (double)t->n) : NAN};
}

svs_code svs_cross_validate(const svs_examples *e, const svs_train_options *o, int folds, svs_quality *out,
                            svs_error *err) {
    struct crossval_tally t = {0};
    SVI_TRY(crossval_run_folds(e, o, folds, &o->C, 1, &t, NULL, err));
    *out = crossval_quality(e, &t);
    return SVS_OK;
}

svs_code svs_cross_scores(const svs_examples *e, const svs_train_options *o, int folds, double *scores,
                          svs_error *err) {
    struct crossval_tally t = {0};
    if (e->task != SVS_CLASSIFY || o->kernel.kind != SVS_LINEAR || o->solve.solver == SVS_SOLVER_ALFPGM)
        return svi_fail(err, SVS_INVALID,
                        "scores of rows that were held out are those of linear models of classes");
    return crossval_run_folds(e, o, folds, &o->C, 1, &t, scores, err);
}

/* Doublings of C: 38 powers of ten. */
#define POINTS_MAX 128

/* C doubles from `from` to `to`; each fold is cut, scaled and gathered once for the whole path, and scores
 * of all folds are added up for each C. */
svs_code svs_search_C(const svs_examples *e, const svs_train_options *o, int folds, double from, double to,
                      void (*point)(void *user, const svs_path_point *p), void *user, svs_path_point *best,
                      svs_error *err) {
    double C[POINTS_MAX] = {0};
    struct crossval_tally tally[POINTS_MAX] = {{0}};
    int points = 0;
    if (!(from > 0) || !(to >= from) || !isfinite(to))
        return svi_fail(err, SVS_INVALID,
                        "C is searched from %g to %g: both must be above 0, the second not below the first",
                        from, to);
    for (double c = from; c <= to * (1 + 1e-12); c *= 2) { /* ends: doubling passes any finite `to` */
        if (points == POINTS_MAX)
            return svi_fail(err, SVS_INVALID,
                            "from %g to %g C would be doubled more than %d times: use a shorter range", from,
                            to, POINTS_MAX);
        C[points++] = c;
    }
    svs_code code = crossval_run_folds(e, o, folds, C, points, tally, NULL, err);
    for (int k = 0; k < points && code == SVS_OK; k++) {
        const svs_path_point p = {C[k], crossval_quality(e, &tally[k]), tally[k].seconds,
                                  tally[k].iterations};
        /* On a tie the smaller C stays: the simpler model. */
        bool better = e->task == SVS_REGRESS ? p.quality.rmse < best->quality.rmse
                                             : p.quality.right > best->quality.right;
        if (k == 0 || better)
            *best = p;
        if (point)
            point(user, &p);
    }
    return code;
}
