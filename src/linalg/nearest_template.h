/* nearest_template.h: the kernels of nearest.h, compiled once per instruction set with those of
 * kernels_template.h, on the vectors of floats_template.h.
 *
 * In order of reading: the sketch and the exact distances, for all instruction sets; then the scan over
 * blocks twice: in 256-bit registers of 16-bit sums, and in plain C. The sums of the two may differ (the
 * register form wraps modulo 2^16 within a chunk, plain C saturates); both are lower bounds, so neither loses
 * a near row. */
#include "linalg/nearest.h"

#if VW >= 4
#include <immintrin.h>
#endif

#define NEAREST_LANES 16
#define NEAREST_PARTS (NEAREST_LANES / FW)

typedef int8_t nearest_bytes __attribute__((vector_size(2 * VW)));
typedef float nearest_four __attribute__((vector_size(16)));

/* The total of 16 lanes, ((0..3 + 4..7) + (8..11 + 12..15)) and then halves, in every build. */
INLINE float nearest_total(const vecf *sum) {
    nearest_four part[4];
    memcpy(part, sum, sizeof part);
    const nearest_four four = (part[0] + part[1]) + (part[2] + part[3]);
    const nearest_four two = four + SHUF(four, four, 2, 3, 0, 1);
    return two[0] + two[1];
}

/* Adding 1.5 x 2^23 rounds to an integer and leaves it in the low bits. The error is that of rounding alone:
 * clipping needs no allowance (nearest.h). A NaN fails the comparison with the largest size. */
static bool nearest_sketch(const float *z, int padded, int8_t *to, float *error) {
    const vecf rounder = splat_float(12582912.f), most = splat_float(63);
    vecf sum[NEAREST_PARTS] = {{0}};
    maskf good = ~(maskf){0};
    for (int j = 0; j < padded; j += FW) {
        const vecf x = load_floats(z + j);
        const vecf size = (vecf)((maskf)x & 0x7fffffff);
        good &= size <= splat_float(SVI_NEAREST_SIZE);
        vecf u = x * splat_float(SVI_NEAREST_SCALE);
        u = choose_floats(u < most, u, most);
        u = choose_floats(u > -most, u, -most);
        const vecf shifted = u + rounder, gap = u - (shifted - rounder);
        const nearest_bytes bytes = __builtin_convertvector((maskf)shifted, nearest_bytes);
        memcpy(to + j, &bytes, sizeof bytes);
        sum[j / FW % NEAREST_PARTS] += gap * gap;
    }
    *error = nearest_total(sum) / (SVI_NEAREST_SCALE * SVI_NEAREST_SCALE);
    bool all = true;
    for (int l = 0; l < FW; l++)
        all &= good[l] != 0;
    return all;
}

static void nearest_distances(const float *rows, size_t stride, uint64_t mask, const float *z, int padded,
                              float *to) {
    for (; mask; mask &= mask - 1) {
        const float *row = rows + (size_t)__builtin_ctzll(mask) * stride;
        vecf sum[NEAREST_PARTS] = {{0}};
        for (int j = 0; j < padded; j += NEAREST_LANES)
            UNROLL for (int p = 0; p < NEAREST_PARTS; p++) {
                const int at = j + p * FW;
                const vecf gap = load_floats(row + at) - load_floats(z + at);
                sum[p] += gap * gap;
            }
        *to++ = nearest_total(sum);
    }
}

#if VW >= 4
/* 16 rows a register, four registers a block. The AVX-512 build uses 256 bits, too: operations on bytes of
 * wider registers are a separate extension. */
#define NEAREST_GROUPS 4

/* to = before (NULL: 0) + the sums over chunk c: |x - q|^2 = own + |q|^2 - 2 sum (q + 64) x, where own =
 * |x|^2
 * + 128 sum x is stored in front of the pairs. The query is shifted by 64 because the multiplication takes
 * one unsigned factor. All modulo 2^16, so a sum is at most the true one. */
