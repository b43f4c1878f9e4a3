/* Samples held, found by id (ring.h), and how they are archived.
 *
 * Slots lie in a circle from `first` on, `count` of them, the oldest first; each has its row at the same
 * place in `rows` and its facts at the same place of each column. Of a few slots an id is found by looking at
 * all, from the newest on; a ring of more has them chained in the bucket of their hash, the newest first too.
 * Invariants: numbers rise from slot to slot; exactly the live slots with an id are chained; a dead slot has
 * no id; orders without a column are those of a learner that learns each sample.
 *
 * What can fail is in svi_ring_reserve, which moves everything to a block with more space or more columns;
 * push, pop and kill cannot. The archive has a ring as pieces of a few thousand slots, oldest first, so that
 * where a ring begins does not show and the space to gather them in stays small. A piece is a handful of
 * columns, the same whatever columns the ring has. A dead slot is all zero there: a sample that was taken out
 * is not kept. */
#include "learner/ring.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "base/text.h"

#define NONE           (-1)
#define FIRST_CAPACITY 16
#define INDEX_FROM     128 /* a ring of more slots than these has an index of its ids */
#define KIND_INT       255
#define WIDTHS         4 /* of names: 8, 16, 32, 64 */

static const uint8_t sizes[SVI_RING_COLUMNS] = {
    [SVI_RING_TIME] = 8,   [SVI_RING_WEIGHT] = 8,
    [SVI_RING_FACTOR] = 8, [SVI_RING_TARGET] = 8,
    [SVI_RING_ORDER] = 8,  [SVI_RING_NUMBER] = 8,
    [SVI_RING_ID] = 8,     [SVI_RING_SCORED] = sizeof(struct svi_ring_scores),
    [SVI_RING_LABEL] = 4,  [SVI_RING_CHAIN] = sizeof(struct svi_chain),
    [SVI_RING_KIND] = 1,   [SVI_RING_STATE] = 1,
};

/* ---- ids */

/* The same hash for all widths of names; ids are compared in full after it. */
static uint32_t ring_hash_of(svs_value id) {
    const void *bytes = id.kind == SVS_STR ? (const void *)id.as.s : &id.as.i;
    const size_t n = id.kind == SVS_STR ? id.length : sizeof id.as.i;
    return (uint32_t)svi_fnv_fold(svi_fnv(SVI_FNV_SEED, bytes, n));
}

static uint8_t *ring_kind(const struct svi_ring *r, int32_t slot) {
    return (uint8_t *)svi_ring_column(r, SVI_RING_KIND) + slot;
}

static int64_t *ring_number_id(const struct svi_ring *r, int32_t slot) {
    return (int64_t *)svi_ring_column(r, SVI_RING_ID) + slot;
}

static char *ring_name(const struct svi_ring *r, int32_t slot) {
    return (char *)svi_ring_column(r, SVI_RING_NAME) + (size_t)slot * r->name_width;
}

static struct svi_chain *ring_chain_of(const struct svi_ring *r, int32_t slot) {
    return (struct svi_chain *)svi_ring_column(r, SVI_RING_CHAIN) + slot;
}

/* The kind byte is the length of a name, or KIND_INT; 0: no id. */
svs_value svi_ring_id(const struct svi_ring *r, int32_t slot) {
    const uint8_t kind = svi_ring_has(r, SVI_RING_ID) ? *ring_kind(r, slot) : 0;
    if (kind == 0)
        return (svs_value){.kind = SVS_NONE};
    if (kind == KIND_INT)
        return (svs_value){.kind = SVS_INT, .as.i = *ring_number_id(r, slot)};
    return (svs_value){.kind = SVS_STR, .length = kind, .as.s = ring_name(r, slot)};
}

static void ring_put_id(struct svi_ring *r, int32_t slot, svs_value id) {
    if (!svi_ring_has(r, SVI_RING_ID))
        return;
    *ring_kind(r, slot) = id.kind == SVS_NONE ? 0 : id.kind == SVS_INT ? KIND_INT : (uint8_t)id.length;
    if (id.kind == SVS_INT)
        *ring_number_id(r, slot) = id.as.i;
    if (id.kind == SVS_STR)
        memmove(ring_name(r, slot), id.as.s, id.length);
}

