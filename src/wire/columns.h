/* columns.h: the key `columns` of a message: the names of the values of its arrays, in their order, or true
 * for the order of the stream's columns. The names are matched with the columns of the stream; if the columns
 * have no names yet, they get these.
 *
 * The result of the last match is cached: a producer that sends the same list with every message costs one
 * comparison of bytes. */
#ifndef SVI_COLUMNS_H
#define SVI_COLUMNS_H

#include "base/bytes.h"
#include "features/schema.h"
#include "wire/envelope.h"
#include "wire/pack.h"

struct svi_columns {
    struct svi_bytes list; /* msgpack bytes of the list matched last; empty: none */
    uint64_t changes;      /* svi_schema_changes at that match */
    enum svi_kind kind;    /* of the stream at that match */
    int count;             /* names in the list */
    bool in_order;         /* the list has the order of the stream */
    int capacity;          /* of place and row, which the first match allocates */
    int32_t *place;        /* [count] column of the stream for each name of the list; owned */
    double *row;           /* [capacity] scratch for reordering; owned */
};

void svi_columns_init(struct svi_columns *c, int max_features);
void svi_columns_clear(struct svi_columns *c); /* frees; can be used again */

/* Drops the cached match, because the stream's columns have changed. */
void svi_columns_forget(struct svi_columns *c);

/* Matches env->columns (NULL: nothing to do) with the columns of the schema. If the schema has no names,
 * those of the list are added; they stay once the message is committed. `part`: the list may omit columns.
 * SVS_WRONG_COLUMNS with both lists (also if the list is malformed), SVS_LIMIT, SVS_NO_MEMORY: the caller
 * then removes added names by svi_schema_restore. */
svs_code svi_columns_match(struct svi_columns *c, struct svi_schema *s, const struct svi_envelope *env,
                           bool part, svs_error *err);

/* Reorders the values of the decoded element *m into the stream's order, if its x is an array and
 * env->columns names it. Codes as above; SVS_WRONG_DIMENSION: the numbers of values and names differ. */
svs_code svi_columns_order(struct svi_columns *c, struct svi_schema *s, const struct svi_envelope *env,
                           struct svi_message *m, svs_error *err);

/* Packs the pair `columns`: these names, or the names of a row's cells. */
void svi_columns_pack(struct svi_pack *p, const char *const *names, int count);
void svi_columns_pack_cells(struct svi_pack *p, const struct svi_message *m);

#endif
