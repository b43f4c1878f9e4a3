#include "trees/forest_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>

int64_t svi_forest_masks_sum(const struct svi_forest_mask *tree, const uint16_t *missing, int first,
                             int count, int step, const float *x) {
    __m512i sum = _mm512_setzero_si512();
    for (int t = first; t < count; t += step) {
        const struct svi_forest_mask *m = &tree[t];
        const __m512 v = _mm512_i32gather_ps(_mm512_load_si512(m->column), x, 4);
        const __mmask16 right = _mm512_cmp_ps_mask(v, _mm512_load_ps(m->threshold), _CMP_GT_OQ);
        const __mmask16 unknown = _mm512_mask_cmp_ps_mask(missing[t], v, v, _CMP_UNORD_Q);
        const __m256i bits = _mm256_set1_epi16((short)(right | unknown));
        const __m256i care = _mm256_load_si256((const __m256i *)m->care);
        const __m256i want = _mm256_load_si256((const __m256i *)m->want);
        const __mmask16 leaf = _mm256_cmpeq_epi16_mask(_mm256_and_si256(bits, care), want);
        sum = _mm512_mask_add_epi32(sum, leaf, sum, _mm512_load_si512(m->value));
    }
    return _mm512_reduce_add_epi32(sum);
}
#else
int64_t svi_forest_masks_sum(const struct svi_forest_mask *tree, const uint16_t *missing, int first,
                             int count, int step, const float *x) {
    (void)tree, (void)missing, (void)first, (void)count, (void)step, (void)x;
    return 0;
}
#endif
