/* part.h: one part of a merge: its last record, and its place among the others. */
#ifndef SVI_PART_H
#define SVI_PART_H

#include "merge/sums.h"

/* X(CONSTANT, word) */
#define SVI_PART_STATES(X)                                                                                   \
    X(JOINED, joined)                                                                                        \
    X(STALE, stale)     /* joined, and silent for merge.stale seconds */                                     \
    X(REFUSED, refused) /* it does not fit the others */                                                     \
    X(DROPPED, dropped) /* by a request */

enum svi_part_state {
#define X(constant, word) SVI_PART_##constant,
    SVI_PART_STATES(X)
#undef X
        SVI_PART_STATE_COUNT
};

/* Can the sums be those of any samples? */
enum svi_part_sound { SVI_PART_UNASSESSED = 0, SVI_PART_SOUND, SVI_PART_UNSOUND };

struct svi_part {
    struct svi_sums record; /* decoded */
    uint64_t epoch, seq;    /* of the event that held it; 0: it had none */
    size_t bytes;           /* of the payload: what the limit of memory counts */
    double last_arrival;    /* monotonic: when its last record arrived, a repeated one included */
    bool stale, dropped;
    enum svi_part_sound sound; /* of the record: what svi_part_assess has found */
    int reported;              /* for the caller: what it has reported of the part; 0 at the beginning */
    /* Another process that sends records of the same part: the epoch of its events, the last one, how many
     * have come since it should have ended, and (monotonic) when the last one did. */
    uint64_t rival, rival_seq;
    int rivals;
    double rival_seen;
    svs_error why; /* why it is left out; code SVS_OK: it is joined */
    /* of the last solution, [record.sums.d] and [record.sums.classes]: places in the union; owned */
    int32_t *feature, *label;
};

const char *svi_part_state_name(enum svi_part_state state);

/* Sets `sound`, once for each record, by a factor of its matrix: d^3 / 3 operations. SVS_NO_MEMORY. */
svs_code svi_part_assess(struct svi_part *p, svs_error *err);

#define SVI_PART_RIVALS 3 /* with this many in a row, a record is no longer taken for a late one */

/* Do two processes publish this part? */
static inline bool svi_part_contested(const struct svi_part *p) {
    return p->rivals >= SVI_PART_RIVALS;
}

static inline enum svi_part_state svi_part_state(const struct svi_part *p) {
    return p->dropped              ? SVI_PART_DROPPED
           : p->why.code != SVS_OK ? SVI_PART_REFUSED
           : p->stale              ? SVI_PART_STALE
                                   : SVI_PART_JOINED;
}

#endif
