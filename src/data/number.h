/* number.h: decimal text -> double and int64, fast and exact.
 *
 * The text is read straight from a line buffer and without a length: it must be followed by a byte that
 * cannot be part of a number (a separator, a line's end, NUL), and SVI_NUMBER_PAD bytes after that one must
 * be readable, because digits are taken eight at a time.
 *
 * w 10^e is one rounding of exact operands when w <= 2^53 and |e| <= 22 (Clinger 1990), and one rounding of a
 * 128-bit product or quotient when w < 10^19 and |e| <= 27, because 5^27 < 2^63; strtod of the C locale does
 * the rest. The result is bit for bit what strtod gives. Rounding must be to nearest, as it is unless a
 * program changed it. */
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

/* Bytes of a word that are no digits, where each byte was xored with '0': the highest bit of each such byte,
 * as far as the first that is not ASCII. */
static inline uint64_t svi_number_others(uint64_t v) {
    return (v | (v + 0x7676767676767676U)) & 0x8080808080808080U;
}

/* Eight digits xored with '0', the first one in the lowest byte. Each step joins neighbours: ones to pairs,
 * pairs to fours, fours to eight. */
static inline uint64_t svi_number_join(uint64_t v) {
    v = (v * 10 + (v >> 8)) & 0x00ff00ff00ff00ffU;
    v = (v * 100 + (v >> 16)) & 0x0000ffff0000ffffU;
    return (v * 10000 + (v >> 32)) & 0xffffffffU;
}

/* The same as a double, without a way back from the vector registers. */
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

/* svi_number for digits [. digits] of at most 7 digits, the first before the point; no branch on where
 * the point is. NULL when something else stands there. */
static inline const char *svi_number_word(const char *from, double *value) {
    static const double scale[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    uint64_t v;
    memcpy(&v, from, sizeof v);
    v = le64toh(v) ^ 0x3030303030303030U;
    const uint64_t others = svi_number_others(v);
    if (!others || others & 0x80)
        return NULL;
    const unsigned whole = (unsigned)__builtin_ctzll(others) / 8;
    const uint64_t point = from[whole] == '.', rest = others & (others - point);
    const unsigned end = rest ? (unsigned)__builtin_ctzll(rest) / 8 : 8;
    const uint64_t before = ((UINT64_C(1) << 8 * whole) - 1) | (point - 1);
    v = (v & before) | (v >> 8 & ~before);
    *value =
        svi_number_join_double(v << (64 - 8 * (end - (unsigned)point))) / scale[point ? end - 1 - whole : 0];
    return from + end;
}

/* One digit, `first`, and 7 after a point, or 8. */
static inline const char *svi_number_fraction(const char *from, uint64_t first, double *value) {
    uint64_t v;
    memcpy(&v, from + 2, sizeof v);
    v = le64toh(v) ^ 0x3030303030303030U;
    const bool eight = svi_number_others(v) == 0;
    const uint64_t w = svi_number_join(eight ? v : v << 8);
    *value = (double)(int64_t)(first * (eight ? 100000000 : 10000000) + w) / (eight ? 1e8 : 1e7);
    return from + (eight ? 10 : 9);
}

/* svi_number_short without a sign. In a loop its constants stay in registers: no call. */
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
    uint64_t v; /* in the place of the point stands the digit before it */
    memcpy(&v, from + 1, sizeof v);
    v = le64toh(v) ^ 0x3030303030303030U ^ ('.' ^ '0') ^ first;
    const uint64_t others = svi_number_others(v);
    if (!others)
        return svi_number_fraction(from, first, value);
    const unsigned bit = (unsigned)__builtin_ctzll(others), digits = bit / 8;
    *value = svi_number_join_double(v << (71 - bit)) / scale[digits];
    return from + 1 + digits;
}

/* What most cells are: [-] and one digit, alone or with up to 8 after a point, or as svi_number_word. NULL
 * when something else stands there, and then *value is open. Where a digit or an exponent follows it is not
 * the whole number: the caller looks at what it stops at. */
static inline const char *svi_number_short(const char *at, double *value) {
    if (*at != '-')
        return svi_number_plain(at, value);
    const char *end = svi_number_plain(at + 1, value);
    if (end)
        *value = -*value;
    return end;
}

/* Reads [+-] digits [. digits] [e [+-] digits] (a digit before or after the point) into *value; infinite
 * when it overflows, 0 or subnormal when it underflows. Returns the first byte that is not part of it; `at`
 * itself, with *value as it was, when no number stands there. Neither space nor hexadecimal, inf or nan are
 * numbers here. */
const char *svi_number(const char *at, double *value);

/* The same for what svi_number_short does not read. */
const char *svi_number_long(const char *at, double *value);

/* Reads [+-] digits into *value. Returns as svi_number; `at` too when it does not fit. */
const char *svi_integer(const char *at, int64_t *value);

#endif
