/* ring.h: samples held in order of arrival, found by id: the window, and the samples that wait for a label.
 *
 * A sample has a row of doubles and a slot of properties. Properties that most samples share take no memory:
 * they are columns, and a column is made with the first sample that needs it (a weight other than 1, an id, a
 * class index beyond its byte ...). A sample removed before its turn stays as a dead slot until it is the
 * oldest, or until svi_ring_squeeze. Capacity doubles while that is little memory and then grows to `max`, in
 * one block; an id index is made when it is faster than a search. The index of a slot is valid until the next
 * push. */
#ifndef SVI_RING_H
#define SVI_RING_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/archive.h"
#include "base/limits.h"

/* All properties of a sample. */
struct svi_slot {
    double time;                    /* when it entered */
    double weight;                  /* given by its producer */
    double factor;                  /* window: of its class when it was learned; 1 without class weights */
    double target;                  /* regression; else NAN */
    int64_t number;                 /* samples that entered this ring before it; set by svi_ring_push */
    int64_t order;                  /* samples learned before it was learned */
    uint64_t version;               /* waiting: of the model that scored it */
    int32_t label;                  /* class index, -1 = none */
    int32_t predicted, class_count; /* waiting: its scores */
    bool live;                      /* false: removed before its turn */
    bool learned;
    svs_value id; /* a string points into the ring */
};

/* Columns: doubles and 64-bit integers first, bytes last, so that each is aligned. */
enum svi_ring_column {
    SVI_RING_TIME = 0,
    SVI_RING_WEIGHT, /* absent: 1 */
    SVI_RING_FACTOR, /* absent: 1 */
    SVI_RING_TARGET, /* absent: NAN */
    SVI_RING_ORDER,  /* absent: rises by one from live slot to live slot */
    SVI_RING_NUMBER, /* absent: rises by one from slot to slot */
    SVI_RING_SCORED, /* struct svi_ring_scores; absent: 0 */
    SVI_RING_ID,     /* an integer; unused for other ids */
    SVI_RING_CHAIN,  /* struct svi_chain, if there are buckets */
    SVI_RING_LABEL,  /* absent: in the state */
    SVI_RING_KIND,   /* of the id: 0 = none, 255 = an integer, else the length of a string */
    SVI_RING_STATE,
    SVI_RING_NAME, /* name_width bytes */
    SVI_RING_COLUMNS
};

#define SVI_RING_HAS(column) (1u << SVI_RING_##column)
/* Columns that each ring of a kind has. */
#define SVI_RING_WINDOW  (SVI_RING_HAS(TIME) | SVI_RING_HAS(STATE))
#define SVI_RING_WAITING (SVI_RING_WINDOW | SVI_RING_HAS(NUMBER) | SVI_RING_HAS(SCORED))

struct svi_ring_scores {
    uint64_t version;
    int32_t predicted, class_count;
};

struct svi_chain {
    uint32_t hash;        /* of the id */
    int32_t older, newer; /* slots of the same bucket, -1 = none */
};

#define SVI_SLOT_LIVE      1u
#define SVI_SLOT_LEARNED   2u
#define SVI_SLOT_LABEL_MAX 62 /* in the state: label + 1 in six bits */

struct svi_ring {
    double *rows;     /* capacity x stride; the columns follow in the same block */
    char *columns;    /* capacity x width bytes */
    int32_t *buckets; /* newest slot of each, -1 = none; NULL: no index */
    uint32_t bucket_mask;
    uint16_t has;                 /* present columns, SVI_RING_HAS bits */
    uint8_t at[SVI_RING_COLUMNS]; /* bytes of a slot before this column */
    uint8_t name_width;
    int32_t capacity, max;
    int32_t first, count; /* the oldest slot; slots in use, dead ones too */
    int32_t live;
    int32_t dead; /* number of dead slots at the start: the one after them, if any, is live */
    int32_t stride;
    int64_t pushed; /* samples that ever entered */
    int64_t ahead;  /* without the column ORDER: order minus number of each sample */
};

/* A ring for at most `max` samples of `stride` doubles, with these columns (SVI_RING_HAS) from the start.
 * Allocates nothing yet. */
void svi_ring_init(struct svi_ring *r, int32_t max, int32_t stride, unsigned columns);
void svi_ring_clear(struct svi_ring *r); /* frees */
void svi_ring_empty(struct svi_ring *r); /* removes the samples, keeps the capacity */

/* Makes sure that the next push of a sample like *s cannot fail. SVS_NO_MEMORY. */
svs_code svi_ring_reserve(struct svi_ring *r, const struct svi_slot *s, svs_error *err);

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

/* ---- properties of a slot */

