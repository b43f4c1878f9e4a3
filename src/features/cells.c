#include "features/cells.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"

void svi_cells_clear(struct svi_cells *c) {
    svi_free(c->chosen);
    svi_free(c->cell);
    svi_free(c->place);
    *c = (struct svi_cells){0};
}

/* Reserves the chosen cells. They are separate from the ordered ones, which are made from them. */
static svs_code cells_reserve_chosen(struct svi_cells *c, int count, svs_error *err) {
    if (count <= c->chosen_capacity)
        return SVS_OK;
    svi_free(c->chosen);
    c->chosen = svi_alloc_array((size_t)count, sizeof *c->chosen);
    c->chosen_capacity = c->chosen ? count : 0;
    return c->chosen ? SVS_OK : svi_fail_memory(err, "the columns of a row");
}

static svs_code cells_reserve(struct svi_cells *c, int count, svs_error *err) {
    if (count <= c->capacity)
        return SVS_OK;
    /* The old content is rebuilt for each row, so nothing is copied; `place` is invalid from here on. */
    svi_free(c->cell);
    svi_free(c->place);
    c->cell = svi_alloc_array((size_t)count, sizeof *c->cell);
    c->place = svi_alloc_array((size_t)count, sizeof *c->place);
    c->capacity = c->cell && c->place ? count : 0;
    c->listed = 0;
    return c->capacity > 0 ? SVS_OK : svi_fail_memory(err, "the columns of a row");
}

svs_code svi_cells_choose(struct svi_cells *c, const struct svi_shape *s, struct svi_message *m,
                          svs_error *err) {
    int count = 0;
    /* Without fixed names every column is wanted. */
    if (!s->fixed_names || !m->cells)
        return SVS_OK;
    if (cells_reserve_chosen(c, m->cell_count, err) != SVS_OK)
        return err->code;
    for (int i = 0; i < m->cell_count; i++)
        if (svs_features_find(s->names, m->cells[i].name, m->cells[i].name_length) >= 0)
            c->chosen[count++] = m->cells[i];
    m->cells = c->chosen;
    m->cell_count = count;
    return SVS_OK;
}

svs_code svi_cells_order(struct svi_cells *c, const struct svi_schema *s, struct svi_message *m,
                         svs_error *err) {
    const int columns = svi_schema_columns(s);
    /* A list of cells stays the same for a whole file, so the places are looked up once, and again after the
     * schema changed. */
    const bool same = c->listed == m->cell_count && c->changes == svi_schema_changes(s);
    if (cells_reserve(c, columns > m->cell_count ? columns : m->cell_count, err) != SVS_OK)
        return err->code;
    for (int i = 0; !same && i < m->cell_count; i++) {
        c->place[i] = svi_schema_find(s, m->cells[i].name, m->cells[i].name_length, i);
        /* A column that the stream does not have: the file does not fit, and its columns are listed. */
        if (c->place[i] < 0)
            return svi_schema_refuse_columns(s, m, false, err);
    }
    c->listed = m->cell_count;
    c->changes = svi_schema_changes(s);
    /* First everything is missing, then the row's cells overwrite it: a column of the stream need not be in
     * the file. */
    for (int j = 0; j < columns; j++)
        c->cell[j] = (struct svi_cell){.kind = SVI_CELL_MISSING};
    for (int i = 0; i < m->cell_count; i++)
        c->cell[c->place[i]] = m->cells[i];
    m->cells = c->cell;
    m->cell_count = columns;
    return SVS_OK;
}

enum svi_cell_kind svi_cells_known(const void *schema, const char *name, size_t length) {
    const struct svi_schema *s = schema;
    const int column = svi_schema_find(s, name, length, 0);
    const enum svi_column_kind kind = column < 0 ? SVI_COLUMN_OPEN : svi_schema_kind(s, column);
    return kind == SVI_COLUMN_NUMBER     ? SVI_CELL_NUMBER
           : kind == SVI_COLUMN_CATEGORY ? SVI_CELL_WORD
                                         : SVI_CELL_MISSING;
}

svs_code svi_cells_note_unused(struct svi_schema *s, const svi_reader *r, svs_error *err) {
    /* Pass 0: columns without a use. Pass 1, only in a mixed schema: those of ids, times and the like. */
    for (int taken = 0; taken <= (s->columns != NULL); taken++) {
        const char *name;
        for (int at = 0; (name = svi_reader_unused(r, taken, &at));) {
            /* A full schema is no reason to refuse the file; a lack of memory is. */
            svs_error why = {0};
            if (svi_schema_ignore(s, name, &why) == SVS_NO_MEMORY)
                return svi_fail_memory(err, "the columns of a file");
        }
    }
    return SVS_OK;
}

svs_code svi_cells_note_units(struct svi_schema *s, const svi_reader *r, svs_error *err) {
    const char *name, *unit;
    /* A full list of units is no error either. */
    svs_error why = {0};
    for (int at = 0; s->o.units && (name = svi_reader_united(r, &unit, &at));)
        if (svi_units_set(s->o.units, name, unit, s->o.max_features, &why) == SVS_NO_MEMORY)
            return svi_fail(err, SVS_NO_MEMORY, "%s", why.text);
    return SVS_OK;
}
