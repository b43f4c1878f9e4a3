/* eigen.h: eigenvalues and eigenvectors of a symmetric matrix. */
#ifndef SVI_EIGEN_H
#define SVI_EIGEN_H

#include "svmstream/error.h"

#define SVI_EIGEN_MAX 30000 /* the largest n: LAPACK counts its room by 32 bits */

/* a (n x n, row-major, lower triangle read) becomes its eigenvectors, one a row; values[n]: their
 * eigenvalues, rising. LAPACK's dsyevd, with 2 n^2 values of room for the time of the call. SVS_NO_MEMORY;
 * SVS_LIMIT (n above SVI_EIGEN_MAX); SVS_NUMERIC: a is not finite or the iteration did not end; a is then
 * destroyed. */
svs_code svi_eigen_symmetric(double *a, int n, double *values, svs_error *err);

#endif
