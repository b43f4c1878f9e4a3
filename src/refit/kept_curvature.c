#include "refit/kept_curvature.h"

#include <math.h>
#include <string.h>

#include "linalg/sparse_rows.h"

#define SHARE                                                                                                \
    0.75 /* share of the window's samples that must be in the last one: below it a fresh start is cheaper */
#define MAX_STRETCH                                                                                          \
    1e3 /* largest change of a coordinate's unit, or shift in it: beyond it rounding spoils the matrix,      \
           which is rebuilt */

bool svi_kept_curvature_fits(int d, int rows, double count, int stride) {
    const double dim = d + 1;
    return dim <= SVI_CURVATURE_DIM && rows * dim * dim <= count * stride;
}

double svi_kept_curvature_memory(double n, int d, int rows) {
    const double dim = d + 1;
    /* The window, two sets of weights and a matrix a row, and `same`. */
    return svi_snapshot_memory(n, d) + rows * (2 * 8 * n + 8 * dim * dim) + 8 * n;
}

void svi_kept_curvature_forget(struct svi_kept_curvature *k) {
    for (int row = 0; row < k->rows; row++)
        k->at[row].known = false;
}

void svi_kept_curvature_free(struct svi_kept_curvature *k) {
    svi_snapshot_clear(&k->before);
    svi_pool_free(&k->pool);
    *k = (struct svi_kept_curvature){0};
}

static svs_code kept_curvature_reserve(struct svi_kept_curvature *k, const struct svi_snapshot *s, int rows,
                                       svs_error *err) {
    const size_t dim = (size_t)s->d + 1, n = (size_t)s->count, all = n * (size_t)rows;
    if (k->dim == s->d + 1 && k->rows == rows && k->capacity >= s->count)
        return SVS_OK;
    svi_kept_curvature_free(k);
    /* Another shape, or more samples: nothing of the old content would fit. All pointers are of one pool,
     * so a failure is found once, at the end. */
    k->at = svi_pool_take(&k->pool, (size_t)rows, sizeof *k->at);
    for (int row = 0; row < rows && k->at; row++)
        k->at[row].gram = svi_pool_doubles(&k->pool, dim * dim);
    SVI_POOL_DOUBLES(&k->pool, all, &k->weights, &k->next_weights);
    k->same = svi_pool_take(&k->pool, n, sizeof *k->same);
    svs_code code = svi_pool_code(&k->pool, "the curvature of a refit", err);
    if (code != SVS_OK) {
        svi_kept_curvature_free(k);
        return code;
    }
    k->dim = s->d + 1;
    k->rows = rows;
    k->capacity = s->count;
    return SVS_OK;
}

/* Finds the samples that both windows hold with the same label and weight; others count as new. Numbers
 * ascend in both. */
static void kept_curvature_match(struct svi_kept_curvature *k, const struct svi_snapshot *s) {
    const struct svi_snapshot *b = &k->before;
    k->shared = 0;
    for (int64_t i = 0, at = 0; i < s->count; i++) {
        while (at < b->count && b->number[at] < s->number[i])
            at++;
        const bool same = at < b->count && b->number[at] == s->number[i] && b->label[at] == s->label[i] &&
                          b->weight[at] == s->weight[i];
        k->same[i] = same ? at : -1;
        k->shared += same;
    }
}

/* Lists the samples of `before` that the next window lacks: before.count - shared of them, ascending. */
static void kept_curvature_removed(const struct svi_kept_curvature *k, int64_t count, int64_t *removed) {
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        while (k->same[i] >= 0 && at < k->same[i])
            *removed++ = at++;
        at += k->same[i] >= 0;
    }
    while (at < k->before.count)
        *removed++ = at++;
}

/* Converts sum weight z z', lower triangle, from the units of `b` to those of `s`. A row (x, 1)
 * becomes (stretch x + shift, 1). For one coordinate i after the other this is G <- E G E', in
 * place. E is I except for row i: stretch_i on the diagonal, shift_i in the last column. False: the
 * units differ too much. */
