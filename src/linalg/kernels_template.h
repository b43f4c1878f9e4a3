/* kernels_template.h: the kernels of kernels.h, written once for vectors of VW doubles and compiled
 * once per instruction set. The including file defines VW (2, 4, 8), KERNELS, FLOATS, NEAREST (the
 * names of the tables), ISA, ISA_NAME and STRIP_FOR. The function STRIP_FOR gives the strip height
 * for a dimension, a multiple of VW.
 *
 * In order of reading:
 *
 *  - vectors and their parts;
 *  - the sweep over P (column, strip, sweep_fixed) and the steps of the recursion on top of it;
 *  - standardised rows and the sums of the energy sentinel;
 *  - the Gram matrix by register tiles;
 *  - products of many rows;
 *  - then the parts in files of their own: distances and exponentials, triangles, the columns of
 *    the plain rules, single precision, and the search for near rows.
 *
 * The order of every sum depends on the sizes alone, never on alignment: the same input gives the same bits
 * in every call. */
#include <math.h>
#include <string.h>

#include "linalg/double_double.h"
#include "linalg/kernels.h"
#include "linalg/kernels_floats.h"

typedef double vec __attribute__((vector_size(8 * VW)));
typedef long long mask __attribute__((vector_size(8 * VW))); /* result of a comparison: all ones or zero */
typedef double vec_u __attribute__((vector_size(8 * VW), aligned(8))); /* at any address of a double */

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

INLINE vec load(const double *p) {
    return *(const vec *)p;
}

INLINE void store(double *p, vec v) {
    *(vec *)p = v;
}

INLINE vec splat(double s) {
    return s - (vec){0};
}

/* load_part: lanes from .. to - 1 of a vector, 0 in the others; store_first: the first `to` lanes. Memory of
 * the other lanes is neither read nor written, so a part may end at the end of an array. */
#if VW == 8
INLINE vec load_part(const double *p, int from, int to) {
    return (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << to) - (1u << from)), p);
}
INLINE void store_first(double *p, vec v, int to) {
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << to) - 1), (__m512d)v);
}
#elif VW == 4
INLINE vec load_part(const double *p, int from, int to) {
    const mask lane = {0, 1, 2, 3};
    return (vec)_mm256_maskload_pd(p, (__m256i)((lane >= from) & (lane < to)));
}
/* Stores in narrower pieces: a masked store is slow on some processors. */
INLINE void store_first(double *p, vec v, int to) {
    if (to == VW)
        *(vec_u *)p = v;
    if (to == VW)
        return;
    if (to >= 2)
        _mm_storeu_pd(p, _mm256_castpd256_pd128((__m256d)v));
    if (to & 1)
        p[to - 1] = v[to - 1];
}
#else
INLINE vec load_part(const double *p, int from, int to) {
    return (vec){from < 1 ? p[0] : 0, to > 1 ? p[1] : 0};
}
INLINE void store_first(double *p, vec v, int to) {
    p[0] = v[0];
    if (to > 1)
        p[1] = v[1];
}
#endif

/* sums: one vector with the sums of VW vectors, `step` doubles apart, by a transposing tree: three operations
 * per sum instead of a chain of shuffles each. sum: the lanes of one vector, in the same order. */
