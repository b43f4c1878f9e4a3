/* number.h: decimal text -> double and int64, fast and exact.
 *
 * The text is read from a line buffer without a length. A byte that cannot be part of a number must
 * follow it (a separator, a line end, NUL). SVI_NUMBER_PAD bytes after that one must be readable,
 * because digits are loaded eight at a time.
 *
 * w 10^e is one rounding of exact operands when w <= 2^53 and |e| <= 22 (Clinger 1990). It is one
 * rounding of a 128-bit product or quotient when w < 10^19 and |e| <= 27, because 5^27 < 2^63. For
 * all other numbers strtod of the C locale is called. The result equals strtod's bit for bit. The
 * rounding mode must be to nearest, the default. */
#ifndef SVI_NUMBER_H
#define SVI_NUMBER_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SVI_NUMBER_PAD 16

/* Marks the bytes of a word that are not digits, where each byte was xored with '0': the highest bit of each
 * such byte. Carries make marks after the first byte that is not ASCII unreliable, so use only the ones up to
 * it. */
static inline uint64_t svi_number_others(uint64_t v) {
    return (v | (v + 0x7676767676767676U)) & 0x8080808080808080U;
}

/* The number of eight digits xored with '0', the first digit in the lowest byte. Each step joins neighbours:
 * digits to pairs, pairs to fours, fours to eight. */
static inline uint64_t svi_number_join(uint64_t v) {
    v = (v * 10 + (v >> 8)) & 0x00ff00ff00ff00ffU;
    v = (v * 100 + (v >> 16)) & 0x0000ffff0000ffffU;
    return (v * 10000 + (v >> 32)) & 0xffffffffU;
}

/* The same as a double. The digits stay in vector registers, which saves the move back. */
static inline double svi_number_join_double(uint64_t v) {
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128();
    __m128i n = _mm_unpacklo_epi8(_mm_cvtsi64_si128((long long)v), zero);
    n = _mm_madd_epi16(n, _mm_set1_epi32(10 | 1 << 16));
    n = _mm_madd_epi16(_mm_packs_epi32(n, n), _mm_set1_epi32(100 | 1 << 16));
    n = _mm_madd_epi16(_mm_packs_epi32(n, n), _mm_set1_epi32(10000 | 1 << 16));
    return _mm_cvtsd_f64(_mm_cvtepi32_pd(n));
#else
    return (double)(int64_t)svi_number_join(v);
#endif
}

/* svi_number for digits [. digits], at most 7 digits, the first one before the point; there is no branch on
 * where the point is. NULL: something else stands there. */
static inline const char *svi_number_word(const char *from, double *value) {
    static const double scale[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    uint64_t v;
    memcpy(&v, from, sizeof v);
    v = le64toh(v) ^ 0x3030303030303030U;
    const uint64_t others = svi_number_others(v);
    if (!others || others & 0x80)
        return NULL;
    const unsigned whole = (unsigned)__builtin_ctzll(others) / 8;
    /* If the first other byte is the point, the end is the second one. Digits after the point move down by a
     * byte to close the gap; `before` masks those that stay. */
    const uint64_t point = from[whole] == '.', rest = others & (others - point);
    const unsigned end = rest ? (unsigned)__builtin_ctzll(rest) / 8 : 8;
    const uint64_t before = ((UINT64_C(1) << 8 * whole) - 1) | (point - 1);
    v = (v & before) | (v >> 8 & ~before);
    *value =
        svi_number_join_double(v << (64 - 8 * (end - (unsigned)point))) / scale[point ? end - 1 - whole : 0];
    return from + end;
}

/* One digit, `first`, then a point and 7 or 8 digits: up to nine digits, so w stays exact and one division
 * rounds once. */
static inline const char *svi_number_fraction(const char *from, uint64_t first, double *value) {
    uint64_t v;
    memcpy(&v, from + 2, sizeof v);
    v = le64toh(v) ^ 0x3030303030303030U;
    const bool eight = svi_number_others(v) == 0;
    const uint64_t w = svi_number_join(eight ? v : v << 8);
    *value = (double)(int64_t)(first * (eight ? 100000000 : 10000000) + w) / (eight ? 1e8 : 1e7);
    return from + (eight ? 10 : 9);
}

/* svi_number_short without a sign. Always inlined, so that its constants stay in registers inside a loop. */
static inline __attribute__((always_inline)) const char *svi_number_plain(const char *from, double *value) {
    static const double scale[] = {1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    const uint64_t first = (unsigned char)(*from - '0');
    if (first > 9)
        return NULL;
    if (from[1] != '.') {
        if ((unsigned char)(from[1] - '0') <= 9)
            return svi_number_word(from, value);
        *value = (double)(int64_t)first;
        return from + 1;
    }
    uint64_t v; /* the point's byte is replaced by the digit before it, so that all eight bytes are digits */
    memcpy(&v, from + 1, sizeof v);
    v = le64toh(v) ^ 0x3030303030303030U ^ ('.' ^ '0') ^ first;
    const uint64_t others = svi_number_others(v);
    if (!others)
        return svi_number_fraction(from, first, value);
    const unsigned bit = (unsigned)__builtin_ctzll(others), digits = bit / 8;
    *value = svi_number_join_double(v << (71 - bit)) / scale[digits];
    return from + 1 + digits;
}

/* The forms of most cells: [-] and one digit, alone or with up to 8 after a point, or as svi_number_word.
 * NULL: something else stands there, and *value is unspecified. The number may go on where it stops: the
 * caller must check that no digit or exponent follows. */
static inline const char *svi_number_short(const char *at, double *value) {
    if (*at != '-')
        return svi_number_plain(at, value);
    const char *end = svi_number_plain(at + 1, value);
    if (end)
        *value = -*value;
    return end;
}

/* Reads [+-] digits [. digits] [e [+-] digits] (a digit before or after the point) into *value; infinite on
 * overflow, 0 or subnormal on underflow. Returns the first byte that is not part of it; `at` itself, with
 * *value unchanged, when no number stands there. Space, hexadecimal, inf and nan are not numbers here. */
const char *svi_number(const char *at, double *value);

/* The same, for numbers that svi_number_short does not read to their end. */
const char *svi_number_long(const char *at, double *value);

/* Reads [+-] digits into *value. Returns as svi_number; also `at` when the integer does not fit. */
const char *svi_integer(const char *at, int64_t *value);

#endif