static bool kept_curvature_move(double *gram, const struct svi_snapshot *b, const struct svi_snapshot *s) {
    const int d = s->d, n = d + 1;
    double *last = gram + (size_t)d * (size_t)n;
    if (memcmp(b->mean, s->mean, (size_t)d * sizeof *s->mean) == 0 &&
        memcmp(b->inverse, s->inverse, (size_t)d * sizeof *s->inverse) == 0)
        return true;
    for (int i = 0; i < d; i++) {
        const double stretch = s->inverse[i] / b->inverse[i],
                     shift = (b->mean[i] - s->mean[i]) * s->inverse[i];
        if (!(fabs(log(stretch)) < log(MAX_STRETCH)) || !(fabs(shift) < MAX_STRETCH))
            return false;
        for (int j = 0; j <= i; j++) /* row i; last[j] is converted for j < i, as is row j */
            gram[i * n + j] = stretch * gram[i * n + j] + shift * last[j];
        last[i] = stretch * last[i] + shift * last[d];
        for (int r = i; r < d; r++) /* column i; the diagonal a second time */
            gram[r * n + i] = stretch * gram[r * n + i] + shift * last[r];
    }
    return true;
}

/* Carries one row of the model over: subtracts the removed samples by their weights, gives the others
 * their weights in the new order and new samples 0, then converts the units. Subtraction comes first, for
 * the rows of `before` are in its units. */
static svs_code kept_curvature_slide_row(struct svi_kept_curvature *k, int row, const struct svi_snapshot *s,
                                         const int64_t *removed, double *change, svs_error *err) {
    const struct svi_snapshot *b = &k->before;
    const double *weight = k->weights + row * b->count;
    double *next = k->next_weights + row * s->count;
    const svs_rows r = {.n = b->count, .d = b->d, .dense = b->rows, .stride = b->stride, .padded = true};
    const int64_t removed_count = b->count - k->shared;
    for (int64_t i = 0; i < removed_count; i++)
        change[i] = -weight[removed[i]];
    for (int64_t i = 0; i < s->count; i++)
        next[i] = k->same[i] >= 0 ? weight[k->same[i]] : 0;
    svs_code code = svi_rows_gram(&r, removed, removed_count, change, 1, k->at[row].gram, err);
    k->at[row].known = code == SVS_OK && kept_curvature_move(k->at[row].gram, b, s);
    return code;
}

static svs_code kept_curvature_slide_rows(struct svi_kept_curvature *k, const struct svi_snapshot *s,
                                          svs_error *err) {
    /* Scratch shared by all rows of the model: the list of removed samples is the same for each, their
     * weights are not. */
    const size_t removed_count = (size_t)(k->before.count - k->shared);
    struct svi_pool pool = {0};
    double *change = svi_pool_doubles(&pool, removed_count);
    int64_t *removed = svi_pool_take(&pool, removed_count, sizeof *removed);
    svs_code code = svi_pool_code(&pool, "the curvature of a refit", err);
    if (code == SVS_OK)
        kept_curvature_removed(k, s->count, removed);
    for (int row = 0; row < k->rows && code == SVS_OK; row++)
        if (k->at[row].known)
            code = kept_curvature_slide_row(k, row, s, removed, change, err);
    svi_pool_free(&pool);
    return code;
}

svs_code svi_kept_curvature_slide(struct svi_kept_curvature *k, const struct svi_snapshot *s, int rows,
                                  bool have, svs_error *err) {
    svs_code code = kept_curvature_reserve(
        k, s, rows, err); /* where the capacity grows, everything is forgotten: `before` is empty then */
    if (code != SVS_OK)
        return code;
    if (have)
        kept_curvature_match(k, s);
    /* Below SHARE the change is nearly as large as the window. */
    have = have && (double)k->shared >= SHARE * (double)s->count;
    for (int row = 0; row < rows; row++) {
        /* The solver works on next_weights; `weights` stay those of `before` until the refit has
         * succeeded. */
        k->at[row].weight = k->next_weights + row * s->count;
        k->at[row].known &= have;
    }
    if (have)
        code = kept_curvature_slide_rows(k, s, err);
    if (code != SVS_OK)
        svi_kept_curvature_forget(k);
    return code;
}

void svi_kept_curvature_take(struct svi_kept_curvature *k, struct svi_snapshot *s) {
    /* Swapped, not copied: the next snapshot is taken into the memory of the old window. */
    const struct svi_snapshot before = k->before;
    double *const weights = k->weights;
    k->before = *s;
    *s = before;
    s->count = 0;
    k->weights = k->next_weights;
    k->next_weights = weights;
}
