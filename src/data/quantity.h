/* quantity.h: numbers as people write them, with marks between thousands, a decimal comma, or a unit:
 *
 *     1,234.50   $1,234.50   -$5   4.604,35 €   33,4 %   23.5 °C   73.1MB   60 km/h
 *
 * Thousands are groups of three digits; the first group has one to three and does not begin with 0.
 * The mark between them is a comma where the decimal mark is a point, and a point where it is a
 * comma. A unit is a sign of money before or after the digits, or a text of up to SVI_UNIT_MAX
 * bytes after them. Such a text has letters, %, ° and other non-ASCII characters, with ^ and /
 * between them and at most one digit at the end (m/s2). Prefixes belong to the unit: 1 MB is not
 * 1000 kB. */
#ifndef SVI_QUANTITY_H
#define SVI_QUANTITY_H

#include <stdbool.h>

#include "data/span.h"

#define SVI_UNIT_MAX 15 /* bytes */

struct svi_quantity {
    double value;
    struct svi_span unit; /* empty: the quantity has no unit; a view */
    bool money;           /* the unit is a sign of money */
    bool grouped;         /* it has marks between thousands */
    bool fraction;        /* it has a decimal mark */
};

/* Reads the whole span as a quantity; plain numbers are quantities too. `comma`: the decimal mark is a comma.
 * An overflow gives infinity. False: it is not a quantity. */
bool svi_quantity_read(struct svi_span s, bool comma, struct svi_quantity *q);

/* Does the quantity have the unit of a column ("" = none)? A sign of money, and a 0, may omit it: 5 among $5
 * is $5, but 12 among 12% is not 12%. */
bool svi_quantity_has_unit(const struct svi_quantity *q, const char *unit);

/* Is the unit a sign of money? */
bool svi_unit_is_money(const char *unit);

#endif
