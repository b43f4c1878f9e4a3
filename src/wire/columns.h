/* columns.h: the key `columns` of a message: the names of what its arrays hold, in their order, or true: in
 * the order of the stream's columns. They are matched by name with the columns of the stream; to a stream
 * whose columns have no names yet they give them.
 *
 * What was found out about a list is kept, so that a producer that sends the same one with every message
 * costs a comparison of bytes. */
#ifndef SVI_COLUMNS_H
#define SVI_COLUMNS_H

#include "base/bytes.h"
#include "features/schema.h"
#include "wire/envelope.h"
#include "wire/pack.h"

struct svi_columns {
    struct svi_bytes list; /* as it came, of the last match; empty: none */
    uint64_t changes;      /* of the stream's names then */
    enum svi_kind kind;    /* of the stream then */
    int count;             /* names of the list */
    bool in_order;         /* they are in the order of the stream */
    int capacity;          /* of place and row, once there is a list */
    int32_t *place;        /* by place in the list: the stream's column; owned */
    double *row;           /* for reordering; owned */
};

void svi_columns_init(struct svi_columns *c, int max_features);
void svi_columns_clear(struct svi_columns *c);

/* The stream's columns are others now: the next list is matched again. */
void svi_columns_forget(struct svi_columns *c);

/* Holds env->columns against the columns of the schema; nothing without it. Where there are none, those of
 * the list are added, and stay when a message is committed. `part`: the list may leave some out.
 * SVS_WRONG_COLUMNS with both lists (also where the list is malformed), SVS_LIMIT, SVS_NO_MEMORY; names may
 * have to be taken back by svi_schema_restore. */
svs_code svi_columns_match(struct svi_columns *c, struct svi_schema *s, const struct svi_envelope *env,
                           bool part, svs_error *err);

/* Puts the element that was decoded into *m, if its x is an array with env->columns, into the stream's order.
 * Codes as above; SVS_WRONG_DIMENSION: there are more or fewer values than names. */
svs_code svi_columns_order(struct svi_columns *c, struct svi_schema *s, const struct svi_envelope *env,
                           struct svi_message *m, svs_error *err);

/* The pair of a map, key and list; and of the names of a row's cells. */
void svi_columns_pack(struct svi_pack *p, const char *const *names, int count);
void svi_columns_pack_cells(struct svi_pack *p, const struct svi_message *m);

#endif
