#include "solver/kernel_rows.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"

#define BLOCK SVI_LANES /* rows computed at once, and slots of a shelf */
#define TILE  512       /* columns of them at once */

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

/* ---- memory */

static int64_t shelves(const struct svi_kernel_rows *k) {
    return (k->room + BLOCK - 1) / BLOCK;
}

static double *place(const struct svi_kernel_rows *k, int64_t slot) {
    return k->shelf[slot / BLOCK] + slot % BLOCK * k->n;
}

static void link_newest(struct svi_kernel_rows *k, int32_t slot) {
    const int32_t end = (int32_t)k->room, last = k->older[end];
    k->older[slot] = last;
    k->newer[slot] = end;
    k->newer[last] = k->older[end] = slot;
}

static void touch(struct svi_kernel_rows *k, int32_t slot) {
    k->newer[k->older[slot]] = k->newer[slot];
    k->older[k->newer[slot]] = k->older[slot];
    link_newest(k, slot);
}

static void link_oldest(struct svi_kernel_rows *k, int32_t slot) {
    const int32_t end = (int32_t)k->room, first = k->newer[end];
    k->older[slot] = end;
    k->newer[slot] = first;
    k->newer[end] = k->older[first] = slot;
}

/* Room for another shelf of rows, at the old end. False: the cache is as large as it may be, or can be. */
static bool extend(struct svi_kernel_rows *k) {
    if (k->slots == k->room)
        return false;
    const int64_t more = k->room - k->slots < BLOCK ? k->room - k->slots : BLOCK;
    double *rows = svi_alloc_array((size_t)more, (size_t)k->n * sizeof *rows);
    if (!rows)
        return false;
    k->shelf[k->slots / BLOCK] = rows;
    for (int64_t s = k->slots + more - 1; s >= k->slots; s--) {
        k->owner[s] = -1;
        link_oldest(k, (int32_t)s);
    }
    k->slots += more;
    return true;
}

/* The slot that was not asked for the longest, now `row`'s. */
static int32_t take_slot(struct svi_kernel_rows *k, int64_t row) {
    int32_t s = k->newer[k->room];
    if (k->owner[s] >= 0 && extend(k))
        s = k->newer[k->room];
    if (k->owner[s] >= 0)
        k->slot[k->owner[s]] = -1;
    k->owner[s] = (int32_t)row;
    k->slot[row] = s;
    touch(k, s);
    return s;
}

int64_t svi_kernel_rows_fit(int64_t n, double mib) {
    const double fits = mib * 1048576 / (8.0 * (double)n);
    return fits < (double)n ? (int64_t)fits : n;
}

static svs_code reserve(struct svi_kernel_rows *k, int64_t least, svs_error *err) {
    const size_t n = (size_t)k->n, ends = (size_t)k->room + 1;
    bool got = (k->norm2 = svi_alloc_array(n, sizeof *k->norm2)) != NULL;
    got = (k->diagonal = svi_alloc_array(n, sizeof *k->diagonal)) && got;
    got = (k->slot = svi_alloc_array(n, sizeof *k->slot)) && got;
    got = (k->shelf = svi_alloc_array((size_t)shelves(k), sizeof *k->shelf)) && got;
    got = (k->tile = svi_alloc_array(BLOCK * TILE, sizeof *k->tile)) && got;
    got = (k->gathered = svi_alloc_array(BLOCK, (size_t)k->rows->d * sizeof *k->gathered)) && got;
    got = (k->owner = svi_alloc_array(ends, sizeof *k->owner)) && got;
    got = (k->older = svi_alloc_array(ends, sizeof *k->older)) && got;
    got = (k->newer = svi_alloc_array(ends, sizeof *k->newer)) && got;
    if (got)
        k->older[k->room] = k->newer[k->room] = (int32_t)k->room;
    while (got && k->slots < least && k->slots < k->room)
        got = extend(k);
    return got ? SVS_OK : svi_fail_memory(err, "the kernel cache");
}

static svs_code measure(struct svi_kernel_rows *k, svs_error *err) {
    double largest = 0;
    for (int64_t i = 0; i < k->n; i++) {
        k->slot[i] = -1;
        k->norm2[i] = norm2(k->rows, i);
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
        "take a lower degree or gamma",
        most, largest);
}

svs_code svi_kernel_rows_init(struct svi_kernel_rows *k, const svs_rows *rows, const svs_kernel *kernel,
                              double shift, double mib, int64_t least, svs_error *err) {
    const int64_t fits = svi_kernel_rows_fit(rows->n, mib);
    if (least < BLOCK) /* what product() loads at once */
        least = BLOCK < rows->n ? BLOCK : rows->n;
    *k = (struct svi_kernel_rows){.rows = rows,
                                  .vector = svi_kernels_get(SVS_ISA_BEST),
                                  .kernel = *kernel,
                                  .shift = shift,
                                  .n = rows->n,
                                  .room = fits < least ? least : fits};
    svs_code code = reserve(k, least, err);
    return code == SVS_OK ? measure(k, err) : code;
}

void svi_kernel_rows_clear(struct svi_kernel_rows *k) {
    for (int64_t s = 0; k->shelf && s < shelves(k); s++)
        svi_free(k->shelf[s]);
    void *const all[] = {k->norm2,    k->diagonal, k->slot,  k->shelf, k->tile,
                         k->gathered, k->owner,    k->older, k->newer};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    *k = (struct svi_kernel_rows){0};
}

/* ---- values */

