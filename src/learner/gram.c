/* Sums that only grow: G = sum s z z' as a lower triangle, and sum s z by class. A sample waits in a block;
 * a full block is added to G as one product, by our own tiles up to a dimension of BLAS_FROM and by dsyrk
 * from there on, which reads each row once for many columns. The sums by class are added at once, row by
 * row, so that they need no label of what waits. The sum over all samples is not kept: it is the first
 * column of G, and of what waits (svi_gram_total).
 *
 * Whatever changes G as a whole (coordinates, a column that is removed, a sample that is taken out) first
 * adds what waits. An archive has both, so that a state continues with the same blocks, and with the same
 * bits.
 *
 * Read svi_gram_add and svi_gram_flush first, then svi_gram_move (another epoch's coordinates). */
#include "learner/gram.h"

#include <cblas.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/fail.h"

#define BLAS_FROM 96 /* below, our own tiles are as fast as dsyrk */

enum { GRAM_N, GRAM_SUMS, GRAM_GATHERED };
static const struct svi_array gram_table[] = {
    SVI_ARRAY(struct svi_gram, g, NULL, SVI_AXIS(GRAM_N), SVI_AXIS(GRAM_N)),
    SVI_ARRAY(struct svi_gram, sums, "sums", SVI_AXIS(GRAM_SUMS), SVI_AXIS(GRAM_N)),
    SVI_ARRAY(struct svi_gram, block, "gathered rows", SVI_AXIS(GRAM_GATHERED), SVI_AXIS(GRAM_N)),
};
static const struct svi_arrays gram_arrays = SVI_ARRAYS_ALIGNED(gram_table, "the Gram matrix");

/* Doubled where it grows: classes are added one at a time, and each growth copies everything. */
static int gram_group_capacity(int groups) {
    return groups < 4 ? 4 : 2 * groups;
}

double svi_gram_memory(int n, int groups) {
    const int32_t dims[] = {n, gram_group_capacity(groups), SVI_GRAM_BLOCK};
    return (double)svi_arrays_bytes(&gram_arrays, dims);
}

svs_code svi_gram_init(struct svi_gram *g, int n, int groups, svs_error *err) {
    static const struct svi_gram none = {0};
    return svi_gram_init_wider(g, n, groups, &none, err);
}

svs_code svi_gram_init_wider(struct svi_gram *g, int n, int groups, const struct svi_gram *of,
                             svs_error *err) {
    const int capacity = n > of->capacity ? n : of->capacity;
    const int group_capacity = groups > of->group_capacity ? gram_group_capacity(groups) : of->group_capacity;
    const int32_t dims[] = {capacity, group_capacity, SVI_GRAM_BLOCK};
    *g = (struct svi_gram){.n = n, .capacity = capacity, .groups = groups, .group_capacity = group_capacity};
    svs_code code = svi_arrays_alloc(&gram_arrays, g, dims, err);
    if (code != SVS_OK)
        svi_gram_clear(g);
    return code;
}

void svi_gram_clear(struct svi_gram *g) {
    svi_arrays_free(&gram_arrays, g);
    *g = (struct svi_gram){0};
}

void svi_gram_zero(struct svi_gram *g) {
    memset(g->g, 0, (size_t)g->n * (size_t)g->n * sizeof(double));
    memset(g->sums, 0, (size_t)g->n * (size_t)g->group_capacity * sizeof(double));
    g->filled = 0;
}

void svi_gram_adopt(struct svi_gram *g, struct svi_gram *wider) {
    const int32_t from[] = {g->n, g->groups, g->filled}, to[] = {wider->n, wider->groups, SVI_GRAM_BLOCK};
    svi_arrays_copy(&gram_arrays, wider, to, g, from);
    memcpy(wider->weight, g->weight, sizeof g->weight);
    wider->filled = g->filled;
    svi_gram_clear(g);
    *g = *wider;
}

svs_code svi_gram_reserve(struct svi_gram *g, int n, int groups, svs_error *err) {
    struct svi_gram wider;
    if (n <= g->capacity && groups <= g->group_capacity)
        return SVS_OK;
    SVI_TRY(svi_gram_init_wider(&wider, n, groups, g, err));
    wider.n = g->n;
    wider.groups = g->groups;
    svi_gram_adopt(g, &wider);
    return SVS_OK;
}

svs_code svi_gram_grow(struct svi_gram *g, int groups, svs_error *err) {
    svs_code code = svi_gram_reserve(g, g->n, groups, err);
    g->groups = code == SVS_OK ? groups : g->groups;
    return code;
}