static inline bool svi_ring_has(const struct svi_ring *r, enum svi_ring_column column) {
    return r->has >> column & 1;
}

/* The start of a present column. */
static inline void *svi_ring_column(const struct svi_ring *r, enum svi_ring_column column) {
    return r->columns + (size_t)r->capacity * r->at[column];
}

static inline uint8_t *svi_ring_state(const struct svi_ring *r, int32_t slot) {
    return (uint8_t *)svi_ring_column(r, SVI_RING_STATE) + slot;
}

static inline bool svi_ring_live(const struct svi_ring *r, int32_t slot) {
    return *svi_ring_state(r, slot) & SVI_SLOT_LIVE;
}

/* It is in the model. */
static inline bool svi_ring_in(const struct svi_ring *r, int32_t slot) {
    return (*svi_ring_state(r, slot) & (SVI_SLOT_LIVE | SVI_SLOT_LEARNED)) ==
           (SVI_SLOT_LIVE | SVI_SLOT_LEARNED);
}

/* The next live slot from the *i-th oldest on, -1 after the last. *i moves on. */
static inline int32_t svi_ring_next(const struct svi_ring *r, int32_t *i) {
    while (*i < r->count) {
        const int32_t slot = svi_ring_at(r, (*i)++);
        if (svi_ring_live(r, slot))
            return slot;
    }
    return -1;
}

static inline double *svi_ring_time(const struct svi_ring *r, int32_t slot) {
    return (double *)svi_ring_column(r, SVI_RING_TIME) + slot;
}

static inline double svi_ring_double(const struct svi_ring *r, enum svi_ring_column column, int32_t slot,
                                     double absent) {
    return svi_ring_has(r, column) ? ((const double *)svi_ring_column(r, column))[slot] : absent;
}

/* What it counts, before it fades. */
static inline double svi_ring_weight(const struct svi_ring *r, int32_t slot) {
    return svi_ring_double(r, SVI_RING_WEIGHT, slot, 1) * svi_ring_double(r, SVI_RING_FACTOR, slot, 1);
}

static inline double svi_ring_target(const struct svi_ring *r, int32_t slot) {
    return svi_ring_double(r, SVI_RING_TARGET, slot, NAN);
}

static inline int32_t svi_ring_label(const struct svi_ring *r, int32_t slot) {
    return svi_ring_has(r, SVI_RING_LABEL) ? ((const int32_t *)svi_ring_column(r, SVI_RING_LABEL))[slot]
                                           : (int32_t)(*svi_ring_state(r, slot) >> 2) - 1;
}

static inline int64_t svi_ring_number(const struct svi_ring *r, int32_t slot) {
    const int32_t age = slot - r->first;
    return svi_ring_has(r, SVI_RING_NUMBER) ? ((const int64_t *)svi_ring_column(r, SVI_RING_NUMBER))[slot]
                                            : r->pushed - r->count + (age < 0 ? age + r->capacity : age);
}

static inline int64_t svi_ring_order(const struct svi_ring *r, int32_t slot) {
    return svi_ring_has(r, SVI_RING_ORDER) ? ((const int64_t *)svi_ring_column(r, SVI_RING_ORDER))[slot]
                                           : svi_ring_number(r, slot) + r->ahead;
}

/* The id of a slot; svs_none for a dead one. */
svs_value svi_ring_id(const struct svi_ring *r, int32_t slot);

/* All properties of a slot. */
struct svi_slot svi_ring_slot(const struct svi_ring *r, int32_t slot);

/* Rows of W, and therefore scores, for this number of classes. */
static inline int svi_rows_of(int classes) {
    return classes < 3 ? 1 : classes;
}

/* The number of the oldest live slot, or of the next one when none is. */
static inline int64_t svi_ring_oldest(const struct svi_ring *r) {
    return r->dead < r->count ? svi_ring_number(r, svi_ring_at(r, r->dead)) : r->pushed;
}

/* ---- changes */

/* Can a sample have this order without a column for it? */
static inline bool svi_ring_ordered(const struct svi_ring *r, int64_t order) {
    return r->live == 0 || r->has & (SVI_RING_HAS(ORDER) | SVI_RING_HAS(NUMBER)) ||
           order == r->pushed + r->ahead;
}

/* Quick check that svi_ring_reserve has nothing to do: true for nearly all samples, those without an id and
 * with weight 1, unless the capacity has to grow. */
static inline bool svi_ring_takes(const struct svi_ring *r, const struct svi_slot *s) {
    return (r->count < r->capacity || r->capacity == r->max) && s->weight == 1 && s->factor == 1 &&
           s->label <= SVI_SLOT_LABEL_MAX && s->id.kind == SVS_NONE && svi_ring_ordered(r, s->order);
}

