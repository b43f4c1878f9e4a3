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

/* svi_number for [-] digits [. digits] of at most 7 digits, the first before the point; no branch on where
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
    const uint64_t w = svi_number_join(v << (64 - 8 * (end - (unsigned)point)));
    *value = (double)(int64_t)w / scale[point ? end - 1 - whole : 0];
    return from + end;
}

/* What most cells are: svi_number_word, and one digit alone or with up to 8 after a point. NULL when
 * something else stands there, and then *value is open. Where a digit or an exponent follows it is not the
 * whole number: the caller looks at what it stops at. */
static inline const char *svi_number_short(const char *at, double *value) {
    static const double scale[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
    static const uint64_t whole[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    const bool negative = *at == '-';
    const char *from = at + negative, *end;
    const uint64_t first = (unsigned char)(*from - '0');
    double size;
    if (first > 9)
        return NULL;
    if (from[1] == '.') {
        uint64_t v;
        memcpy(&v, from + 2, sizeof v);
        v = le64toh(v) ^ 0x3030303030303030U;
        const uint64_t others = svi_number_others(v);
        const unsigned bits = others ? (unsigned)__builtin_ctzll(others) & 0x38 : 64;
        if (bits == 0)
            return NULL;
        size =
            (double)(int64_t)(first * whole[bits / 8] + svi_number_join(v << (64 - bits))) / scale[bits / 8];
        end = from + 2 + bits / 8;
    } else if ((unsigned char)(from[1] - '0') > 9) {
        size = (double)(int64_t)first;
        end = from + 1;
    } else if (!(end = svi_number_word(from, &size))) {
        return NULL;
    }
    *value = negative ? -size : size;
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
