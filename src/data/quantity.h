/* quantity.h: numbers as people write them, with marks between thousands, a decimal comma, or a unit:
 *
 *     1,234.50   $1,234.50   -$5   4.604,35 €   33,4 %   23.5 °C   73.1MB   60 km/h
 *
 * Thousands are in groups of three digits, the first of one to three that do not begin with 0. The mark
 * between them is a comma where the decimal mark is a point, and a point where it is a comma. A unit is a
 * sign of money before the digits or after them, or after them up to SVI_UNIT_MAX bytes of letters, %, ° and
 * what is not ASCII, with ^ and / between them and perhaps one digit at the end (m/s2). A prefix of a unit
 * belongs to it: 1 MB is no 1000 kB. */
#ifndef SVI_QUANTITY_H
#define SVI_QUANTITY_H

#include <stdbool.h>

#include "data/span.h"

#define SVI_UNIT_MAX 15 /* bytes */

struct svi_quantity {
    double value;
    struct svi_span unit; /* empty: there is none */
    bool money;           /* the unit is a sign of money */
    bool grouped;         /* there were marks between thousands */
    bool fraction;        /* there was a decimal mark */
};

/* A whole cell. `comma`: the decimal mark is a comma. Plain numbers are quantities, too. The value may be
 * infinite when it overflows. */
bool svi_quantity_read(struct svi_span s, bool comma, struct svi_quantity *q);

/* Has it the unit of a column? A sign of money, and 0, may go without: 5 among $5 is $5, but 12 among 12% is
 * not. `unit`: "" = none. */
bool svi_quantity_has_unit(const struct svi_quantity *q, const char *unit);

/* Is the unit a sign of money? */
bool svi_unit_is_money(const char *unit);

#endif
