/* ring.h: samples in the order in which they came, each a raw row with what is known of it, found by id.
 *
 * The window and the samples that wait for a label are both rings. A sample that is taken out before its turn
 * stays as a dead slot until it is the oldest, or until svi_ring_squeeze. Slots grow by doubling up to `max`;
 * the id index and the room for string ids appear with the first id that needs them. A slot's number is valid
 * until the next push. */
#ifndef SVI_RING_H
#define SVI_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "base/limits.h"

/* Counts that are read back are at most this, so that they can go on counting. */
#define SVI_COUNT_MAX ((int64_t)1 << 60)

struct svi_slot {
    double time;      /* when it entered */
    double weight;    /* as its producer has it */
    double factor;    /* window: of its class when it was learned; 1 where classes count alike */
    double target;    /* regression */
    int64_t number;   /* how many entered this ring before it */
    int64_t order;    /* learned samples before it was learned */
    uint64_t version; /* waiting: of the model that scored it */
    int32_t label;    /* class index */
    int32_t predicted, rows, class_count; /* waiting: its scores */
    bool live;                            /* false: taken out before its turn */
    bool learned;
    svs_value id;         /* a string points into the ring */
    uint32_t hash;        /* of the id */
    int32_t older, newer; /* slots of the same bucket, -1 = none */
};

/* What it counts in the minimum, before it fades. */
static inline double svi_slot_weight(const struct svi_slot *s) {
    return s->weight * s->factor;
}

struct svi_ring {
    struct svi_slot *slots;
    double *rows;     /* capacity x stride */
    char *names;      /* capacity x SVS_NAME_MAX, or NULL */
    int32_t *buckets; /* newest slot of each, -1 = none; NULL until there is an id */
    uint32_t bucket_mask;
    int32_t capacity, max;
    int32_t first, count; /* the oldest slot; slots in use, dead ones too */
    int32_t live;
    int32_t dead; /* slots from the oldest on that are dead: the one after them, if any, is live */
    int32_t stride;
    int64_t pushed; /* samples that ever entered */
};

/* Room for `max` samples of `stride` doubles at most; takes the first min(max, 1024) now. */
svs_code svi_ring_init(struct svi_ring *r, int32_t max, int32_t stride, svs_error *err);
void svi_ring_clear(struct svi_ring *r); /* frees */
void svi_ring_empty(struct svi_ring *r); /* forgets the samples, keeps the room */

/* Makes sure that the next push of such an id cannot fail. */
svs_code svi_ring_reserve(struct svi_ring *r, svs_value id, svs_error *err);

static inline bool svi_ring_full(const struct svi_ring *r) {
    return r->count == r->max;
}

static inline double *svi_ring_row(const struct svi_ring *r, int32_t slot) {
    return r->rows + (int64_t)slot * r->stride;
}

/* The i-th oldest slot, 0 <= i < count. */
static inline int32_t svi_ring_at(const struct svi_ring *r, int32_t i) {
    int32_t at = r->first + i;
    return at < r->capacity ? at : at - r->capacity;
}

/* The number of the oldest live slot, or of the next one when none is. */
static inline int64_t svi_ring_oldest(const struct svi_ring *r) {
    return r->dead < r->count ? r->slots[svi_ring_at(r, r->dead)].number : r->pushed;
}

/* Appends a slot (not full, reserved): live, with this id, everything else zero; the row is the caller's to
 * fill. */
int32_t svi_ring_push(struct svi_ring *r, svs_value id);

/* Drops the oldest slot. */
void svi_ring_pop(struct svi_ring *r);

/* Takes a slot out before its turn: dead, and no longer found. */
void svi_ring_kill(struct svi_ring *r, int32_t slot);

/* Moves the live slots together, so that the dead ones take no place. O(count). */
void svi_ring_squeeze(struct svi_ring *r);

/* The newest live slot of that id, or the next older one after `slot`; -1 = none. */
int32_t svi_ring_find(const struct svi_ring *r, svs_value id);
int32_t svi_ring_find_older(const struct svi_ring *r, int32_t slot);

/* A new stride: in each row the first `keep` doubles stay, the `tail` doubles at `from` move to `to`, the
 * rest is zero. */
svs_code svi_ring_restride(struct svi_ring *r, int32_t stride, int32_t keep, int32_t from, int32_t to,
                           int32_t tail, svs_error *err);

/* Bytes of a full ring. */
double svi_ring_memory(double max, int stride);

/* For tests: counts, chains and order agree; NULL, or what is wrong. */
const char *svi_ring_check(const struct svi_ring *r);

/* ---- the archive */

/* What a ring's slots can hold. */
struct svi_ring_kind {
    const char *name; /* of its fields: "window" */
    bool waiting;     /* with scores after each row and no label; else with a label or a target */
    bool regress;
    int features;    /* values of a row */
    int scores_at;   /* where the scores begin in a row of the ring */
    int scores;      /* the most that a slot has; 0 unless waiting */
    int class_count; /* labels are below this */
    int64_t order;   /* no slot's order is above this */
};

/* Loading: the ring is empty and its stride suffices; numbers rise by one from slot to slot. */
void svi_ring_archive(struct svi_archive *a, struct svi_ring *r, const struct svi_ring_kind *kind);

/* The numbers of the slots, which do not rise by one any more once the ring was squeezed. Loading: after the
 * ring. */
void svi_ring_archive_numbers(struct svi_archive *a, struct svi_ring *r, const char *name);

/* The factors of the slots. Loading: after the ring. */
void svi_ring_archive_factors(struct svi_archive *a, struct svi_ring *r, const char *name);

static inline bool svi_ring_squeezed(const struct svi_ring *r) {
    return r->count > 0 && r->slots[r->first].number != r->pushed - r->count;
}

#endif
