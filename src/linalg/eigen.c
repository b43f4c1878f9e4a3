#include <lapacke.h>
#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/eigen.h"

/* LAPACK does not look for NaN, and may then not return. */
static bool eigen_finite(const double *a, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            if (!isfinite(a[(size_t)i * (size_t)n + j]))
                return false;
    return true;
}

/* Row-major lower is column-major upper, and columns of vectors are rows. */
svs_code svi_eigen_symmetric(double *a, int n, double *values, svs_error *err) {
    if (n > SVI_EIGEN_MAX)
        return svi_fail(err, SVS_LIMIT, "eigenvectors of %d dimensions: at most %d can be computed", n,
                        SVI_EIGEN_MAX);
    const size_t reals = 1 + 6 * (size_t)n + 2 * (size_t)n * (size_t)n, whole = 3 + 5 * (size_t)n;
    double *room = svi_alloc_array(reals, sizeof *room);
    lapack_int *indices = svi_alloc_array(whole, sizeof *indices);
    svs_code code = room && indices ? SVS_OK : svi_fail_memory(err, "eigenvectors");
    if (code == SVS_OK &&
        (!eigen_finite(a, n) || LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, a, n, values, room,
                                                    (lapack_int)reals, indices, (lapack_int)whole) != 0))
        code = svi_fail(err, SVS_NUMERIC, "eigenvectors of a matrix that is not finite");
    svi_free(indices);
    svi_free(room);
    return code;
}
