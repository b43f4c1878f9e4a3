/* dd.h: further operations on double doubles (linalg/double_double.h): products of two, quotient, root. Each
 * result is right to some units of 2^-102. */
#ifndef SVI_MERGE_DD_H
#define SVI_MERGE_DD_H

#include <math.h>

#include "linalg/double_double.h"

static inline struct svi_dd svi_dd_plus(struct svi_dd a, double b) {
    const struct svi_dd s = svi_two_sum(a.high, b);
    return svi_two_sum(s.high, s.low + a.low);
}

static inline struct svi_dd svi_dd_product(struct svi_dd a, struct svi_dd b) {
    const struct svi_dd p = svi_two_product(a.high, b.high);
    return svi_two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static inline struct svi_dd svi_dd_less(struct svi_dd a, struct svi_dd b) {
    return svi_dd_add(a, svi_dd_minus(b));
}

static inline struct svi_dd svi_dd_quotient(struct svi_dd a, struct svi_dd b) {
    const double first = a.high / b.high;
    const struct svi_dd rest = svi_dd_less(a, svi_dd_times(b, first));
    return svi_two_sum(first, rest.high / b.high);
}

/* a > 0 */
static inline struct svi_dd svi_dd_root(struct svi_dd a) {
    const double first = sqrt(a.high);
    const struct svi_dd rest = svi_dd_less(a, svi_two_product(first, first));
    return svi_two_sum(first, rest.high / (2 * first));
}

#endif
