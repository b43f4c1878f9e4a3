/* exponential.h: exp and log of moderate numbers, without a call and without a branch. Polynomials of
 * additions and multiplications alone: the same bits on every machine, and a vector gives the bits of each of
 * its numbers alone. */
#ifndef SVI_EXPONENTIAL_H
#define SVI_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

typedef double svi_two __attribute__((vector_size(16)));
typedef long long svi_two_bits __attribute__((vector_size(16)));
typedef unsigned long long svi_two_places __attribute__((vector_size(16)));

/* exp(x), |x| <= 64, with a relative error of 2e-13; exactly 1 at 0. real, bits: types of a vector of doubles
 * and of 64-bit integers; all(c): c in each lane. With k = x / log 2, rounded: 2^k exp(r), r the rest. Adding
 * 1.5 x 2^52 rounds and leaves k in the last bits. */
#define SVI_EXPONENTIAL(name, real, bits, all)                                                               \
    static inline __attribute__((always_inline)) real name(real x) {                                         \
        const real round = all(0x1.8p52), shifted = x * all(1.4426950408889634) + round;                     \
        const real r = x - (shifted - round) * all(0.69314718055994531);                                     \
        real q = r * all(2.761756513390866e-06) + all(2.486787056267093e-05);                                \
        q = q * r + all(0.00019841224599133488);                                                             \
        q = q * r + all(0.0013888839109997015);                                                              \
        q = q * r + all(0.0083333333442031678);                                                              \
        q = q * r + all(0.041666666786267806);                                                               \
        q = q * r + all(0.16666666666662586);                                                                \
        q = q * r + all(0.49999999999955108);                                                                \
        const real rest = (r * r * q + r) + all(1.0);                                                        \
        return (real)((bits)rest + ((bits)shifted << 52));                                                   \
    }

static inline svi_two svi_both(double c) {
    return (svi_two){c, c};
}
SVI_EXPONENTIAL(svi_exp_two, svi_two, svi_two_bits, svi_both)

/* log(x), x positive and not denormal, with a relative error of 2e-13. Types as above; places:
 * unsigned integers. x = 2^e m with m around 1. With f = (m - 1) / (m + 1), log m = 2 atanh(f). e
 * is computed with 1024 added, so that it shifts without a sign. It becomes a double in the last
 * bits of 2^52. */
#define SVI_LOGARITHM(name, real, bits, places, all)                                                         \
    static inline __attribute__((always_inline)) real name(real x) {                                         \
        const bits root = (bits)all(0x1.6a09e667f3bcdp-1), up = (bits)all(2.0); /* root: of 1/2 */           \
        const bits turns = (bits)((places)((bits)x - root + up) >> 52);                                      \
        /* Unsigned: the sums wrap. */                                                                       \
        const real m = (real)((places)x - ((places)turns << 52) + (places)up),                               \
                   e = (real)(turns | (bits)all(0x1p52)) - all(0x1p52 + 1024);                               \
        const real f = (m - all(1.0)) / (m + all(1.0)), s = f * f;                                           \
        real q = s * all(0.096813330132254363) + all(0.11095700098311667);                                   \
        q = q * s + all(0.1428587727294772);                                                                 \
        q = q * s + all(0.1999999939864435);                                                                 \
        q = q * s + all(0.33333333333687565);                                                                \
        return e * all(0.69314718055994531) + all(2.0) * (f + f * (s * q));                                  \
    }

SVI_LOGARITHM(svi_log_two, svi_two, svi_two_bits, svi_two_places, svi_both)

static inline double svi_log(double x) {
    return svi_log_two(svi_both(x))[0];
}

#endif
