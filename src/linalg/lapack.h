/* lapack.h: the few LAPACK routines in use, called directly in OpenBLAS's library: the layer for C (LAPACKE)
 * is a separate library, whose 2,560 symbols would be bound at every start. */
#ifndef SVI_LAPACK_H
#define SVI_LAPACK_H

#include <stdbool.h>
#include <stddef.h>

/* Fortran's hidden last arguments are the lengths of the texts. */
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t);
void dpotri_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t);
void dsyevd_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w,
             double *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t);

/* In place, in the upper triangle of a column-major n x n matrix with columns `stride` apart: the Cholesky
 * factor; and the inverse from that factor. False: not positive definite, or singular. NaN is not detected.
 */
static inline bool svi_lapack_factor(double *a, int n, int stride) {
    int info;
    dpotrf_("U", &n, a, &stride, &info, 1);
    return info == 0;
}

static inline bool svi_lapack_invert(double *a, int n, int stride) {
    int info;
    dpotri_("U", &n, a, &stride, &info, 1);
    return info == 0;
}

#endif
