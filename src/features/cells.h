/* cells.h: the cells of a reader put as a producer sends them: those of the columns that are wanted, and in
 * the order of a stream's columns. */
#ifndef SVI_CELLS_H
#define SVI_CELLS_H

#include "data/reader.h"
#include "features/schema.h"

struct svi_cells {
    struct svi_cell *chosen; /* those that are wanted; owned */
    int chosen_room;
    struct svi_cell *cell; /* in the order of the stream's columns; owned */
    int32_t *place;        /* by cell of the reader's list: its column; owned */
    int capacity, listed;  /* of cell and place; how many cells `place` is of, 0 = none */
    uint64_t changes;      /* of the schema then */
};

void svi_cells_clear(struct svi_cells *c);

/* Leaves out what fixed names of the shape do not name. SVS_NO_MEMORY. */
svs_code svi_cells_choose(struct svi_cells *c, const struct svi_shape *s, struct svi_message *m,
                          svs_error *err);

/* Listed cells in the order of the schema's columns; a column that is not among them is missing.
 * SVS_WRONG_COLUMNS with both lists: one is not among the columns; SVS_NO_MEMORY. */
svs_code svi_cells_order(struct svi_cells *c, const struct svi_schema *s, struct svi_message *m,
                         svs_error *err);

/* What a column of that name holds in the schema `schema`: numbers, words, or missing: there is none, or it
 * had no value yet. For the options of a reader. */
enum svi_cell_kind svi_cells_known(const void *schema, const char *name, size_t length);

/* The schema notes the columns that the reader does not use, as far as there is room for them, so that a
 * model knows them; and those of ids, times and weights where it notes columns at all. SVS_NO_MEMORY. */
svs_code svi_cells_note_unused(struct svi_schema *s, const svi_reader *r, svs_error *err);

/* The stream keeps the units that the reader has found, as far as there is room for them; those of other
 * columns stay. SVS_NO_MEMORY. */
svs_code svi_cells_note_units(struct svi_schema *s, const svi_reader *r, svs_error *err);

#endif
