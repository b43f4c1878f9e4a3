#include "refit/gram_cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/clock.h"
#include "base/fail.h"
#include "linalg/sparse_rows.h"

#define REBUILD_EVERY                                                                                        \
    10 /* updates between rebuilds: bounds the rounding of rows added and subtracted again */

struct svi_gram_cache {
    double *gram;
    double *rows, *mean,
        *inverse; /* of the samples in gram, copies: a snapshot's rows are overwritten by the next one */
    int64_t *number, *index; /* numbers of these samples, ascending; scratch: rows that differ */
    int64_t count, capacity;
    int d, stride, updates;
};

enum { ROWS, STRIDE, N };
static const struct svi_array cache_table[] = {
#define OWNER struct svi_gram_cache
    SVI_ARRAY(OWNER, gram, NULL, SVI_AXIS(N), SVI_AXIS(N)),
    SVI_ARRAY(OWNER, rows, NULL, SVI_AXIS(ROWS), SVI_AXIS(STRIDE)),
    SVI_ARRAY(OWNER, mean, NULL, SVI_AXIS(N)),
    SVI_ARRAY(OWNER, inverse, NULL, SVI_AXIS(N)),
    SVI_ARRAY(OWNER, number, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, index, NULL, SVI_AXIS(ROWS)),
#undef OWNER
};
static const struct svi_arrays cache_arrays =
    SVI_ARRAYS_ALIGNED(cache_table, "the Gram matrix of the window");

void svi_gram_cache_free(struct svi_gram_cache **pc) {
    struct svi_gram_cache *c = *pc;
    if (!c)
        return;
    svi_arrays_free(&cache_arrays, c);
    svi_free(c);
    *pc = NULL;
}

const double *svi_gram_cache_gram(const struct svi_gram_cache *c) {
    return c ? c->gram : NULL;
}

double svi_gram_cache_memory(int64_t n, int d) {
    const int32_t dims[] = {(int32_t)n, svi_round_up(d, 8), d + 1};
    return (double)svi_arrays_bytes(&cache_arrays, dims);
}

static struct svi_gram_cache *gram_cache_make(const struct svi_snapshot *s, svs_error *err) {
    const int32_t dims[] = {(int32_t)s->count, s->stride, s->d + 1};
    struct svi_gram_cache *c = svi_alloc(sizeof *c);
    if (!c) {
        svi_fail_memory(err, cache_arrays.what);
        return NULL;
    }
    c->capacity = s->count;
    c->d = s->d;
    c->stride = s->stride;
    if (svi_arrays_alloc(&cache_arrays, c, dims, err) != SVS_OK)
        svi_gram_cache_free(&c);
    return c;
}

/* Compared bit for bit: rows in other units must never be mixed in one sum. */
static bool gram_cache_same_units(const struct svi_gram_cache *c, const struct svi_snapshot *s) {
    const size_t bytes = (size_t)s->d * sizeof(double);
    return c->d == s->d && memcmp(c->mean, s->mean, bytes) == 0 && memcmp(c->inverse, s->inverse, bytes) == 0;
}

/* Writes to `index` the places in `number` of those that are not in `others`; both ascend. Returns how
 * many. */
static int64_t gram_cache_difference(const int64_t *number, int64_t count, const int64_t *others,
                                     int64_t other_count, int64_t *index) {
    int64_t found = 0;
    /* A merge of two ascending lists: linear in both. */
    for (int64_t i = 0, k = 0; i < count; i++) {
        while (k < other_count && others[k] < number[i])
            k++;
        if (k == other_count || others[k] != number[i])
            index[found++] = i;
    }
    return found;
}

/* gram += sign sum z z' over the rows of `index` (NULL: all rows). */
static svs_code gram_cache_add(struct svi_gram_cache *c, const double *rows, const int64_t *index,
                               int64_t count, double sign, svs_error *err) {
    const svs_rows r = {.n = count, .d = c->d, .dense = rows, .stride = c->stride, .padded = true};
    double *s = NULL;
    /* Without scales the kernel adds with weight 1; subtracting needs an array of -1. */
    if (sign < 0) {
        s = svi_alloc_array((size_t)count + 1, sizeof *s);
        if (!s)
            return svi_fail_memory(err, "the Gram matrix");
        for (int64_t i = 0; i < count; i++)
            s[i] = sign;
    }
    svs_code code = svi_rows_gram(&r, index, count, s, 1, c->gram, err);
    svi_free(s);
    return code;
}

void svi_gram_cache_renew(struct svi_gram_cache **pc, int j) {
    struct svi_gram_cache *c = *pc;
    if (!c || j >= c->d)
        return;
    if (c->mean[j] != 0 ||
        c->inverse[j] != 1) { /* a scaled feature: the next snapshot has other coordinates */
        svi_gram_cache_free(pc);
        return;
    }
    const int n = c->d + 1;
    /* Row and column j of the lower triangle; a feature without scale leaves all other sums as they are. */
    for (int i = 0; i < n; i++)
        c->gram[i > j ? (int64_t)i * n + j : (int64_t)j * n + i] = 0;
    /* The rows too: when they are subtracted, they must be what the sum holds. */
    for (int64_t i = 0; i < c->count; i++)
        c->rows[i * c->stride + j] = 0;
}

svs_code svi_gram_cache_update(struct svi_gram_cache **pc, const struct svi_snapshot *s, double *seconds,
                               svs_error *err) {
    const double start = svi_monotonic();
    struct svi_gram_cache *c = *pc;
    svs_code code;
    /* A window that outgrew the capacity, other coordinates, or too many updates: from scratch. */
    if (c && (c->capacity < s->count || !gram_cache_same_units(c, s) || c->updates >= REBUILD_EVERY))
        svi_gram_cache_free(pc);
    if (!*pc) {
        c = *pc = gram_cache_make(s, err);
        if (!c)
            return SVS_NO_MEMORY;
        code = gram_cache_add(c, s->rows, NULL, s->count, 1, err);
    } else {
        /* Subtract before adding: one array `index` serves both. */
        const int64_t removed = gram_cache_difference(c->number, c->count, s->number, s->count, c->index);
        code = gram_cache_add(c, c->rows, c->index, removed, -1, err);
        const int64_t added = gram_cache_difference(s->number, s->count, c->number, c->count, c->index);
        if (code == SVS_OK)
            code = gram_cache_add(c, s->rows, c->index, added, 1, err);
        c->updates++;
    }
    if (code != SVS_OK) {
        svi_gram_cache_free(pc);
        return code;
    }
    /* gram is that of this snapshot now: keep its rows and units, from which the next update subtracts. */
    c->count = s->count;
    memcpy(c->number, s->number, (size_t)s->count * sizeof *c->number);
    memcpy(c->rows, s->rows, (size_t)(s->count * s->stride) * sizeof *c->rows);
    memcpy(c->mean, s->mean, (size_t)s->d * sizeof *c->mean);
    memcpy(c->inverse, s->inverse, (size_t)s->d * sizeof *c->inverse);
    *seconds += svi_monotonic() - start;
    return SVS_OK;
}
