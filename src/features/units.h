/* units.h: in what the columns of a stream are measured, by their names: a reader of text finds it (23.5 °C),
 * lines for people print it. Columns without a unit are not among them. All engines of a stream have the same
 * ones. */
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

/* The column has this unit from here on. SVS_LIMIT (`most` columns have one), SVS_NO_MEMORY. */
svs_code svi_units_set(struct svi_units *u, const char *column, const char *unit, int most, svs_error *err);

/* NULL: it has none. `u` and `column` may be NULL. */
const char *svi_units_find(const struct svi_units *u, const char *column);

/* `most`: as above. */
void svi_units_archive(struct svi_archive *a, struct svi_units *u, int most);

#endif
