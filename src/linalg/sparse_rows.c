/* Rows, dense or sparse (sparse_rows.h): checks, products with vectors, and Gram matrices.
 *
 * Dense rows go through the kernels of the instruction set, or by blocks of GRAM_BLOCK through BLAS's rank-k
 * product; sparse rows are processed entry by entry. The order of the additions is part of the contract: the
 * same rows and the same kernels give the same bits.
 *
 * In order of reading: checks, products of rows with a vector, Gram matrices. A bias is never stored in the
 * rows: `one`, when it is not 0, is a constant last coordinate that each function adds. */
#include "linalg/sparse_rows.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define CHECK_BLOCK 256 /* rows that one product checks */
#define GRAM_BLOCK  128 /* rows of one rank-k product */

int64_t svs_rows_stored(const svs_rows *r) {
    int64_t sum = 0;
    for (int64_t i = 0; i < r->n; i++)
        sum += svi_row_entries(r, i).count;
    return sum;
}

void svs_rows_copy(const svs_rows *r, int64_t i, double *to) {
    if (r->dense) {
        memcpy(to, r->dense + i * r->stride, (size_t)r->d * sizeof *to);
        return;
    }
    memset(to, 0, (size_t)r->d * sizeof *to);
    for (int64_t k = svi_row_span(r, i)[0]; k < svi_row_span(r, i)[1]; k++)
        to[r->column[k]] = r->value[k];
}

static svs_code sparse_rows_not_finite(int64_t row, int column, svs_error *err) {
    return svi_fail(err, SVS_NOT_FINITE, "row %lld, column %d is NaN or infinite: remove or correct it",
                    (long long)row, column);
}

/* 0 x is NaN when x is not finite, so one product with the zero vector checks whole rows at the speed of the
 * kernel. Only a row whose product is not 0 is searched for the column to name. */
static svs_code sparse_rows_check_dense(const svs_rows *r, bool may_lack, svs_error *err) {
    const struct svi_kernels *k = svi_kernels_get(SVS_ISA_BEST);
    double *zero = svi_vector(r->d), f[CHECK_BLOCK];
    svs_code code = zero ? SVS_OK : svi_fail_memory(err, "a row");
    if (code == SVS_OK && r->stride < r->d)
        code = svi_fail(err, SVS_INVALID, "rows of %d columns need a larger stride than %lld", r->d,
                        (long long)r->stride);
    for (int64_t first = 0; first < r->n && code == SVS_OK; first += CHECK_BLOCK) {
        const int64_t count = r->n - first < CHECK_BLOCK ? r->n - first : CHECK_BLOCK;
        const double *x = r->dense + first * r->stride;
        k->rows_dot(x, (size_t)r->stride, count, r->d, zero, f);
        for (int64_t i = 0; i < count; i++, x += r->stride)
            for (int j = 0; f[i] != 0 && j < r->d && code == SVS_OK; j++)
                if (!isfinite(x[j]) && !(may_lack && isnan(x[j])))
                    code = sparse_rows_not_finite(first + i, j, err);
    }
    svi_free(zero);
    return code;
}

static svs_code sparse_rows_check_sparse(const svs_rows *r, bool may_lack, svs_error *err) {
    for (int64_t i = 0; i < r->n; i++) {
        int32_t last = -1;
        const int64_t *span = svi_row_span(r, i);
        if (span[1] < span[0])
            return svi_fail(err, SVS_INVALID, "row %lld ends before it begins", (long long)i);
        for (int64_t k = span[0]; k < span[1]; k++) {
            if (r->column[k] <= last || r->column[k] >= r->d)
                return svi_fail(err, SVS_BAD_COLUMN, "row %lld: columns must ascend from 0 to %d",
                                (long long)i, r->d - 1);
            if (!isfinite(r->value[k]) && !(may_lack && isnan(r->value[k])))
                return sparse_rows_not_finite(i, r->column[k], err);
            last = r->column[k];
        }
    }
    return SVS_OK;
}

static svs_code sparse_rows_check(const svs_rows *r, bool may_lack, svs_error *err) {
    if (r->n < 0 || r->d < 1)
        return svi_fail(err, SVS_INVALID, "%lld rows of %d columns: at least one column is needed",
                        (long long)r->n, r->d);
    if (!r->dense && !(r->start && (r->n == 0 || (r->column && r->value))))
        return svi_fail(err, SVS_INVALID, "the rows are neither dense nor complete sparse ones");
    return r->dense ? sparse_rows_check_dense(r, may_lack, err) : sparse_rows_check_sparse(r, may_lack, err);
}

svs_code svs_rows_check(const svs_rows *r, svs_error *err) {
    return sparse_rows_check(r, false, err);
}

svs_code svi_rows_check_known(const svs_rows *r, svs_error *err) {
    return sparse_rows_check(r, true, err);
}

