/* nearest.h: the kernels of an exact search for near rows. A sketch of each row, 7 bits a coordinate, rules
 * out the rows that cannot be near; the others are measured in single precision.
 *
 * The sketch of a value x is q(x) = round(16 x), clipped to +-63. Clipping moves no two values further apart,
 * so with e(x) = |clip(x) - q(x) / 16| (norms over all coordinates)
 *
 *     |z - x| >= |q(z) - q(x)| / 16 - e(z) - e(x):
 *
 * a row whose sketch is further away than a bound is not among the nearest, and nothing is lost. Blocks of
 * SVI_NEAREST_ROWS rows are stored transposed: for each pair of coordinates 2 bytes of each row, so that one
 * instruction computes the squares of 16 rows and sums never cross a register. Sums have 16 bits: those over
 * a chunk of 32 coordinates wrap, sums of chunks saturate, and beyond 64 coordinates each chunk is shifted
 * right before it is added. All of that makes sums smaller only: they stay lower bounds. */
#ifndef SVI_NEAREST_H
#define SVI_NEAREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/alsvm.h"

#define SVI_NEAREST_ROWS  64   /* of a block */
#define SVI_NEAREST_PAIR  128  /* bytes of a block for two coordinates */
#define SVI_NEAREST_CHUNK 16   /* pairs of one 16-bit sum */
#define SVI_NEAREST_SCALE 16.f /* units of a sketch in 1: a power of two, so that e(x) is exact */
#define SVI_NEAREST_SIZE  1e9f /* bound of |x| in a row */

/* The start of chunk c in a block, in units of SVI_NEAREST_PAIR bytes. A chunk is 64 sums |x|^2 + 128 sum x
 * of the rows' sketches over it (modulo 2^16), then its pairs. */
static inline size_t svi_nearest_chunk_at(int c) {
    return (size_t)c * (SVI_NEAREST_CHUNK + 1);
}

/* The start of pair p, in the same units. */
static inline size_t svi_nearest_pair_at(int p) {
    return svi_nearest_chunk_at(p / SVI_NEAREST_CHUNK) + 1 + (size_t)(p % SVI_NEAREST_CHUNK);
}

struct svi_nearest_scan {
    const int8_t *sketch;
    size_t block;         /* bytes of a block */
    const int32_t *query; /* per pair of coordinates its two bytes + 64, twice */
    const uint16_t *norm; /* |q|^2 over each chunk, modulo 2^16 */
    int pairs;
    int known;      /* chunks that `begin` sums */
    int last;       /* chunks that `scan` sums: `known`, or all of them */
    int shift;      /* svi_nearest_shift */
    uint16_t *sums; /* per row of each block; 65535: the row is excluded */
};

/* Bits that each chunk's sum is shifted right for d coordinates. Rows of variance 1 have squared distances of
 * about 512 d units; twice that must fit 16 bits. */
static inline int svi_nearest_shift(int d) {
    int shift = 0;
    while (d >> shift > 64)
        shift++;
    return shift;
}

struct svi_nearest_kernels {
    svs_isa isa;
    /* The sketch of a row of `padded` values (aligned to 64, a multiple of 16) and e^2 in *error. False: a
     * value is not finite or larger than SVI_NEAREST_SIZE. */
    bool (*sketch)(const float *z, int padded, int8_t *to, float *error);
    /* Writes the sums of the blocks `from` to `to`, inclusive, over the first s->known chunks to s->sums. */
    void (*begin)(const struct svi_nearest_scan *s, int from, int to);
    /* A sum that at least k rows of these blocks do not exceed, and few others; 65535 when fewer rows have
     * one. */
    uint16_t (*lowest)(const struct svi_nearest_scan *s, int from, int to, int k);
    /* Searches the blocks `from`, from - 1, ... `to` for one with rows whose sums, over s->last chunks, are
     * at most `bound`. Returns its number and a bit for each such row in *mask (all bits when the bound
     * exceeds every sum); -1 when there is no such block. */
    int (*scan)(const struct svi_nearest_scan *s, int from, int to, double bound, uint64_t *mask);
    /* Squared distances of the rows of a block whose bit is set, in their order, stored without gaps: 16 sums
     * over the coordinates j, j + 16, ..., added in a fixed order. Rows and z as for `sketch`. */
    void (*distances)(const float *rows, size_t stride, uint64_t mask, const float *z, int padded, float *to);
};

extern const struct svi_nearest_kernels svi_nearest_generic;
#if defined(__x86_64__)
extern const struct svi_nearest_kernels svi_nearest_avx2, svi_nearest_avx512;
#endif

#endif
