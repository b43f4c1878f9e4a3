/* packed.h: decodes packed numbers of the wire (ext 1 and 2, little-endian) into a row of doubles. */
#ifndef SVI_PACKED_H
#define SVI_PACKED_H

#include <stdbool.h>
#include <stdint.h>

/* The exponent bits of a double are all set only in NaN and the infinities. So adding 1 to the exponent (its
 * lowest bit) carries into the sign bit exactly for them. The sums of many numbers are or-ed and tested once.
 */
#define SVI_EXPONENT 0x7ff0000000000000u
#define SVI_SIGN     0x8000000000000000u
static inline uint64_t svi_carry_of(uint64_t bits) {
    return (bits & ~SVI_SIGN) + (SVI_EXPONENT & -SVI_EXPONENT);
}

/* Decodes n numbers at `from` (not aligned) into row[n]. False: one of them is not finite; the row is written
 * all the same. */
bool svi_packed_float64(const uint8_t *from, int n, double *row);
bool svi_packed_float32(const uint8_t *from, int n, double *row);

#endif
