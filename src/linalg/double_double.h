/* double_double.h: numbers of twice the precision, as the sum of two doubles, of which the second is at most
 * half a unit in the last place of the first (Dekker 1971, "A floating-point technique for extending the
 * available precision", Numer. Math. 18, 224-242). Sizes up to 1e290. Needs a compiler that keeps the order
 * of operations: no -ffast-math. */
#ifndef SVI_DOUBLE_DOUBLE_H
#define SVI_DOUBLE_DOUBLE_H

struct svi_dd {
    double high, low;
};

/* The upper 26 bits of v. */
static inline double svi_upper_half(double v) {
    const double c = 134217729.0 * v; /* 2^27 + 1 */
    return c - (c - v);
}

/* a + b without rounding, for any order of sizes. */
static inline struct svi_dd svi_two_sum(double a, double b) {
    const double s = a + b, part = s - a;
    return (struct svi_dd){s, (a - (s - part)) + (b - part)};
}

/* a b without rounding. */
static inline struct svi_dd svi_two_product(double a, double b) {
    const double p = a * b, ah = svi_upper_half(a), al = a - ah, bh = svi_upper_half(b), bl = b - bh;
    return (struct svi_dd){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

/* Sums and products of double doubles; the result is rounded once, to twice the precision. */
static inline struct svi_dd svi_dd_add(struct svi_dd a, struct svi_dd b) {
    const struct svi_dd s = svi_two_sum(a.high, b.high);
    return svi_two_sum(s.high, s.low + (a.low + b.low));
}

static inline struct svi_dd svi_dd_times(struct svi_dd a, double b) {
    const struct svi_dd p = svi_two_product(a.high, b);
    return svi_two_sum(p.high, p.low + a.low * b);
}

static inline struct svi_dd svi_dd_minus(struct svi_dd a) {
    return (struct svi_dd){-a.high, -a.low};
}

#endif
