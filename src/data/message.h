/* message.h: one incoming sample or command, whatever form it came in: the joint between the
 * decoders (msgpack: wire/decode.h; text: data/reader.h) and the engine.
 *
 * A decoder writes features straight into the row of the shape and fills a message that points there; nothing
 * in it outlives the next decoder call on the same shape. Decoders know no policy: they refuse what is
 * malformed, the engine refuses what does not fit (limits, time, stream), and only the engine commits a
 * shape. */
#ifndef SVI_MESSAGE_H
#define SVI_MESSAGE_H

#include "data/shape.h"
#include "svmstream/value.h"

/* Part of the reason of a refusal: the setting missing says carry, and there is nothing. Producers that hold
 * values of many sensors go by it. */
#define SVI_NOTHING_TO_CARRY "has no earlier value to carry over"

enum svi_op { SVI_LEARN = 0, SVI_LABEL, SVI_FORGET };

struct svi_message {
    enum svi_op op;
    bool has_x;
    enum svi_kind kind; /* form of x in this message */
    int d;              /* columns that x needs: dense: its length; sparse, named: at least shape->d, or the
                           highest column + 1. x[0 .. d) are set, absent ones 0 */
    double *x;          /* == shape->row */
    int missing;  /* entries of x that are missing (nil, empty cell): NAN in x, nothing else is ever NAN or
                     infinite */
    svs_value id; /* SVS_NONE, SVS_INT, SVS_STR (length checked) */
    svs_value y; /* SVS_NONE, SVS_INT, SVS_REAL, SVS_STR; bool true/false came as 1/0, an integral float of at
                    most 2^53 in size as SVS_INT */
    double ts;   /* seconds since 1970; NAN = none */
    double weight;    /* > 0, finite; 1 when absent */
    svs_value stream; /* SVS_NONE or SVS_STR */
    svs_value src;    /* SVS_NONE or SVS_STR */
    int64_t n;        /* -1 = none */
};

/* Sparse and named rows: makes x reach up to this column; the columns in between are 0. */
static inline void svi_message_reach(struct svi_message *m, int column) {
    for (; m->d <= column; m->d++)
        m->x[m->d] = 0;
}

/* Accepts the message: its kind, d and names become the shape's. Without x nothing changes. */
void svi_shape_commit(struct svi_shape *s, const struct svi_message *m);

/* Does the message's form (has_x, kind, d) fit the shape? SVS_WRONG_KIND, SVS_WRONG_DIMENSION, SVS_LIMIT,
 * SVS_BAD_COLUMN (more columns than the fixed names) with both numbers in the text. */
svs_code svi_shape_fits(const struct svi_shape *s, const struct svi_message *m, svs_error *err);

#endif
