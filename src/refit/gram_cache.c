#include "refit/gram_cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "linalg/sparse_rows.h"

#define REBUILD_EVERY 10 /* updates: rounding of what was put in and taken out again */

struct svi_gram_cache {
    double *gram;
    double *rows, *mean, *inverse; /* of the samples that are in */
    int64_t *number, *index;
    int64_t count, room;
    int d, stride, updates;
};

void svi_gram_cache_free(struct svi_gram_cache **pc) {
    struct svi_gram_cache *c = *pc;
    if (!c)
        return;
    void *const all[] = {c->gram, c->rows, c->mean, c->inverse, c->number, c->index};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_free(c);
    *pc = NULL;
}

const double *svi_gram_cache_gram(const struct svi_gram_cache *c) {
    return c ? c->gram : NULL;
}

double svi_gram_cache_memory(double n, int d) {
    return 8.0 * (d + 1) * (d + 1) + n * (8.0 * (d + 7) + 16) + 16.0 * d;
}

static struct svi_gram_cache *gram_cache_make(int64_t room, const struct svi_snapshot *s) {
    struct svi_gram_cache *c = svi_alloc(sizeof *c);
    const size_t n = (size_t)s->d + 1;
    if (!c)
        return NULL;
    c->gram = svi_alloc_array(n * n, sizeof *c->gram);
    c->rows = svi_alloc_array((size_t)room, (size_t)s->stride * sizeof *c->rows);
    c->mean = svi_alloc_array(n, sizeof *c->mean);
    c->inverse = svi_alloc_array(n, sizeof *c->inverse);
    c->number = svi_alloc_array((size_t)room, sizeof *c->number);
    c->index = svi_alloc_array((size_t)room, sizeof *c->index);
    c->room = room;
    c->d = s->d;
    c->stride = s->stride;
    if (!c->gram || !c->rows || !c->mean || !c->inverse || !c->number || !c->index)
        svi_gram_cache_free(&c);
    return c;
}

static bool same_coordinates(const struct svi_gram_cache *c, const struct svi_snapshot *s) {
    const size_t bytes = (size_t)s->d * sizeof(double);
    return c->d == s->d && memcmp(c->mean, s->mean, bytes) == 0 && memcmp(c->inverse, s->inverse, bytes) == 0;
}

/* Rows of `number` (ascending) that are not among `others`. */
static int64_t gram_cache_difference(const int64_t *number, int64_t count, const int64_t *others,
                                     int64_t other_count, int64_t *index) {
    int64_t found = 0;
    for (int64_t i = 0, k = 0; i < count; i++) {
        while (k < other_count && others[k] < number[i])
            k++;
        if (k == other_count || others[k] != number[i])
            index[found++] = i;
    }
    return found;
}

static svs_code gram_cache_add(struct svi_gram_cache *c, const double *rows, const int64_t *index,
                               int64_t count, double sign, svs_error *err) {
    const svs_rows r = {.n = count, .d = c->d, .dense = rows, .stride = c->stride, .padded = true};
    double *s = NULL;
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
    if (c->mean[j] != 0 || c->inverse[j] != 1) { /* the next snapshot has other coordinates */
        svi_gram_cache_free(pc);
        return;
    }
    const int n = c->d + 1;
    for (int i = 0; i < n; i++)
        c->gram[i > j ? (int64_t)i * n + j : (int64_t)j * n + i] = 0;
    for (int64_t i = 0; i < c->count; i++)
        c->rows[i * c->stride + j] = 0;
}

svs_code svi_gram_cache_update(struct svi_gram_cache **pc, const struct svi_snapshot *s, double *seconds,
                               svs_error *err) {
    const double start = svi_monotonic();
    struct svi_gram_cache *c = *pc;
    svs_code code;
    if (c && (c->room < s->count || !same_coordinates(c, s) || c->updates >= REBUILD_EVERY))
        svi_gram_cache_free(pc);
    if (!*pc) {
        c = *pc = gram_cache_make(s->count, s);
        if (!c)
            return svi_fail_memory(err, "the Gram matrix of the window");
        code = gram_cache_add(c, s->rows, NULL, s->count, 1, err);
    } else {
        const int64_t left = gram_cache_difference(c->number, c->count, s->number, s->count, c->index);
        code = gram_cache_add(c, c->rows, c->index, left, -1, err);
        const int64_t came = gram_cache_difference(s->number, s->count, c->number, c->count, c->index);
        if (code == SVS_OK)
            code = gram_cache_add(c, s->rows, c->index, came, 1, err);
        c->updates++;
    }
    if (code != SVS_OK) {
        svi_gram_cache_free(pc);
        return code;
    }
    c->count = s->count;
    memcpy(c->number, s->number, (size_t)s->count * sizeof *c->number);
    memcpy(c->rows, s->rows, (size_t)(s->count * s->stride) * sizeof *c->rows);
    memcpy(c->mean, s->mean, (size_t)s->d * sizeof *c->mean);
    memcpy(c->inverse, s->inverse, (size_t)s->d * sizeof *c->inverse);
    *seconds += svi_monotonic() - start;
    return SVS_OK;
}
