/* Rows of the kernel matrix and their cache (kernel_rows.h). A cache of slots, in shelves that are taken as
 * they are needed; a ring of slots in the order of use, whose end is slot `room`. Invariant: slot[i] = s
 * exactly where owner[s] = i, and each slot there is stands once in the ring.
 *
 * Values are made for up to BLOCK rows at once: their features are gathered, products with TILE rows at a
 * time go into the tile, and from there kernel values into the rows (kernel_rows_load) or into a sum
 * (kernel_rows_add_missing). To read: svi_kernel_rows_get, kernel_rows_load, svi_kernel_rows_product. */
#include "solver/kernel_rows.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/fail.h"

#define BLOCK SVI_LANES /* rows computed at once, and slots of a shelf */
#define TILE  512       /* columns of them at once */

/* ---- memory */

static double *kernel_rows_place(const struct svi_kernel_rows *k, int64_t slot) {
    return k->shelf[slot / BLOCK] + slot % BLOCK * k->n;
}

/* Puts a slot into the ring, next after `older`. */
static void kernel_rows_link(struct svi_kernel_rows *k, int32_t slot, int32_t older) {
    const int32_t newer = k->newer[older];
    k->older[slot] = older;
    k->newer[slot] = newer;
    k->newer[older] = k->older[newer] = slot;
}

/* A slot that was used moves to the new end, next to the sentinel `room`. */
static void kernel_rows_touch(struct svi_kernel_rows *k, int32_t slot) {
    k->newer[k->older[slot]] = k->newer[slot];
    k->older[k->newer[slot]] = k->older[slot];
    kernel_rows_link(k, slot, k->older[k->capacity]);
}

/* Takes memory for another shelf of slots, at the old end of the ring, so that empty slots are used before
 * rows are thrown out. False: the cache is as large as it may be, or can be. */
static bool kernel_rows_extend(struct svi_kernel_rows *k) {
    if (k->slots == k->capacity)
        return false;
    const int64_t more = k->capacity - k->slots < BLOCK ? k->capacity - k->slots : BLOCK;
    double *rows = svi_pool_take(&k->pool, (size_t)more, (size_t)k->n * sizeof *rows);
    if (!rows)
        return false;
    k->shelf[k->slots / BLOCK] = rows;
    for (int64_t s = k->slots + more - 1; s >= k->slots; s--) {
        k->owner[s] = -1;
        kernel_rows_link(k, (int32_t)s, (int32_t)k->capacity);
    }
    k->slots += more;
    return true;
}

/* The slot that was not asked for the longest, now `row`'s. */
static int32_t kernel_rows_take_slot(struct svi_kernel_rows *k, int64_t row) {
    int32_t s = k->newer[k->capacity];
    if (k->owner[s] >= 0 && kernel_rows_extend(k))
        s = k->newer[k->capacity];
    if (k->owner[s] >= 0)
        k->slot[k->owner[s]] = -1;
    k->owner[s] = (int32_t)row;
    k->slot[row] = s;
    kernel_rows_touch(k, s);
    return s;
}

/* Bookkeeping is allocated for `room` slots at once, memory of rows by shelves when it is needed. */
static svs_code kernel_rows_reserve(struct svi_kernel_rows *k, int64_t least, svs_error *err) {
    const size_t n = (size_t)k->n, ends = (size_t)k->capacity + 1;
    struct svi_pool *pool = &k->pool;
    k->norm2 = svi_pool_doubles(pool, n);
    k->diagonal = svi_pool_doubles(pool, n);
    k->slot = svi_pool_take(pool, n, sizeof *k->slot);
    k->shelf = svi_pool_take(pool, (ends + BLOCK) / BLOCK, sizeof *k->shelf);
    k->tile = svi_pool_doubles(pool, BLOCK * TILE);
    k->gathered = svi_pool_take(pool, BLOCK, (size_t)k->rows->d * sizeof *k->gathered);
    k->owner = svi_pool_take(pool, ends, sizeof *k->owner);
    k->older = svi_pool_take(pool, ends, sizeof *k->older);
    k->newer = svi_pool_take(pool, ends, sizeof *k->newer);
    if (!pool->failed)
        k->older[k->capacity] = k->newer[k->capacity] = (int32_t)k->capacity;
    /* What `least` rows need is taken at once: a request for that many cannot fail later. */
    while (!pool->failed && k->slots < least && k->slots < k->capacity)
        kernel_rows_extend(k);
    return svi_pool_code(pool, "the kernel cache", err);
}

