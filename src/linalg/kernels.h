/* kernels.h: the hot kernels of the per-sample path: sweeps over P, the rank-1 algebra around them, and the
 * loops over rows that the models share.
 *
 * P (D x D, symmetric) is a strip-packed lower triangle: strips of R rows, strip s holding the columns 0 ..
 * (s+1)R - 1, each column of a strip contiguous (R doubles, aligned), the diagonal R x R block full; rows and
 * columns from D up to the next multiple of R are zero. Some rank-1 changes are pending: P_true = P - sum
 * sign_p q_p q_p'.
 *
 * While P fits the first-level cache, one sweep applies them and multiplies the next one or two samples: 3
 * D^2 flops an operation in one pass over half of P. A larger P is bound by the traffic of writing it back:
 * there up to SVI_PENDING_MAX changes wait, products are corrected for them (4 D flops each), and only one
 * sweep in four or eight writes P. The change is -+ q_i q_j with q scaled by sqrt(1/|d|), a commutative
 * product, so both halves of a diagonal block stay equal bit for bit.
 *
 * The same source (kernels_template.h) is compiled for AVX-512, AVX2 + FMA and plain C; svi_kernels_get
 * chooses at run time. The sums of two instruction sets differ in their last bits unless a comment states
 * the opposite. */
#ifndef SVI_KERNELS_H
#define SVI_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/alsvm.h"

#define SVI_PASS_MAX     2   /* operations in one step */
#define SVI_PENDING_MAX  8   /* rank-1 changes that may wait for a sweep */
#define SVI_LANES        16  /* rows that lanes_dot multiplies at once */
#define SVI_SQUASH_BEND  3.0 /* B of squash: about linear below, logarithmic above */
#define SVI_SQUASH_LIMIT 8.0 /* |u| above which squash adds the excess unbent */
#define SVI_DECAY_MAX    4   /* sums of decay_dots */

/* The state of one recursion; the caller owns the arrays. All vectors have `padded` entries, zero from `dim`
 * on, aligned to 64 bytes; `padded` is a multiple of `strip`. */
struct svi_recursion {
    int dim, padded, strip, rows;
    int pending;                 /* rank-1 changes not yet in p: 0 to SVI_PENDING_MAX */
    double *p;                   /* svi_packed_size(padded, strip) doubles */
    double *w;                   /* rows x padded */
    double *q[SVI_PENDING_MAX];  /* pending columns, scaled by sqrt|1/d| */
    double *cq[SVI_PENDING_MAX]; /* -sign q: the factor of q in a sweep */
    double *x[SVI_PASS_MAX];     /* samples of the current step; the caller fills them */
    double *y[SVI_PASS_MAX];     /* P x of the current step */
    double *partial;             /* per column and sample one vector of partial sums: 16 x padded */
};

/* One operation of a step whose sample is already in r->x[i]. */
struct svi_change {
    const double *t;       /* r->rows targets */
    double inverse_weight; /* +1/s for an addition, -1/s for a removal; s > 0 */
    double leverage;       /* out: x'Px before this operation */
};

/* Sums over the samples of the window, per coordinate (padded vectors), the newest sample at full weight;
 * z_0 = 1, so energy[0] is their total weight. */
struct svi_energy {
    double *energy; /* sum s z^2 */
    double *sum;    /* sum s z */
    double *peak;   /* the epoch's largest spread, sum s (z - mean)^2 */
    double *probe;  /* sum s z (z'way): G without the ridge, times a fixed vector */
    double *way;    /* that vector */
};

/* Per-column state of the plain rules (alerts/rules.h), without the records. Arrays of `capacity`. */
struct svi_column_seen {
    double *low, *high;        /* limits, inclusive */
    double *last, *changed_at; /* last value; time of its first row */
    double *run, *longest;     /* rows with the last value; the longest finished run */
    double *patient;           /* a run longer than this is stuck; INFINITY: not known */
    double *runs, *values;     /* changes of value; rows with a value */
    int capacity;              /* columns allocated */
};

