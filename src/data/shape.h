/* shape.h: the form of a stream's samples: dense, sparse or named, the number of columns, and their names.
 * The first accepted sample fixes the form; later samples with more columns or names widen it. The row that
 * decoders write into belongs to it too. */
#ifndef SVI_SHAPE_H
#define SVI_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"
#include "svmstream/features.h"

enum svi_kind { SVI_UNSET = 0, SVI_DENSE, SVI_SPARSE, SVI_NAMED };

/* The memory of the current row. Nothing in it is needed between two rows, so shapes that one thread serves
 * in turn can share it. */
struct svi_shape_scratch {
    double *row;     /* `columns` values */
    uint32_t *marks; /* `columns` marks; marks[j] == round: column j was seen in this row */
    void *block;     /* holds both; owned */
    uint32_t round;
    int columns;
};

/* SVS_NO_MEMORY. */
svs_code svi_shape_scratch_init(struct svi_shape_scratch *r, int columns, svs_error *err);
void svi_shape_scratch_clear(struct svi_shape_scratch *r);

struct svi_shape {
    enum svi_kind kind;
    int d;            /* columns so far */
    int max_features; /* limit of d */
    bool fixed_names; /* by the setting `features`: no further names may appear */
    bool mixed; /* columns and features are not one to one (features/schema.h): features may be added even
                   when names are fixed */
    svs_features *names; /* of named streams and CSV headers; owned */
    int names_kept;      /* names that svi_shape_restore keeps: the fixed ones, a header's, those of accepted
                            samples */
    double *row;         /* max_features values */
    uint32_t *marks;     /* max_features marks; marks[j] == round: column j was seen in this row */
    void *block;         /* holds both; owned; NULL: they belong to `scratch` */
    uint32_t round;
    struct svi_shape_scratch *scratch; /* shared memory of row and marks; NULL: they are owned */
};

/* Moves a shape with shared memory to another scratch row, which has max_features columns and must outlive
 * it. Only between two rows. */
void svi_shape_use_scratch(struct svi_shape *s, struct svi_shape_scratch *scratch);

/* Makes the names and the row of a shape. `fixed` (may be NULL or ""): the comma-separated names of the
 * setting `features`, in column order, blanks around them dropped; the shape then starts with d = their
 * number and its kind still open. SVS_SETTING (max_features outside 1 to 1,000,000; an empty or repeated
 * name; too many), SVS_NO_MEMORY: *s is cleared. */
svs_code svi_shape_init(struct svi_shape *s, int max_features, const char *fixed, svs_error *err);

/* The same with a shared scratch row of max_features columns; NULL: a row that it owns. */
svs_code svi_shape_init_in(struct svi_shape *s, int max_features, const char *fixed,
                           struct svi_shape_scratch *scratch, svs_error *err);
void svi_shape_clear(struct svi_shape *s);

/* Call before the first column of a row whose columns may come in any order (maps): forgets all marks. */
void svi_shape_begin_row(struct svi_shape *s);

/* Marks a column (0 <= column < max_features) as seen in this row. False: a duplicate. */
static inline bool svi_shape_mark(struct svi_shape *s, int column) {
    bool fresh = s->marks[column] != s->round;
    s->marks[column] = s->round;
    return fresh;
}

/* Undoes a refused message: drops the names that it added. */
void svi_shape_restore(struct svi_shape *s);

/* Drops columns of a shape without fixed names, in two steps of which only the first can fail.
 * First, svi_shape_kept_names returns the names of the flagged columns, in their order (NULL:
 * SVS_NO_MEMORY). Then svi_shape_keep takes ownership of them and makes them all columns. With none
 * left the kind is open again. */
svs_features *svi_shape_kept_names(const struct svi_shape *s, const bool *keep, svs_error *err);
void svi_shape_keep(struct svi_shape *s, const bool *keep, svs_features *names);

/* The name of a column; NULL when it has none. */
const char *svi_shape_name(const struct svi_shape *s, int column);

/* Archives kind, columns and names, between two samples. Load only into a shape from svi_shape_init that has
 * seen no sample; fixed names must be the same as when it was saved. */
void svi_shape_archive(struct svi_archive *a, struct svi_shape *s);

#endif
