/* number.h: decimal text -> double and int64, fast and exact.
 *
 * The text is read straight from a line buffer and without a length: it must be followed by a byte that
 * cannot be part of a number (a separator, a line's end, NUL), and SVI_NUMBER_PAD bytes after that one must
 * be readable, because digits are taken eight at a time.
 *
 * w 10^e is one rounding of exact operands when w <= 2^53 and |e| <= 22 (Clinger 1990), and one rounding of a
 * 128-bit product or quotient when w < 10^19 and |e| <= 27, because 5^27 < 2^63; strtod of the C locale does
 * the rest. The result is bit for bit what strtod gives. Rounding must be to nearest, as it is unless a
 * program changed it. */
#ifndef SVI_NUMBER_H
#define SVI_NUMBER_H

#include <stdint.h>

#define SVI_NUMBER_PAD 16

/* Reads [+-] digits [. digits] [e [+-] digits] (a digit before or after the point) into *value; infinite
 * when it overflows, 0 or subnormal when it underflows. Returns the first byte that is not part of it; `at`
 * itself, with *value as it was, when no number stands there. Neither space nor hexadecimal, inf or nan are
 * numbers here. */
const char *svi_number(const char *at, double *value);

/* Reads [+-] digits into *value. Returns as svi_number; `at` too when it does not fit. */
const char *svi_integer(const char *at, int64_t *value);

#endif
