/* The loops of a fit (boost_loops.h), compiled once for each instruction set; LOOPS is the name of the table.
 */
#include <string.h>

#include "linalg/exponential.h"
#include "trees/boost_loops.h"

#define LANES     SVI_BOOST_LANES
#define SCORE_MAX 30.0
#define BINS_MAX  256

typedef double loops_real __attribute__((vector_size(8 * LANES)));
typedef long long loops_bits __attribute__((vector_size(8 * LANES)));

static inline __attribute__((always_inline)) loops_real loops_all(double c) {
    return (loops_real){c, c, c, c, c, c, c, c};
}

static inline __attribute__((always_inline)) loops_bits loops_all_bits(long long c) {
    return (loops_bits){c, c, c, c, c, c, c, c};
}

SVI_EXPONENTIAL(loops_exp, loops_real, loops_bits, loops_all)

static inline __attribute__((always_inline)) loops_real loops_load(const double *at) {
    loops_real v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline __attribute__((always_inline)) void loops_store(double *at, loops_real v) {
    memcpy(at, &v, sizeof v);
}

static inline __attribute__((always_inline)) loops_real loops_choose(loops_bits mask, loops_real a,
                                                                     loops_real b) {
    return (loops_real)((mask & (loops_bits)a) | (~mask & (loops_bits)b));
}

static inline __attribute__((always_inline)) loops_real loops_clip(loops_real v, double most) {
    v = loops_choose(v > loops_all(most), loops_all(most), v);
    return loops_choose(v < loops_all(-most), loops_all(-most), v);
}

static double loops_sum(loops_real v) {
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

/* ---- rows */

enum { LOGISTIC, SHARES, SQUARES };

static inline __attribute__((always_inline)) void loops_slopes(struct svi_boost_slopes *s, int kind,
                                                               double own, double scale) {
    loops_real g_sum = loops_all(0), h_sum = loops_all(0);
    const loops_real one = loops_all(1);
    for (int64_t i = 0; i < s->n; i += LANES) {
        const loops_real w = loops_load(s->w + i);
        loops_real y = loops_load(s->y + i), p = loops_load(s->score + i), h = w;
        if (kind == LOGISTIC)
            p = one / (one + loops_exp(-loops_clip(p, SCORE_MAX)));
        if (kind == SHARES)
            y = loops_choose(y == loops_all(own), one, loops_all(0));
        if (kind != SQUARES)
            h = w * (p * (one - p) * loops_all(scale) + loops_all(s->least));
        const loops_real g = w * (p - y);
        loops_store(s->g + i, g);
        loops_store(s->h + i, h);
        g_sum += loops_choose(g < loops_all(0), -g, g);
        h_sum += h;
    }
    s->g_sum = loops_sum(g_sum);
    s->h_sum = loops_sum(h_sum);
}

static void loops_logistic(struct svi_boost_slopes *s) {
    loops_slopes(s, LOGISTIC, 0, 1);
}

static void loops_shares(struct svi_boost_slopes *s, double own, double scale) {
    loops_slopes(s, SHARES, own, scale);
}

static void loops_squares(struct svi_boost_slopes *s) {
    loops_slopes(s, SQUARES, 0, 1);
}

static void loops_softmax(const double *s, int64_t n, int classes, double *p) {
    for (int64_t i = 0; i < n; i += LANES) {
        loops_real top = loops_load(s + i), sum = loops_all(0);
        for (int c = 1; c < classes; c++) {
            const loops_real v = loops_load(s + c * n + i);
            top = loops_choose(v > top, v, top);
        }
        for (int c = 0; c < classes; c++) {
            const loops_real e = loops_exp(loops_clip(loops_load(s + c * n + i) - top, 2 * SCORE_MAX));
            loops_store(p + c * n + i, e);
            sum += e;
        }
        const loops_real share = loops_all(1) / sum;
        for (int c = 0; c < classes; c++)
            loops_store(p + c * n + i, loops_load(p + c * n + i) * share);
    }
}

/* Adding 1.5 x 2^52 rounds to a whole number and leaves it in the last 32 bits. */
static void loops_pack(const struct svi_boost_slopes *s, double to_g, double to_h, uint64_t *pair) {
    const loops_real round = loops_all(0x1.8p52);
    for (int64_t i = 0; i < s->n; i += LANES) {
        const loops_bits g = (loops_bits)(loops_load(s->g + i) * loops_all(to_g) + round);
        const loops_bits h = (loops_bits)(loops_load(s->h + i) * loops_all(to_h) + round);
        const loops_bits both = (g << 32) | (h & loops_all_bits(0xffffffff));
        memcpy(pair + i, &both, sizeof both);
    }
}

/* ---- bins */

static void loops_subtract(uint64_t *restrict whole, const uint64_t *restrict part, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        whole[i] -= part[i];
}

/* The halves of packed sums as doubles: their bits below 2^52, the upper one moved by 2^31. */
static inline __attribute__((always_inline)) loops_real loops_low(loops_bits sum) {
    return (loops_real)((sum & loops_all_bits(0xffffffff)) | (loops_bits)loops_all(0x1p52)) -
           loops_all(0x1p52);
}

static inline __attribute__((always_inline)) loops_real loops_high(loops_bits sum) {
    const loops_bits moved = ((sum >> 32) & loops_all_bits(0xffffffff)) ^ loops_all_bits(0x80000000);
    return (loops_real)(moved | (loops_bits)loops_all(0x1p52)) - loops_all(0x1p52 + 0x1p31);
}

static void loops_scan(struct svi_boost_scan *s, const uint64_t *sums, int count, uint64_t start) {
    uint64_t left[BINS_MAX + LANES];
    loops_real best = loops_all(s->gain);
    loops_bits at = loops_all_bits(-1), bin = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int b = 0; b < count; b++)
        left[b] = start += sums[b];
    for (int b = count; b % LANES != 0; b++)
        left[b] = start; /* no better than the last bin, and later */
    for (int b = 0; b < count; b += LANES, bin += loops_all_bits(LANES)) {
        loops_bits sum;
        memcpy(&sum, left + b, sizeof sum);
        const loops_real gl = loops_high(sum), hl = loops_low(sum), gr = loops_all(s->g) - gl,
                         hr = loops_all(s->h) - hl;
        const loops_real dl = hl + loops_all(s->ridge), dr = hr + loops_all(s->ridge);
        const loops_real gain = (gl * gl * dr + gr * gr * dl) / (dl * dr);
        const loops_bits better =
            (hl >= loops_all(s->least_h)) & (hr >= loops_all(s->least_h)) & (gain > best);
        best = loops_choose(better, gain, best);
        at = (better & bin) | (~better & at);
    }
    int found = -1;
    for (int l = 0; l < LANES; l++)
        if (at[l] >= 0 &&
            (found < 0 || best[l] > best[found] || (best[l] == best[found] && at[l] < at[found])))
            found = l;
    if (found >= 0) {
        s->gain = best[found];
        s->bin = (int)at[found];
    }
}

const struct svi_boost_loops LOOPS = {loops_logistic, loops_shares,   loops_squares, loops_softmax,
                                      loops_pack,     loops_subtract, loops_scan};