INLINE void nearest_chunk(const struct svi_nearest_scan *s, int block, int c, const __m256i *before,
                          __m256i *to) {
    const __m256i *at =
        (const __m256i *)(s->sketch + (size_t)block * s->block + svi_nearest_chunk_at(c) * SVI_NEAREST_PAIR);
    const __m256i norm = _mm256_set1_epi16((short)s->norm[c]);
    const int first = c * SVI_NEAREST_CHUNK;
    const int last = s->pairs - first < SVI_NEAREST_CHUNK ? s->pairs : first + SVI_NEAREST_CHUNK;
    __m256i own[NEAREST_GROUPS], dot[NEAREST_GROUPS];
    UNROLL for (int g = 0; g < NEAREST_GROUPS; g++) own[g] = _mm256_add_epi16(at[g], norm);
    UNROLL for (int g = 0; g < NEAREST_GROUPS; g++) dot[g] = _mm256_setzero_si256();
    for (int p = first; p < last; p++) {
        const __m256i q = _mm256_set1_epi32(s->query[p]);
        at += NEAREST_GROUPS;
        UNROLL for (int g = 0; g < NEAREST_GROUPS; g++) dot[g] =
            _mm256_add_epi16(dot[g], _mm256_maddubs_epi16(q, at[g]));
    }
    const __m128i shift = _mm_cvtsi32_si128(s->shift);
    UNROLL for (int g = 0; g < NEAREST_GROUPS; g++) {
        const __m256i sum = _mm256_sub_epi16(own[g], _mm256_add_epi16(dot[g], dot[g]));
        const __m256i low = _mm256_srl_epi16(sum, shift);
        to[g] = before ? _mm256_adds_epu16(before[g], low) : low;
    }
}

static void nearest_begin(const struct svi_nearest_scan *s, int from, int to) {
    for (int b = from; b <= to; b++) {
        __m256i *sum = (__m256i *)(s->sums + (size_t)b * SVI_NEAREST_ROWS);
        nearest_chunk(s, b, 0, NULL, sum);
        for (int c = 1; c < s->known; c++)
            nearest_chunk(s, b, c, sum, sum);
    }
}

/* The smallest sum in each lane position over all blocks, then k times the smallest of these, removed
 * together with its equals. Every such minimum is the sum of a different row, so at least k rows do not
 * exceed the k-th. */
static uint16_t nearest_lowest(const struct svi_nearest_scan *s, int from, int to, int k) {
    __m256i least[NEAREST_GROUPS];
    UNROLL for (int g = 0; g < NEAREST_GROUPS; g++) least[g] = _mm256_set1_epi16(-1);
    for (int b = from; b <= to; b++) {
        const __m256i *sum = (const __m256i *)(s->sums + (size_t)b * SVI_NEAREST_ROWS);
        UNROLL for (int g = 0; g < NEAREST_GROUPS; g++) least[g] = _mm256_min_epu16(least[g], sum[g]);
    }
    unsigned lowest = 65535;
    for (; k > 0; k--) {
        const __m256i all =
            _mm256_min_epu16(_mm256_min_epu16(least[0], least[1]), _mm256_min_epu16(least[2], least[3]));
        const __m128i half = _mm_min_epu16(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
        lowest = (unsigned)_mm_cvtsi128_si32(_mm_minpos_epu16(half)) & 0xffff;
        const __m256i found = _mm256_set1_epi16((short)lowest);
        UNROLL for (int g = 0; g < NEAREST_GROUPS; g++) least[g] =
            _mm256_or_si256(least[g], _mm256_cmpeq_epi16(least[g], found));
    }
    return (uint16_t)lowest;
}

/* True when any sum is at most the bound. There is no unsigned comparison: min(a, bound) == a is one. */
INLINE bool nearest_any(const __m256i *sum, __m256i bound) {
    const __m256i least =
        _mm256_min_epu16(_mm256_min_epu16(sum[0], sum[1]), _mm256_min_epu16(sum[2], sum[3]));
    const __m256i within = _mm256_cmpeq_epi16(_mm256_min_epu16(least, bound), least);
    return !_mm256_testz_si256(within, within);
}

INLINE uint64_t nearest_rows(const __m256i *sum, __m256i bound) {
    uint64_t mask = 0;
    UNROLL for (int g = 0; g < NEAREST_GROUPS; g += 2) {
        const __m256i a = _mm256_cmpeq_epi16(_mm256_min_epu16(sum[g], bound), sum[g]);
        const __m256i b = _mm256_cmpeq_epi16(_mm256_min_epu16(sum[g + 1], bound), sum[g + 1]);
        const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8);
        mask |= (uint64_t)(uint32_t)_mm256_movemask_epi8(both) << 16 * g;
    }
    return mask;
}