struct svi_kernels {
    const char *name;
    svs_isa isa;
    int (*strip)(int dim); /* rows of a strip for this dimension */
    /* Applies the pending changes and computes y = P x for `inputs` (0 to 2) samples. */
    void (*sweep)(struct svi_recursion *r, int inputs);
    /* A whole step of `count` (1 or 2) operations: products, in-order elimination, new w, new pending
     * columns. False when a pivot has the wrong sign or is not finite: w and the matrix are then unchanged,
     * although pending changes may have been applied to r->p. */
    bool (*step)(struct svi_recursion *r, struct svi_change *change, int count);
    /* z = T (1, x): z[0] = 1, z[1 + j] = (x[j] - mean[j]) inverse[j] for d features. Returns |z|^2. z holds
     * `capacity` >= d + 1 values; those after the first d + 1 may be set to 0. */
    double (*standardise)(double *z, const double *x, const double *mean, const double *inverse, int d,
                          int capacity);
    /* The same of `count` rows at any addresses, into z one after another, d + 1 values each. */
    void (*standardise_rows)(double *z, const double *const *x, int count, const double *mean,
                             const double *inverse, int d);
    /* Row group_i of sums (n values each) += s_i z_i, over `count` contiguous rows z. */
    void (*groups_add)(double *sums, int n, const double *z, const double *s, const int *group, int count);
    /* Adds a sample to the sums: energy = keep energy + s z^2, sum = keep sum + s z, probe = keep
     * probe + s z (z'way). The forgetting is keep in (0, 1]. The largest spread, energy - sum^2 /
     * energy[0], is kept in peak. */
    void (*energy_add)(struct svi_energy *e, const double *z, double s, double keep, int padded);
    /* Subtracts a sample from the sums. True when a spread fell more than `drop`-fold below its peak, unless
     * that peak is at most `noise` of the energy that is left. */
    bool (*energy_remove)(struct svi_energy *e, const double *z, double s, double drop, double noise,
                          int padded);
    double (*dot)(const double *a, const double *b, int padded); /* aligned, padded to 8 */
    /* g (n x n, row-major, lower triangle) += sum_i s_i x_i x_i' over `count` rows of x (row stride
     * `stride`). */
    void (*gram)(double *g, int n, const double *x, int stride, const double *s, int count);
    /* to_j += s x_j, j < n; no alignment required. */
    void (*add_times)(double *to, const double *x, double s, int n);
    /* f_i = sum_{j < n} x_ij v_j for `count` rows; v is aligned, x at any address. */
    void (*rows_dot)(const double *x, size_t stride, int64_t count, int n, const double *v, double *f);
    /* v_j += sum_i s_i x_ij, j < n; v is aligned. */
    void (*rows_add)(const double *x, size_t stride, int64_t count, int n, const double *s, double *v);
    /* The same two with x_ij - center_j, for rows at any addresses; no alignment required. */
    void (*about_dot)(const double *const *x, int count, int n, const double *center, const double *v,
                      double *f);
    void (*about_add)(const double *const *x, int count, int n, const double *center, const double *s,
                      double *to);
    /* to_j += sum_i (x_ij - center_j)^2. */
    void (*about_squares)(const double *const *x, int count, int n, const double *center, double *to);
    /* to_i = exp(-gamma max(0, own + norm2_i - 2 dot_i)), i < n, gamma >= 0, to a few units in the last
     * place; results below exp(-708) are 0. `to` may be `dot`. */
    void (*rbf)(const double *dot, const double *norm2, double own, double gamma, int64_t n, double *to);
    /* sum_l = sum_e value_e spread[SVI_LANES column_e + l] over `count` entries of a sparse row: its products
     * with SVI_LANES rows stored transposed in `spread`, which is aligned; sum has SVI_LANES values. */
    void (*lanes_dot)(const double *value, const int32_t *column, int64_t count, const double *spread,
                      double *sum);
    /* f_i = sum_j |x_ij - v_j| (l1), sum_j (x_ij - v_j)^2 (l2) for `count` rows; rows and v are aligned and
     * padded with zeros to a multiple of 8 (`padded` values). */
    void (*rows_l1)(const double *x, size_t stride, int64_t count, int padded, const double *v, double *f);
    void (*rows_l2)(const double *x, size_t stride, int64_t count, int padded, const double *v, double *f);
    /* The same over the coordinates that are NaN in neither row, times d / their number; `nothing` when no
     * coordinate is shared. Rows have d <= padded coordinates. Without NaN: the bits of rows_l1, rows_l2. */
    void (*rows_l1_shared)(const double *x, size_t stride, int64_t count, int padded, const double *v, int d,
                           double nothing, double *f);
    void (*rows_l2_shared)(const double *x, size_t stride, int64_t count, int padded, const double *v, int d,
                           double nothing, double *f);
    /* to_i = exp(-gamma t_i), t_i >= 0; results below exp(-708) are 0. `to` may be `t`. */
    void (*decay)(const double *t, double gamma, int64_t n, double *to);
    /* to_g = sum_i z_gi exp(-4^g gamma t_i), g < count, 1 <= count <= SVI_DECAY_MAX. Costs one exponential an
     * entry; the others are its powers. */
    void (*decay_dots)(const double *t, double gamma, int64_t n, const double *const *z, int count,
                       double *to);
    /* to_j = B asinh(u / B), u = (x_j - center_j) inverse_j, B = SVI_SQUASH_BEND, j < d, to a few units in
     * 1e-16. Where |u| exceeds SVI_SQUASH_LIMIT the excess is added too. |u| is capped at 1e150. `to` may be
     * x. */
    void (*squash)(const double *x, const double *center, const double *inverse, int d, double *to);
    /* to_j += scale sign(u_j - x_j); all aligned and padded to a multiple of 8. */
    void (*signs_add)(const double *u, const double *x, double scale, int padded, double *to);
    /* high_j + low_j += a x_j, j < padded, without rounding of the products and of the sums into high_j
     * (double_double.h); aligned, padded to a multiple of 8. The same bits for all instruction sets. */
    void (*exact_add)(double *high, double *low, const double *x, double a, int padded);
    /* x <- L^-1 x, and x <- L'^-1 x: L is n x n, lower, column-major, its columns `stride` apart. */
    void (*lower_solve)(const double *l, size_t stride, int n, double *x);
    void (*lower_solve_transposed)(const double *l, size_t stride, int n, double *x);
    /* f_i = sum_{j < n} x_{row_i, j} v_j for `count` chosen rows; to_j = sum_i s_{row_i} x_{row_i, j}. */
    void (*chosen_dot)(const double *x, size_t stride, const int *row, int count, int n, const double *v,
                       double *f);
    void (*chosen_sum)(const double *x, size_t stride, const int *row, int count, int n, const double *s,
                       double *to);
    /* Books the d columns of a row x in *c and its records in `now`, unless a column needs a closer look: it
     * is outside its limits, unchanged for `patient` values, or above `beyond`. Then returns false and
     * changes nothing. `beyond` and `now` have c->capacity columns for each of the `sides` (2 or 3): the
     * highest x, -x and, with 3 sides, |x - last|. NaN is a missing value and changes nothing. The same bits
     * for all instruction sets. */
    bool (*columns_pass)(const struct svi_column_seen *c, const double *beyond, double *now, const double *x,
                         double time, int d, int sides);
    /* Books the row without a check; the records take the values `seen` in place of x. */
    void (*columns_seen)(const struct svi_column_seen *c, double *now, const double *seen, const double *x,
                         double time, int d, int sides);
};

/* The kernels for an instruction set (SVS_ISA_BEST: the environment's or the machine's best), or NULL when
 * the machine lacks it. */
const struct svi_kernels *svi_kernels_get(svs_isa isa);

static inline int svi_round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* Entries of a lower triangle of n rows, the diagonal included. */
static inline int64_t svi_triangle(int n) {
    return (int64_t)n * (n + 1) / 2;
}

/* Doubles of a strip-packed P: strip s holds (s + 1) R columns of R entries. */
static inline size_t svi_packed_size(int padded, int strip) {
    size_t strips = (size_t)(padded / strip);
    return strips * (strips + 1) / 2 * (size_t)strip * (size_t)strip;
}

/* The index of P[i][j] (i >= j, or both in one diagonal block) in the packed array. */
static inline size_t svi_packed_at(int i, int j, int strip) {
    size_t s = (size_t)(i / strip), r = (size_t)strip;
    return s * (s + 1) / 2 * r * r + (size_t)j * r + (size_t)(i % strip);
}

extern const struct svi_kernels svi_kernels_generic;
#if defined(__x86_64__)
extern const struct svi_kernels svi_kernels_avx2, svi_kernels_avx512;
#endif

#endif
