#include "base/exact_sum.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define BITS    32
#define CARRIES (1 << 28) /* changes, each below 2^33 in a limb, that fit 63 bits with a carried limb */

/* Normalises all limbs to 0 ... 2^32 - 1; the last one keeps the sign. A sum has one such form, which makes
 * its value independent of the order. */
static void exact_carry(int64_t *limb) {
    for (int k = 0; k + 1 < SVI_EXACT_LIMBS; k++) {
        const int64_t low = limb[k] & (((int64_t)1 << BITS) - 1),
                      carry = (limb[k] - low) / ((int64_t)1 << BITS);
        limb[k] = low;
        limb[k + 1] += carry;
    }
}

void svi_exact_add(struct svi_exact_sum *s, double value, int sign) {
    uint64_t bits;
    if (value == 0)
        return;
    memcpy(&bits, &value, sizeof bits);
    /* |value| = size 2^(coded - 1075); a denormal number has coded 0, counts as 1, and has no hidden bit. */
    const int coded = (int)(bits >> 52 & 0x7ff);
    const uint64_t size = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)(coded > 0) << 52;
    const int at = (coded > 0 ? coded : 1) - 1075 + SVI_EXACT_DOWN, k = at / BITS, shift = at % BITS;
    const uint64_t low = (size & 0xffffffff) << shift, high = (size >> BITS) << shift;
    /* The 53 bits of size, shifted by up to 31, spread over three limbs. */
    const bool minus = (value < 0) != (sign < 0);
    const int64_t part[3] = {(int64_t)(low & 0xffffffff), (int64_t)((low >> BITS) + (high & 0xffffffff)),
                             (int64_t)(high >> BITS)};
    for (int i = 0; i < 3; i++)
        s->limb[k + i] += minus ? -part[i] : part[i];
    if (++s->changes == CARRIES) {
        exact_carry(s->limb);
        s->changes = 0;
    }
}

double svi_exact_value(const struct svi_exact_sum *s) {
    struct svi_exact_sum t = *s; /* reading must not change the state */
    double value = 0;
    exact_carry(t.limb);
    const int sign = t.limb[SVI_EXACT_LIMBS - 1] < 0 ? -1 : 1;
    if (sign < 0) { /* negates, because limbs of mixed signs would cancel in the sum below */
        for (int k = 0; k < SVI_EXACT_LIMBS; k++)
            t.limb[k] = -t.limb[k];
        exact_carry(t.limb);
    }
    for (int k = SVI_EXACT_LIMBS - 1; k >= 0; k--)
        value += ldexp((double)t.limb[k],
                       BITS * k - SVI_EXACT_DOWN); /* in falling size: only the last ones round */
    return sign * value;
}
