/* exact_sum.h: a sum of doubles without rounding. A value that is subtracted again leaves no trace, however
 * large it was, and the order of the changes does not matter.
 *
 * A fixed-point number: limb k of SVI_EXACT_LIMBS counts units of 2^(32 k - SVI_EXACT_DOWN). A double touches
 * three limbs. Carries stay in the limbs, which have 31 spare bits, and are moved up only from time to time.
 */
#ifndef SVI_EXACT_SUM_H
#define SVI_EXACT_SUM_H

#include <stdint.h>

#define SVI_EXACT_DOWN  1088 /* the smallest double is 2^-1074 */
#define SVI_EXACT_LIMBS 48   /* sums below 2^447 */

/* Zeroed: the sum is 0. */
struct svi_exact_sum {
    int64_t limb[SVI_EXACT_LIMBS];
    int64_t changes; /* additions since carries were last moved */
};

/* Adds sign (1 or -1) times value; |value| <= 1e100. */
void svi_exact_add(struct svi_exact_sum *s, double value, int sign);

/* The sum, to a unit in the last place; equal for equal sets of values, whatever was added and removed
 * before.
 */
double svi_exact_value(const struct svi_exact_sum *s);

#endif
