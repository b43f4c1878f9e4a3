#include "features/units.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define MIN_UNITS 8

void svi_units_clear(struct svi_units *u) {
    svi_free(u->unit);
    *u = (struct svi_units){0};
}

/* A linear search: units are set once a file and printed rarely. */
static struct svi_unit *units_of(const struct svi_units *u, const char *column) {
    for (int64_t i = 0; i < u->count; i++)
        if (strcmp(u->unit[i].column, column) == 0)
            return &u->unit[i];
    return NULL;
}

svs_code svi_units_set(struct svi_units *u, const char *column, const char *unit, int max_units,
                       svs_error *err) {
    struct svi_unit *at = units_of(u, column);
    /* A known column changes its unit without needing space. */
    if (!at && u->count >= max_units)
        return svi_fail(err, SVS_LIMIT, "more than max.features = %d columns have units", max_units);
    if (!at && !svi_grow(&u->unit, u->count, &u->capacity, MIN_UNITS, sizeof *u->unit))
        return svi_fail_memory(err, "the units of columns");
    if (!at) {
        at = &u->unit[u->count++];
        snprintf(at->column, sizeof at->column, "%s", column);
    }
    snprintf(at->unit, sizeof at->unit, "%s", unit);
    return SVS_OK;
}

const char *svi_units_find(const struct svi_units *u, const char *column) {
    const struct svi_unit *at = u && column ? units_of(u, column) : NULL;
    return at ? at->unit : NULL;
}

void svi_units_archive(struct svi_archive *a, struct svi_units *u, int max_units) {
    int64_t count = u->count;
    char key[SVI_KEY_MAX];
    svi_archive_int64(a, "count", &count, 0, max_units);
    if (a->loading)
        u->count = 0;
    for (int64_t i = 0; i < count && svi_archive_ok(a); i++) {
        /* By a copy: on loading, an entry is only added once it is known to be valid. */
        struct svi_unit one = {{0}, {0}};
        if (!a->loading)
            one = u->unit[i];
        svi_archive_text(a, svi_archive_key(key, "column", (int)i), one.column, sizeof one.column);
        svi_archive_text(a, svi_archive_key(key, "unit", (int)i), one.unit, sizeof one.unit);
        if (a->loading && svi_archive_check(a, one.column[0] && one.unit[0] && !units_of(u, one.column),
                                            "the unit of a column is empty or a duplicate"))
            svi_units_set(u, one.column, one.unit, max_units, a->err);
    }
}
