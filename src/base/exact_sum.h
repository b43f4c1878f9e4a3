/* exact_sum.h: a sum of doubles without rounding, so that what is taken out again leaves nothing behind,
 * however large it was, and the order does not matter.
 *
 * A fixed-point number of SVI_EXACT_LIMBS limbs that count 2^(32 k - SVI_EXACT_DOWN) each. A double touches
 * three of them; carries are left in the limbs, which have 31 bits to spare, and are moved up now and then.
 */
#ifndef SVI_EXACT_SUM_H
#define SVI_EXACT_SUM_H

#include <stdint.h>

#define SVI_EXACT_DOWN  1088 /* the smallest double is 2^-1074 */
#define SVI_EXACT_LIMBS 48   /* sums below 2^447 */

/* Zeroed: nothing is in. */
struct svi_exact_sum {
    int64_t limb[SVI_EXACT_LIMBS];
    int64_t changes; /* since the last carries */
};

/* sign (1 or -1) times value, which is finite and at most 1e100 in size. */
void svi_exact_add(struct svi_exact_sum *s, double value, int sign);

/* The sum, to a unit in the last place; the same for the same values whatever came and went. */
double svi_exact_value(const struct svi_exact_sum *s);

#endif
