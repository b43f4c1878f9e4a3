/* Decimal text to numbers: digits are collected into a 64-bit integer w and an exponent e, then w 10^e is
 * rounded once. Three ways, from fast to general (number.h): exact operands of one double operation, a
 * 128-bit product or quotient with a power of five, strtod. Each way is only taken where its result is
 * correctly rounded, so all of them agree bit for bit.
 *
 * Order: powers, digits and exponents, scaling, the public functions. */
#include "data/number.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

#define DIGITS_MAX   19 /* w < 10^19 fits 64 bits; more digits go to strtod */
#define EXPONENT_MAX 99999

static const uint64_t power10[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
static const double exact10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* 5^e for e from 0 to 27, as 5^(e % 8) times 5^(8 (e / 8)): each fits 64 bits. */
static uint64_t power_of_five(int e) {
    static const uint64_t ones[] = {1, 5, 25, 125, 625, 3125, 15625, 78125};
    static const uint64_t eights[] = {1, 390625, 152587890625U, 59604644775390625U};
    return ones[e % 8] * eights[e / 8];
}

static bool number_is_digit(char c) {
    return (unsigned char)(c - '0') < 10;
}

/* Reads eight bytes at once: returns how many digits stand before the first other byte, and their number in
 * *value. */
static unsigned eight_digits(const char *at, uint64_t *value) {
    uint64_t v;
    memcpy(&v, at, sizeof v);
    v = le64toh(v) ^ 0x3030303030303030U;
    const uint64_t others = svi_number_others(v);
    const unsigned count = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
    *value = count ? svi_number_join(v << (64 - 8 * count))
                   : 0; /* the shift puts zeros in front of fewer than eight digits; a shift by 64 would be
                           undefined */
    return count;
}

/* Appends digits to *w. It wraps silently on too many digits; the caller counts them. */
static inline const char *take_digits(const char *at, uint64_t *w) {
    unsigned count;
    do {
        uint64_t part;
        count = eight_digits(at, &part);
        *w = *w * power10[count] + part;
        at += count;
    } while (count == 8);
    return at;
}

/* The digits before the point. Mostly there is one, which needs no load of eight. */
static inline const char *take_whole(const char *at, uint64_t *w) {
    if (!number_is_digit(at[0]) || number_is_digit(at[1]))
        return take_digits(at, w);
    *w = (uint64_t)(at[0] - '0');
    return at + 1;
}

/* Adds the exponent at `at`, which stands on the e. Without digits after the e the number ended before it.
 * The exponent saturates, so that no text overflows it. */
static const char *take_exponent(const char *at, int *exponent) {
    const char *p = at + 1;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    if (!number_is_digit(*p))
        return at;
    int e = 0;
    for (; number_is_digit(*p); p++)
        e = e < EXPONENT_MAX ? 10 * e + (*p - '0') : e;
    *exponent += negative ? -e : e;
    return p;
}

/* w 10^e, rounded once, for 0 < w < 10^19 and |e| <= 27. w 10^e = w 5^e 2^e, and the power of two
 * only moves the exponent. The upper 64 bits of the 128-bit product w 5^e, or of the quotient w /
 * 5^-e, are kept. The lowest one is set when anything below was lost (a sticky bit). Rounding 64
 * bits to 53 then decides as the whole number would. */
static double scale_wide(uint64_t w, int e) {
    int zeros = __builtin_clzll(w), shift;
    uint64_t top;
    w <<= zeros;
    if (e >= 0) {
        wide product = (wide)w * power_of_five(e);
        uint64_t high = (uint64_t)(product >> 64);
        shift = high ? __builtin_clzll(high) : 64;
        product <<= shift;
        top = (uint64_t)(product >> 64) | ((uint64_t)product != 0);
        shift = 64 - shift;
    } else {
        uint64_t divisor = power_of_five(-e);
        int lead = __builtin_clzll(divisor);
        /* Both operands are normalised, so the quotient has 63 or 64 bits: enough for 53 and the sticky bit.
         */
        wide dividend = (wide)w << 63;
        divisor <<= lead;
        top = (uint64_t)(dividend / divisor) | (dividend % divisor != 0);
        shift = lead - 63;
    }
    return ldexp((double)top, e + shift - zeros);
}

/* w 10^e where exact double operands are not enough; `from`: the first digit. A separate function, because it
 * is rare. */
static __attribute__((noinline)) double number_scale(const char *from, uint64_t w, int e, long digits) {
    if (digits <= DIGITS_MAX && w == 0)
        return 0;
    if (digits <= DIGITS_MAX && e >= -27 && e <= 27)
        return scale_wide(w, e);
    /* strtod ends at the same byte. newlocale gives the built-in C locale without allocating; the program's
     * own locale may have another decimal point. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double v = strtod_l(from, NULL, c);
    freelocale(c);
    return v;
}

const char *svi_number_long(const char *at, double *value) {
    const bool negative = *at == '-';
    const char *from = at + (negative || *at == '+');
    uint64_t w = 0;
    const char *p = take_whole(from, &w);
    long digits = p - from;
    /* Digits after the point count down the exponent instead of dividing. */
    int e = 0;
    if (*p == '.') {
        const char *fraction = p + 1;
        p = take_digits(fraction, &w);
        e = -(int)(p - fraction);
        digits += p - fraction;
    }
    if (digits == 0)
        return at;
    if (*p == 'e' || *p == 'E')
        p = take_exponent(p, &e);
    double v;
    /* w and 10^|e| are exact doubles here, so one operation rounds once (Clinger 1990). */
    if (digits <= DIGITS_MAX && w <= (uint64_t)1 << 53 && e >= -22 && e <= 22)
        v = e < 0 ? (double)(int64_t)w / exact10[-e] : (double)(int64_t)w * exact10[e];
    else
        v = number_scale(from, w, e, digits);
    *value = negative ? -v : v;
    return p;
}

const char *svi_number(const char *at, double *value) {
    double v;
    const char *end = svi_number_short(at, &v);
    /* The short form stopped inside a longer number. */
    if (!end || number_is_digit(*end) || *end == 'e' || *end == 'E')
        return svi_number_long(at, value);
    *value = v;
    return end;
}

const char *svi_integer(const char *at, int64_t *value) {
    bool negative = *at == '-';
    const char *from = at + (negative || *at == '+');
    /* Leading zeros do not count as digits, of which 19 fit. */
    while (from[0] == '0' && number_is_digit(from[1]))
        from++;
    uint64_t w = 0;
    const char *p = take_whole(from, &w);
    /* -2^63 fits although 2^63 does not. */
    if (p == from || p - from > DIGITS_MAX || w > (uint64_t)INT64_MAX + negative)
        return at;
    *value = negative ? (int64_t)(0 - w) : (int64_t)w;
    return p;
}
