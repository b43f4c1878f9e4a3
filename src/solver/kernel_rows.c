#include "solver/kernel_rows.h"

#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"

#define BLOCK 16 /* rows computed at once */

static const int64_t *span(const svs_rows *r, int64_t i) {
    return r->start + (r->stride > 1 ? i * r->stride : i);
}

static double norm2(const svs_rows *r, int64_t i) {
    double sum = 0;
    if (r->dense)
        return cblas_ddot(r->d, r->dense + i * r->stride, 1, r->dense + i * r->stride, 1);
    for (int64_t k = span(r, i)[0]; k < span(r, i)[1]; k++)
        sum += r->value[k] * r->value[k];
    return sum;
}

svs_code svi_kernel_rows_init(struct svi_kernel_rows *k, const svs_rows *rows, const svs_kernel *kernel,
                              double shift, double mib, int64_t least, svs_error *err) {
    const int64_t n = rows->n, fits = (int64_t)(mib * 1048576 / (8.0 * (double)n));
    *k = (struct svi_kernel_rows){.rows = rows, .kernel = *kernel, .shift = shift, .n = n, .clock = 1};
    k->room = fits < least ? least : fits < n ? fits : n;
    k->norm2 = svi_alloc_array((size_t)n, sizeof *k->norm2);
    k->diagonal = svi_alloc_array((size_t)n, sizeof *k->diagonal);
    k->cache = svi_alloc_array((size_t)k->room, (size_t)n * sizeof *k->cache);
    k->block = svi_alloc_array(BLOCK, (size_t)n * sizeof *k->block);
    k->gathered = svi_alloc_array(BLOCK, (size_t)rows->d * sizeof *k->gathered);
    k->slot = svi_alloc_array((size_t)n, sizeof *k->slot);
    k->owner = svi_alloc_array((size_t)k->room, sizeof *k->owner);
    k->used = svi_alloc_array((size_t)k->room, sizeof *k->used);
    if (!k->norm2 || !k->diagonal || !k->cache || !k->block || !k->gathered || !k->slot || !k->owner ||
        !k->used)
        return svi_fail_memory(err, "the kernel cache");
    for (int64_t i = 0; i < n; i++) {
        k->slot[i] = -1;
        k->norm2[i] = norm2(rows, i);
        k->diagonal[i] = svs_kernel_value(kernel, k->norm2[i], k->norm2[i], k->norm2[i]) + shift;
    }
    for (int64_t s = 0; s < k->room; s++)
        k->owner[s] = -1;
    return SVS_OK;
}

void svi_kernel_rows_clear(struct svi_kernel_rows *k) {
    void *const all[] = {k->norm2, k->diagonal, k->cache, k->block, k->gathered, k->slot, k->owner, k->used};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    *k = (struct svi_kernel_rows){0};
}

/* Inner products of `count` rows with all rows into the block. Sparse ones lie transposed, so that one value
 * meets all of them at once. */
static void products_sparse(struct svi_kernel_rows *k, const int64_t *index, int count) {
    const svs_rows *r = k->rows;
    memset(k->gathered, 0, (size_t)BLOCK * (size_t)r->d * sizeof *k->gathered);
    for (int a = 0; a < count; a++)
        for (int64_t e = span(r, index[a])[0]; e < span(r, index[a])[1]; e++)
            k->gathered[(int64_t)r->column[e] * BLOCK + a] = r->value[e];
    for (int64_t i = 0; i < k->n; i++) {
        double sum[BLOCK] = {0};
        for (int64_t e = span(r, i)[0]; e < span(r, i)[1]; e++) {
            const double *to = k->gathered + (int64_t)r->column[e] * BLOCK, x = r->value[e];
            for (int a = 0; a < BLOCK; a++)
                sum[a] += x * to[a];
        }
        for (int a = 0; a < count; a++)
            k->block[a * k->n + i] = sum[a];
    }
}

static void products_dense(struct svi_kernel_rows *k, const int64_t *index, int count) {
    const svs_rows *r = k->rows;
    for (int a = 0; a < count; a++)
        memcpy(k->gathered + (int64_t)a * r->d, r->dense + index[a] * r->stride,
               (size_t)r->d * sizeof *k->gathered);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, count, (int)k->n, r->d, 1, k->gathered, r->d,
                r->dense, (int)r->stride, 0, k->block, (int)k->n);
}

static void compute(struct svi_kernel_rows *k, const int64_t *index, int count) {
    if (k->rows->dense)
        products_dense(k, index, count);
    else
        products_sparse(k, index, count);
    for (int a = 0; a < count; a++) {
        double *row = k->block + a * k->n, own = k->norm2[index[a]];
        for (int64_t i = 0; i < k->n; i++)
            row[i] = svs_kernel_value(&k->kernel, row[i], own, k->norm2[i]) + k->shift;
    }
}

/* A free slot, or the one that was not asked for the longest; those of this call (stamped `clock`) stay. */
static int32_t free_slot(struct svi_kernel_rows *k) {
    int64_t oldest = 0;
    for (int64_t s = 0; s < k->room; s++) {
        if (k->owner[s] < 0)
            return (int32_t)s;
        if (k->used[s] < k->used[oldest])
            oldest = s;
    }
    k->slot[k->owner[oldest]] = -1;
    return (int32_t)oldest;
}

static void load(struct svi_kernel_rows *k, const int64_t *index, int count) {
    compute(k, index, count);
    for (int a = 0; a < count; a++) {
        int32_t s = free_slot(k);
        memcpy(k->cache + s * k->n, k->block + a * k->n, (size_t)k->n * sizeof *k->cache);
        k->owner[s] = index[a];
        k->slot[index[a]] = s;
        k->used[s] = k->clock;
    }
}

void svi_kernel_rows_get(struct svi_kernel_rows *k, const int64_t *index, int count, const double **row) {
    int64_t missing[BLOCK];
    int waiting = 0;
    k->clock++;
    for (int a = 0; a < count; a++)
        if (k->slot[index[a]] >= 0)
            k->used[k->slot[index[a]]] = k->clock;
    for (int a = 0; a < count; a++) {
        if (k->slot[index[a]] < 0)
            missing[waiting++] = index[a];
        if (waiting == BLOCK || (waiting > 0 && a == count - 1)) {
            load(k, missing, waiting);
            waiting = 0;
        }
    }
    for (int a = 0; a < count; a++)
        row[a] = k->cache + k->slot[index[a]] * k->n;
}

static void add_rows(struct svi_kernel_rows *k, const int64_t *index, int count, const double *coef,
                     double *f) {
    const double *row[BLOCK];
    svi_kernel_rows_get(k, index, count, row);
    for (int a = 0; a < count; a++)
        cblas_daxpy((int)k->n, coef[index[a]], row[a], 1, f, 1);
}

void svi_kernel_rows_product(struct svi_kernel_rows *k, const double *coef, double *f) {
    int64_t index[BLOCK];
    int waiting = 0;
    memset(f, 0, (size_t)k->n * sizeof *f);
    for (int64_t i = 0; i < k->n; i++) {
        if (coef[i] != 0)
            index[waiting++] = i;
        if (waiting == BLOCK || (waiting > 0 && i == k->n - 1)) {
            add_rows(k, index, waiting, coef, f);
            waiting = 0;
        }
    }
}
