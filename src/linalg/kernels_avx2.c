/* The kernels for AVX2 + FMA: 16 registers of four doubles. */
#include <immintrin.h>

#define VW        4
#define KERNELS   svi_kernels_avx2
#define FLOATS    svi_floats_avx2
#define ISA       SVS_ISA_AVX2
#define ISA_NAME  "avx2"
#define NEAREST   svi_nearest_avx2
#define ANY_WIDE  avx2_any
#define SOME_WIDE avx2_some
#define STRIP_FOR avx2_strip
#define MAX_WIDE  _mm256_max_pd

/* True when any bit is set. */
static inline int avx2_any(__m256i marks) {
    return !_mm256_testz_si256(marks, marks);
}

/* The first `count` values of p, 0 in the other lanes, which are not read; `in` is the mask of the first. */
static inline __m256d avx2_some(const double *p, int count, __m256i in) {
    (void)count;
    return _mm256_maskload_pd(p, in);
}

/* Two vectors of each kind (columns, samples, products) fit in 16 registers. */
static int avx2_strip(int dim) {
    (void)dim;
    return 8;
}

#include "linalg/kernels_template.h"
