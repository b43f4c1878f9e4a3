/* lapack.h: what is used of LAPACK, as OpenBLAS's own library has it: the layer for C (LAPACKE) lies in a
 * library of its own, whose 2,560 symbols are bound at every start. */
#ifndef SVI_LAPACK_H
#define SVI_LAPACK_H

#include <stdbool.h>
#include <stddef.h>

/* The hidden arguments are the lengths of the texts. */
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t);
void dpotri_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t);
void dsyevd_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w,
             double *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t);

/* The upper triangle of a column-major matrix, in place: its Cholesky factor; the inverse by that. */
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
