/* units.h: the units of a stream's columns, by name: a reader of text finds them (23.5 °C), lines for people
 * print them. Columns without a unit are not listed. All engines of a stream share one set. */
#ifndef SVI_UNITS_H
#define SVI_UNITS_H

#include "base/archive.h"
#include "data/quantity.h"

struct svi_unit {
    char column[SVS_NAME_MAX + 1], unit[SVI_UNIT_MAX + 1];
};

struct svi_units {
    struct svi_unit *unit; /* owned */
    int64_t count, capacity;
};

void svi_units_clear(struct svi_units *u);

/* Sets the unit of a column. SVS_LIMIT (`max_units` columns have one), SVS_NO_MEMORY. */
svs_code svi_units_set(struct svi_units *u, const char *column, const char *unit, int max_units,
                       svs_error *err);

/* The unit of the column; NULL: none. `u` and `column` may be NULL. */
const char *svi_units_find(const struct svi_units *u, const char *column);

/* Archives the units; `max_units` bounds what is loaded. */
void svi_units_archive(struct svi_archive *a, struct svi_units *u, int max_units);

#endif