/* put_window: writes the properties that every ring has. put_more: writes the others to the present columns.
 */
static inline void svi_ring_put_window(struct svi_ring *r, int32_t slot, const struct svi_slot *s) {
    *svi_ring_time(r, slot) = s->time;
    *svi_ring_state(r, slot) =
        (uint8_t)((s->live ? SVI_SLOT_LIVE : 0) | (s->learned ? SVI_SLOT_LEARNED : 0) |
                  (svi_ring_has(r, SVI_RING_LABEL) ? 0 : (unsigned)(s->label + 1) << 2));
}
void svi_ring_put_more(struct svi_ring *r, int32_t slot, const struct svi_slot *s);

/* put_more for a new slot, which also enters the id index. */
void svi_ring_insert(struct svi_ring *r, int32_t slot, const struct svi_slot *s);

/* Appends a live sample and gives it its number; the caller fills in the row. The ring must not be full, and
 * svi_ring_reserve must have succeeded for it. */
static inline int32_t svi_ring_push(struct svi_ring *r, struct svi_slot *s) {
    const int32_t slot = svi_ring_at(r, r->count);
    s->live = true;
    s->number = r->pushed++;
    if (r->live++ == 0)
        r->ahead = s->order - s->number;
    r->count++;
    svi_ring_put_window(r, slot, s);
    if (r->has != SVI_RING_WINDOW)
        svi_ring_insert(r, slot, s);
    return slot;
}

/* Changes the label, not beyond the largest so far; the factor and the number, if the ring has these columns;
 * the scores. */
void svi_ring_set_label(struct svi_ring *r, int32_t slot, int32_t label);
static inline void svi_ring_set_factor(struct svi_ring *r, int32_t slot, double factor) {
    ((double *)svi_ring_column(r, SVI_RING_FACTOR))[slot] = factor;
}
static inline void svi_ring_set_number(struct svi_ring *r, int32_t slot, int64_t number) {
    ((int64_t *)svi_ring_column(r, SVI_RING_NUMBER))[slot] = number;
}
static inline struct svi_ring_scores *svi_ring_scored(const struct svi_ring *r, int32_t slot) {
    return (struct svi_ring_scores *)svi_ring_column(r, SVI_RING_SCORED) + slot;
}

/* Removes the oldest slot. */
void svi_ring_pop(struct svi_ring *r);

/* Removes a slot before its turn: it is dead and no longer found by its id. */
void svi_ring_kill(struct svi_ring *r, int32_t slot);

/* Moves the live slots together and frees the dead ones. O(count). Only for rings with numbers. */
void svi_ring_squeeze(struct svi_ring *r);

/* The newest live slot of that id, or the next older one after `slot`; -1 = none. */
int32_t svi_ring_find(const struct svi_ring *r, svs_value id);
int32_t svi_ring_find_older(const struct svi_ring *r, int32_t slot);

/* Sets a new stride: in each row the first `keep` doubles stay, the `tail` doubles at `from` move to `to`,
 * the rest is zero. SVS_NO_MEMORY. */
svs_code svi_ring_restride(struct svi_ring *r, int32_t stride, int32_t keep, int32_t from, int32_t to,
                           int32_t tail, svs_error *err);

/* Bytes of a full ring with these columns, including the id index if there are ids. */
double svi_ring_memory(double max, int stride, unsigned columns);

/* ---- the archive */

/* Limits of the slots of a ring, which loading checks. */
struct svi_ring_kind {
    const char *name; /* prefix of its fields: "window" */
    bool waiting;     /* with scores after each row and no label; else with a label or a target */
    bool regress;
    int features;    /* values of a row */
    int scores_at;   /* where the scores begin in a row of the ring */
    int scores;      /* largest number for a slot; 0 unless waiting */
    int class_count; /* labels are below this */
    int64_t order;   /* no slot's order is above this */
};

/* Loading: the ring is empty and its stride suffices; numbers rise by one from slot to slot. */
void svi_ring_archive(struct svi_archive *a, struct svi_ring *r, const struct svi_ring_kind *kind);

/* The numbers of the slots, which no longer rise by one after svi_ring_squeeze. Loading: after the ring. */
void svi_ring_archive_numbers(struct svi_archive *a, struct svi_ring *r, const char *name);

/* The factors of the slots. Loading: after the ring. */
void svi_ring_archive_factors(struct svi_archive *a, struct svi_ring *r, const char *name);

static inline bool svi_ring_squeezed(const struct svi_ring *r) {
    return r->count > 0 && svi_ring_number(r, r->first) != r->pushed - r->count;
}

#endif