double *svi_vector(int dim) {
    return svi_alloc_array((size_t)svi_padded(dim), sizeof(double));
}

/* Columns that a kernel may read: the padding of padded rows is zero, and whole vectors are faster. */
static int sparse_rows_width(const svs_rows *r) {
    return r->padded ? svi_round_up(r->d, 8) : r->d;
}

double svi_row_norm2(const svs_rows *r, int64_t i, double one) {
    const struct svi_entries e = svi_row_entries(r, i);
    double sum = one * one;
    for (int64_t k = 0; k < e.count; k++)
        sum += e.value[k] * e.value[k];
    return sum;
}

void svi_rows_multiply(const struct svi_kernels *k, const svs_rows *r, int64_t first, int64_t count,
                       const double *v, double one, double *f) {
    double constant = one != 0 ? one * v[r->d] : 0;
    if (r->dense)
        k->rows_dot(r->dense + first * r->stride, (size_t)r->stride, count, sparse_rows_width(r), v, f);
    else
        for (int64_t i = 0; i < count; i++) {
            double sum = 0;
            for (int64_t j = svi_row_span(r, first + i)[0]; j < svi_row_span(r, first + i)[1]; j++)
                sum += r->value[j] * v[r->column[j]];
            f[i] = sum;
        }
    for (int64_t i = 0; i < count && constant != 0; i++)
        f[i] += constant;
}

void svi_rows_add(const struct svi_kernels *k, const svs_rows *r, int64_t first, int64_t count,
                  const double *s, double *v, double one) {
    if (r->dense)
        k->rows_add(r->dense + first * r->stride, (size_t)r->stride, count, sparse_rows_width(r), s, v);
    else
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = svi_row_span(r, first + i)[0]; s[i] != 0 && j < svi_row_span(r, first + i)[1];
                 j++)
                v[r->column[j]] += s[i] * r->value[j];
    if (one != 0) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += s[i];
        v[r->d] += one * sum;
    }
}

struct gram {
    const svs_rows *r;
    const int64_t *index;
    int64_t count;
    const double *s;
    double one, *g;
    int n;
};

static int64_t gram_row(const struct gram *a, int64_t i) {
    return a->index ? a->index[i] : i;
}

/* Entries ascend by column, so q <= p stays in the lower triangle; the constant is the last row. */
static void gram_sparse(const struct gram *a) {
    const svs_rows *r = a->r;
    for (int64_t i = 0; i < a->count; i++) {
        int64_t row = gram_row(a, i), from = svi_row_span(r, row)[0], to = svi_row_span(r, row)[1];
        double s = a->s ? a->s[i] : 1;
        for (int64_t p = from; p < to; p++) {
            double c = s * r->value[p], *line = a->g + (size_t)r->column[p] * (size_t)a->n;
            for (int64_t q = from; q <= p; q++)
                line[r->column[q]] += c * r->value[q];
        }
        if (a->one == 0)
            continue;
        double c = s * a->one, *line = a->g + (size_t)r->d * (size_t)a->n;
        for (int64_t q = from; q < to; q++)
            line[r->column[q]] += c * r->value[q];
        line[r->d] += c * a->one;
    }
}

/* The rank-k product has no weights: rows are scaled by sqrt|s|, and those with s < 0 are subtracted by a
 * second product. */
static void gram_block(const struct gram *a, double *block, int64_t first, int rows) {
    for (int sign = 1; sign >= -1; sign -= 2) {
        int filled = 0;
        for (int i = 0; i < rows; i++) {
            double s = a->s ? a->s[first + i] : 1;
            if (s * sign <= 0)
                continue;
            double root = sqrt(s * sign), *to = block + (size_t)filled++ * (size_t)a->n;
            const double *x = a->r->dense + gram_row(a, first + i) * a->r->stride;
            for (int j = 0; j < a->r->d; j++)
                to[j] = root * x[j];
            if (a->one != 0)
                to[a->r->d] = root * a->one;
        }
        if (filled)
            cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, a->n, filled, sign, block, a->n, 1, a->g,
                        a->n);
    }
}

svs_code svi_rows_gram(const svs_rows *r, const int64_t *index, int64_t count, const double *s, double one,
                       double *g, svs_error *err) {
    const struct gram a = {r, index, count, s, one, g, r->d + (one != 0)};
    if (!r->dense) {
        gram_sparse(&a);
        return SVS_OK;
    }
    double *block = svi_alloc_array((size_t)GRAM_BLOCK * (size_t)a.n, sizeof *block);
    if (!block)
        return svi_fail_memory(err, "a block of the Gram matrix");
    for (int64_t i = 0; i < count; i += GRAM_BLOCK)
        gram_block(&a, block, i, (int)(count - i < GRAM_BLOCK ? count - i : GRAM_BLOCK));
    svi_free(block);
    return SVS_OK;
}