/* A live slot with an id becomes the newest of its bucket. */
static void ring_chain(struct svi_ring *r, int32_t slot, svs_value id) {
    if (!r->buckets || id.kind == SVS_NONE)
        return;
    struct svi_chain *own = ring_chain_of(r, slot);
    own->hash = ring_hash_of(id);
    int32_t *head = &r->buckets[own->hash & r->bucket_mask];
    own->older = *head;
    own->newer = NONE;
    if (*head != NONE)
        ring_chain_of(r, *head)->newer = slot;
    *head = slot;
}

static void ring_unchain(struct svi_ring *r, int32_t slot) {
    const struct svi_chain *own = ring_chain_of(r, slot);
    if (own->newer != NONE)
        ring_chain_of(r, own->newer)->older = own->older;
    else
        r->buckets[own->hash & r->bucket_mask] = own->older;
    if (own->older != NONE)
        ring_chain_of(r, own->older)->newer = own->newer;
}

static void ring_clear_buckets(struct svi_ring *r) {
    if (r->buckets)
        memset(r->buckets, 0xff, ((size_t)r->bucket_mask + 1) * sizeof *r->buckets); /* all NONE */
}

/* ---- room */

/* Where the columns begin; bytes of a slot. */
static size_t ring_lay_out(struct svi_ring *r) {
    size_t width = 0;
    for (int c = 0; c < SVI_RING_COLUMNS; c++) {
        r->at[c] = (uint8_t)width;
        if (svi_ring_has(r, (enum svi_ring_column)c))
            width += c == SVI_RING_NAME ? r->name_width : sizes[c];
    }
    return width;
}

/* A power of two, at most as full as one slot a bucket. */
static size_t ring_bucket_count(size_t capacity) {
    size_t count = 16;
    while (count < capacity)
        count *= 2;
    return count;
}

/* Allocates what `r` says: capacity, stride and columns. Rows and columns are one block, so a ring of few
 * samples is one piece of memory. */
static svs_code ring_allocate(struct svi_ring *r, const char *what, svs_error *err) {
    const size_t capacity = (size_t)r->capacity, buckets = ring_bucket_count(capacity),
                 row = (size_t)r->stride * sizeof(double);
    r->rows = svi_alloc_array(capacity, row + ring_lay_out(r));
    r->columns = r->rows ? (char *)r->rows + capacity * row : NULL;
    r->buckets = NULL;
    r->bucket_mask = (uint32_t)(buckets - 1);
    if (svi_ring_has(r, SVI_RING_CHAIN))
        r->buckets = svi_alloc_array(buckets, sizeof *r->buckets);
    if (r->rows && (r->buckets || !svi_ring_has(r, SVI_RING_CHAIN)))
        return SVS_OK;
    svi_free(r->rows);
    svi_free(r->buckets);
    return svi_fail_memory(err, what);
}

void svi_ring_init(struct svi_ring *r, int32_t max, int32_t stride, unsigned columns) {
    *r = (struct svi_ring){.max = max, .stride = stride > 0 ? stride : 1, .has = (uint16_t)columns};
}

void svi_ring_clear(struct svi_ring *r) {
    svi_free(r->rows);
    svi_free(r->buckets);
    *r = (struct svi_ring){0};
}

void svi_ring_empty(struct svi_ring *r) {
    r->first = r->count = r->live = r->dead = 0;
    ring_clear_buckets(r);
}

double svi_ring_memory(double max, int stride, unsigned columns) {
    const bool ids = columns & SVI_RING_HAS(ID);
    struct svi_ring r = {.has = (uint16_t)columns};
    if (ids)
        r.has |= SVI_RING_HAS(KIND) | (max > INDEX_FROM ? SVI_RING_HAS(CHAIN) : 0);
    const double slot = (double)ring_lay_out(&r) + 8.0 * stride;
    return max * slot + (ids && max > INDEX_FROM ? 4.0 * (double)ring_bucket_count((size_t)max) : 0);
}

/* ---- what is known of a slot */

