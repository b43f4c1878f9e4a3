/* sparse_rows.h: the few operations on rows that linear solvers consist of, for dense and sparse rows alike.
 *
 * A coordinate vector v has svi_padded(dim) doubles, aligned to 64 bytes, zero from dim on. Rows have d
 * features. With a bias dim = d + 1, and v[d] belongs to the constant `one` that follows each row; without
 * one, one = 0 and dim = d. */
#ifndef SVI_SPARSE_ROWS_H
#define SVI_SPARSE_ROWS_H

#include <string.h>

#include "base/pool.h"
#include "linalg/kernels.h"
#include "svmstream/rows.h"

/* The offsets of a sparse row's begin and end (exclusive), in that order. */
static inline const int64_t *svi_row_span(const svs_rows *r, int64_t i) {
    return r->start + (r->stride > 1 ? i * r->stride : i);
}

/* The entries of a row, dense or not: entry k is the value of column[k], or of column k where column is NULL.
 */
struct svi_entries {
    const double *value;
    const int32_t *column;
    int64_t count;
};

static inline struct svi_entries svi_row_entries(const svs_rows *r, int64_t i) {
    if (r->dense)
        return (struct svi_entries){r->dense + i * r->stride, NULL, r->d};
    const int64_t *span = svi_row_span(r, i);
    return (struct svi_entries){r->value + span[0], r->column + span[0], span[1] - span[0]};
}

/* svs_rows_check, but a value may be NaN, which means that it is missing. */
svs_code svi_rows_check_known(const svs_rows *r, svs_error *err);

/* Doubles of a coordinate vector: a multiple of 8 above dim, so that there is space for the bias and kernels
 * may run over the padding. */
static inline int svi_padded(int dim) {
    return svi_round_up(dim + 1, 8);
}

/* A coordinate vector, zeroed; NULL when memory is out. Free with svi_free. */
double *svi_vector(int dim);

/* The same from a pool, which owns it. */
static inline double *svi_pool_vector(struct svi_pool *pool, int dim) {
    return svi_pool_doubles(pool, (size_t)svi_padded(dim));
}

/* a'b, added in ascending order. */
static inline double svi_dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* One step of conjugate gradients for H x = g, given hd = H d and rr = r'r: updates x, the residual r and the
 * direction d. Returns the new r'r. */
static inline double svi_conjugate_step(double *x, double *r, double *d, const double *hd, int64_t n,
                                        double rr) {
    const double t = rr / svi_dot(d, hd, n);
    for (int64_t i = 0; i < n; i++) {
        x[i] += t * d[i];
        r[i] -= t * hd[i];
    }
    const double now = svi_dot(r, r, n);
    for (int64_t i = 0; i < n; i++)
        d[i] = r[i] + now / rr * d[i];
    return now;
}

/* |x_i|^2 + one^2. */
double svi_row_norm2(const svs_rows *r, int64_t i, double one);

/* f_i = w'x_i + one v[d] for rows first .. first + count - 1, several at a time. */
void svi_rows_multiply(const struct svi_kernels *k, const svs_rows *r, int64_t first, int64_t count,
                       const double *v, double one, double *f);

/* v += sum_i s_i (x_i, one) over rows first .. first + count - 1; rows with s_i = 0 cost nothing. */
void svi_rows_add(const struct svi_kernels *k, const svs_rows *r, int64_t first, int64_t count,
                  const double *s, double *v, double one);

/* Adds sum_i s_i z_i z_i', z = (x, one), to g, over the `count` rows that `index` lists (NULL: rows
 * 0 .. count - 1). Without s (NULL) all s_i are 1. The matrix g is n x n, row-major, lower
 * triangle, with n = d, or d + 1 when one != 0. Dense rows cost O(n^2) each in rank-k products,
 * sparse ones O(nnz^2). SVS_NO_MEMORY. */
svs_code svi_rows_gram(const svs_rows *r, const int64_t *index, int64_t count, const double *s, double one,
                       double *g, svs_error *err);

#endif