/* Norms and diagonal, and a check of the largest possible value: an overflow would surface as a NAN in some
 * far corner of a solver. */
static svs_code kernel_rows_measure(struct svi_kernel_rows *k, svs_error *err) {
    double largest = 0;
    for (int64_t i = 0; i < k->n; i++) {
        k->slot[i] = -1;
        const double *x = k->rows->dense ? k->rows->dense + i * k->rows->stride : NULL;
        k->norm2[i] = x ? cblas_ddot(k->rows->d, x, 1, x, 1) : svi_row_norm2(k->rows, i, 0);
        k->diagonal[i] = svs_kernel_value(&k->kernel, k->norm2[i], k->norm2[i], k->norm2[i]) + k->shift;
        largest = k->norm2[i] > largest || isnan(k->norm2[i]) ? k->norm2[i] : largest;
    }
    /* |x'z| <= the largest |x|^2, so no value is larger than this one; squares of it are summed as well */
    svs_kernel bound = k->kernel;
    bound.coef0 = fabs(bound.coef0);
    const double most = svs_kernel_value(&bound, largest, largest, largest);
    if (largest < 1e300 && most < 1e150)
        return SVS_OK;
    return svi_fail(
        err, SVS_NUMERIC,
        "the kernel overflows on these rows (values up to %.3g, from |x|^2 = %.3g): scale the columns, or "
        "use a lower degree or gamma",
        most, largest);
}

svs_code svi_kernel_rows_init(struct svi_kernel_rows *k, const svs_rows *rows, const svs_kernel *kernel,
                              double shift, double mib, int64_t least, svs_error *err) {
    const double fits = mib * 1048576 / (8.0 * (double)rows->n);
    const int64_t capacity = fits < (double)rows->n ? (int64_t)fits : rows->n;
    if (least < BLOCK) /* what product() loads at once */
        least = BLOCK < rows->n ? BLOCK : rows->n;
    *k = (struct svi_kernel_rows){.rows = rows,
                                  .vector = svi_kernels_get(SVS_ISA_BEST),
                                  .kernel = *kernel,
                                  .shift = shift,
                                  .n = rows->n,
                                  .capacity = capacity < least ? least : capacity};
    svs_code code = kernel_rows_reserve(k, least, err);
    return code == SVS_OK ? kernel_rows_measure(k, err) : code;
}

void svi_kernel_rows_clear(struct svi_kernel_rows *k) {
    svi_pool_free(&k->pool);
    *k = (struct svi_kernel_rows){0};
}

/* ---- values */

/* The features of `count` rows: one after the other, or, of sparse rows, transposed, so that one value meets
 * all of them at once. */
static void kernel_rows_gather(struct svi_kernel_rows *k, const int64_t *index, int count) {
    const svs_rows *r = k->rows;
    if (r->dense) {
        for (int a = 0; a < count; a++)
            memcpy(k->gathered + (int64_t)a * r->d, r->dense + index[a] * r->stride,
                   (size_t)r->d * sizeof *k->gathered);
        return;
    }
    /* Lane a of each column is row a: a sparse row meets all gathered rows with one load a value. */
    memset(k->gathered, 0, (size_t)BLOCK * (size_t)r->d * sizeof *k->gathered);
    for (int a = 0; a < count; a++)
        for (int64_t e = svi_row_span(r, index[a])[0]; e < svi_row_span(r, index[a])[1]; e++)
            k->gathered[(int64_t)r->column[e] * BLOCK + a] = r->value[e];
}

/* Inner products of the gathered rows with rows first .. first + width - 1, into the tile. */
static void kernel_rows_products(struct svi_kernel_rows *k, int count, int64_t first, int width) {
    const svs_rows *r = k->rows;
    if (r->dense) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, count, width, r->d, 1, k->gathered, r->d,
                    r->dense + first * r->stride, (int)r->stride, 0, k->tile, TILE);
        return;
    }
    for (int i = 0; i < width; i++) {
        double sum[BLOCK];
        const int64_t *e = svi_row_span(r, first + i);
        k->vector->lanes_dot(r->value + e[0], r->column + e[0], e[1] - e[0], k->gathered, sum);
        for (int a = 0; a < count; a++)
            k->tile[a * TILE + i] = sum[a];
    }
}