struct svi_slot svi_ring_slot(const struct svi_ring *r, int32_t slot) {
    static const struct svi_ring_scores unscored = {0};
    const uint8_t state = *svi_ring_state(r, slot);
    const struct svi_ring_scores *scored =
        svi_ring_has(r, SVI_RING_SCORED) ? svi_ring_scored(r, slot) : &unscored;
    return (struct svi_slot){.time = *svi_ring_time(r, slot),
                             .weight = svi_ring_double(r, SVI_RING_WEIGHT, slot, 1),
                             .factor = svi_ring_double(r, SVI_RING_FACTOR, slot, 1),
                             .target = svi_ring_target(r, slot),
                             .number = svi_ring_number(r, slot),
                             .order = svi_ring_order(r, slot),
                             .version = scored->version,
                             .label = svi_ring_label(r, slot),
                             .predicted = scored->predicted,
                             .class_count = scored->class_count,
                             .live = state & SVI_SLOT_LIVE,
                             .learned = state & SVI_SLOT_LEARNED,
                             .id = svi_ring_id(r, slot)};
}

/* A small label fits into the state byte, above the two flags (stored as label + 1, so that -1 is 0); only
 * larger ones need a column. */
void svi_ring_set_label(struct svi_ring *r, int32_t slot, int32_t label) {
    uint8_t *state = svi_ring_state(r, slot);
    if (svi_ring_has(r, SVI_RING_LABEL))
        ((int32_t *)svi_ring_column(r, SVI_RING_LABEL))[slot] = label;
    else
        *state = (uint8_t)((*state & (SVI_SLOT_LIVE | SVI_SLOT_LEARNED)) | (unsigned)(label + 1) << 2);
}

static void ring_put_double(struct svi_ring *r, enum svi_ring_column column, int32_t slot, double value) {
    if (svi_ring_has(r, column))
        ((double *)svi_ring_column(r, column))[slot] = value;
}

void svi_ring_put_more(struct svi_ring *r, int32_t slot, const struct svi_slot *s) {
    if (svi_ring_has(r, SVI_RING_LABEL))
        svi_ring_set_label(r, slot, s->label);
    ring_put_double(r, SVI_RING_WEIGHT, slot, s->weight);
    ring_put_double(r, SVI_RING_FACTOR, slot, s->factor);
    ring_put_double(r, SVI_RING_TARGET, slot, s->target);
    if (svi_ring_has(r, SVI_RING_ORDER))
        ((int64_t *)svi_ring_column(r, SVI_RING_ORDER))[slot] = s->order;
    if (svi_ring_has(r, SVI_RING_NUMBER))
        svi_ring_set_number(r, slot, s->number);
    if (svi_ring_has(r, SVI_RING_SCORED))
        *svi_ring_scored(r, slot) = (struct svi_ring_scores){s->version, s->predicted, s->class_count};
    ring_put_id(r, slot, s->id);
}

/* Everything of s into the columns that there are; it is not found by its id yet. */
static void ring_put(struct svi_ring *r, int32_t slot, const struct svi_slot *s) {
    svi_ring_put_window(r, slot, s);
    if (r->has != SVI_RING_WINDOW)
        svi_ring_put_more(r, slot, s);
}

/* ---- more space */

/* What becomes of a row: `keep` doubles stay, `tail` doubles move. */
struct ring_columns {
    int32_t stride, keep, from, to, tail;
};

/* Everything moves to a new block, oldest first, and the index is made again. `has` and `name_width`: the
 * columns of now. The copy follows svi_slot, which reads any set of columns and writes any other. */
static svs_code ring_move(struct svi_ring *r, int32_t capacity, const struct ring_columns *c, unsigned has,
                          int name_width, svs_error *err) {
    struct svi_ring old = *r, now = *r;
    now.capacity = capacity;
    now.stride = c->stride;
    now.first = 0;
    now.has = (uint16_t)has;
    now.name_width = (uint8_t)name_width;
    if (svi_ring_has(&now, SVI_RING_ID) && capacity > INDEX_FROM)
        now.has |= SVI_RING_HAS(CHAIN);
    SVI_TRY(ring_allocate(&now, "more samples", err));
    /* Committed before the copies: nothing after the allocation can fail. */
    *r = now;
    ring_clear_buckets(r);
    for (int32_t i = 0; i < r->count; i++) {
        const int32_t from = svi_ring_at(&old, i);
        const double *row = svi_ring_row(&old, from);
        const struct svi_slot s = svi_ring_slot(&old, from);
        ring_put(r, i, &s);
        memcpy(svi_ring_row(r, i), row, (size_t)c->keep * sizeof *row);
        memcpy(svi_ring_row(r, i) + c->to, row + c->from, (size_t)c->tail * sizeof *row);
        ring_chain(r, i, s.id);
    }
    svi_ring_clear(&old);
    return SVS_OK;
}

