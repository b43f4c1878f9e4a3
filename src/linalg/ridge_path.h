/* ridge_path.h: solutions with G + a R for many a > 0 from one decomposition; G symmetric and positive
 * semidefinite, R diagonal, not negative, G + R positive definite.
 *
 * For an m in the middle of the a, let G + m R = F F' (Cholesky), U diag(u) U' the eigendecomposition of F^-1
 * R F^-T, and q(v) = U'F^-1 v. Then
 *
 *     z'(G + a R)^-1 v = sum_j q_j(z) q_j(v) / (1 + (a - m) u_j).
 *
 * R is decomposed in the coordinates of G + m R, not G in those of R. So a G of unlike scales loses only the
 * digits of a Cholesky solve, and the eigenvalues lose at most max(a/m, m/a) times rounding. */
#ifndef SVI_RIDGE_PATH_H
#define SVI_RIDGE_PATH_H

#include "base/pool.h"
#include "svmstream/error.h"

struct svi_ridge_path {
    int n;
    double middle;
    double *factor; /* n x n, row-major, lower triangle: G, zeroed and filled by the caller; then F */
    double *turn;   /* n x n: U', one eigenvector a row */
    double *values; /* n: u */
};

/* The arrays belong to the pool. SVS_NO_MEMORY. */
svs_code svi_ridge_path_init(struct svi_ridge_path *p, int n, struct svi_pool *pool, svs_error *err);

/* ridge: the diagonal of R. O(n^3) time; allocates n^2 doubles, and for LAPACK's dsyevd 2 n^2 more, until it
 * returns. SVS_NUMERIC: G + m R is not positive definite in floating point, or not finite; SVS_LIMIT: n is
 * too large; SVS_NO_MEMORY. */
svs_code svi_ridge_path_decompose(struct svi_ridge_path *p, const double *ridge, double middle,
                                  svs_error *err);

/* q of each of the m rows of v, which are overwritten. v, q: m x n, row-major. */
void svi_ridge_path_turn(const struct svi_ridge_path *p, double *v, int m, double *q);

/* shrink[j] = 1 / (1 + (a - m) u_j). */
void svi_ridge_path_shrink(const struct svi_ridge_path *p, double a, double *shrink);

#endif
