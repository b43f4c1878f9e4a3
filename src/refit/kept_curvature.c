#include "refit/kept_curvature.h"

#include <math.h>
#include <string.h>

#include "linalg/sparse_rows.h"

#define SHARE       0.75 /* of the samples must be there still */
#define MAX_STRETCH 1e3  /* of a coordinate's unit: beyond it the Gram matrix is made again */

bool svi_kept_curvature_fits(int d, int rows, double count, int stride) {
    const double dim = d + 1;
    return dim <= SVI_CURVATURE_DIM && rows * dim * dim <= count * stride;
}

double svi_kept_curvature_memory(double n, int d, int rows) {
    const double dim = d + 1;
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

/* Which samples of `before` are there still, with the same label and weight. */
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

/* The others of `before`: before.count - shared. */
static void kept_curvature_left(const struct svi_kept_curvature *k, int64_t count, int64_t *left) {
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        while (k->same[i] >= 0 && at < k->same[i])
            *left++ = at++;
        at += k->same[i] >= 0;
    }
    while (at < k->before.count)
        *left++ = at++;
}

/* Rows z = (x, 1) in the units of `b` are (stretch x + shift, 1) in those of `s`: the same of sum weight z
 * z'. False: the units differ too much. */
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
        for (int j = 0; j <= i; j++) /* row i; last[j] has moved for j < i, as has row j */
            gram[i * n + j] = stretch * gram[i * n + j] + shift * last[j];
        last[i] = stretch * last[i] + shift * last[d];
        for (int r = i; r < d; r++) /* column i, the diagonal a second time */
            gram[r * n + i] = stretch * gram[r * n + i] + shift * last[r];
    }
    return true;
}

static svs_code kept_curvature_slide_row(struct svi_kept_curvature *k, int row, const struct svi_snapshot *s,
                                         const int64_t *left, double *change, svs_error *err) {
    const struct svi_snapshot *b = &k->before;
    const double *weight = k->weights + row * b->count;
    double *next = k->next_weights + row * s->count;
    const svs_rows r = {.n = b->count, .d = b->d, .dense = b->rows, .stride = b->stride, .padded = true};
    const int64_t gone = b->count - k->shared;
    for (int64_t i = 0; i < gone; i++)
        change[i] = -weight[left[i]];
    for (int64_t i = 0; i < s->count; i++)
        next[i] = k->same[i] >= 0 ? weight[k->same[i]] : 0;
    svs_code code = svi_rows_gram(&r, left, gone, change, 1, k->at[row].gram, err);
    k->at[row].known = code == SVS_OK && kept_curvature_move(k->at[row].gram, b, s);
    return code;
}

static svs_code kept_curvature_slide_rows(struct svi_kept_curvature *k, const struct svi_snapshot *s,
                                          svs_error *err) {
    const size_t gone = (size_t)(k->before.count - k->shared);
    struct svi_pool pool = {0};
    double *change = svi_pool_doubles(&pool, gone);
    int64_t *left = svi_pool_take(&pool, gone, sizeof *left);
    svs_code code = svi_pool_code(&pool, "the curvature of a refit", err);
    if (code == SVS_OK)
        kept_curvature_left(k, s->count, left);
    for (int row = 0; row < k->rows && code == SVS_OK; row++)
        if (k->at[row].known)
            code = kept_curvature_slide_row(k, row, s, left, change, err);
    svi_pool_free(&pool);
    return code;
}

svs_code svi_kept_curvature_slide(struct svi_kept_curvature *k, const struct svi_snapshot *s, int rows,
                                  bool have, svs_error *err) {
    svs_code code = kept_curvature_reserve(k, s, rows, err); /* what had no room is not known */
    if (code != SVS_OK)
        return code;
    if (have)
        kept_curvature_match(k, s);
    have = have && (double)k->shared >= SHARE * (double)s->count;
    for (int row = 0; row < rows; row++) {
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
    const struct svi_snapshot before = k->before;
    double *const weights = k->weights;
    k->before = *s;
    *s = before;
    s->count = 0;
    k->weights = k->next_weights;
    k->next_weights = weights;
}
