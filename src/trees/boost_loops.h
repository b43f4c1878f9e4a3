/* boost_loops.h: the loops of a fit along rows and bins, eight numbers at a time. Multiplications and
 * additions are never fused, and each sum has one fixed order: every instruction set gives the same bits.
 *
 * Arrays of rows have whole eights; weights are 0 in the places after the last row, which therefore add
 * nothing. */
#ifndef SVI_BOOST_LOOPS_H
#define SVI_BOOST_LOOPS_H

#include <stdint.h>

#define SVI_BOOST_LANES 8

/* n rounded up to whole eights. */
static inline int64_t svi_boost_lanes_up(int64_t n) {
    return (n + SVI_BOOST_LANES - 1) & ~(int64_t)(SVI_BOOST_LANES - 1);
}

/* Gradients g and curvatures h of n rows, with their sums: of |g| and of h. A curvature is at least
 * `least` times the weight. */
struct svi_boost_slopes {
    int64_t n; /* whole eights */
    const double *w, *y, *score;
    double *g, *h;
    double least;
    double g_sum, h_sum; /* out */
};

/* The bins of a column in a leaf, and the sums of the leaf. */
struct svi_boost_scan {
    double g, h, ridge, least_h; /* of the leaf; of a side */
    double gain;                 /* in: what must be exceeded; out: the largest gain that exceeds it */
    int bin;                     /* out: unchanged without a split */
};

struct svi_boost_loops {
    /* g = w (p - y), h = w p (1 - p), p = 1 / (1 + exp(-score)), |score| at most 30. */
    void (*logistic)(struct svi_boost_slopes *s);
    /* The same with p = score, a probability, y = 1 where the label is `own`, and h times `scale`. */
    void (*shares)(struct svi_boost_slopes *s, double own, double scale);
    /* g = w (score - y), h = w. */
    void (*squares)(struct svi_boost_slopes *s);
    /* p_c = exp(s_c) / sum of them, by row: class c of row i is at c n + i. */
    void (*softmax)(const double *s, int64_t n, int classes, double *p);
    /* pair = (round(g to_g) << 32) + round(h to_h); |g to_g| below 2^31, h to_h below 2^32. */
    void (*pack)(const struct svi_boost_slopes *s, double to_g, double to_h, uint64_t *pair);
    void (*subtract)(uint64_t *whole, const uint64_t *part, int64_t n);
    /* The largest gain G_L^2 / (H_L + ridge) + G_R^2 / (H_R + ridge) among the first `count` <= 256 bins, the
     * first of equal ones; L are the bins up to it and `start`. */
    void (*scan)(struct svi_boost_scan *s, const uint64_t *sums, int count, uint64_t start);
};

/* The best table for this machine. */
const struct svi_boost_loops *svi_boost_loops_get(void);

extern const struct svi_boost_loops svi_boost_loops_generic;
#if defined(__x86_64__)
extern const struct svi_boost_loops svi_boost_loops_avx2, svi_boost_loops_avx512;
#endif

#endif
