/* ridge_path.h: G + a R for many a > 0 from one decomposition; G symmetric and positive semidefinite, R
 * diagonal, not negative, G + R positive definite.
 *
 * With some m in the middle of the a, G + m R = F F' (Cholesky) and U diag(u) U' the eigenvectors of F^-1 R
 * F^-T, q(v) = U'F^-1 v:
 *
 *     z'(G + a R)^-1 v = sum_j q_j(z) q_j(v) / (1 + (a - m) u_j).
 *
 * It is R that is decomposed in the coordinates of G + m R, not G in those of R: so a G of unlike scales
 * costs no digits but those of a Cholesky solve, and what the eigenvalues lose is at most max(a/m, m/a)
 * times rounding. */
#ifndef SVI_RIDGE_PATH_H
#define SVI_RIDGE_PATH_H

#include "base/pool.h"
#include "svmstream/error.h"

struct svi_ridge_path {
    int n;
    double middle;
    double *factor; /* n x n, row-major, lower triangle: G, zero at first, for the caller to fill; then F */
    double *turn;   /* n x n: U', one eigenvector a row */
    double *values; /* n: u */
};

/* Its arrays are the pool's. SVS_NO_MEMORY. */
svs_code svi_ridge_path_init(struct svi_ridge_path *p, int n, struct svi_pool *pool, svs_error *err);

/* ridge: the diagonal of R. For its time n^2 values of room, and for LAPACK's dsyevd 2 n^2 more; O(n^3).
 * SVS_NUMERIC: G + m R is not positive definite in floating point, or not finite; SVS_LIMIT: n is too large;
 * SVS_NO_MEMORY. */
svs_code svi_ridge_path_decompose(struct svi_ridge_path *p, const double *ridge, double middle,
                                  svs_error *err);

/* q of each of the m rows of v, which are destroyed. */
void svi_ridge_path_turn(const struct svi_ridge_path *p, double *v, int m, double *q);

/* shrink[j] = 1 / (1 + (a - m) u_j). */
void svi_ridge_path_shrink(const struct svi_ridge_path *p, double a, double *shrink);

#endif
