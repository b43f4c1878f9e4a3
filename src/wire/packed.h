/* packed.h: packed numbers of the wire (ext 1 and 2, little-endian) as a row of doubles. */
#ifndef SVI_PACKED_H
#define SVI_PACKED_H

#include <stdbool.h>
#include <stdint.h>

/* The exponent bits of a double: all set in NaN and the infinities alone, so that one more of the lowest of
 * them carries into the sign. Of several numbers the sums are or-ed, and looked at once. */
#define SVI_EXPONENT 0x7ff0000000000000u
#define SVI_SIGN     0x8000000000000000u
static inline uint64_t svi_carry_of(uint64_t bits) {
    return (bits & ~SVI_SIGN) + (SVI_EXPONENT & -SVI_EXPONENT);
}

/* n numbers at `from`. False: one of them is not finite. */
bool svi_packed_float64(const uint8_t *from, int n, double *row);
bool svi_packed_float32(const uint8_t *from, int n, double *row);

#endif