/* The columns that hold s as well. */
static unsigned ring_columns_for(const struct svi_ring *r, const struct svi_slot *s) {
    const bool ordered = svi_ring_ordered(r, s->order);
    return r->has | (s->weight != 1 ? SVI_RING_HAS(WEIGHT) : 0) |
           (s->factor != 1 ? SVI_RING_HAS(FACTOR) : 0) | (ordered ? 0 : SVI_RING_HAS(ORDER)) |
           (s->label > SVI_SLOT_LABEL_MAX ? SVI_RING_HAS(LABEL) : 0) |
           (s->id.kind != SVS_NONE ? SVI_RING_HAS(ID) | SVI_RING_HAS(KIND) : 0) |
           (s->id.kind == SVS_STR ? SVI_RING_HAS(NAME) : 0);
}

/* Twice as many slots. At last, and where these are much memory, exactly as many as there may be: another
 * doubling would take memory that is never used. */
static int32_t ring_more(const struct svi_ring *r) {
    const int32_t least = r->max < FIRST_CAPACITY ? r->max : FIRST_CAPACITY;
    if (r->capacity > r->max / 2 || svi_grow_whole(svi_ring_memory(2 * r->capacity, r->stride, r->has),
                                                   svi_ring_memory(r->max, r->stride, r->has)))
        return r->max;
    return 2 * r->capacity > least ? 2 * r->capacity : least;
}

svs_code svi_ring_reserve(struct svi_ring *r, const struct svi_slot *s, svs_error *err) {
    const bool grow = r->count == r->capacity && r->capacity < r->max;
    const unsigned has = ring_columns_for(r, s);
    int width = r->name_width, capacity = r->capacity;
    /* Widths are 8, 16, 32 and 64 bytes. */
    while (s->id.kind == SVS_STR && width < (int)s->id.length)
        width = width ? 2 * width : SVS_NAME_MAX >> (WIDTHS - 1);
    if (!grow && has == r->has && width == r->name_width)
        return SVS_OK;
    if (grow)
        capacity = ring_more(r);
    struct ring_columns same = {.stride = r->stride, .keep = r->stride};
    svs_code code = ring_move(r, capacity, &same, has, width, err);
    if (code == SVS_NO_MEMORY && r->capacity > 0 && capacity / 2 > r->capacity) /* not all at once, then */
        code = ring_move(r, 2 * r->capacity, &same, has, width, err);
    return code;
}

svs_code svi_ring_restride(struct svi_ring *r, int32_t stride, int32_t keep, int32_t from, int32_t to,
                           int32_t tail, svs_error *err) {
    struct ring_columns c = {stride, keep, from, to, tail};
    if (r->capacity > 0)
        return ring_move(r, r->capacity, &c, r->has, r->name_width, err);
    r->stride = stride;
    return SVS_OK;
}

/* ---- samples */

void svi_ring_insert(struct svi_ring *r, int32_t slot, const struct svi_slot *s) {
    svi_ring_put_more(r, slot, s);
    ring_chain(r, slot, s->id);
}

/* A live slot is dead from now on, and no longer found. Its id goes with it: a dead slot has none. */
static inline void ring_take_out(struct svi_ring *r, int32_t slot) {
    *svi_ring_state(r, slot) &= (uint8_t)~SVI_SLOT_LIVE;
    r->live--;
    if (!svi_ring_has(r, SVI_RING_ID) || *ring_kind(r, slot) == 0)
        return;
    if (r->buckets)
        ring_unchain(r, slot);
    *ring_kind(r, slot) = 0;
}

/* Slots may have died behind those that were counted. */
static inline void ring_count_dead(struct svi_ring *r) {
    while (r->dead < r->count && !svi_ring_live(r, svi_ring_at(r, r->dead)))
        r->dead++;
}

/* Popping passes over dead slots without touching their columns. */
void svi_ring_pop(struct svi_ring *r) {
    if (r->dead > 0)
        r->dead--;
    else
        ring_take_out(r, r->first);
    r->first = svi_ring_at(r, 1);
    r->count--;
    ring_count_dead(r);
}

void svi_ring_kill(struct svi_ring *r, int32_t slot) {
    ring_take_out(r, slot);
    ring_count_dead(r);
}

/* Live slots move down over dead ones, in their order. A slot never moves up, so what is copied has not been
 * overwritten. Numbers have gaps afterwards, which is why they get a column where they matter. */
