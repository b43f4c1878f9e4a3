/* random.h: a small seeded generator (SplitMix64: Steele, Lea, Flood 2014). The same seed gives the same
 * numbers on every machine. */
#ifndef SVI_RANDOM_H
#define SVI_RANDOM_H

#include <stdint.h>

struct svi_random {
    uint64_t state; /* the seed; any value */
};

static inline uint64_t svi_random_next(struct svi_random *r) {
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number from 0 to n - 1; its bias is below n / 2^32. */
static inline uint32_t svi_random_below(struct svi_random *r, uint32_t n) {
    return (uint32_t)(((svi_random_next(r) >> 32) * n) >> 32);
}

#endif