static int nearest_scan(const struct svi_nearest_scan *s, int from, int to, double bound, uint64_t *mask) {
    *mask = ~(uint64_t)0;
    if (!(bound < 65535)) /* saturated sums rule out nothing: every row has to be measured */
        return from < to ? -1 : from;
    const __m256i limit = _mm256_set1_epi16((short)(unsigned short)bound);
    for (int b = from; b >= to; b--) {
        const __m256i *first = (const __m256i *)(s->sums + (size_t)b * SVI_NEAREST_ROWS);
        if (!nearest_any(first, limit)) /* most blocks end here, on the chunks that `begin` summed */
            continue;
        __m256i sum[NEAREST_GROUPS] = {first[0], first[1], first[2], first[3]};
        bool any = true;
        for (int c = s->known; c < s->last && any; c++) {
            nearest_chunk(s, b, c, sum, sum);
            any = nearest_any(sum, limit);
        }
        *mask = any ? nearest_rows(sum, limit) : 0;
        if (any)
            return b;
    }
    return -1;
}
#else
static void nearest_chunk(const struct svi_nearest_scan *s, int block, int c, uint16_t *to) {
    const int8_t *at =
        s->sketch + (size_t)block * s->block + (svi_nearest_chunk_at(c) + 1) * SVI_NEAREST_PAIR;
    const int first = c * SVI_NEAREST_CHUNK;
    const int last = s->pairs - first < SVI_NEAREST_CHUNK ? s->pairs : first + SVI_NEAREST_CHUNK;
    int32_t sum[SVI_NEAREST_ROWS] = {0};
    for (int p = first; p < last; p++, at += SVI_NEAREST_PAIR) {
        const int a = (s->query[p] & 0xff) - 64, b = (s->query[p] >> 8 & 0xff) - 64;
        for (int r = 0; r < SVI_NEAREST_ROWS; r++) {
            const int16_t u = (int16_t)(at[2 * r] - a), v = (int16_t)(at[2 * r + 1] - b);
            sum[r] += u * u + v * v;
        }
    }
    for (int r = 0; r < SVI_NEAREST_ROWS; r++) {
        const int32_t own = (sum[r] < 65535 ? sum[r] : 65535) >> s->shift, all = to[r] + own;
        to[r] = (uint16_t)(all < 65535 ? all : 65535);
    }
}

static void nearest_begin(const struct svi_nearest_scan *s, int from, int to) {
    for (int b = from; b <= to; b++) {
        memset(s->sums + (size_t)b * SVI_NEAREST_ROWS, 0, SVI_NEAREST_ROWS * sizeof *s->sums);
        for (int c = 0; c < s->known; c++)
            nearest_chunk(s, b, c, s->sums + (size_t)b * SVI_NEAREST_ROWS);
    }
}

static uint16_t nearest_lowest(const struct svi_nearest_scan *s, int from, int to, int k) {
    uint16_t least[SVI_NEAREST_ROWS], lowest = 65535;
    memset(least, 0xff, sizeof least);
    for (int b = from; b <= to; b++)
        for (int r = 0; r < SVI_NEAREST_ROWS; r++) {
            const uint16_t sum = s->sums[(size_t)b * SVI_NEAREST_ROWS + (size_t)r];
            least[r] = sum < least[r] ? sum : least[r];
        }
    for (; k > 0; k--) {
        lowest = 65535;
        for (int r = 0; r < SVI_NEAREST_ROWS; r++)
            lowest = least[r] < lowest ? least[r] : lowest;
        for (int r = 0; r < SVI_NEAREST_ROWS; r++)
            least[r] = least[r] == lowest ? 65535 : least[r];
    }
    return lowest;
}

static int nearest_scan(const struct svi_nearest_scan *s, int from, int to, double bound, uint64_t *mask) {
    *mask = ~(uint64_t)0;
    if (!(bound < 65535))
        return from < to ? -1 : from;
    const uint16_t limit = (uint16_t)bound;
    for (int b = from; b >= to; b--) {
        uint16_t sum[SVI_NEAREST_ROWS];
        memcpy(sum, s->sums + (size_t)b * SVI_NEAREST_ROWS, sizeof sum);
        for (int c = s->known - 1; c < s->last; c++) {
            if (c >= s->known)
                nearest_chunk(s, b, c, sum);
            *mask = 0;
            for (int r = 0; r < SVI_NEAREST_ROWS; r++)
                *mask |= (uint64_t)(sum[r] <= limit) << r;
            if (!*mask)
                break;
        }
        if (*mask)
            return b;
    }
    return -1;
}
#endif

const struct svi_nearest_kernels NEAREST = {ISA,          nearest_sketch,   nearest_begin, nearest_lowest,
                                            nearest_scan, nearest_distances};
