/* Sums of trees as masks (forest_internal.h), for AVX-512.
 *
 * The values that a tree compares are picked from the row by the tree's 16 columns. A gather takes
 * about 40 cycles a tree. Rows of at most 128 values are therefore kept in registers, 16 values
 * each, from which a permutation picks in two or three cycles. The lower bits of a column are the
 * place in a pair of registers, and the others choose the pair. */
#include "trees/forest_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define REGISTERS_MAX 8 /* of the row */

/* Adds the value of the leaf that the row reaches, in the lane of that leaf. */
static inline __attribute__((always_inline)) __m512i
forest_masks_add(__m512i sum, const struct svi_forest_mask *m, uint16_t missing, __m512 v) {
    const __mmask16 right = _mm512_cmp_ps_mask(v, _mm512_load_ps(m->threshold), _CMP_GT_OQ);
    const __mmask16 unknown = _mm512_mask_cmp_ps_mask(missing, v, v, _CMP_UNORD_Q);
    const __m256i bits = _mm256_set1_epi16((short)(right | unknown));
    const __m256i care = _mm256_load_si256((const __m256i *)m->care);
    const __m256i want = _mm256_load_si256((const __m256i *)m->want);
    const __mmask16 leaf = _mm256_cmpeq_epi16_mask(_mm256_and_si256(bits, care), want);
    return _mm512_mask_add_epi32(sum, leaf, sum, _mm512_load_si512(m->value));
}

struct forest_masks_trees {
    const struct svi_forest_mask *tree;
    const uint16_t *missing;
    int first, count, step;
};

/* The row has at most 16 x `registers` values; `registers` is 1 or even, and known to the compiler. */
static inline __attribute__((always_inline)) int64_t
forest_masks_permuted(const struct forest_masks_trees *f, const float *x, int columns, int registers) {
    __m512 row[REGISTERS_MAX];
    __m512i sum = _mm512_setzero_si512();
    for (int i = 0; i < registers; i++) {
        const int rest = columns - 16 * i;
        row[i] = _mm512_maskz_loadu_ps((__mmask16)(rest >= 16 ? 0xffff
                                                   : rest > 0 ? (1 << rest) - 1
                                                              : 0),
                                       x + 16 * i);
    }
    for (int t = f->first; t < f->count; t += f->step) {
        const struct svi_forest_mask *m = &f->tree[t];
        const __m512i column = _mm512_load_si512(m->column);
        __m512 v;
        if (registers == 1) {
            v = _mm512_permutexvar_ps(column, row[0]);
        } else {
            v = _mm512_permutex2var_ps(row[0], column, row[1]);
            for (int i = 2; i < registers; i += 2) {
                const __mmask16 beyond = _mm512_cmpge_epi32_mask(column, _mm512_set1_epi32(16 * i));
                v = _mm512_mask_mov_ps(v, beyond, _mm512_permutex2var_ps(row[i], column, row[i + 1]));
            }
        }
        sum = forest_masks_add(sum, m, f->missing[t], v);
    }
    return _mm512_reduce_add_epi32(sum);
}

static int64_t forest_masks_gathered(const struct forest_masks_trees *f, const float *x) {
    __m512i sum = _mm512_setzero_si512();
    for (int t = f->first; t < f->count; t += f->step) {
        const __m512i column = _mm512_load_si512(f->tree[t].column);
        sum = forest_masks_add(sum, &f->tree[t], f->missing[t], _mm512_i32gather_ps(column, x, 4));
    }
    return _mm512_reduce_add_epi32(sum);
}

int64_t svi_forest_masks_sum(const struct svi_forest *f, int score, const float *x) {
    const struct forest_masks_trees t = {f->masks->tree, f->masks->missing, score, f->trees, f->rows};
    const int count = f->masks->count;
    return count <= 16    ? forest_masks_permuted(&t, x, count, 1)
           : count <= 32  ? forest_masks_permuted(&t, x, count, 2)
           : count <= 64  ? forest_masks_permuted(&t, x, count, 4)
           : count <= 128 ? forest_masks_permuted(&t, x, count, 8)
                          : forest_masks_gathered(&t, x);
}
#else
int64_t svi_forest_masks_sum(const struct svi_forest *f, int score, const float *x) {
    (void)f, (void)score, (void)x;
    return 0;
}
#endif
