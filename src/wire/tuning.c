#include "wire/tuning.h"

#include <math.h>

#include "base/fail.h"
#include "wire/fields.h"

/* The loss at one C: share of wrong predictions, or the rmse of a regression (`wrong` NaN). The noise is
 * unknown (nil) if it is not finite. */
static void put_tuning_row(struct svi_pack *p, const svs_tuning_row *row) {
    const bool regress = isnan(row->wrong);
    svi_pack_map(p, 5);
    svi_put_real(p, "C", row->C);
    svi_put_real(p, "squared", row->squared);
    if (regress)
        svi_put_real(p, "rmse", sqrt(row->squared));
    else
        svi_put_real(p, "wrong", row->wrong);
    svi_put_real(p, "gain", row->gain);
    svi_put_real(p, "noise", isfinite(row->noise) ? row->noise : NAN);
}

void svi_put_tuning(struct svi_pack *p, const svs_tuning *t) {
    svi_put_real(p, "C", t->row[t->present].C);
    svi_put_real(p, "best", t->row[t->best].C);
    svi_put_real(p, "gain", t->row[t->best].gain);
    svi_put_bool(p, "better", t->better);
    svi_put_int(p, "samples", t->samples);
    svi_put_int(p, "skipped", t->skipped);
    svi_put_array(p, "table", (size_t)t->count);
    for (int g = 0; g < t->count; g++)
        put_tuning_row(p, &t->row[g]);
}

struct tuning_parts {
    double C, best;
    int64_t samples, skipped;
    const uint8_t *better, *table;
};

static svs_code tuning_read_row(const uint8_t *map, const uint8_t *end, svs_tuning_row *row, svs_error *err) {
    static const struct svi_field fields[] = {SVI_FIELD(svs_tuning_row, C, REAL, 0, INFINITY),
                                              SVI_FIELD(svs_tuning_row, squared, REAL, 0, INFINITY),
                                              SVI_FIELD_OPTIONAL(svs_tuning_row, wrong, REAL, 0, 1),
                                              SVI_FIELD(svs_tuning_row, gain, REAL, -INFINITY, INFINITY),
                                              SVI_FIELD_OPTIONAL(svs_tuning_row, noise, REAL, 0, INFINITY)};
    *row = (svs_tuning_row){.wrong = NAN, .noise = INFINITY};
    return svi_fields_read("a row of the table of C", SVI_FIELDS(fields), map, end, row, err);
}

svs_code svi_tuning_read(const uint8_t *map, const uint8_t *end, svs_tuning *t, svs_error *err) {
    static const struct svi_field fields[] = {
        SVI_FIELD(struct tuning_parts, C, REAL, 0, INFINITY),
        SVI_FIELD(struct tuning_parts, best, REAL, 0, INFINITY),
        SVI_FIELD(struct tuning_parts, samples, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD(struct tuning_parts, skipped, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD(struct tuning_parts, better, ANY, 0, 0),
        SVI_FIELD(struct tuning_parts, table, ANY, 0, 0)};
    struct tuning_parts parts = {0};
    struct svi_item table, better;
    svs_code code = svi_fields_read("the reply about C", SVI_FIELDS(fields), map, end, &parts, err);
    if (code != SVS_OK)
        return code;
    /* Bool and array have no type in the table of fields: they are checked here. */
    svi_item_read(parts.better, &better);
    const uint8_t *at = svi_item_read(parts.table, &table);
    if (better.type != SVI_BOOL || table.type != SVI_ARRAY || table.length < 1 ||
        table.length > SVS_TUNING_MAX)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "the reply about C must have 1 to %d rows in `table`, and `better`", SVS_TUNING_MAX);
    *t = (svs_tuning){.count = (int)table.length,
                      .present = -1,
                      .best = -1,
                      .better = better.i != 0,
                      .samples = parts.samples,
                      .skipped = parts.skipped};
    /* present and best are sent as values of C; here they become rows of the table again. */
    for (int g = 0; g < t->count && code == SVS_OK; g++) {
        code = tuning_read_row(at, end, &t->row[g], err);
        svi_walk(&at, end, SVI_WALK_MAX);
        t->present = t->row[g].C == parts.C ? g : t->present;
        t->best = t->row[g].C == parts.best ? g : t->best;
    }
    if (code == SVS_OK && (t->present < 0 || t->best < 0))
        code = svi_fail(err, SVS_WRONG_TYPE, "the present C, or the best one, is not in the table of C");
    return code;
}