void svi_ring_squeeze(struct svi_ring *r) {
    int32_t kept = 0;
    ring_clear_buckets(r);
    for (int32_t i = 0; i < r->count; i++) {
        const int32_t from = svi_ring_at(r, i), to = svi_ring_at(r, kept);
        if (!svi_ring_live(r, from))
            continue;
        const struct svi_slot s = svi_ring_slot(r, from);
        if (to != from) {
            ring_put(r, to, &s);
            memcpy(svi_ring_row(r, to), svi_ring_row(r, from), (size_t)r->stride * sizeof *r->rows);
        }
        ring_chain(r, to, s.id);
        kept++;
    }
    r->count = kept;
    r->dead = 0;
}

/* The hash is compared before the id, which lies in another column. */
static int32_t ring_matching(const struct svi_ring *r, int32_t slot, svs_value id, uint32_t hash) {
    while (slot != NONE &&
           !(ring_chain_of(r, slot)->hash == hash && svs_value_equal(svi_ring_id(r, slot), id)))
        slot = ring_chain_of(r, slot)->older;
    return slot;
}

/* The newest of the `count` oldest slots that has the id. */
static int32_t ring_look(const struct svi_ring *r, int32_t count, svs_value id) {
    const uint8_t kind = id.kind == SVS_INT ? KIND_INT : (uint8_t)id.length;
    for (int32_t i = count - 1; i >= 0; i--) {
        const int32_t slot = svi_ring_at(r, i);
        if (*ring_kind(r, slot) == kind && svs_value_equal(svi_ring_id(r, slot), id))
            return slot;
    }
    return NONE;
}

int32_t svi_ring_find(const struct svi_ring *r, svs_value id) {
    if (!svi_ring_has(r, SVI_RING_ID) || !(id.kind == SVS_INT || id.kind == SVS_STR) ||
        id.length > SVS_NAME_MAX)
        return NONE;
    if (!r->buckets)
        return ring_look(r, r->count, id);
    const uint32_t hash = ring_hash_of(id);
    return ring_matching(r, r->buckets[hash & r->bucket_mask], id, hash);
}

int32_t svi_ring_find_older(const struct svi_ring *r, int32_t slot) {
    const svs_value id = svi_ring_id(r, slot);
    if (r->buckets) {
        const struct svi_chain *own = ring_chain_of(r, slot);
        return ring_matching(r, own->older, id, own->hash);
    }
    return ring_look(r, slot < r->first ? slot - r->first + r->capacity : slot - r->first, id);
}

/* ---- the archive */

/* A piece is small enough for the second-level cache and large enough that a column's name costs nothing. */
#define PIECE_DOUBLES 32768 /* of rows: what a second-level cache holds */
#define PIECE_SLOTS   4096
#define KEY_MAX       64

/* The state of a slot in one byte. */
#define LIVE       1u
#define LEARNED    2u
#define KIND_SHIFT 2 /* the enum svs_value_kind of the id stands above them */

/* Which rings have a column. */
#define LABELLED 1u /* window, classification */
#define TARGETED 2u /* window, regression */
#define WAITING  4u

#define SLOT(member) offsetof(struct svi_slot, member), sizeof(((struct svi_slot *)NULL)->member)

static const struct ring_column {
    const char *name;
    size_t offset, size;
    enum svi_archive_type type;
    unsigned of;
} columns[] = {
    {"times", SLOT(time), SVI_ARCHIVE_DOUBLES, LABELLED | TARGETED | WAITING},
    {"weights", SLOT(weight), SVI_ARCHIVE_DOUBLES, LABELLED | TARGETED | WAITING},
    {"orders", SLOT(order), SVI_ARCHIVE_INT64, LABELLED | TARGETED},
    {"labels", SLOT(label), SVI_ARCHIVE_INT32, LABELLED},
    {"targets", SLOT(target), SVI_ARCHIVE_DOUBLES, TARGETED},
    {"versions", SLOT(version), SVI_ARCHIVE_INT64, WAITING},
    {"predicted", SLOT(predicted), SVI_ARCHIVE_INT32, WAITING},
    {"classes", SLOT(class_count), SVI_ARCHIVE_INT32, WAITING},
};
#define COLUMNS ((int)(sizeof columns / sizeof columns[0]))

