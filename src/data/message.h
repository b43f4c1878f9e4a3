/* message.h: one incoming sample or command, whatever form it came in: the joint between the
 * decoders (msgpack: wire/decode.h; text: data/reader.h) and the engine.
 *
 * A row comes as a vector or as cells under names. A vector stands in the row of the shape: x; one of LIBSVM
 * text may come as the columns that it names, which costs no more than they are. Cells (what a
 * reader of CSV, JSON or VW text finds: numbers, words, nothing) become a vector by the schema
 * (features/schema.h). Nothing in a message outlives the next call on the same decoder or schema. Decoders
 * know no policy: they refuse what is malformed, the engine refuses what does not fit (limits, time, stream),
 * and only the engine commits a shape. */
#ifndef SVI_MESSAGE_H
#define SVI_MESSAGE_H

#include <math.h>

#include "data/shape.h"
#include "svmstream/value.h"

/* Part of the reason of a refusal: the setting missing says carry, and there is nothing. Producers that hold
 * values of many sensors go by it. */
#define SVI_NOTHING_TO_CARRY "has no earlier value to carry over"

enum svi_op { SVI_LEARN = 0, SVI_LABEL, SVI_FORGET };

/* What is done with a missing value; auto: what the message asks for, refuse if it asks for nothing. */
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
    int d;              /* columns that x needs: dense: its length; sparse, named: at least shape->d, or the
                           highest column + 1. x[0 .. d) are set, absent ones 0 */
    double *x;          /* == shape->row */
    const int32_t *column; /* for who asks for sparse rows: not NULL: x is not set, and the row is these
                              columns, ascending, and their values; all others are 0 */
    const double *value;
    int count;
    int missing; /* entries of x that are missing (nil, empty cell): NAN in x, nothing else is ever NAN or
                    infinite */
    const struct svi_cell
        *cells; /* a row under names, which is not in x yet; NULL: x is set, or there is none */
    int cell_count;
    bool in_order; /* listed, and in the order of the stream's columns */
    bool plain;    /* they are numbers, all of them */
    bool listed;   /* the cells are those of a list of columns that stays the same: of a CSV's header */
    enum svi_missing absent; /* what the row asks for where a value is missing, and then a column that it does
                                not name is missing too; SVI_MISSING_AUTO: nothing, and that column is 0 */
    const uint8_t *gaps;     /* by column: not 0 where a value was missing and x is what took its place;
                                NULL: none was, or the last value was carried on */
    svs_value id;            /* SVS_NONE, SVS_INT, SVS_STR (length checked) */
    svs_value y; /* SVS_NONE, SVS_INT, SVS_REAL, SVS_STR; bool true/false came as 1/0, an integral float of at
                    most 2^53 in size as SVS_INT */
    double ts;   /* seconds since 1970; NAN = none */
    double weight;    /* > 0, finite; 1 when absent */
    svs_value stream; /* SVS_NONE or SVS_STR */
    svs_value src;    /* SVS_NONE or SVS_STR */
    svs_value key;    /* of a row of text: SVS_NONE, or SVS_STR of at most SVS_KEY_MAX bytes */
    int64_t n;        /* -1 = none */
};

/* A sample without anything, whose row will be in x. Field by field: compilers clear the whole of it by a
 * string instruction, which takes longer than all else that a row of text needs. */
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

/* Sparse and named rows: makes x reach up to this column; the columns in between are 0. */
static inline void svi_message_reach(struct svi_message *m, int column) {
    for (; m->d <= column; m->d++)
        m->x[m->d] = 0;
}

/* Accepts the message: its kind, d and names become the shape's. Without x nothing changes. */
void svi_shape_commit(struct svi_shape *s, const struct svi_message *m);

/* Is the row as those before it were: of their form and number of columns? */
static inline bool svi_shape_is_that_of(const struct svi_shape *s, const struct svi_message *m) {
    return m->has_x && m->kind == s->kind && m->d == s->d && m->d > 0;
}

/* Of another row. */
svs_code svi_shape_compare(const struct svi_shape *s, const struct svi_message *m, svs_error *err);

/* Does the message's form (has_x, kind, d) fit the shape? Names fit dense columns that have some.
 * SVS_WRONG_KIND, SVS_WRONG_DIMENSION, SVS_LIMIT, SVS_BAD_COLUMN (more columns than the fixed names) with
 * both numbers in the text. */
static inline svs_code svi_shape_fits(const struct svi_shape *s, const struct svi_message *m,
                                      svs_error *err) {
    return svi_shape_is_that_of(s, m) ? SVS_OK : svi_shape_compare(s, m, err);
}

#endif
