/* printf's %g in integers of 128 bits, for the range of most numbers. It is exact, as printf is.
 *
 * A double is m 2^e, and v 10^k = m 5^k 2^(e+k). The choice of k gives this as many digits before
 * the point as are asked for. With k <= 32, the product m 5^k has at most 128 bits. What is shifted
 * out is the remainder, so the rounding, half to even, is exact.
 *
 * Whether a text reads back as v is known without reading it. In the units of the remainder, a unit
 * in the last place of v is 5^k. The text reads back as v if it differs from v by less than half of
 * that. It never differs by exactly half, because 5^k is odd.
 *
 * Zeros apart, numbers below MIN_FAST, or with more digits before the point than are asked for, are left to
 * printf. */
#include "base/decimal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 17
#define MIN_FAST   1e-15 /* k <= DIGITS_MAX - 1 + 16 */

__extension__ typedef unsigned __int128 decimal_wide;

/* 10^-k n: the digits of a number. */
struct decimal {
    uint64_t n; /* of `digits` digits */
    int power;  /* of the first digit */
    bool exact; /* reads back as the number that it was made of */
};

static const uint64_t decimal_fives[] = {
    1u,       5u,       25u,       125u,       625u,        3125u,       15625u,       78125u,       390625u,
    1953125u, 9765625u, 48828125u, 244140625u, 1220703125u, 6103515625u, 30517578125u, 152587890625u};

static const uint64_t decimal_tens[] = {1u,
                                        10u,
                                        100u,
                                        1000u,
                                        10000u,
                                        100000u,
                                        1000000u,
                                        10000000u,
                                        100000000u,
                                        1000000000u,
                                        10000000000u,
                                        100000000000u,
                                        1000000000000u,
                                        10000000000000u,
                                        100000000000000u,
                                        1000000000000000u,
                                        10000000000000000u,
                                        100000000000000000u};

/* 0 <= k <= 32 */
static decimal_wide decimal_five(int k) {
    const int half = k / 2;
    return (decimal_wide)decimal_fives[half] * decimal_fives[k - half];
}

/* MIN_FAST <= v < 10^digits. `bits` of the mantissa: 53, or 24 where v has single precision. */
static struct decimal decimal_of(double v, int digits, int bits) {
    uint64_t m;
    memcpy(&m, &v, sizeof m);
    const int exponent = (int)(m >> 52) - 1023; /* 2^exponent <= v; v is normal and positive */
    m = ((m & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52) >> (53 - bits);
    const int e = exponent - (bits - 1);
    /* log10 2 = 1233 / 4096, a little less: the power, or one too small. */
    struct decimal d = {.power = (exponent * 1233 - (exponent < 0 ? 4095 : 0)) / 4096};
    decimal_wide five, product;
    int shift;
    for (;; d.power++) {
        const int k = digits - 1 - d.power;
        five = decimal_five(k);
        product = m * five;
        shift = -(e + k);
        d.n = (uint64_t)(shift > 0 ? product >> shift : product << -shift);
        if (d.n < decimal_tens[digits])
            break;
    }
    d.exact = true;
    if (shift > 0) {
        const decimal_wide rest = product - ((decimal_wide)d.n << shift),
                           half = (decimal_wide)1 << (shift - 1);
        const bool up = rest > half || (rest == half && d.n & 1);
        const decimal_wide off = up ? 2 * half - rest : rest;
        /* Below a power of two doubles are twice as dense. */
        const int scale = !up && m == (uint64_t)1 << (bits - 1) ? 4 : 2;
        d.exact = off <= five && scale * off < five;
        d.n += up;
    }
    if (d.n == decimal_tens[digits]) {
        d.n = decimal_tens[digits - 1];
        d.power++;
    }
    return d;
}

static char *decimal_exponent(char *to, int power) {
    *to++ = 'e';
    *to++ = power < 0 ? '-' : '+';
    power = abs(power);
    *to++ = (char)('0' + power / 10);
    *to++ = (char)('0' + power % 10);
    return to;
}

/* As %g: no zeros at the end, and an exponent where the power is below -4 or not below `digits`. */
static char *decimal_put(char *to, const struct decimal *d, int digits) {
    const bool scientific = d->power < -4 || d->power >= digits;
    const int point = scientific ? 1 : d->power + 1; /* digits before the point */
    char text[DIGITS_MAX];
    uint64_t n = d->n;
    int last = digits; /* digits without the zeros at the end */
    for (int i = digits - 1; i >= 0; i--, n /= 10)
        text[i] = (char)('0' + n % 10);
    while (last > 1 && last > point && text[last - 1] == '0')
        last--;
    if (point <= 0) {
        memcpy(to, "0.000", 5);
        to += 2 - point;
    }
    /* A number below 1 has its point already. */
    for (int i = 0; i < last; i++) {
        if (i == point && i > 0)
            *to++ = '.';
        *to++ = text[i];
    }
    return scientific ? decimal_exponent(to, d->power) : to;
}

/* True: v was written to `out`, with *length. */
static bool decimal_fast(char *out, double v, int digits, int bits, bool *exact, int *length) {
    const double size = fabs(v);
    char *to = out;
    if (v != 0 && !(size >= MIN_FAST && size < (double)decimal_tens[digits]))
        return false;
    if (signbit(v))
        *to++ = '-';
    if (v == 0) {
        *exact = true;
        *to++ = '0';
    } else {
        const struct decimal d = decimal_of(size, digits, bits);
        *exact = d.exact;
        to = decimal_put(to, &d, digits);
    }
    *to = '\0';
    *length = (int)(to - out);
    return true;
}

int svi_decimal_text(char out[SVI_DECIMAL_MAX], double v, int digits) {
    bool exact;
    int length;
    if (decimal_fast(out, v, digits, 53, &exact, &length))
        return length;
    return snprintf(out, SVI_DECIMAL_MAX, "%.*g", digits, v);
}

int svi_decimal_shortest(char out[SVI_DECIMAL_MAX], double v, bool single) {
    const int few = single ? 7 : 15, all = single ? 9 : 17, bits = single ? 24 : 53;
    bool exact;
    int length;
    if (decimal_fast(out, v, few, bits, &exact, &length)) {
        if (!exact)
            decimal_fast(out, v, all, bits, &exact, &length);
        return length;
    }
    length = snprintf(out, SVI_DECIMAL_MAX, "%.*g", few, v);
    if (single ? strtof(out, NULL) != (float)v : strtod(out, NULL) != v)
        length = snprintf(out, SVI_DECIMAL_MAX, "%.*g", all, v);
    return length;
}
