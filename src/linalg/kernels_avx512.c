/* The kernels for AVX-512: 32 registers of eight doubles. */
#include <immintrin.h>

#define VW        8
#define KERNELS   svi_kernels_avx512
#define FLOATS    svi_floats_avx512
#define ISA       SVS_ISA_AVX512
#define ISA_NAME  "avx512"
#define NEAREST   svi_nearest_avx512
#define ANY_WIDE  avx512_any
#define SOME_WIDE avx512_some
#define STRIP_FOR avx512_strip
#define MAX_WIDE  _mm512_max_pd

/* True when any bit is set. */
static inline int avx512_any(__m512i marks) {
    return _mm512_test_epi64_mask(marks, marks) != 0;
}

/* The first `count` values of p, 0 in the other lanes, which are not read. */
static inline __m512d avx512_some(const double *p, int count, __m512i in) {
    (void)in;
    return _mm512_maskz_loadu_pd((__mmask8)((1U << count) - 1), p);
}

/* Strip heights as measured (NUMERICS.md, 3.2): up to 32 rows one full square; up to 128 rows 16, for the
 * least padding; above, 24, for the fewest partial sums. */
static int avx512_strip(int dim) {
    return dim <= 32 ? (dim + 7) / 8 * 8 : dim <= 128 ? 16 : 24;
}

#include "linalg/kernels_template.h"