/* The features of `count` rows: one behind the other, or, of sparse rows, transposed, so that one value meets
 * all of them at once. */
static void gather(struct svi_kernel_rows *k, const int64_t *index, int count) {
    const svs_rows *r = k->rows;
    if (r->dense) {
        for (int a = 0; a < count; a++)
            memcpy(k->gathered + (int64_t)a * r->d, r->dense + index[a] * r->stride,
                   (size_t)r->d * sizeof *k->gathered);
        return;
    }
    memset(k->gathered, 0, (size_t)BLOCK * (size_t)r->d * sizeof *k->gathered);
    for (int a = 0; a < count; a++)
        for (int64_t e = span(r, index[a])[0]; e < span(r, index[a])[1]; e++)
            k->gathered[(int64_t)r->column[e] * BLOCK + a] = r->value[e];
}

/* Inner products of the gathered rows with rows first .. first + width - 1, into the tile. */
static void products(struct svi_kernel_rows *k, int count, int64_t first, int width) {
    const svs_rows *r = k->rows;
    if (r->dense) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, count, width, r->d, 1, k->gathered, r->d,
                    r->dense + first * r->stride, (int)r->stride, 0, k->tile, TILE);
        return;
    }
    for (int i = 0; i < width; i++) {
        double sum[BLOCK];
        const int64_t *e = span(r, first + i);
        k->vector->lanes_dot(r->value + e[0], r->column + e[0], e[1] - e[0], k->gathered, sum);
        for (int a = 0; a < count; a++)
            k->tile[a * TILE + i] = sum[a];
    }
}

/* Kernel values of row `own` with rows first .. from products in the tile; `to` may be these. */
static void values(const struct svi_kernel_rows *k, int64_t own, int64_t first, int width, const double *dot,
                   double *to) {
    const double *norm = k->norm2 + first;
    if (k->kernel.kind == SVS_RBF)
        k->vector->rbf(dot, norm, k->norm2[own], k->kernel.gamma, width, to);
    else
        for (int i = 0; i < width; i++)
            to[i] = svs_kernel_value(&k->kernel, dot[i], k->norm2[own], norm[i]);
    for (int i = 0; i < width && k->shift != 0; i++)
        to[i] += k->shift;
}

static int width_at(const struct svi_kernel_rows *k, int64_t first) {
    return (int)(k->n - first < TILE ? k->n - first : TILE);
}

static void load(struct svi_kernel_rows *k, const int64_t *index, int count) {
    double *to[BLOCK];
    for (int a = 0; a < count; a++)
        to[a] = place(k, take_slot(k, index[a]));
    gather(k, index, count);
    for (int64_t first = 0; first < k->n; first += TILE) {
        products(k, count, first, width_at(k, first));
        for (int a = 0; a < count; a++)
            values(k, index[a], first, width_at(k, first), k->tile + a * TILE, to[a] + first);
    }
}

void svi_kernel_rows_get(struct svi_kernel_rows *k, const int64_t *index, int count, const double **row) {
    int64_t missing[BLOCK];
    int waiting = 0;
    for (int a = 0; a < count; a++)
        if (svi_kernel_rows_has(k, index[a]))
            touch(k, k->slot[index[a]]);
    for (int a = 0; a < count; a++) {
        if (!svi_kernel_rows_has(k, index[a]))
            missing[waiting++] = index[a];
        if (waiting == BLOCK || (waiting > 0 && a == count - 1)) {
            load(k, missing, waiting);
            waiting = 0;
        }
    }
    for (int a = 0; a < count; a++)
        row[a] = place(k, k->slot[index[a]]);
}

/* ---- sums over all rows */

static void add_cached(struct svi_kernel_rows *k, int64_t i, double coef, double *f) {
    cblas_daxpy((int)k->n, coef, place(k, k->slot[i]), 1, f, 1);
}

static void add_passing(struct svi_kernel_rows *k, const int64_t *index, int count, const double *coef,
                        double *f) {
    gather(k, index, count);
    for (int64_t first = 0; first < k->n; first += TILE) {
        const int width = width_at(k, first);
        products(k, count, first, width);
        for (int a = 0; a < count; a++) {
            values(k, index[a], first, width, k->tile + a * TILE, k->tile + a * TILE);
            cblas_daxpy(width, coef[index[a]], k->tile + a * TILE, 1, f + first, 1);
        }
    }
}

/* Rows that are not in the cache: into it while it has empty slots. */
static void add_missing(struct svi_kernel_rows *k, const int64_t *index, int count, const double *coef,
                        double *f) {
    const bool empty = k->owner[k->newer[k->room]] < 0 || extend(k);
    if (!empty) {
        add_passing(k, index, count, coef, f);
        return;
    }
    load(k, index, count);
    for (int a = 0; a < count; a++)
        add_cached(k, index[a], coef[index[a]], f);
}

void svi_kernel_rows_product(struct svi_kernel_rows *k, const double *coef, double *f) {
    int64_t index[BLOCK];
    int waiting = 0;
    memset(f, 0, (size_t)k->n * sizeof *f);
    for (int64_t i = 0; i < k->n; i++) {
        if (coef[i] != 0 && svi_kernel_rows_has(k, i))
            add_cached(k, i, coef[i], f);
        else if (coef[i] != 0)
            index[waiting++] = i;
        if (waiting == BLOCK || (waiting > 0 && i == k->n - 1)) {
            add_missing(k, index, waiting, coef, f);
            waiting = 0;
        }
    }
}
