/* kernels_floats.h: single precision kernels for learners that take first-order steps: products with weight
 * rows, updates of these rows, and the features computed from a row.
 *
 * Vectors of floats are aligned to 64 bytes and padded with zeros to a multiple of SVI_FLOATS_PAD; `n` is the
 * padded length. A term's lane depends on its index alone, so more zeros at the end change no bit. Nothing
 * uses the processor's approximations (rsqrt): an instruction set gives the same bits on every machine. */
#ifndef SVI_KERNELS_FLOATS_H
#define SVI_KERNELS_FLOATS_H

#include <stddef.h>

#include "svmstream/alsvm.h"

#define SVI_FLOATS_PAD   16
#define SVI_FLOATS_CLIP  10.0F /* of standardised values */
#define SVI_COSINE_BLOCK 64    /* cosines whose weights are stored together */

/* The running moments of d features in double precision. */
struct svi_float_moments {
    double *count, *mean, *squares; /* rows so far, their mean, the sum of squared deviations from it */
    double *inverse;                /* 1 / deviation; 0 where the feature is constant */
};

struct svi_floats {
    const char *name;
    svs_isa isa;
    /* z_j = clip((x_j - mean_j) inverse_j) to +-SVI_FLOATS_CLIP, j < d; the caller zeroes the padding. */
    void (*row)(const double *x, const double *mean, const double *inverse, int d, float *z);
    /* Adds a row to the moments (Welford 1962), j < d; |x_j| up to 1e100. */
    void (*moments)(const double *x, const struct svi_float_moments *m, int d);
    /* s_r = f . w_r, r < rows, w_r = w + r stride. */
    void (*dots)(const float *f, const float *w, size_t stride, int rows, int n, float *s);
    /* w += c f. */
    void (*add)(float *w, const float *f, float c, int n);
    /* AdaGrad (Duchi, Hazan, Singer 2011) for the gradient g = c f: sum = keep sum + g^2, w -= eta g /
     * sqrt(sum + 1e-8), keep in (0, 1]; 1/sqrt to 5e-6. */
    void (*adagrad)(float *w, float *sum, const float *f, float c, float eta, float keep, int n);
    /* p = z_0 (1, z_0), z_1 (1, z_0, z_1), ...: d (d + 3) / 2 values, then zeros up to n. Requires
     * a padded z. The capacity of p is n + SVI_FLOATS_PAD values, that of scratch padded d + 2
     * SVI_FLOATS_PAD. */
    void (*products)(const float *z, int d, int n, float *p, float *scratch);
    /* f = (p - mean) / sqrt(variance) clipped at +-clip, 0 where the variance is at most 1e-10; to 5e-6. */
    void (*normalise)(const float *p, const float *mean, const float *variance, float clip, int n, float *f);
    /* mean += share (p - mean), variance += share ((p - old mean) (p - mean) - variance). */
    void (*average)(const float *p, float share, int n, float *mean, float *variance);
    /* f_i = cos(2 pi (shift_i + sum_j z_j w_ij)), i < n, a multiple of SVI_COSINE_BLOCK, to about 1e-6 while
     * the sums are below 1. w is stored block by block, each of d columns of SVI_COSINE_BLOCK values. */
    void (*cosines)(const float *w, const float *shift, const float *z, int d, int n, float *f);
    /* p_i = 1 / (1 + exp(-s_i)), in [1e-37, 1], with a relative error of 1e-6. p may be s. */
    void (*logistic)(const float *s, int n, float *p);
};

/* The table of the instruction set that svi_kernels_get returns for `isa`, or NULL. */
const struct svi_floats *svi_floats_get(svs_isa isa);

extern const struct svi_floats svi_floats_generic;
#if defined(__x86_64__)
extern const struct svi_floats svi_floats_avx2, svi_floats_avx512;
#endif

#endif
