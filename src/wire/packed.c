#include "wire/packed.h"

#include <endian.h>
#include <string.h>

#include "base/wide.h"

#define LOWEST_32 0x00800000u /* lowest bit of the exponent of a float */
#define SIGN_32   0x80000000u

/* SVI_WIDE compiles a loop for several instruction sets: no branch inside, one test at the end. */
SVI_WIDE
static bool packed_float64(const uint8_t *from, int n, double *restrict row) {
    uint64_t carry = 0;
    for (int i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, from + 8 * (size_t)i, sizeof bits);
        bits = le64toh(bits);
        carry |= svi_carry_of(bits);
        memcpy(&row[i], &bits, sizeof bits);
    }
    return !(carry & SVI_SIGN);
}

SVI_WIDE
static bool packed_float32(const uint8_t *from, int n, double *restrict row) {
    uint32_t carry = 0;
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        float v;
        memcpy(&bits, from + 4 * (size_t)i, sizeof bits);
        bits = le32toh(bits);
        memcpy(&v, &bits, sizeof v);
        carry |= (bits & ~SIGN_32) + LOWEST_32;
        row[i] = v;
    }
    return !(carry & SIGN_32);
}

bool svi_packed_float64(const uint8_t *from, int n, double *restrict row) {
    return packed_float64(from, n, row);
}

bool svi_packed_float32(const uint8_t *from, int n, double *restrict row) {
    return packed_float32(from, n, row);
}
