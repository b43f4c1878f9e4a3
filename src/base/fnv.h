/* fnv.h: FNV-1a, 64 bits (Fowler, Noll, Vo): a hash of short texts. Collisions can be constructed: users of
 * this hash must tolerate them. */
#ifndef SVI_FNV_H
#define SVI_FNV_H

#include <stddef.h>
#include <stdint.h>

#define SVI_FNV_SEED  UINT64_C(14695981039346656037)
#define SVI_FNV_PRIME UINT64_C(1099511628211)

/* `h`: SVI_FNV_SEED, or the hash of the bytes before these. */
static inline uint64_t svi_fnv(uint64_t h, const void *bytes, size_t length) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < length; i++)
        h = (h ^ b[i]) * SVI_FNV_PRIME;
    return h;
}

/* Mixes the high bits into the low ones, which an index uses. */
static inline uint64_t svi_fnv_fold(uint64_t h) {
    return h ^ h >> 32;
}

#endif
