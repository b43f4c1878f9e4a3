/* The kernels for AVX2 + FMA: 16 registers of four doubles. */
#include <immintrin.h>

#define VW       4
#define KERNELS  svi_kernels_avx2
#define FLOATS   svi_floats_avx2
#define ISA      SVS_ISA_AVX2
#define ISA_NAME "avx2"
#define NEAREST  svi_nearest_avx2
#define MAX_WIDE _mm256_max_pd

/* Is any bit set? */
#define ANY_WIDE(marks) (!_mm256_testz_si256((__m256i)(marks), (__m256i)(marks)))

/* The first `count` of p, which `in` has. */
#define SOME_WIDE(p, count, in) _mm256_maskload_pd(p, (__m256i)(in))

#define STRIP_FOR(dim) 8

#include "linalg/kernels_template.h"
