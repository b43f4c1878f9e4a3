/* Doubles as decimal text. */
#ifndef SVI_BASE_DECIMAL_H
#define SVI_BASE_DECIMAL_H

#include <stdbool.h>

#define SVI_DECIMAL_MAX 32 /* bytes of a text with its NUL */

/* The text of printf's %.{digits}g, NUL-terminated. 1 <= digits <= 17; any v. Returns its length. */
int svi_decimal_text(char out[SVI_DECIMAL_MAX], double v, int digits);

/* The text of %.15g if it reads back as v, otherwise that of %.17g, which always does: 0.1, not
 * 0.10000000000000001. `single`: v is a value of single precision and is read back as one; 7 and 9 digits. */
int svi_decimal_shortest(char out[SVI_DECIMAL_MAX], double v, bool single);

#endif