struct ring_piece {
    const struct svi_ring_kind *kind;
    unsigned of;
    int number, width, slots; /* width: of a row with its scores; slots: at most */
    int n;                    /* slots in it now */
    double *rows;
    int64_t *ids; /* an integer, or the length of a string */
    int64_t *column;
    char *names; /* the strings, one after the other */
    int64_t names_size;
    uint8_t *state;
    int64_t last_order;
};

enum { SLOTS, WIDTH };
static const struct svi_array piece_table[] = {
#define OWNER struct ring_piece
    SVI_ARRAY(OWNER, rows, NULL, SVI_AXIS(SLOTS), SVI_AXIS(WIDTH)),
    SVI_ARRAY(OWNER, ids, NULL, SVI_AXIS(SLOTS)),
    SVI_ARRAY(OWNER, column, NULL, SVI_AXIS_LENGTH(COLUMNS),
              SVI_AXIS(SLOTS)), /* of entries of 8 bytes at most */
    SVI_ARRAY(OWNER, names, NULL, SVI_AXIS(SLOTS), SVI_AXIS_LENGTH(SVS_NAME_MAX)),
    SVI_ARRAY(OWNER, state, NULL, SVI_AXIS(SLOTS)),
#undef OWNER
};
static const struct svi_arrays piece_arrays = SVI_ARRAYS(piece_table, "a piece of the samples held");

/* A piece for `count` slots: where all of them fit into one, it takes memory for these alone. */
static svs_code ring_piece_new(struct ring_piece *p, const struct svi_ring_kind *kind, int32_t count,
                               svs_error *err) {
    const int width = kind->features + kind->scores, most = PIECE_DOUBLES / (width + 1) + 1;
    const int32_t slots = most < PIECE_SLOTS ? most : PIECE_SLOTS;
    const int32_t dims[] = {count < slots ? count : slots, width > 0 ? width : 1};
    *p = (struct ring_piece){.kind = kind, .width = width, .slots = dims[SLOTS]};
    p->of = kind->waiting ? WAITING : kind->regress ? TARGETED : LABELLED;
    return svi_arrays_alloc(&piece_arrays, p, dims, err);
}

static char *ring_entry(const struct ring_piece *p, int c, int i) {
    return (char *)(p->column + c * p->slots) + (size_t)i * columns[c].size;
}

/* Saving. */

/* Fills entry i of the piece from a slot. Columns go by offset in svi_slot: a new fact of a slot needs a row
 * in `columns` and nothing here. */
static void ring_gather_slot(struct ring_piece *p, int i, const struct svi_slot *s, const double *row) {
    double *to = p->rows + (size_t)i * (size_t)p->width;
    p->state[i] = (unsigned char)(s->live * LIVE | s->learned * LEARNED | (unsigned)s->id.kind << 2);
    p->ids[i] = s->id.kind == SVS_INT ? s->id.as.i : s->id.kind == SVS_STR ? s->id.length : 0;
    if (s->id.kind == SVS_STR) {
        memcpy(p->names + p->names_size, s->id.as.s, s->id.length);
        p->names_size += s->id.length;
    }
    for (int c = 0; c < COLUMNS; c++)
        if (columns[c].of & p->of)
            memcpy(ring_entry(p, c, i), (const char *)s + columns[c].offset, columns[c].size);
    memset(to, 0, (size_t)p->width * sizeof *to);
    if (s->live) {
        memcpy(to, row, (size_t)p->kind->features * sizeof *to);
        memcpy(to + p->kind->features, row + p->kind->scores_at,
               p->kind->waiting ? (size_t)svi_rows_of(s->class_count) * sizeof *to : 0);
    }
}

static void ring_gather(struct ring_piece *p, const struct svi_ring *r, int32_t from) {
    static const struct svi_slot dead = {0};
    p->names_size = 0;
    for (int i = 0; i < p->n; i++) {
        const int32_t at = svi_ring_at(r, from + i);
        const struct svi_slot s = svi_ring_live(r, at) ? svi_ring_slot(r, at) : dead;
        ring_gather_slot(p, i, &s, svi_ring_row(r, at));
    }
}

/* Loading. */

