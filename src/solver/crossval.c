/* Cross-validation and the search for C: each fold is cut out once, its scaled rows and Gram matrix are made
 * once, and every value of C starts from the solution of the one before. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"
#include "linalg/rows.h"
#include "solver/train_shared.h"

/* Rows with fold != `fold` of the examples, copied. */
struct part {
    svs_examples e;
    double *dense, *value, *target, *weight;
    int64_t *start;
    int32_t *column, *label;
};

static svs_code reserve(struct part *p, const svs_examples *e, int64_t n, int64_t stored, svs_error *err) {
    const bool dense = e->rows.dense != NULL;
    p->e = *e;
    p->e.rows =
        (svs_rows){.n = n, .d = e->rows.d, .stride = dense ? (e->rows.d + 7) / 8 * 8 : 1, .padded = dense};
    bool got = !dense || (p->dense = svi_alloc_array((size_t)n, (size_t)p->e.rows.stride * sizeof(double)));
    got = got && (dense || (p->value = svi_alloc_array((size_t)stored + 1, sizeof(double))));
    got = got && (dense || (p->column = svi_alloc_array((size_t)stored + 1, sizeof(int32_t))));
    got = got && (dense || (p->start = svi_alloc_array((size_t)n + 1, sizeof(int64_t))));
    got = got && (!e->label || (p->label = svi_alloc_array((size_t)n + 1, sizeof(int32_t))));
    got = got && (!e->target || (p->target = svi_alloc_array((size_t)n + 1, sizeof(double))));
    got = got && (!e->weight || (p->weight = svi_alloc_array((size_t)n + 1, sizeof(double))));
    return got ? SVS_OK : svi_fail_memory(err, "a fold of the examples");
}

static void take_row(struct part *p, const svs_examples *e, int64_t from, int64_t to) {
    const svs_rows *r = &e->rows;
    if (r->dense) {
        memcpy(p->dense + to * p->e.rows.stride, r->dense + from * r->stride, (size_t)r->d * sizeof(double));
    } else {
        const int64_t *span = svi_row_span(r, from), count = span[1] - span[0];
        memcpy(p->column + p->start[to], r->column + span[0], (size_t)count * sizeof(int32_t));
        memcpy(p->value + p->start[to], r->value + span[0], (size_t)count * sizeof(double));
        p->start[to + 1] = p->start[to] + count;
    }
    if (p->label)
        p->label[to] = e->label[from];
    if (p->target)
        p->target[to] = e->target[from];
    if (p->weight)
        p->weight[to] = e->weight[from];
}

static svs_code cut(struct part *p, const svs_examples *e, const int32_t *folds, int fold, svs_error *err) {
    int64_t n = 0, stored = 0, to = 0;
    for (int64_t i = 0; i < e->rows.n; i++)
        if (folds[i] != fold) {
            n++;
            if (!e->rows.dense)
                stored += svi_row_span(&e->rows, i)[1] - svi_row_span(&e->rows, i)[0];
        }
    svs_code code = reserve(p, e, n, stored, err);
    for (int64_t i = 0; i < e->rows.n && code == SVS_OK; i++)
        if (folds[i] != fold)
            take_row(p, e, i, to++);
    p->e.rows.dense = p->dense;
    p->e.rows.start = p->start;
    p->e.rows.column = p->column;
    p->e.rows.value = p->value;
    p->e.label = p->label;
    p->e.target = p->target;
    p->e.weight = p->weight;
    return code;
}

static void part_clear(struct part *p) {
    void *const all[] = {p->dense, p->value, p->target, p->weight, p->start, p->column, p->label};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    *p = (struct part){0};
}

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
    for (int k = 0; k < (e->task == SVS_REGRESS ? 1 : e->class_count); k++)
        for (int64_t i = 0; i < n; i++)
            if (e->task == SVS_REGRESS || e->label[order[i]] == k)
                fold[order[i]] = next++ % folds;
    svi_free(order);
    return SVS_OK;
}

struct tally {
    int64_t n, right;
    double squares, seconds;
    int64_t iterations;
};

struct buffers {
    double *row, *work, *scores;
};

static svs_code buffers_make(struct buffers *b, const svs_examples *e, svs_error *err) {
    b->row = svi_alloc_array((size_t)e->rows.d, sizeof(double));
    b->work = svi_alloc_array((size_t)e->rows.n + (size_t)e->rows.d, sizeof(double));
    b->scores = svi_alloc_array((size_t)e->class_count + 1, sizeof(double));
    return b->row && b->work && b->scores ? SVS_OK : svi_fail_memory(err, "the predictions");
}

static void buffers_clear(struct buffers *b) {
    svi_free(b->row);
    svi_free(b->work);
    svi_free(b->scores);
}

static void test_row(const svs_trained *t, const svs_examples *e, int64_t i, struct buffers *b,
                     struct tally *to) {
    int predicted;
    if (t->kernel) {
        svs_kernel_scores(t->kernel, &e->rows, i, b->work, b->scores);
        predicted = svs_kernel_predict(t->kernel, b->scores);
    } else {
        svs_rows_copy(&e->rows, i, b->row);
        svs_model_scores(t->linear, b->row, b->scores);
        predicted = svs_model_predict(t->linear, b->scores);
    }
    to->n++;
    if (e->task == SVS_REGRESS)
        to->squares += (e->target[i] - b->scores[0]) * (e->target[i] - b->scores[0]);
    else
        to->right += predicted == e->label[i];
}

