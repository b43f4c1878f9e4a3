/* The schema of the columns of all keys, for the sums record of a fleet (fleet_sums.c).
 *
 * Each key has a schema of its own. Keys meet columns and words at different times, so the same
 * feature has another number in each. No key needs to know all of them. The record numbers features
 * by the fleet's order, and its schema is made by name. First are the columns as the key of the
 * last sample has them, then what other keys have in addition. The names of their features give
 * that, so neither the keys out of memory nor those of an earlier process are needed. `x=a`, exempt
 * from scaling, is the value a of the category x. Any other name is that of a column of numbers. A
 * feature may be 0 in all rows that are held, because its column's values were all missing or its
 * key was dropped. It then shows nothing of the column's kind.
 *
 * A column of numbers in one key that is a category in another cannot be described. Neither can a
 * feature that two categories might have. A record with either has no schema.
 *
 * Read svi_fleet_sums_schema first, then union_owner. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "features/model_schema.h"
#include "fleet/fleet_internal.h"
#include "wire/schema_map.h"

/* Owners of a feature besides a column, numbered from 0. */
#define OF_CALENDAR (-1)
#define OF_NONE     (-2) /* no column needs it */
#define OF_TWO      (-3) /* keys contradict each other */
#define OF_FAILED   (-4) /* no memory */

struct schema_union {
    const struct svi_schema *base; /* of the key of the last sample */
    const struct svi_sums *record;
    struct svi_model_schema all;
    int32_t *owner;     /* [d] */
    bool *value;        /* [d] exempt from scaling, and not by its name */
    int calendar, days; /* its first feature, -1 = none; how many it has */
    bool mixed;         /* a column beyond those of the base is a category */
};

/* ---- columns */

static enum svi_column_kind union_kind(const struct schema_union *u, int column) {
    return u->all.schema.column[column].now.kind;
}

/* Decides the kind of a column; false: it is another one. */
static bool union_decide(struct schema_union *u, int column, enum svi_column_kind kind) {
    struct svi_column *c = &u->all.schema.column[column];
    if (c->now.kind == SVI_COLUMN_OPEN)
        c->now.kind = c->kept.kind = kind;
    return c->now.kind == kind;
}

static int union_find(const struct schema_union *u, const char *name, size_t length) {
    return svs_features_find(u->all.schema.columns, name, length);
}

static int union_add(struct schema_union *u, const char *name, size_t length, enum svi_column_kind kind,
                     svs_error *err) {
    char text[SVS_NAME_MAX + 1];
    memcpy(text, name, length);
    text[length] = '\0';
    const int column = svi_model_schema_column(&u->all, text, kind, err);
    return column >= 0 ? column : OF_FAILED;
}

/* ---- owners */

/* Does any row have another value than 0? */
static bool union_uses(const struct schema_union *u, int j) {
    const struct svi_window_sums *s = &u->record->sums;
    return s->center[j] != 0 || s->square[svi_sums_packed(j) + (size_t)j] != 0;
}

/* The column of a feature that has its name. */
static int union_own_column(struct schema_union *u, int j, int column) {
    if (!union_uses(u, j))
        return union_kind(u, column) == SVI_COLUMN_NUMBER ? column : OF_NONE;
    return union_decide(u, column, SVI_COLUMN_NUMBER) ? column : OF_TWO;
}

/* The category that has the value. A column's name may have a = of its own, so each is looked at. */
static int union_category(struct schema_union *u, int j, svs_error *err) {
    const char *name = u->record->features[j], *first = strchr(name, '=');
    int found = OF_NONE;
    for (const char *at = first; at; at = strchr(at + 1, '=')) {
        const int column = union_find(u, name, (size_t)(at - name));
        if (column < 0)
            continue;
        if (found != OF_NONE || !union_decide(u, column, SVI_COLUMN_CATEGORY))
            return union_uses(u, j) ? OF_TWO : OF_NONE;
        found = column;
    }
    u->mixed = true;
    return found != OF_NONE ? found : union_add(u, name, (size_t)(first - name), SVI_COLUMN_CATEGORY, err);
}

static int union_owner(struct schema_union *u, int j, svs_error *err) {
    const char *name = u->record->features[j];
    const struct svi_schema *base = u->base;
    const size_t length = strlen(name);
    const int known = svs_features_find(base->shape.names, name, length),
              column = union_find(u, name, length);
    if (known >= 0 && base->columns && (base->owner[known] < 0 || base->one_hot[known]))
        return base->owner[known] < 0 ? OF_CALENDAR : base->owner[known];
    if (known < 0 && u->value[j])
        return strchr(name, '=') > name ? union_category(u, j, err) : OF_TWO;
    if (column >= 0)
        return union_own_column(u, j, column);
    const bool used = union_uses(u, j);
    const int added = union_add(u, name, length, used ? SVI_COLUMN_NUMBER : SVI_COLUMN_OPEN, err);
    return used || added == OF_FAILED ? added : OF_NONE;
}