/* Kernel values of row `own` with rows first .. from products in the tile; `to` may be these. */
static void kernel_rows_values(const struct svi_kernel_rows *k, int64_t own, int64_t first, int width,
                               const double *dot, double *to) {
    const double *norm = k->norm2 + first;
    if (k->kernel.kind == SVS_RBF)
        k->vector->rbf(dot, norm, k->norm2[own], k->kernel.gamma, width, to);
    else
        for (int i = 0; i < width; i++)
            to[i] = svs_kernel_value(&k->kernel, dot[i], k->norm2[own], norm[i]);
    for (int i = 0; i < width && k->shift != 0; i++)
        to[i] += k->shift;
}

static int kernel_rows_width(const struct svi_kernel_rows *k, int64_t first) {
    return (int)(k->n - first < TILE ? k->n - first : TILE);
}

/* Slots are taken for all rows first: with `least` slots none of them is taken from another one of the same
 * request. */
static void kernel_rows_load(struct svi_kernel_rows *k, const int64_t *index, int count) {
    double *to[BLOCK];
    for (int a = 0; a < count; a++)
        to[a] = kernel_rows_place(k, kernel_rows_take_slot(k, index[a]));
    kernel_rows_gather(k, index, count);
    for (int64_t first = 0; first < k->n; first += TILE) {
        kernel_rows_products(k, count, first, kernel_rows_width(k, first));
        for (int a = 0; a < count; a++)
            kernel_rows_values(k, index[a], first, kernel_rows_width(k, first), k->tile + a * TILE,
                               to[a] + first);
    }
}

void svi_kernel_rows_get(struct svi_kernel_rows *k, const int64_t *index, int count, const double **row) {
    int64_t missing[BLOCK];
    int waiting = 0;
    /* What is there is touched first, so that loading the missing rows does not throw it out. */
    for (int a = 0; a < count; a++)
        if (svi_kernel_rows_has(k, index[a]))
            kernel_rows_touch(k, k->slot[index[a]]);
    for (int a = 0; a < count; a++) {
        if (!svi_kernel_rows_has(k, index[a]))
            missing[waiting++] = index[a];
        if (waiting == BLOCK || (waiting > 0 && a == count - 1)) {
            kernel_rows_load(k, missing, waiting);
            waiting = 0;
        }
    }
    for (int a = 0; a < count; a++)
        row[a] = kernel_rows_place(k, k->slot[index[a]]);
}

/* ---- sums over all rows */

static void kernel_rows_add_cached(struct svi_kernel_rows *k, int64_t i, double coef, double *f) {
    cblas_daxpy((int)k->n, coef, kernel_rows_place(k, k->slot[i]), 1, f, 1);
}

/* Adds rows that are not in the cache: by way of the cache while it has empty slots, else from the tile,
 * without storing them. */
static void kernel_rows_add_missing(struct svi_kernel_rows *k, const int64_t *index, int count,
                                    const double *coef, double *f) {
    /* The oldest slot is empty, or there is memory for more. */
    if (k->owner[k->newer[k->capacity]] < 0 || kernel_rows_extend(k)) {
        kernel_rows_load(k, index, count);
        for (int a = 0; a < count; a++)
            kernel_rows_add_cached(k, index[a], coef[index[a]], f);
        return;
    }
    kernel_rows_gather(k, index, count);
    for (int64_t first = 0; first < k->n; first += TILE) {
        const int width = kernel_rows_width(k, first);
        kernel_rows_products(k, count, first, width);
        for (int a = 0; a < count; a++) {
            kernel_rows_values(k, index[a], first, width, k->tile + a * TILE, k->tile + a * TILE);
            cblas_daxpy(width, coef[index[a]], k->tile + a * TILE, 1, f + first, 1);
        }
    }
}

/* Rows that are in the cache are added at once, others gathered to full blocks. */
void svi_kernel_rows_product(struct svi_kernel_rows *k, const double *coef, double *f) {
    int64_t index[BLOCK];
    int waiting = 0;
    memset(f, 0, (size_t)k->n * sizeof *f);
    for (int64_t i = 0; i < k->n; i++) {
        if (coef[i] != 0 && svi_kernel_rows_has(k, i))
            kernel_rows_add_cached(k, i, coef[i], f);
        else if (coef[i] != 0)
            index[waiting++] = i;
        if (waiting == BLOCK || (waiting > 0 && i == k->n - 1)) {
            kernel_rows_add_missing(k, index, waiting, coef, f);
            waiting = 0;
        }
    }
}