struct path {
    const svs_examples *e;
    const svs_train_options *o;
    const int32_t *folds;
    const double *C;
    struct tally *tally; /* of each C, over all folds */
    int points;
    struct buffers buffers;
};

static void count_fold(struct path *a, int fold, int point, const svs_trained *t) {
    struct tally *tally = &a->tally[point];
    for (int64_t i = 0; i < a->e->rows.n; i++)
        if (a->folds[i] == fold)
            test_row(t, a->e, i, &a->buffers, tally);
    for (int m = 0; m < t->count; m++) {
        tally->seconds += t->solutions[m].seconds;
        tally->iterations += t->solutions[m].iterations;
    }
}

static svs_code train_path(struct path *a, int fold, const struct part *p, const struct svi_shared *shared,
                           svs_error *err) {
    svs_trained before = {0}, now = {0};
    svs_train_options mine = *a->o;
    svs_code code = SVS_OK;
    for (int k = 0; k < a->points && code == SVS_OK; k++) {
        mine.C = a->C[k];
        code = svi_train(shared, &p->e, &mine, k > 0 ? &before : NULL, &now, err);
        if (code != SVS_OK)
            break;
        count_fold(a, fold, k, &now);
        svs_trained_clear(&before);
        before = now;
        now = (svs_trained){0};
    }
    svs_trained_clear(&before);
    return code;
}

static svs_code run_fold(struct path *a, int fold, svs_error *err) {
    struct part p = {0};
    struct svi_shared shared = {0};
    svs_code code = cut(&p, a->e, a->folds, fold, err);
    if (code == SVS_OK)
        code = svi_shared_make(&shared, &p.e, a->o, a->points, err);
    if (code == SVS_OK)
        code = train_path(a, fold, &p, &shared, err);
    else if (code == SVS_ONE_CLASS) /* classes of two rows and more are in every training part */
        svi_fail(
            err, code,
            "without fold %d all %lld examples have the same label: cross-validation needs two classes of 2 "
            "examples or more",
            fold + 1, (long long)p.e.rows.n);
    svi_shared_clear(&shared);
    part_clear(&p);
    return code;
}

static svs_code run_folds(const svs_examples *e, const svs_train_options *o, int folds, const double *C,
                          int points, struct tally *tally, svs_error *err) {
    if (folds < 2 || folds > e->rows.n)
        return svi_fail(err, SVS_INVALID,
                        "%d folds: at least 2 and at most the number of examples (%lld) are possible", folds,
                        (long long)e->rows.n);
    int32_t *fold = svi_alloc_array((size_t)e->rows.n, sizeof *fold);
    struct path a = {.e = e, .o = o, .folds = fold, .C = C, .tally = tally, .points = points};
    svs_code code = fold ? buffers_make(&a.buffers, e, err) : svi_fail_memory(err, "the folds");
    if (code == SVS_OK)
        code = svi_assign_folds(e, folds, o->solve.seed, fold, err);
    for (int k = 0; k < folds && code == SVS_OK; k++)
        code = run_fold(&a, k, err);
    svi_free(fold);
    buffers_clear(&a.buffers);
    return code;
}

static svs_quality quality_of(const svs_examples *e, const struct tally *t) {
    const bool regress = e->task == SVS_REGRESS;
    return (svs_quality){.n = t->n,
                         .right = t->right,
                         .accuracy = regress ? NAN : (double)t->right / (double)t->n,
                         .rmse = regress ? sqrt(t->squares / (double)t->n) : NAN};
}

svs_code svs_cross_validate(const svs_examples *e, const svs_train_options *o, int folds, svs_quality *out,
                            svs_error *err) {
    struct tally t = {0};
    svs_code code = run_folds(e, o, folds, &o->C, 1, &t, err);
    if (code == SVS_OK)
        *out = quality_of(e, &t);
    return code;
}

#define POINTS_MAX 128

svs_code svs_search_C(const svs_examples *e, const svs_train_options *o, int folds, double from, double to,
                      void (*point)(void *user, const svs_path_point *p), void *user, svs_path_point *best,
                      svs_error *err) {
    double C[POINTS_MAX] = {0};
    struct tally tally[POINTS_MAX] = {{0}};
    int points = 0;
    if (!(from > 0) || !(to >= from) || !isfinite(to))
        return svi_fail(err, SVS_INVALID,
                        "C is searched from %g to %g: both must be above 0, the second not below the first",
                        from, to);
    for (double c = from; c <= to * (1 + 1e-12); c *= 2) { /* ends: doubling passes any finite `to` */
        if (points == POINTS_MAX)
            return svi_fail(err, SVS_INVALID,
                            "from %g to %g C would be doubled more than %d times: take a shorter range", from,
                            to, POINTS_MAX);
        C[points++] = c;
    }
    svs_code code = run_folds(e, o, folds, C, points, tally, err);
    for (int k = 0; k < points && code == SVS_OK; k++) {
        const svs_path_point p = {C[k], quality_of(e, &tally[k]), tally[k].seconds, tally[k].iterations};
        bool better = e->task == SVS_REGRESS ? p.quality.rmse < best->quality.rmse
                                             : p.quality.right > best->quality.right;
        if (k == 0 || better)
            *best = p;
        if (point)
            point(user, &p);
    }
    return code;
}