/* ---- the union */

static svs_code union_begin(struct schema_union *u, svs_error *err) {
    const struct svi_sums *r = u->record;
    const struct svi_schema *base = u->base;
    const int columns = svi_schema_columns(base), d = r->sums.d;
    SVI_TRY(svi_model_schema_init(&u->all, r->features, d, columns + d, err));
    u->owner = svi_alloc_array((size_t)d + 1, sizeof *u->owner);
    u->value = svi_alloc_array((size_t)d + 1, sizeof *u->value);
    if (!u->owner || !u->value)
        return svi_fail_memory(err, "the columns of all keys");
    for (int c = 0; c < columns; c++)
        if (svi_model_schema_column(&u->all, svi_schema_column_name(base, c), svi_schema_kind(base, c), err) <
            0)
            return err->code;
    for (int i = 0; i < r->unscaled_count; i++) {
        const char *name = r->features[r->unscaled[i]];
        u->value[r->unscaled[i]] =
            !base->unscaled || svs_features_find(base->unscaled, name, strlen(name)) < 0;
    }
    u->all.schema.o.missing = base->o.missing;
    u->all.schema.o.hash = base->o.hash;
    return SVS_OK;
}

/* The calendar's features follow each other, in each key and so in the fleet. */
static bool union_calendar_fits(const struct schema_union *u) {
    const struct svi_schema *base = u->base;
    const struct svi_sums *r = u->record;
    for (int i = 0; i < u->days; i++) {
        const char *name = svs_features_name(base->shape.names, base->calendar + i);
        if (u->calendar + i >= r->sums.d || !name || strcmp(r->features[u->calendar + i], name) != 0)
            return false;
    }
    return true;
}

/* All owners first: which kind a column has may be known only by its last feature. *fits: no keys contradict
 * each other. */
static svs_code union_fill(struct schema_union *u, bool *fits, svs_error *err) {
    u->calendar = -1;
    for (int j = 0; j < u->record->sums.d; j++) {
        u->owner[j] = union_owner(u, j, err);
        if (u->owner[j] == OF_FAILED)
            return err->code;
        if (u->owner[j] == OF_TWO)
            return SVS_OK;
        u->days += u->owner[j] == OF_CALENDAR;
        u->calendar = u->calendar < 0 && u->owner[j] == OF_CALENDAR ? j : u->calendar;
    }
    for (int j = 0; j < u->record->sums.d; j++)
        if (u->owner[j] >= 0)
            SVI_TRY(svi_model_schema_own(&u->all, u->owner[j], j, err));
    *fits = u->days == 0 || union_calendar_fits(u);
    return SVS_OK;
}

static svs_code union_encode(struct schema_union *u, const char *zone, struct svi_bytes *out,
                             svs_error *err) {
    const struct svi_schema *base = u->base;
    const bool means = base->o.missing == SVI_MISSING_MEAN || base->o.missing == SVI_MISSING_AUTO;
    if (u->days > 0)
        SVI_TRY(svi_model_schema_calendar(&u->all, base->calendar_day, base->calendar_week,
                                          zone && *zone ? zone : "UTC", u->calendar, err));
    if (svi_schema_encode(&u->all.schema, u->record->sums.d, means ? u->record->sums.center : NULL, zone,
                          out) != SVS_OK)
        return svi_fail_memory(err, "the schema of all keys");
    return SVS_OK;
}

svs_code svi_fleet_sums_schema(const svi_engine *e, struct svi_sums *r, struct svi_bytes *out,
                               svs_error *err) {
    struct schema_union u = {.base = &e->schema, .record = r};
    const bool had = r->schema != NULL;
    bool fits = false;
    r->schema = NULL;
    r->schema_size = 0;
    out->size = 0;
    if (!r->features || r->sums.d < 1)
        return SVS_OK;
    svs_code code = union_begin(&u, err);
    if (code == SVS_OK)
        code = union_fill(&u, &fits, err);
    /* Columns of numbers alone are their features, and need no schema. */
    if (code == SVS_OK && fits && (had || u.mixed))
        code = union_encode(&u, e->s->zone, out, err);
    if (code == SVS_OK && out->size > 0) {
        r->schema = out->data;
        r->schema_size = out->size;
    }
    svi_model_schema_clear(&u.all);
    svi_free(u.owner);
    svi_free(u.value);
    return code;
}
