/* cholesky.h: factor and inverse of a symmetric positive definite matrix. */
#ifndef SVI_CHOLESKY_H
#define SVI_CHOLESKY_H

#include <stdbool.h>

/* a (n x n, row-major) <- a^-1, lower triangle read and written. False when a is not positive definite in
 * floating point, holds a NaN or an infinity, or when the inverse overflows; a is then destroyed. Own loops
 * below 64 (LAPACK's overhead is seven times the work there). */
bool svi_invert_spd(double *a, int n);

/* a = L L' (n x n, row-major, lower triangle read and written). False when a is not positive definite or not
 * finite; a is then destroyed. */
bool svi_factor_spd(double *a, int n);

/* The same in several calls: rows [from, to) of a become those of L; the rows before them must already be
 * those of L. False as above. The bits depend on which rows are factored together. */
bool svi_factor_rows(double *a, int n, int from, int to);

/* The addition to a diagonal entry a_jj: `ridge` for the first `penalised` coordinates, `rest` for the
 * others, plus jitter a_jj. */
struct svi_diagonal {
    double ridge;
    int penalised; /* coordinates that have the ridge */
    double rest, jitter;
};

/* svi_factor_spd of the matrix with these additions to its diagonal. */
bool svi_factor_ridge(double *a, int n, const struct svi_diagonal *add);

/* x <- (L L')^-1 x for a factor of svi_factor_spd. */
void svi_solve_factor(const double *l, int n, double *x);

#endif
