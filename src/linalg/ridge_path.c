#include "linalg/ridge_path.h"

#include <cblas.h>
#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "linalg/lapack.h"

#define EIGEN_MAX 30000 /* the largest n: LAPACK counts its workspace in 32 bits */

svs_code svi_ridge_path_init(struct svi_ridge_path *p, int n, struct svi_pool *pool, svs_error *err) {
    p->n = n;
    SVI_POOL_DOUBLES(pool, (size_t)n * (size_t)n, &p->factor, &p->turn);
    SVI_POOL_DOUBLES(pool, (size_t)n, &p->values);
    return svi_pool_code(pool, "a decomposition", err);
}

/* LAPACK does not check for NaN, and may not return when there is one. */
static bool eigen_finite(const double *a, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            if (!isfinite(a[(size_t)i * (size_t)n + j]))
                return false;
    return true;
}

/* Replaces a (n x n, row-major, lower triangle read) by its eigenvectors, one a row; values: their
 * eigenvalues, ascending. A row-major lower triangle is a column-major upper one, and LAPACK's columns are
 * our rows. */
static svs_code eigen_symmetric(double *a, int n, double *values, svs_error *err) {
    if (n > EIGEN_MAX)
        return svi_fail(err, SVS_LIMIT, "eigenvectors of %d dimensions: at most %d can be computed", n,
                        EIGEN_MAX);
    const size_t size = (size_t)n;
    const int reals = (int)(1 + 6 * size + 2 * size * size), whole = 3 + 5 * n;
    double *scratch = svi_alloc_array((size_t)reals, sizeof *scratch);
    int *indices = svi_alloc_array((size_t)whole, sizeof *indices), info = -1;
    svs_code code = scratch && indices ? SVS_OK : svi_fail_memory(err, "eigenvectors");
    if (code == SVS_OK && eigen_finite(a, n))
        dsyevd_("V", "U", &n, a, &n, values, scratch, &reals, indices, &whole, &info, 1, 1);
    if (code == SVS_OK && info != 0)
        code = svi_fail(err, SVS_NUMERIC, "eigenvectors of a matrix that is not finite");
    svi_free(indices);
    svi_free(scratch);
    return code;
}

svs_code svi_ridge_path_decompose(struct svi_ridge_path *p, const double *ridge, double middle,
                                  svs_error *err) {
    const int n = p->n;
    double *root = svi_alloc_array((size_t)n * (size_t)n, sizeof *root); /* F^-1 R^(1/2) */
    if (!root)
        return svi_fail_memory(err, "a decomposition");
    p->middle = middle;
    for (int j = 0; j < n; j++) {
        p->factor[(size_t)j * (size_t)(n + 1)] += middle * ridge[j];
        root[(size_t)j * (size_t)(n + 1)] = sqrt(ridge[j]);
    }
    const bool good = svi_factor_spd(p->factor, n);
    /* F^-1 R F^-T as F^-1 R^(1/2) times its transpose: symmetric and not negative by construction. */
    if (good) {
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, n, n, 1, p->factor, n,
                    root, n);
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, n, n, 1, root, n, 0, p->turn, n);
    }
    svi_free(root);
    if (!good)
        return svi_fail(
            err, SVS_NUMERIC,
            "the samples differ too much in size to compute with them together: scale the features");
    return eigen_symmetric(p->turn, n, p->values, err);
}

void svi_ridge_path_turn(const struct svi_ridge_path *p, double *v, int m, double *q) {
    const int n = p->n;
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, m, n, 1, p->factor, n, v, n);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, n, 1, v, n, p->turn, n, 0, q, n);
}

/* G >= 0 puts each u between 0 and 1/m; rounding may leave that interval, and a divisor of 0 must not occur.
 */
void svi_ridge_path_shrink(const struct svi_ridge_path *p, double a, double *shrink) {
    for (int j = 0; j < p->n; j++)
        shrink[j] = 1 / (1 + (a - p->middle) * fmin(fmax(p->values[j], 0), 1 / p->middle));
}