/* The sums by class: sum s z in the row of its class; regression (group < 0): sum s t z in row 0. */
static void gram_add_sums(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s,
                          int group, double target) {
    const double times = group < 0 ? s * target : s;
    const int row = group < 0 ? 0 : group;
    k->groups_add(g->sums, g->n, z, &times, &row, 1);
}

void svi_gram_gather(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                     double target) {
    memcpy(g->block + (size_t)g->filled * (size_t)g->n, z, (size_t)g->n * sizeof *z);
    gram_add_sums(g, k, z, s, group, target);
    g->weight[g->filled++] = s;
}

void svi_gram_add(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                  double target) {
    svi_gram_gather(g, k, z, s, group, target);
    if (g->filled == SVI_GRAM_BLOCK)
        svi_gram_flush(g, k);
}

void svi_gram_add_rows(struct svi_gram *g, const struct svi_kernels *k, const struct svi_gram_rows *rows,
                       const double *mean, const double *inverse) {
    /* Full blocks are flushed at the same rows as by svi_gram_add, one by one: the order of additions, and
     * so each bit, is the same. */
    for (int i = 0, count; i < rows->count; i += count) {
        const int left = rows->count - i, capacity = SVI_GRAM_BLOCK - g->filled;
        double *z = g->block + (size_t)g->filled * (size_t)g->n;
        count = left < capacity ? left : capacity;
        k->standardise_rows(z, rows->x + i, count, mean, inverse, g->n - 1);
        k->groups_add(g->sums, g->n, z, rows->times + i, rows->group + i, count);
        memcpy(g->weight + g->filled, rows->s + i, (size_t)count * sizeof *g->weight);
        g->filled += count;
        if (g->filled == SVI_GRAM_BLOCK)
            svi_gram_flush(g, k);
    }
}

/* A value that another thread will read: past the caches, because a store to a line of which another
 * processor has a copy waits until that one has given it up. */
static void gram_store_past(double *to, double value) {
#if defined(__x86_64__)
    long long bits;
    memcpy(&bits, &value, sizeof bits);
    _mm_stream_si64((long long *)(void *)to, bits);
#else
    *to = value;
#endif
}

/* Ends a series of such stores: they are not ordered with others. */
static void gram_stored_past(void) {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

int svi_gram_detach(struct svi_gram *g, double *rows) {
    const int n = g->n, count = n < BLAS_FROM ? 0 : g->filled;
    for (int i = 0; i < count; i++) {
        const double root = sqrt(g->weight[i]), *from = g->block + (size_t)i * (size_t)n;
        for (int j = 0; j < n; j++)
            gram_store_past(rows++, from[j] * root);
    }
    gram_stored_past();
    g->filled -= count;
    return count;
}

void svi_gram_add_detached(struct svi_gram *g, const double *rows, int count) {
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, g->n, count, 1, rows, g->n, 1, g->g, g->n);
}

void svi_gram_flush(struct svi_gram *g, const struct svi_kernels *k) {
    const int n = g->n, count = g->filled;
    /* Emptied first, so that what is in the block is added once, no matter what reads `filled` next. */
    g->filled = 0;
    if (n < BLAS_FROM) {
        k->gram(g->g, n, g->block, n, g->weight, count);
        return;
    }
    /* dsyrk knows no weights: each row is scaled by the root of its own (all are positive), which costs the
     * rows in the block; they are not read again. */
    for (int i = 0; i < count; i++)
        cblas_dscal(n, sqrt(g->weight[i]), g->block + (size_t)i * n, 1);
    svi_gram_add_detached(g, g->block, count);
}

/* Subtraction leaves what rounding a larger sample has left in G: exact only as long as nothing much larger
 * was in (NUMERICS: maintained sums keep eps S^2). Callers take back what they have just added. */
void svi_gram_take(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                   double target) {
    const double c = -s;
    svi_gram_flush(g, k); /* whose roots of weights are of those above 0 */
    gram_add_sums(g, k, z, c, group, target);
    k->gram(g->g, g->n, z, g->n, &c, 1);
}

