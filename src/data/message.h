/* message.h: one incoming sample or command in whatever form it arrived: the joint between the decoders
 * (msgpack: wire/decode.h; text: data/reader.h) and the engine.
 *
 * A row is a vector or cells under names. A vector is x, in the row of the shape; LIBSVM text may instead
 * give the columns that it names, at a cost that does not depend on the number of columns. Cells (numbers,
 * words or missing values of CSV, JSON or VW text) become a vector by the schema (features/schema.h). Nothing
 * in a message outlives the next call on the same decoder or schema. Decoders have no policy: they refuse
 * what is malformed, the engine refuses what does not fit (limits, time, stream), and only the engine commits
 * a shape. */
#ifndef SVI_MESSAGE_H
#define SVI_MESSAGE_H

#include <math.h>

#include "data/shape.h"
#include "svmstream/value.h"

/* Part of the text of a refusal: the setting `missing` is carry, but there is no earlier value. Producers
 * that collect the values of many sensors recognise it. */
#define SVI_NOTHING_TO_CARRY "has no earlier value to carry over"

enum svi_op { SVI_LEARN = 0, SVI_LABEL, SVI_FORGET };

/* How a missing value is replaced. AUTO: as the message asks, else the row is refused. */
enum svi_missing {
    SVI_MISSING_REFUSE = 0,
    SVI_MISSING_CARRY,
    SVI_MISSING_DROP,
    SVI_MISSING_MEAN,
    SVI_MISSING_ZERO,
    SVI_MISSING_AUTO
};

enum svi_cell_kind { SVI_CELL_MISSING = 0, SVI_CELL_NUMBER, SVI_CELL_WORD };

/* One value of a row under the name of its column. */
struct svi_cell {
    const char *name, *word; /* not NUL-terminated, UTF-8; views */
    uint32_t name_length;    /* 1 to SVS_NAME_MAX */
    uint32_t length;         /* of the word, 1 or more */
    enum svi_cell_kind kind;
    double number; /* finite */
};

struct svi_message {
    enum svi_op op;
    bool has_x;
    enum svi_kind kind; /* form of x in this message */
    int d; /* columns that x needs. Dense: its length; sparse, named: at least shape->d, or the highest column
              + 1. x[0 .. d) are set, absent columns are 0 */
    double *x;             /* == shape->row */
    const int32_t *column; /* for callers that ask for sparse rows: not NULL: x is not set; the row is these
                              columns, ascending, and their values, and all other columns are 0 */
    const double *value;
    int count;
    int missing; /* entries of x that are missing (nil, empty cell): NAN in x; nothing else in x is NAN or
                    infinite */
    const struct svi_cell *cells; /* a row under names, not in x yet; NULL: x is set, or no row */
    int cell_count;
    bool in_order;           /* the cells are listed, in the order of the stream's columns */
    bool plain;              /* all cells are numbers */
    bool listed;             /* the cells belong to a fixed list of columns: a CSV's header */
    enum svi_missing absent; /* what the row asks for where a value is missing; columns that it does not name
                                are missing then too. SVI_MISSING_AUTO: nothing, and those columns are 0 */
    const uint8_t *gaps; /* by column: not 0 where x holds a replacement of a missing value; NULL: no value
                            was missing, or the last one was carried over */
    svs_value id;        /* SVS_NONE, SVS_INT, SVS_STR (length checked) */
    svs_value y; /* SVS_NONE, SVS_INT, SVS_REAL, SVS_STR; a bool is 1 or 0, an integral float of at most 2^53
                    in magnitude is SVS_INT */
    double ts;   /* seconds since 1970; NAN = none */
    double weight;    /* > 0, finite; 1 when absent */
    svs_value stream; /* SVS_NONE or SVS_STR */
    svs_value src;    /* SVS_NONE or SVS_STR */
    svs_value key;    /* of a row of text: SVS_NONE, or SVS_STR of at most SVS_KEY_MAX bytes */
    int64_t n;        /* -1 = none */
    int removed;      /* set by the engine when it has taken a forget: samples removed */
};

/* Resets the message to an empty sample with x as its row. Field by field: compilers clear a whole structure
 * with a string instruction, which takes longer than parsing a row of text. */
static inline void svi_message_begin(struct svi_message *m, double *x) {
    m->op = SVI_LEARN;
    m->has_x = false;
    m->kind = SVI_UNSET;
    m->d = 0;
    m->x = x;
    m->column = NULL;
    m->value = NULL;
    m->count = 0;
    m->missing = 0;
    m->cells = NULL;
    m->cell_count = 0;
    m->in_order = m->plain = m->listed = false;
    m->absent = SVI_MISSING_AUTO;
    m->gaps = NULL;
    m->id = m->y = m->stream = m->src = m->key = (svs_value){.kind = SVS_NONE};
    m->ts = NAN;
    m->weight = 1;
    m->n = -1;
}

/* Sparse and named rows: extends x to this column; new columns in between are 0. */
static inline void svi_message_reach(struct svi_message *m, int column) {
    for (; m->d <= column; m->d++)
        m->x[m->d] = 0;
}

/* Accepts the message: the shape takes its kind, d and names. Without x nothing changes. */
void svi_shape_commit(struct svi_shape *s, const struct svi_message *m);

/* Does the row have the form and the number of columns of those before it? */
static inline bool svi_shape_is_that_of(const struct svi_shape *s, const struct svi_message *m) {
    return m->has_x && m->kind == s->kind && m->d == s->d && m->d > 0;
}

/* svi_shape_fits for a row of a different form or width. */
svs_code svi_shape_compare(const struct svi_shape *s, const struct svi_message *m, svs_error *err);

/* Does the message's form (has_x, kind, d) fit the shape? Named rows fit dense columns that have names.
 * SVS_WRONG_KIND, SVS_WRONG_DIMENSION, SVS_LIMIT, SVS_BAD_COLUMN (more columns than fixed names), with both
 * numbers in the text. */
static inline svs_code svi_shape_fits(const struct svi_shape *s, const struct svi_message *m,
                                      svs_error *err) {
    return svi_shape_is_that_of(s, m) ? SVS_OK : svi_shape_compare(s, m, err);
}

#endif
