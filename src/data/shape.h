/* shape.h: the form of a stream's samples: dense, sparse or named, how many columns, their names. Fixed by
 * the first accepted sample, widened by later ones with more columns or names; the row that decoders write
 * into is here. */
#ifndef SVI_SHAPE_H
#define SVI_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"
#include "svmstream/features.h"

enum svi_kind { SVI_UNSET = 0, SVI_DENSE, SVI_SPARSE, SVI_NAMED };

/* The row in hand: nothing of it is needed between two rows, so that the shapes of streams which a thread
 * works on in turns can share it. */
struct svi_shape_scratch {
    double *row;     /* `columns` values */
    uint32_t *marks; /* likewise; marks[j] == round: column j was met in this row */
    void *block;     /* where both lie: owned */
    uint32_t round;
    int columns;
};

/* SVS_NO_MEMORY. */
svs_code svi_shape_scratch_init(struct svi_shape_scratch *r, int columns, svs_error *err);
void svi_shape_scratch_clear(struct svi_shape_scratch *r);

struct svi_shape {
    enum svi_kind kind;
    int d;            /* columns so far */
    int max_features; /* columns at most */
    bool fixed_names; /* the setting `features`: no further names may appear */
    bool mixed; /* features are not one a column (features/schema.h): more may come, whatever names are fixed
                 */
    svs_features *names; /* named streams and CSV headers; owned */
    int names_kept;  /* names that stay at svi_shape_restore: the fixed ones, a header's, those of accepted
                        samples */
    double *row;     /* max_features values */
    uint32_t *marks; /* max_features; marks[j] == round: column j was met in this row */
    void *block;     /* where both lie; owned; NULL: in a room of others */
    uint32_t round;
    struct svi_shape_scratch *scratch; /* of others too, where row and marks are; NULL: they are owned */
};

/* Of a shape in a room of others: it is in this one from now on, which has max_features columns and outlives
 * it. Between two rows. */
void svi_shape_use_scratch(struct svi_shape *s, struct svi_shape_scratch *scratch);

/* Names and row of a shape; `fixed` (may be NULL or ""): comma-separated names of the setting `features`, in
 * column order; blanks around a name are dropped. With names the shape starts with d = their number, its kind
 * still open. SVS_SETTING (max_features outside 1 to 1,000,000, an empty or repeated name, too many),
 * SVS_NO_MEMORY: *s is cleared. */
svs_code svi_shape_init(struct svi_shape *s, int max_features, const char *fixed, svs_error *err);

/* Likewise, in a room of others, of max_features columns; NULL: in one of its own. */
svs_code svi_shape_init_in(struct svi_shape *s, int max_features, const char *fixed,
                           struct svi_shape_scratch *scratch, svs_error *err);
void svi_shape_clear(struct svi_shape *s);

/* Before the first column of a row whose columns may come in any order (maps): forgets all marks. */
void svi_shape_begin_row(struct svi_shape *s);

/* Marks a column (0 <= column < max_features) of this row. False: it was met before, a duplicate. */
static inline bool svi_shape_mark(struct svi_shape *s, int column) {
    bool fresh = s->marks[column] != s->round;
    s->marks[column] = s->round;
    return fresh;
}

/* Takes a refused message's traces (new names) back. */
void svi_shape_restore(struct svi_shape *s);

/* Of a shape without fixed names: the names of the columns that are flagged, in their order, and then they in
 * the place of all columns; with none left the kind is open again. NULL: SVS_NO_MEMORY. */
svs_features *svi_shape_kept_names(const struct svi_shape *s, const bool *keep, svs_error *err);
void svi_shape_keep(struct svi_shape *s, const bool *keep, svs_features *names);

/* The name of a column; NULL when it has none. */
const char *svi_shape_name(const struct svi_shape *s, int column);

/* The shape as it is kept, between two samples: kind, columns, names. Loading goes into a shape from
 * svi_shape_init that has seen none; fixed names must be those that were kept. */
void svi_shape_archive(struct svi_archive *a, struct svi_shape *s);

#endif