/* The row and the column of j, in the lower triangle. */
bool svi_gram_clear_coordinate(struct svi_gram *g, const struct svi_kernels *k, int j) {
    const size_t n = (size_t)g->n;
    svi_gram_flush(g, k);
    const bool held = g->g[(size_t)j * n + (size_t)j] != 0;
    memset(g->g + (size_t)j * n, 0, ((size_t)j + 1) * sizeof(double));
    for (size_t i = (size_t)j; i < n; i++)
        g->g[i * n + (size_t)j] = 0;
    for (size_t c = 0; c < (size_t)g->groups; c++)
        g->sums[c * n + (size_t)j] = 0;
    return held;
}

double svi_gram_total(const struct svi_gram *g, int j) {
    double total = g->g[(size_t)j * (size_t)g->n]; /* G_j0, as z_0 = 1 */
    for (int i = 0; i < g->filled; i++)
        total += g->weight[i] * g->block[(size_t)i * (size_t)g->n + (size_t)j];
    return total;
}

/* r = sum s t z with t = +-1: sum over its class minus sum over the others = 2 (sum over its class) - (sum
 * over all). */
void svi_gram_right_hand_side(const struct svi_gram *g, int row, int rows, bool regress, double *to) {
    const double *own = g->sums + (size_t)(regress ? 0 : rows == 1 ? 1 : row) * (size_t)g->n;
    for (int j = 0; j < g->n; j++)
        to[j] = regress ? own[j] : 2 * own[j] - svi_gram_total(g, j);
}

void svi_gram_scale(struct svi_gram *g, double factor) {
    for (size_t i = 0; i < (size_t)g->n * (size_t)g->n; i++)
        g->g[i] *= factor;
    for (size_t i = 0; i < (size_t)g->n * (size_t)g->groups; i++)
        g->sums[i] *= factor;
    for (int i = 0; i < g->filled; i++)
        g->weight[i] *= factor;
}

void svi_gram_move(struct svi_gram *g, const double *shift, const double *inverse_spread) {
    int n = g->n;
    /* From the last row up: row i needs the old column 0 (G_i0 and G_j0, j < i), which is moved only after
     * all rows. */
    double total = g->g[0];           /* sum s: z_0 = 1 */
    for (int i = n - 1; i > 0; i--) { /* G'_ij = (G_ij - m_i G_0j - m_j G_i0 + m_i m_j G_00) / (s_i s_j) */
        double *gi = g->g + (size_t)i * n;
        for (int j = 1; j <= i; j++) {
            double gj0 = g->g[(size_t)j * n];
            gi[j] += -shift[i] * gj0 - shift[j] * gi[0] + shift[i] * shift[j] * total;
            gi[j] *= inverse_spread[i] * inverse_spread[j];
        }
    }
    for (int i = 1; i < n; i++)
        g->g[(size_t)i * n] = (g->g[(size_t)i * n] - shift[i] * total) * inverse_spread[i];
    for (int c = 0; c < g->groups; c++) {
        double *sum = g->sums + (size_t)c * n;
        for (int j = 1; j < n; j++)
            sum[j] = (sum[j] - shift[j] * sum[0]) * inverse_spread[j];
    }
}

static void gram_move_triangle(struct svi_gram *g, double *scratch, bool out) {
    for (int i = 0; i < g->n; scratch += ++i) {
        double *row = g->g + (size_t)i * (size_t)g->n;
        memcpy(out ? scratch : row, out ? row : scratch, (size_t)(i + 1) * sizeof *row);
    }
}

/* The triangle alone is written to the state, by way of `room`; and what waits in the block as rows, so that
 * the same rows are added together later. */
void svi_gram_archive(struct svi_archive *a, struct svi_gram *g, int groups, double *scratch) {
    bool positive = true;
    int filled = g->filled;
    if (!a->loading)
        gram_move_triangle(g, scratch, true);
    svi_archive_finite(a, "gram", scratch, svi_triangle(g->n));
    if (a->loading && svi_archive_ok(a))
        gram_move_triangle(g, scratch, false);
    svi_archive_int(a, "gathered", &filled, 0, SVI_GRAM_BLOCK - 1);
    if (!svi_archive_ok(a))
        return;
    const int32_t dims[] = {g->n, g->group_capacity, SVI_GRAM_BLOCK}, used[] = {g->n, groups, filled};
    svi_archive_finite(a, "gathered weights", g->weight, filled);
    svi_arrays_archive(a, &gram_arrays, g, dims, used);
    for (int i = 0; i < filled; i++)
        positive &= g->weight[i] >= 0; /* 0: faded away */
    svi_archive_check(a, positive, "a weight of the sums is negative");
    g->filled = filled;
}