/* States and lengths come first: what follows is sized by them. */
static bool ring_check_state(struct svi_archive *a, struct ring_piece *p) {
    bool good = true;
    p->names_size = 0;
    for (int i = 0; i < p->n; i++) {
        unsigned s = p->state[i], kind = s >> KIND_SHIFT;
        good &= kind == SVS_NONE || kind == SVS_INT || kind == SVS_STR;
        good &= (s & LIVE) ? kind != SVS_NONE || !p->kind->waiting : s == 0;
        good &= !(s & LEARNED) || !p->kind->waiting;
        if (kind != SVS_STR)
            continue;
        if (p->ids[i] < 1 || p->ids[i] > SVS_NAME_MAX) /* added to nothing before it is known to be small */
            good = false;
        else
            p->names_size += p->ids[i];
    }
    return svi_archive_check(a, good, "a sample's state or id is invalid");
}

/* The facts of one slot against each other and against what the learner holds. Orders do not fall, since
 * samples are learned in their order. */
static bool ring_good_slot(const struct ring_piece *p, const struct svi_slot *s, const double *row) {
    const struct svi_ring_kind *k = p->kind;
    bool good = isfinite(s->time) && s->weight > 0 && s->weight <= SVI_VALUE_MAX;
    for (int j = 0; j < k->features; j++)
        good &= fabs(row[j]) <= SVI_VALUE_MAX;
    if (k->waiting)
        return good && s->class_count >= 0 && s->class_count <= k->class_count && s->predicted >= -1 &&
               s->predicted < (s->class_count > 0 ? s->class_count : 0);
    good &= s->order >= p->last_order && s->order <= k->order;
    return good &&
           (k->regress ? fabs(s->target) <= SVI_VALUE_MAX : s->label >= 0 && s->label < k->class_count);
}

/* The facts of entry i, of an id that is known. False: they cannot be. */
static bool ring_read_slot(struct ring_piece *p, int i, struct svi_slot *s) {
    for (int c = 0; c < COLUMNS; c++)
        if (columns[c].of & p->of)
            memcpy((char *)s + columns[c].offset, ring_entry(p, c, i), columns[c].size);
    s->learned = p->state[i] & LEARNED;
    if (!ring_good_slot(p, s, p->rows + (size_t)i * (size_t)p->width))
        return false;
    if (!p->kind->waiting)
        p->last_order = s->order;
    return true;
}

static void ring_fill_row(const struct ring_piece *p, int i, double *row, int class_count) {
    const double *from = p->rows + (size_t)i * (size_t)p->width;
    memcpy(row, from, (size_t)p->kind->features * sizeof *row);
    if (p->kind->waiting)
        memcpy(row + p->kind->scores_at, from + p->kind->features,
               (size_t)svi_rows_of(class_count) * sizeof *row);
}

/* The id of entry i; false: its bytes are not an id. */
static bool ring_read_id(const struct ring_piece *p, int i, const char **name, svs_value *id) {
    *id = (svs_value){.kind = (uint8_t)(p->state[i] >> KIND_SHIFT)};
    if (id->kind == SVS_INT)
        id->as.i = p->ids[i];
    if (id->kind != SVS_STR)
        return true;
    id->length = (uint32_t)p->ids[i];
    id->as.s = *name;
    *name += id->length;
    return svi_utf8_valid(id->as.s, id->length);
}

/* Pushed like new samples, so that the loaded ring has the columns it needs, whatever ring was saved. */
static void ring_push_all(struct svi_archive *a, struct svi_ring *r, struct ring_piece *p) {
    const char *name = p->names;
    for (int i = 0; i < p->n && svi_archive_ok(a); i++) {
        /* A dead slot is pushed and killed: numbers and orders of those behind it stay right. */
        const bool live = p->state[i] & LIVE;
        struct svi_slot s = {
            .weight = 1, .factor = 1, .target = NAN, .label = -1, .order = r->pushed + r->ahead};
        if (!svi_archive_check(a, ring_read_id(p, i, &name, &s.id), "an id is not valid UTF-8") ||
            !svi_archive_check(a, !live || ring_read_slot(p, i, &s), "a sample is out of range"))
            return;
        if (svi_ring_reserve(r, &s, a->err) != SVS_OK)
            return;
        const int32_t at = svi_ring_push(r, &s);
        if (live)
            ring_fill_row(p, i, svi_ring_row(r, at), s.class_count);
        else
            svi_ring_kill(r, at);
    }
}

static const char *ring_key(const struct ring_piece *p, const char *field, char *text) {
    snprintf(text, KEY_MAX, "%s %d %s", p->kind->name, p->number, field);
    return text;
}

