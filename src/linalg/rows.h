/* rows.h: the few operations on rows that linear solvers are made of, for dense and sparse rows alike.
 *
 * A coordinate vector v has svi_padded(dim) doubles, aligned to 64 bytes, zero behind dim; rows have d
 * features, and with a bias dim = d + 1 and v[d] belongs to the constant `one` that stands behind each row (0
 * = there is none, dim = d). */
#ifndef SVI_LINALG_ROWS_H
#define SVI_LINALG_ROWS_H

#include "linalg/pass.h"
#include "svmstream/rows.h"

/* The offsets of a sparse row: where it begins and, behind that, where it ends. */
static inline const int64_t *svi_row_span(const svs_rows *r, int64_t i) {
    return r->start + (r->stride > 1 ? i * r->stride : i);
}

/* Room of a vector of dim coordinates: a multiple of 8, with at least one to spare so that padded rows may be
 * read over their end. */
static inline int svi_padded(int dim) {
    return svi_round_up(dim + 1, 8);
}

/* A coordinate vector, zeroed; NULL when there is no memory. Free with svi_free. */
double *svi_vector(int dim);

/* w'x_i + one v[d]. */
double svi_row_dot(const struct svi_kernels *k, const svs_rows *r, int64_t i, const double *v, double one);

/* v += s (x_i, one). */
void svi_row_add(const struct svi_kernels *k, const svs_rows *r, int64_t i, double s, double *v, double one);

/* |x_i|^2 + one^2. */
double svi_row_norm2(const struct svi_kernels *k, const svs_rows *r, int64_t i, double one);

/* f_i = w'x_i + one v[d] for rows first .. first + count - 1, several at a time. */
void svi_rows_multiply(const struct svi_kernels *k, const svs_rows *r, int64_t first, int64_t count,
                       const double *v, double one, double *f);

/* v += sum_i s_i (x_i, one) over rows first .. first + count - 1; rows with s_i = 0 cost nothing. */
void svi_rows_add(const struct svi_kernels *k, const svs_rows *r, int64_t first, int64_t count,
                  const double *s, double *v, double one);

/* g (n x n, row-major, lower triangle, n = d or d + 1 by `one`) += sum_i s_i z_i z_i', z = (x, one), over the
 * `count` rows that `index` names (NULL: rows 0 .. count - 1); s == NULL: all 1. Dense rows by rank-k
 * products, sparse ones O(nnz^2) each. SVS_NO_MEMORY. */
svs_code svi_rows_gram(const struct svi_kernels *k, const svs_rows *r, const int64_t *index, int64_t count,
                       const double *s, double one, double *g, svs_error *err);

#endif
