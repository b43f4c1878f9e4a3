/* cells.h: turns the cells of a reader into those that a producer sends: only the wanted columns, in the
 * order of a stream's columns. */
#ifndef SVI_CELLS_H
#define SVI_CELLS_H

#include "data/reader.h"
#include "features/schema.h"

struct svi_cells {
    struct svi_cell *chosen; /* cells of wanted columns; owned */
    int chosen_capacity;
    struct svi_cell *cell; /* in the order of the stream's columns; owned */
    int32_t *place;        /* by cell of the reader's list: its column; owned */
    int capacity, listed;  /* capacity of cell and place; cells that `place` is valid for, 0 = none */
    uint64_t changes;      /* svi_schema_changes when `place` was made */
};

void svi_cells_clear(struct svi_cells *c);

/* Drops the cells that the fixed names of the shape do not include. SVS_NO_MEMORY. */
svs_code svi_cells_choose(struct svi_cells *c, const struct svi_shape *s, struct svi_message *m,
                          svs_error *err);

/* Puts listed cells into the order of the schema's columns; a column without a cell is missing.
 * SVS_WRONG_COLUMNS, with both lists: a cell has no column; SVS_NO_MEMORY. */
svs_code svi_cells_order(struct svi_cells *c, const struct svi_schema *s, struct svi_message *m,
                         svs_error *err);

/* What the schema `schema` knows about a column, as svi_reader_options.known: numbers, words, or missing: no
 * such column, or no value yet. */
enum svi_cell_kind svi_cells_known(const void *schema, const char *name, size_t length);

/* Notes in the schema, as far as the limit allows, the columns that the reader does not use, so that a model
 * knows them; and those of ids, times, weights and keys if it tracks columns at all. SVS_NO_MEMORY. */
svs_code svi_cells_note_unused(struct svi_schema *s, const svi_reader *r, svs_error *err);

/* Notes the units that the reader found, as far as the limit allows; those of other columns stay.
 * SVS_NO_MEMORY. */
svs_code svi_cells_note_units(struct svi_schema *s, const svi_reader *r, svs_error *err);

#endif