/* One function saves and loads a piece; its fields and their order are the format. */
static void ring_archive_piece(struct svi_archive *a, struct ring_piece *p) {
    char text[KEY_MAX];
    svi_archive_bytes(a, ring_key(p, "states", text), p->state, p->n);
    svi_archive_int64s(a, ring_key(p, "ids", text), p->ids, p->n, INT64_MIN, INT64_MAX);
    if (!svi_archive_ok(a) || (a->loading && !ring_check_state(a, p)))
        return;
    svi_archive_bytes(a, ring_key(p, "names", text), p->names, p->names_size);
    for (int c = 0; c < COLUMNS && svi_archive_ok(a); c++)
        if (columns[c].of & p->of)
            a->form->block(a, ring_key(p, columns[c].name, text), columns[c].type, ring_entry(p, c, 0), p->n);
    svi_archive_doubles(a, ring_key(p, "rows", text), p->rows, (int64_t)p->n * p->width);
}

void svi_ring_archive(struct svi_archive *a, struct svi_ring *r, const struct svi_ring_kind *kind) {
    char text[KEY_MAX];
    struct ring_piece p;
    int count = r->count;
    int64_t pushed = r->pushed;
    snprintf(text, sizeof text, "%s count", kind->name);
    svi_archive_int(a, text, &count, 0, r->max);
    snprintf(text, sizeof text, "%s pushed", kind->name);
    svi_archive_int64(a, text, &pushed, count, SVI_COUNT_MAX);
    if (!svi_archive_ok(a))
        return;
    if (a->loading)
        r->pushed = pushed - count; /* numbers rise by one from slot to slot */
    if (count == 0)
        return;
    if (ring_piece_new(&p, kind, count, a->err) != SVS_OK)
        return;
    for (int32_t from = 0; from < count && svi_archive_ok(a); from += p.n, p.number++) {
        p.n = count - from < p.slots ? count - from : p.slots;
        if (!a->loading)
            ring_gather(&p, r, from);
        ring_archive_piece(a, &p);
        if (a->loading && svi_archive_ok(a))
            ring_push_all(a, r, &p);
    }
    svi_arrays_free(&piece_arrays, &p);
}

/* Where slots were squeezed the numbers do not rise by one, and are archived on their own. */
void svi_ring_archive_numbers(struct svi_archive *a, struct svi_ring *r, const char *name) {
    int64_t last = -1;
    bool rising = true;
    int64_t *numbers = svi_alloc_array((size_t)r->count + 1, sizeof *numbers);
    if (!numbers) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the numbers of the samples held");
        return;
    }
    for (int32_t i = 0; i < r->count; i++)
        numbers[i] = svi_ring_number(r, svi_ring_at(r, i));
    svi_archive_int64s(a, name, numbers, r->count, 0, r->pushed - 1);
    for (int32_t i = 0; a->loading && svi_archive_ok(a) && i < r->count; i++) {
        rising &= numbers[i] > last;
        last = numbers[i];
        svi_ring_set_number(r, svi_ring_at(r, i), last);
    }
    svi_free(numbers);
    svi_archive_check(a, rising, "the numbers of the samples held do not rise");
}

/* In pieces of 256, each checked as it comes: a factor and the sample's own weight must give a usable
 * product. */
void svi_ring_archive_factors(struct svi_archive *a, struct svi_ring *r, const char *name) {
    double piece[256];
    char text[KEY_MAX];
    for (int32_t from = 0, n; from < r->count && svi_archive_ok(a); from += n) {
        bool good = true;
        n = r->count - from < 256 ? r->count - from : 256;
        for (int32_t i = 0; i < n; i++) {
            const int32_t at = svi_ring_at(r, from + i);
            piece[i] = svi_ring_live(r, at) ? svi_ring_double(r, SVI_RING_FACTOR, at, 1) : 1;
        }
        snprintf(text, sizeof text, "%s %d", name, from / 256);
        svi_archive_finite(a, text, piece, n);
        for (int32_t i = 0; a->loading && svi_archive_ok(a) && i < n; i++) {
            const int32_t at = svi_ring_at(r, from + i);
            svi_ring_set_factor(r, at, piece[i]);
            good &= piece[i] > 0 && (!svi_ring_live(r, at) ||
                                     (svi_ring_weight(r, at) > 0 && svi_ring_weight(r, at) <= SVI_VALUE_MAX));
        }
        svi_archive_check(a, good, "the factor of a sample's class is out of range");
    }
}
