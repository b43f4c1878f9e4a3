/* fourier.h: random Fourier features (Rahimi and Recht 2007, "Random Features for Large-Scale Kernel
 * Machines"): a row of columns becomes `count` features whose inner product approximates a kernel. A linear
 * model of them replaces a kernel model, at a cost that does not depend on the number of support vectors.
 *
 * A kernel k(x - y) with k(0) = 1 is the mean of cos(w'(x - y)) over frequencies w drawn from its spectrum:
 * normal with variance 2 gamma for rbf, Cauchy with scale gamma in each coordinate for laplacian. With h =
 * count / 2 draws
 *
 *     z_k(x) = cos(w_k'x) / sqrt(h),   z_{h+k}(x) = sin(w_k'x) / sqrt(h),   k < h
 *
 * z(x)'z(x) = 1 and z(x)'z(y) = k(x - y) up to an error that falls as 1 / sqrt(count). */
#ifndef SVMSTREAM_FOURIER_H
#define SVMSTREAM_FOURIER_H

#include <stdint.h>

#include "svmstream/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum svs_fourier_kernel {
    SVS_FOURIER_RBF = 0,  /* exp(-gamma |x - y|^2) */
    SVS_FOURIER_LAPLACIAN /* exp(-gamma sum_j |x_j - y_j|) */
} svs_fourier_kernel;

typedef struct svs_fourier svs_fourier;

/* Draws the features of rows of d columns: gamma > 0, d 1 to 1,000,000, count even, 2 to 10,000,000. Uses
 * count d / 2 doubles of memory; the same seed gives the same features. SVS_INVALID, SVS_NO_MEMORY. Owner:
 * the caller. */
SVS_API svs_code svs_fourier_new(svs_fourier_kernel kernel, double gamma, int d, int count, uint64_t seed,
                                 svs_fourier **out, svs_error *err);
SVS_API void svs_fourier_free(svs_fourier **f);

/* The features of one row: x has d finite values, z receives `count`. Allocates nothing; costs count d / 2
 * products and count polynomials. Threads may share f. */
SVS_API void svs_fourier_apply(const svs_fourier *f, const double *x, double *z);

#ifdef __cplusplus
}
#endif
#endif
