/* message.h: what one incoming sample or command says, whatever form it came in: the joint between the
 * decoders (msgpack: wire/decode.h; text: data/reader.h) and the engine.
 *
 * A decoder writes features straight into the row of the shape and fills a message that points there; nothing in it
 * outlives the next decoder call on the same shape. Decoders know no policy: they refuse what is malformed, the
 * engine refuses what does not fit (limits, time, stream), and only the engine commits a shape. */
#ifndef SVI_MESSAGE_H
#define SVI_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"
#include "svmstream/features.h"
#include "svmstream/value.h"

enum svi_kind { SVI_UNSET = 0, SVI_DENSE, SVI_SPARSE, SVI_NAMED };

enum svi_op { SVI_LEARN = 0, SVI_LABEL, SVI_FORGET };

/* The form of a stream's samples, fixed by the first accepted one. */
struct svi_shape {
    enum svi_kind kind;
    int d;               /* columns so far */
    int max_features;    /* columns at most */
    bool fixed_names;    /* the setting `features`: no further names may appear */
    svs_features *names; /* named streams and CSV headers; owned */
    int names_kept;      /* names that stay at svi_shape_restore: the fixed ones, a header's, those of accepted samples */
    double *row;         /* max_features values; owned */
    uint32_t *marks;     /* max_features; marks[j] == round: column j was met in this row; owned */
    uint32_t round;
};

struct svi_message {
    enum svi_op op;
    bool has_x;
    enum svi_kind kind; /* form of x in this message */
    int d;              /* columns that x needs: dense: its length; sparse, named: at least shape->d, or the
                           highest column + 1. x[0 .. d) are set, absent ones 0 */
    double *x;          /* == shape->row */
    int missing;        /* entries of x that are missing (nil, empty cell): NAN in x, nothing else is ever NAN or infinite */
    svs_value id;       /* SVS_NONE, SVS_INT, SVS_STR (length checked) */
    svs_value y;        /* SVS_NONE, SVS_INT, SVS_REAL, SVS_STR; bool true/false came as 1/0, an integral float of at most 2^53 in size as SVS_INT */
    double ts;          /* seconds since 1970; NAN = none */
    double weight;      /* > 0, finite; 1 when absent */
    svs_value stream;   /* SVS_NONE or SVS_STR */
    svs_value src;      /* SVS_NONE or SVS_STR */
    int64_t n;          /* -1 = none */
};

/* Names and row of a shape; `fixed` (may be NULL or ""): comma-separated names of the setting `features`, in column order;
 * blanks around a name are dropped. With names the shape starts with d = their number, its kind still open.
 * SVS_SETTING (max_features outside 1 to 1,000,000, an empty or repeated name, too many), SVS_NO_MEMORY: *s is cleared. */
svs_code svi_shape_init(struct svi_shape *s, int max_features, const char *fixed, svs_error *err);
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

/* Accepts the message: its kind, d and names become the shape's. Without x nothing changes. */
void svi_shape_commit(struct svi_shape *s, const struct svi_message *m);

/* Does the message's form (has_x, kind, d) fit the shape? SVS_WRONG_KIND, SVS_WRONG_DIMENSION, SVS_LIMIT, SVS_BAD_COLUMN
 * (more columns than the fixed names) with both numbers in the text. */
svs_code svi_shape_fits(const struct svi_shape *s, const struct svi_message *m, svs_error *err);

#endif