#define SHUF __builtin_shufflevector
#if VW == 8
INLINE vec pair(vec a, vec b) {
    return SHUF(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + SHUF(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}
INLINE vec quad(vec a, vec b) {
    return SHUF(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + SHUF(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
INLINE vec sums(const double *p, int step) {
    vec a = quad(pair(load(p), load(p + step)), pair(load(p + 2 * step), load(p + 3 * step)));
    p += 4 * step;
    vec b = quad(pair(load(p), load(p + step)), pair(load(p + 2 * step), load(p + 3 * step)));
    return SHUF(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + SHUF(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}
INLINE double sum(vec v) {
    v += SHUF(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += SHUF(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return v[0] + v[1];
}
#elif VW == 4
INLINE vec pair(vec a, vec b) {
    return SHUF(a, b, 0, 4, 2, 6) + SHUF(a, b, 1, 5, 3, 7);
}
INLINE vec sums(const double *p, int step) {
    vec a = pair(load(p), load(p + step)), b = pair(load(p + 2 * step), load(p + 3 * step));
    return SHUF(a, b, 0, 1, 4, 5) + SHUF(a, b, 2, 3, 6, 7);
}
INLINE double sum(vec v) {
    v += SHUF(v, v, 2, 3, 0, 1);
    return v[0] + v[1];
}
#else
INLINE vec sums(const double *p, int step) {
    vec a = load(p), b = load(p + step);
    return SHUF(a, b, 0, 2) + SHUF(a, b, 1, 3);
}
INLINE double sum(vec v) {
    return v[0] + v[1];
}
#endif

/* One column c of one strip: applies the pending changes, c += sum_k q_k cq_k[j], then adds it to the strip's
 * own products, y += c x[j]. Left of the diagonal block the column is also a row of the upper triangle, which
 * is not stored: `mirror` collects its products with the strip's part of x. RV: vectors of a strip; NP:
 * pending changes; NX: samples. All three are constants of the caller, so the loops unroll. */
#define MAXV      4
#define EAGER_MAX 6000 /* doubles of packed P that the first-level cache holds */
struct strip {
    vec q[SVI_PENDING_MAX][MAXV], x[SVI_PASS_MAX][MAXV], y[SVI_PASS_MAX][MAXV];
};

INLINE void column(struct strip *t, double *p, const struct svi_recursion *r, int j, int RV, int NP, int NX,
                   vec *mirror) {
    vec c[MAXV];
    UNROLL for (int v = 0; v < RV; v++) {
        c[v] = load(p + v * VW);
        __asm__("" : "+x"(c[v])); /* keeps the compiler from loading it again for each use */
    }
    UNROLL for (int k = 0; k < NP; k++) {
        vec b = splat(r->cq[k][j]);
        UNROLL for (int v = 0; v < RV; v++) c[v] += t->q[k][v] * b;
    }
    if (NP)
        UNROLL for (int v = 0; v < RV; v++) store(p + v * VW, c[v]);
    UNROLL for (int m = 0; m < NX; m++) {
        vec b = splat(r->x[m][j]);
        UNROLL for (int v = 0; v < RV; v++) t->y[m][v] += c[v] * b;
        if (mirror)
            UNROLL for (int v = 0; v < RV; v++) mirror[m] += c[v] * t->x[m][v];
    }
}

INLINE void strip_load(struct strip *t, const struct svi_recursion *r, int row, int RV, int NP, int NX) {
    UNROLL for (int v = 0; v < RV; v++) {
        UNROLL for (int k = 0; k < NP; k++) t->q[k][v] = load(r->q[k] + row + v * VW);
        UNROLL for (int m = 0; m < NX; m++) {
            t->x[m][v] = load(r->x[m] + row + v * VW);
            t->y[m][v] = (vec){0};
        }
    }
}

/* One pass over packed P from top to bottom, each entry read once and, with NP > 0, written once. The strip's
 * rows of y are complete in registers when its last column is done; mirrored products of a column j grow over
 * all strips below it, as vectors in r->partial whose lanes are summed at the end. */
INLINE void sweep_fixed(struct svi_recursion *r, int RV, int NP, int NX) {
    const int R = RV * VW, stride = SVI_PASS_MAX * VW;
    double *p = r->p;
    for (int row = 0; row < r->padded; row += R) {
        struct strip t;
        strip_load(&t, r, row, RV, NP, NX);
        int j = 0;
        for (; j < row - R; j++, p += R) {
            vec mirror[SVI_PASS_MAX];
            double *partial = r->partial + (size_t)j * stride;
            UNROLL for (int m = 0; m < NX; m++) mirror[m] = load(partial + m * VW);
            column(&t, p, r, j, RV, NP, NX, mirror);
            UNROLL for (int m = 0; m < NX; m++) store(partial + m * VW, mirror[m]);
        }
        /* This strip is the first below these columns: their partial sums start here, not from memory. */
        for (; j < row; j++, p += R) {
            vec mirror[SVI_PASS_MAX] = {{0}, {0}};
            double *partial = r->partial + (size_t)j * stride;
            column(&t, p, r, j, RV, NP, NX, mirror);
            UNROLL for (int m = 0; m < NX; m++) store(partial + m * VW, mirror[m]);
        }
        /* The diagonal block is stored whole: nothing to mirror. */
        for (; j < row + R; j++, p += R)
            column(&t, p, r, j, RV, NP, NX, NULL);
        UNROLL for (int m = 0; m < NX; m++) UNROLL for (int v = 0; v < RV; v++)
            store(r->y[m] + row + v * VW, t.y[m][v]);
    }
    /* The columns of the last strip have no strip below and so no partial sums. */
    for (int j = 0; j < r->padded - R; j += VW)
        UNROLL for (int m = 0; m < NX; m++)
            store(r->y[m] + j, load(r->y[m] + j) + sums(r->partial + (size_t)j * stride + m * VW, stride));
}

/* One function for each strip height, number of pending changes and number of samples, so that all loops of
 * a column have constant bounds. Three to seven pending changes are padded to 8 (flush). */
#define SWEEP(RV, NP, NX)                                                                                    \
    static void sweep_##RV##_##NP##_##NX(struct svi_recursion *r) {                                          \
        sweep_fixed(r, RV, NP, NX);                                                                          \
    }
#define SWEEPS(RV)                                                                                           \
    SWEEP(RV, 0, 1)                                                                                          \
    SWEEP(RV, 0, 2)                                                                                          \
    SWEEP(RV, 1, 0)                                                                                          \
    SWEEP(RV, 1, 1) SWEEP(RV, 1, 2) SWEEP(RV, 2, 0) SWEEP(RV, 2, 1) SWEEP(RV, 2, 2) SWEEP(RV, 8, 0)
#define ROW(RV)                                                                                              \
    {                                                                                                        \
        {NULL, sweep_##RV##_0_1, sweep_##RV##_0_2}, {sweep_##RV##_1_0, sweep_##RV##_1_1, sweep_##RV##_1_2},  \
        {                                                                                                    \
            sweep_##RV##_2_0, sweep_##RV##_2_1, sweep_##RV##_2_2                                             \
        }                                                                                                    \
    }

SWEEPS(1)
SWEEPS(2)
SWEEPS(3)
SWEEPS(4)

static void (*const sweeps[MAXV][SVI_PASS_MAX + 1][SVI_PASS_MAX + 1])(struct svi_recursion *) = {
    ROW(1), ROW(2), ROW(3), ROW(4)};

/* Applies all SVI_PENDING_MAX (8) changes in one sweep; the unused ones are set to zero first. */
static void flush(struct svi_recursion *r) {
    static void (*const flushes[MAXV])(struct svi_recursion *) = {sweep_1_8_0, sweep_2_8_0, sweep_3_8_0,
                                                                  sweep_4_8_0};
    _Static_assert(SVI_PENDING_MAX == 8, "the sweeps of a flush apply 8 changes");
    for (int k = r->pending; k < SVI_PENDING_MAX; k++) {
        memset(r->q[k], 0, (size_t)r->padded * sizeof(double));
        memset(r->cq[k], 0, (size_t)r->padded * sizeof(double));
    }
    flushes[r->strip / VW - 1](r);
    r->pending = 0;
}

static void sweep(struct svi_recursion *r, int inputs) {
    if (r->pending > SVI_PASS_MAX)
        flush(r);
    if (r->pending || inputs)
        sweeps[r->strip / VW - 1][r->pending][inputs](r);
    r->pending = 0;
}

INLINE double dot_inline(const double *a, const double *b, int n) {
    vec s = load(a) * load(b);
    for (int i = VW; i < n; i += VW)
        s += load(a + i) * load(b + i);
    return sum(s);
}

static double dot(const double *a, const double *b, int n) {
    return dot_inline(a, b, n);
}

INLINE void add_scaled(double *w, const double *q, double c, int n) {
    vec s = splat(c);
    for (int j = 0; j < n; j += VW)
        store(w + j, load(w + j) + s * load(q + j));
}

/* y = P x for the samples of a step. A P that fits L1 gets its pending changes in the same sweep. A larger
 * one is only read, and each pending change corrects the product: y += cq (q'x). The choice depends on the
 * size alone, so the bits do not depend on timing. */
static void products(struct svi_recursion *r, int count) {
    const int n = r->padded;
    if (svi_packed_size(n, r->strip) <= EAGER_MAX) {
        sweep(r, count);
        return;
    }
    if (r->pending + count > SVI_PENDING_MAX) /* this step adds `count` columns; they must fit */
        flush(r);
    sweeps[r->strip / VW - 1][0][count](r);
    for (int k = 0; k < r->pending; k++)
        for (int m = 0; m < count; m++)
            add_scaled(r->y[m], r->cq[k], dot_inline(r->q[k], r->x[m], n), n);
}

/* Adds the pending column q = y sqrt|1/d| and its signed twin. The square root makes the change a product of
 * two equal factors: q_i q_j rounds like q_j q_i, and P stays symmetric bit for bit. */
INLINE void pend(struct svi_recursion *r, int i, double inverse_pivot) {
    double *q = r->q[r->pending], *cq = r->cq[r->pending];
    double root = sqrt(fabs(inverse_pivot));
    vec scale = splat(root), sign = splat(inverse_pivot > 0 ? -root : root);
    for (int j = 0; j < r->padded; j += VW) {
        vec y = load(r->y[i] + j);
        store(q + j, y * scale);
        store(cq + j, y * sign);
    }
    r->pending++;
}

/* A pivot d = +-1/s + x'Px of a positive definite P: at least 1/s for an addition, in [-1/s, 0) for a
 * removal. Anything else, NaN included, means that P is lost and has to be rebuilt. */
INLINE bool pivot_good(double pivot, double inverse_weight) {
    return inverse_weight > 0 ? pivot >= inverse_weight && pivot < INFINITY
                              : pivot < 0 && pivot >= inverse_weight;
}

/* ALSVM's recursion for one sample (Le et al. 2015, Eq. 6): d = +-1/s + x'Px, w += P x (t - w'x) / d, P -= P
 * x x'P / d, the last one pending. The pivot is checked before anything is written. */
static bool step_one(struct svi_recursion *r, struct svi_change *c) {
    const int n = r->padded;
    products(r, 1);
    double a = dot_inline(r->x[0], r->y[0], n), d = c->inverse_weight + a;
    c->leverage = a;
    if (!pivot_good(d, c->inverse_weight))
        return false;
    double inverse = 1 / d;
    for (int k = 0; k < r->rows; k++) {
        double *w = r->w + (size_t)k * n;
        add_scaled(w, r->y[0], (c->t[k] - dot_inline(w, r->x[0], n)) * inverse, n);
    }
    pend(r, 0, inverse);
    return true;
}

/* Two operations from one sweep, equal to one after the other (Eqs. 3 and 7). Both products are
 * with the old P. The in-order elimination M = L D L' of the 2 x 2 system corrects the second for
 * the first. In a slide the addition comes first: the other order would pass through a smaller
 * G. */
static bool step_two(struct svi_recursion *r, struct svi_change *c) {
    const int n = r->padded;
    products(r, 2);
    double a0 = dot_inline(r->x[0], r->y[0], n), a01 = dot_inline(r->x[1], r->y[0], n);
    double a1 = dot_inline(r->x[1], r->y[1], n);
    double d0 = c[0].inverse_weight + a0, i0 = 1 / d0, l = a01 * i0;
    a1 -= a01 * l; /* x_1'P x_1 after the first operation */
    double d1 = c[1].inverse_weight + a1, i1 = 1 / d1;
    c[0].leverage = a0;
    c[1].leverage = a1;
    if (!pivot_good(d0, c[0].inverse_weight) || !pivot_good(d1, c[1].inverse_weight))
        return false;
    add_scaled(r->y[1], r->y[0], -l, n); /* now P x_1 with the P after the first operation */
    for (int k = 0; k < r->rows; k++) {
        double *w = r->w + (size_t)k * n;
        /* e1: the residual that the second sample has after the first was learned. */
        double e0 = c[0].t[k] - dot_inline(w, r->x[0], n);
        double e1 = c[1].t[k] - dot_inline(w, r->x[1], n) - l * e0;
        vec s0 = splat(e0 * i0), s1 = splat(e1 * i1);
        for (int j = 0; j < n; j += VW)
            store(w + j, load(w + j) + s0 * load(r->y[0] + j) + s1 * load(r->y[1] + j));
    }
    pend(r, 0, i0);
    pend(r, 1, i1);
    return true;
}

static bool step(struct svi_recursion *r, struct svi_change *change, int count) {
    return count == 1 ? step_one(r, change) : step_two(r, change);
}

INLINE vec standard_part(const double *x, const double *mean, const double *inverse, int from, int to) {
    return (load_part(x, from, to) - load_part(mean, from, to)) * load_part(inverse, from, to);
}

/* z is stored in whole vectors because the next load reads whole vectors. A load that spans two
 * stores has to wait for both. The x - 1 loads shift the features by one lane, to make space for
 * z[0] = 1. Lane 0 is never read from them. */
static double standardise(double *z, const double *x, const double *mean, const double *inverse, int d,
                          int capacity) {
    const int n = d + 1;
    const vec one = {1};
    vec v = standard_part(x - 1, mean - 1, inverse - 1, 1, n < VW ? n : VW) + one, squares = v * v;
    int j = 0;
    for (; j + VW < n; squares += v * v) {
        *(vec_u *)(z + j) = v;
        j += VW;
        const double *a = x + j - 1, *m = mean + j - 1, *i = inverse + j - 1;
        v = j + VW <= n ? (*(const vec_u *)a - *(const vec_u *)m) * *(const vec_u *)i
                        : standard_part(a, m, i, 0, n - j);
    }
    if (j + VW <= capacity)
        *(vec_u *)(z + j) = v;
    else
        store_first(z + j, v, n - j);
    return sum(squares);
}

/* The rows lie without gaps, so nothing may be written after a row's last value: parts end exactly. */
static void standardise_rows(double *z, const double *const *x, int count, const double *mean,
                             const double *inverse, int d) {
    const vec one = {1};
    const int n = d + 1, first = n < VW ? n : VW;
    const vec m = load_part(mean - 1, 1, first), s = load_part(inverse - 1, 1, first);
    for (int i = 0; i < count; i++, z += n) {
        const double *a = x[i] - 1;
        store_first(z, (load_part(a, 1, first) - m) * s + one, first);
        int j = VW;
        for (; j + VW <= n; j += VW)
            *(vec_u *)(z + j) = (*(const vec_u *)(a + j) - *(const vec_u *)(mean - 1 + j)) *
                                *(const vec_u *)(inverse - 1 + j);
        if (j < n)
            store_first(z + j, standard_part(a + j, mean - 1 + j, inverse - 1 + j, 0, n - j), n - j);
    }
}

static void groups_add(double *sums, int n, const double *z, const double *s, const int *group, int count) {
    for (int i = 0; i < count; i++, z += n) {
        double *to = sums + (size_t)group[i] * (size_t)n;
        const vec c = splat(s[i]);
        int j = 0;
        for (; j + VW <= n; j += VW)
            *(vec_u *)(to + j) += c * *(const vec_u *)(z + j);
        if (j < n)
            store_first(to + j, load_part(to + j, 0, n - j) + c * load_part(z + j, 0, n - j), n - j);
    }
}

/* Dekker's product without FMA gives the same rest as with it: both are the exact rounding error, so all
 * instruction sets agree. */
static void exact_add(double *restrict high, double *restrict low, const double *restrict x, double a,
                      int n) {
    for (int j = 0; j < n; j++) {
#ifdef __FMA__
        const double p = a * x[j], rest = __builtin_fma(a, x[j], -p);
#else
        const struct svi_dd product = svi_two_product(a, x[j]);
        const double p = product.high, rest = product.low;
#endif
        const struct svi_dd sum = svi_two_sum(high[j], p);
        high[j] = sum.high;
        low[j] += sum.low + rest;
    }
}

/* All sums fade by `keep` first, so the newest sample has its full weight. The peaks do not fade. */
static void energy_add(struct svi_energy *e, const double *z, double s, double keep, int n) {
    vec weight = splat(s), fade = splat(keep), inverse = splat(1 / (keep * e->energy[0] + s));
    const vec along = splat(s * dot_inline(z, e->way, n));
    for (int j = 0; j < n; j += VW) {
        vec v = load(z + j), energy = fade * load(e->energy + j) + weight * v * v,
            total = fade * load(e->sum + j) + weight * v;
        vec now = energy - total * total * inverse, peak = load(e->peak + j);
        store(e->energy + j, energy);
        store(e->sum + j, total);
        store(e->probe + j, fade * load(e->probe + j) + along * v);
        mask higher = now > peak;
        store(e->peak + j, (vec)(((mask)now & higher) | ((mask)peak & ~higher)));
    }
}

/* The energy sentinel (NUMERICS.md, 4.2): when the spread of a coordinate falls far below its peak, large
 * samples have left the window, and the error of P is about rounding times the fourth power of their scale.
 * The removal pivot does not show it: by then P is garbage and the pivot looks harmless. */
static bool energy_remove(struct svi_energy *e, const double *z, double s, double drop, double noise, int n) {
    double left = e->energy[0] - s;
    vec weight = splat(s), inverse = splat(left > 0 ? 1 / left : 0), falls = splat(drop),
        floor = splat(noise);
    const vec along = splat(s * dot_inline(z, e->way, n));
    mask dropped = {0};
    for (int j = 0; j < n; j += VW) {
        vec v = load(z + j), energy = load(e->energy + j) - weight * v * v,
            total = load(e->sum + j) - weight * v;
        vec now = energy - total * total * inverse, peak = load(e->peak + j);
        store(e->energy + j, energy);
        store(e->sum + j, total);
        store(e->probe + j, load(e->probe + j) - along * v);
        dropped |= (falls * now < peak) & (peak > floor * energy);
    }
    long long any = 0;
    for (int i = 0; i < VW; i++)
        any |= dropped[i];
    return any;
}

/* The Gram matrix by register tiles: a tile of g (TILE_ROWS x TILE_COLUMNS) stays in registers while PANEL
 * samples pass. The columns of a panel, times the weights, are gathered once for all rows below it. */
#define TILE_ROWS    4
#define TILE_VECS    (VW == 4 ? 3 : 2)
#define TILE_COLUMNS (TILE_VECS * VW)
#define PANEL        64 /* samples at a time */

static void gram_panel(double *panel, const double *x, int stride, const double *s, int count, int columns) {
    for (int k = 0; k < count; k++, panel += TILE_COLUMNS, x += stride) {
        const double weight = s[k];
        if (columns == TILE_COLUMNS) {
            UNROLL for (int v = 0; v < TILE_VECS; v++)
                store(panel + v * VW, splat(weight) * *(const vec_u *)(x + v * VW));
            continue;
        }
        for (int j = 0; j < columns; j++)
            panel[j] = weight * x[j];
    }
}

static void gram_tile(vec t[TILE_ROWS][TILE_VECS], const double *panel, const double *x, int stride,
                      const int *at, int count) {
    vec sum[TILE_ROWS][TILE_VECS] = {{{0}}};
    for (int k = 0; k < count; k++, panel += TILE_COLUMNS, x += stride)
        UNROLL for (int i = 0; i < TILE_ROWS; i++) {
            const vec a = splat(x[at[i]]);
            UNROLL for (int v = 0; v < TILE_VECS; v++) sum[i][v] += a * load(panel + v * VW);
        }
    memcpy(t, sum, sizeof sum);
}

/* Tiles that cross the diagonal are computed whole, and only their lower part is added to g. Rows past the
 * end repeat the last one, so that the tile kernel needs no bounds. */
static void gram_block(double *g, int n, const double *x, int stride, const double *s, int count) {
    double panel[PANEL * TILE_COLUMNS] __attribute__((aligned(64)));
    vec tile[TILE_ROWS][TILE_VECS];
    if (n % TILE_COLUMNS) /* the unused columns of the last panel are computed with, never added */
        memset(panel, 0, (size_t)count * TILE_COLUMNS * sizeof *panel);
    for (int column = 0; column < n; column += TILE_COLUMNS) {
        const int columns = n - column < TILE_COLUMNS ? n - column : TILE_COLUMNS;
        gram_panel(panel, x + column, stride, s, count, columns);
        for (int row = column; row < n; row += TILE_ROWS) {
            int at[TILE_ROWS];
            for (int i = 0; i < TILE_ROWS; i++)
                at[i] = row + i < n ? row + i : n - 1;
            gram_tile(tile, panel, x, stride, at, count);
            for (int i = 0; i < TILE_ROWS && row + i < n; i++) {
                const double *sum = (const double *)tile[i];
                double *to = g + (size_t)(row + i) * (size_t)n + column;
                const int below = row + i - column + 1, width = below < columns ? below : columns;
                for (int j = 0; j < width; j++)
                    to[j] += sum[j];
            }
        }
    }
}

static void gram(double *g, int n, const double *x, int stride, const double *s, int count) {
    for (int i = 0; i < count; i += PANEL)
        gram_block(g, n, x + (size_t)i * (size_t)stride, stride, s + i,
                   count - i < PANEL ? count - i : PANEL);
}

static void add_times(double *to, const double *x, double s, int n) {
    const vec c = splat(s);
    int j = 0;
    for (; j + VW <= n; j += VW)
        *(vec_u *)(to + j) += c * *(const vec_u *)(x + j);
    if (j < n)
        store_first(to + j, load_part(to + j, 0, n - j) + c * load_part(x + j, 0, n - j), n - j);
}

/* The addresses of up to four rows; missing ones repeat the first, so that the loops have no bounds. Their
 * results are dropped or have weight 0. */
#define ROWS 4
INLINE void row_pointers(const double *a[ROWS], const double *x, size_t stride, int64_t have) {
    for (int k = 0; k < ROWS; k++)
        a[k] = x + (k < have ? (size_t)k * stride : 0);
}

static void rows_dot(const double *x, size_t stride, int64_t count, int n, const double *v, double *f) {
    for (int64_t i = 0; i < count; i += ROWS, x += ROWS * stride) {
        const double *a[ROWS];
        vec s[ROWS] = {{0}};
        int j = 0;
        row_pointers(a, x, stride, count - i);
        for (; j + VW <= n; j += VW)
            for (int k = 0; k < ROWS; k++)
                s[k] += *(const vec_u *)(a[k] + j) * load(v + j);
        for (int k = 0; k < ROWS && i + k < count; k++) {
            double dot = sum(s[k]);
            for (int t = j; t < n; t++)
                dot += a[k][t] * v[t];
            f[i + k] = dot;
        }
    }
}

/* Four rows at a time, so that v is loaded and stored once for all four. */
static void rows_add(const double *x, size_t stride, int64_t count, int n, const double *s, double *v) {
    for (int64_t i = 0; i < count; i += ROWS, x += ROWS * stride) {
        const double *a[ROWS];
        double c[ROWS];
        int j = 0;
        row_pointers(a, x, stride, count - i);
        for (int k = 0; k < ROWS; k++)
            c[k] = i + k < count ? s[i + k] : 0;
        for (; j + VW <= n; j += VW) {
            vec to = load(v + j);
            for (int k = 0; k < ROWS; k++)
                to += splat(c[k]) * *(const vec_u *)(a[k] + j);
            store(v + j, to);
        }
        for (; j < n; j++)
            v[j] += (c[0] * a[0][j] + c[1] * a[1][j]) + (c[2] * a[2][j] + c[3] * a[3][j]);
    }
}

/* row_pointers for rows at any addresses. */
INLINE void four_rows(const double *a[ROWS], const double *const *x, int have) {
    for (int k = 0; k < ROWS; k++)
        a[k] = x[k < have ? k : 0];
}

static void about_dot(const double *const *x, int count, int n, const double *center, const double *v,
                      double *f) {
    for (int i = 0; i < count; i += ROWS) {
        const double *a[ROWS];
        vec s[ROWS] = {{0}};
        int j = 0;
        four_rows(a, x + i, count - i);
        for (; j + VW <= n; j += VW) {
            const vec c = *(const vec_u *)(center + j), w = *(const vec_u *)(v + j);
            UNROLL for (int k = 0; k < ROWS; k++) s[k] += (*(const vec_u *)(a[k] + j) - c) * w;
        }
        if (j < n) {
            const vec c = load_part(center + j, 0, n - j), w = load_part(v + j, 0, n - j);
            UNROLL for (int k = 0; k < ROWS; k++) s[k] += (load_part(a[k] + j, 0, n - j) - c) * w;
        }
        double dot[ROWS];
        UNROLL for (int k = 0; k < ROWS; k++) dot[k] = sum(s[k]);
        for (int k = 0; k < ROWS && i + k < count; k++)
            f[i + k] = dot[k];
    }
}

static void about_add(const double *const *x, int count, int n, const double *center, const double *s,
                      double *to) {
    for (int i = 0; i < count; i += ROWS) {
        const double *a[ROWS];
        double c[ROWS];
        int j = 0;
        four_rows(a, x + i, count - i);
        for (int k = 0; k < ROWS; k++)
            c[k] = i + k < count ? s[i + k] : 0;
        for (; j + VW <= n; j += VW) {
            const vec m = *(const vec_u *)(center + j);
            vec t = *(const vec_u *)(to + j);
            UNROLL for (int k = 0; k < ROWS; k++) t += splat(c[k]) * (*(const vec_u *)(a[k] + j) - m);
            *(vec_u *)(to + j) = t;
        }
        if (j < n) {
            const vec m = load_part(center + j, 0, n - j);
            vec t = load_part(to + j, 0, n - j);
            UNROLL for (int k = 0; k < ROWS; k++) t += splat(c[k]) * (load_part(a[k] + j, 0, n - j) - m);
            store_first(to + j, t, n - j);
        }
    }
}

static void about_squares(const double *const *x, int count, int n, const double *center, double *to) {
    for (int j = 0; j < n; j += VW) {
        const int part = n - j < VW ? n - j : VW;
        const vec m = load_part(center + j, 0, part);
        vec even = load_part(to + j, 0, part), odd = {0}; /* two chains: an addition waits for the last one */
        for (int i = 0; i + 1 < count; i += 2) {
            const vec a = load_part(x[i] + j, 0, part) - m, b = load_part(x[i + 1] + j, 0, part) - m;
            even += a * a;
            odd += b * b;
        }
        if (count % 2) {
            const vec a = load_part(x[count - 1] + j, 0, part) - m;
            even += a * a;
        }
        store_first(to + j, even + odd, part);
    }
}

#include "linalg/distance_template.h"
#include "linalg/triangle_template.h"

#define LANE_VECTORS (SVI_LANES / VW)

static void lanes_dot(const double *value, const int32_t *column, int64_t count, const double *spread,
                      double *sum) {
    vec even[LANE_VECTORS] = {{0}}, odd[LANE_VECTORS] = {{0}}; /* two chains of additions */
    int64_t e = 0;
    for (; e + 2 <= count; e += 2) {
        const double *a = spread + (size_t)column[e] * SVI_LANES,
                     *b = spread + (size_t)column[e + 1] * SVI_LANES;
        UNROLL for (int v = 0; v < LANE_VECTORS; v++) {
            even[v] += splat(value[e]) * load(a + v * VW);
            odd[v] += splat(value[e + 1]) * load(b + v * VW);
        }
    }
    if (e < count)
        UNROLL for (int v = 0; v < LANE_VECTORS; v++) even[v] +=
            splat(value[e]) * load(spread + (size_t)column[e] * SVI_LANES + v * VW);
    UNROLL for (int v = 0; v < LANE_VECTORS; v++) * (vec_u *)(sum + v * VW) = even[v] + odd[v];
}

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

#define COLUMNS_W VW
#include "linalg/columns_template.h"
#if VW > 2
#define COLUMNS_W 2
#include "linalg/columns_template.h"
#endif
#define COLUMNS_W 1
#include "linalg/columns_template.h"

/* The columns after the last full vector. Not inlined, so that the loops keep the registers. */
static __attribute__((noinline)) bool columns_rest_stirs(const struct svi_column_seen *c,
                                                         const double *beyond, const double *x, int j, int d,
                                                         int sides) {
    marks1 one = {0};
#if VW > 2
    marks2 two = {0};
    j = columns_stir2(c, beyond, x, j, d, sides, &two);
    if (some2(two))
        return true;
#endif
    columns_stir1(c, beyond, x, j, d, sides, &one);
    return some1(one);
}

static __attribute__((noinline)) void columns_rest_seen(const struct svi_column_seen *c, double *now,
                                                        const double *seen, const double *x, double time,
                                                        int j, int d, int sides) {
#if VW > 2
    j = columns_seen2(c, now, seen, x, time, j, d, sides);
#endif
    columns_seen1(c, now, seen, x, time, j, d, sides);
}

static void columns_seen(const struct svi_column_seen *c, double *now, const double *seen, const double *x,
                         double time, int d, int sides) {
    const int j = JOIN(columns_seen, VW)(c, now, seen, x, time, 0, d, sides);
    if (j < d)
        columns_rest_seen(c, now, seen, x, time, j, d, sides);
}

/* Checks all columns before it books the first one: a row that needs a closer look must leave no trace. */
INLINE bool columns_pass_of(const struct svi_column_seen *c, const double *beyond, double *now,
                            const double *x, double time, int d, int sides) {
    JOIN(marks, VW) any = {0};
    int j = JOIN(columns_stir, VW)(c, beyond, x, 0, d, sides, &any);
    if (JOIN(some, VW)(any) || (j < d && columns_rest_stirs(c, beyond, x, j, d, sides)))
        return false;
    j = JOIN(columns_seen, VW)(c, now, x, x, time, 0, d, sides);
    if (j < d)
        columns_rest_seen(c, now, x, x, time, j, d, sides);
    return true;
}

static __attribute__((noinline)) bool columns_pass_steps(const struct svi_column_seen *c,
                                                         const double *beyond, double *now, const double *x,
                                                         double time, int d) {
    return columns_pass_of(c, beyond, now, x, time, d, 3);
}

#ifdef SOME_WIDE
/* Takes the last columns as one more full vector, where the arrays have the capacity. The lanes that x does
 * not have are NaN, which changes nothing. */
static __attribute__((noinline)) bool columns_pass_whole(const struct svi_column_seen *c,
                                                         const double *beyond, double *now, const double *x,
                                                         double time, int d) {
    mask at;
    UNROLL for (int k = 0; k < VW; k++) at[k] = k;
    const mask in = at < d % VW - (mask){0};
    JOIN(marks, VW) any = {0};
    const int j = JOIN(columns_stir, VW)(c, beyond, x, 0, d, 2, &any);
    const JOIN(columns, VW) last = (JOIN(columns, VW))((mask)SOME_WIDE(x + j, d - j, in) | ~in);
    any |= JOIN(stir_at, VW)(c, beyond, last, j, 2);
    if (JOIN(some, VW)(any))
        return false;
    JOIN(columns_seen, VW)(c, now, x, x, time, 0, d, 2);
    JOIN(seen_at, VW)(c, now, last, last, splat(time), j, 2);
    return true;
}
#endif

/* The third side (steps) is rare: it has a copy of its own, so that the common one has a constant 2. */
static bool columns_pass(const struct svi_column_seen *c, const double *beyond, double *now, const double *x,
                         double time, int d, int sides) {
    if (sides > 2)
        return columns_pass_steps(c, beyond, now, x, time, d);
#ifdef SOME_WIDE
    if (d % VW && d / VW * VW + VW <= c->capacity)
        return columns_pass_whole(c, beyond, now, x, time, d);
#endif
    return columns_pass_of(c, beyond, now, x, time, d, 2);
}

const struct svi_kernels KERNELS = {ISA_NAME,
                                    ISA,
                                    STRIP_FOR,
                                    sweep,
                                    step,
                                    standardise,
                                    standardise_rows,
                                    groups_add,
                                    energy_add,
                                    energy_remove,
                                    dot,
                                    gram,
                                    add_times,

                                    rows_dot,
                                    rows_add,
                                    about_dot,
                                    about_add,
                                    about_squares,
                                    rbf,
                                    lanes_dot,
                                    rows_l1,
                                    rows_l2,
                                    rows_l1_shared,
                                    rows_l2_shared,
                                    decay,
                                    decay_dots,
                                    squash,
                                    signs_add,
                                    exact_add,
                                    lower_solve,
                                    lower_solve_transposed,
                                    chosen_dot,
                                    chosen_sum,
                                    columns_pass,
                                    columns_seen};

#include "linalg/floats_template.h"
#include "linalg/nearest_template.h"
