/* Samples held, found by id (ring.h), and how they are archived.
 *
 * Slots lie in a circle from `first` on, `count` of them, the oldest first; each has its row at the same
 * place in `rows`. Live slots with an id are chained in the bucket of its hash, the newest first, so that a
 * search meets the newest of several first. Invariants: numbers rise from slot to slot; exactly the live
 * slots with an id are chained; a string id points into `names` at the slot's place (svi_ring_check).
 *
 * What can fail is in svi_ring_reserve, which moves everything to more room; push, pop and kill cannot. The
 * archive has a ring as pieces of a few thousand slots, oldest first, so that where a ring begins does not
 * show and the room to gather them in stays small. A piece is a handful of columns. A dead slot is all zero
 * there: a sample that was taken out is not kept. */
#include "learner/ring.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "base/text.h"

#define NONE           (-1)
#define FIRST_CAPACITY 1024

static uint32_t ring_hash_of(svs_value id) {
    const void *bytes = id.kind == SVS_STR ? (const void *)id.as.s : &id.as.i;
    const size_t n = id.kind == SVS_STR ? id.length : sizeof id.as.i;
    return (uint32_t)svi_fnv_fold(svi_fnv(SVI_FNV_SEED, bytes, n));
}

static void ring_chain(struct svi_ring *r, int32_t slot) {
    struct svi_slot *s = &r->slots[slot];
    int32_t *head = &r->buckets[s->hash & r->bucket_mask];
    s->older = *head;
    s->newer = NONE;
    if (*head != NONE)
        r->slots[*head].newer = slot;
    *head = slot;
}

/* Allocates what `r` says: capacity, stride and, if asked for, names and buckets. */
static svs_code ring_allocate(struct svi_ring *r, bool names, bool buckets, const char *what,
                              svs_error *err) {
    const size_t capacity = (size_t)r->capacity;
    size_t bucket_count = 16;
    while (bucket_count < capacity)
        bucket_count *= 2;
    r->slots = svi_alloc_array(capacity, sizeof *r->slots);
    r->rows = svi_alloc_array(capacity * (size_t)r->stride, sizeof *r->rows);
    r->names = names ? svi_alloc_array(capacity, SVS_NAME_MAX) : NULL;
    r->buckets = buckets ? svi_alloc_array(bucket_count, sizeof *r->buckets) : NULL;
    r->bucket_mask = (uint32_t)(bucket_count - 1);
    if (r->slots && r->rows && (r->names || !names) && (r->buckets || !buckets))
        return SVS_OK;
    svi_ring_clear(r);
    return svi_fail_memory(err, what);
}

svs_code svi_ring_init(struct svi_ring *r, int32_t max, int32_t stride, svs_error *err) {
    *r = (struct svi_ring){.max = max, .stride = stride > 0 ? stride : 1};
    r->capacity = max < FIRST_CAPACITY ? max : FIRST_CAPACITY;
    return max == 0 ? SVS_OK : ring_allocate(r, false, false, "the samples held", err);
}

void svi_ring_clear(struct svi_ring *r) {
    void *const all[] = {r->slots, r->rows, r->names, r->buckets};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    *r = (struct svi_ring){0};
}

static void ring_clear_buckets(struct svi_ring *r) {
    if (r->buckets)
        memset(r->buckets, 0xff, ((size_t)r->bucket_mask + 1) * sizeof *r->buckets); /* all NONE */
}

void svi_ring_empty(struct svi_ring *r) {
    r->first = r->count = r->live = r->dead = 0;
    ring_clear_buckets(r);
}

/* ---- room */

/* What becomes of a row: `keep` doubles stay, `tail` doubles move. */
struct ring_columns {
    int32_t stride, keep, from, to, tail;
};

/* Puts a string id's bytes into the ring's own room. */
static void ring_own_name(struct svi_ring *r, int32_t slot) {
    svs_value *id = &r->slots[slot].id;
    if (id->kind == SVS_STR)
        id->as.s = memcpy(r->names + (size_t)slot * SVS_NAME_MAX, id->as.s, id->length);
}

/* Everything moves to new room, oldest first, and the index is made again. */
static svs_code ring_move(struct svi_ring *r, int32_t capacity, const struct ring_columns *c, bool names,
                          bool buckets, svs_error *err) {
    struct svi_ring old = *r, now = *r;
    now.capacity = capacity;
    now.stride = c->stride;
    now.first = 0;
    svs_code code = ring_allocate(&now, names, buckets, "more samples", err);
    if (code != SVS_OK)
        return code;
    *r = now;
    ring_clear_buckets(r);
    for (int32_t i = 0; i < r->count; i++) {
        const int32_t from = svi_ring_at(&old, i);
        const double *row = svi_ring_row(&old, from);
        r->slots[i] = old.slots[from];
        memcpy(svi_ring_row(r, i), row, (size_t)c->keep * sizeof *row);
        memcpy(svi_ring_row(r, i) + c->to, row + c->from, (size_t)c->tail * sizeof *row);
        ring_own_name(r, i);
        if (r->slots[i].live && r->slots[i].id.kind != SVS_NONE)
            ring_chain(r, i);
    }
    svi_ring_clear(&old);
    return SVS_OK;
}

svs_code svi_ring_reserve(struct svi_ring *r, svs_value id, svs_error *err) {
    bool grow = r->count == r->capacity && r->capacity < r->max;
    bool names = r->names || id.kind == SVS_STR, buckets = r->buckets || id.kind != SVS_NONE;
    if (!grow && names == !!r->names && buckets == !!r->buckets)
        return SVS_OK;
    int32_t capacity = !grow ? r->capacity : r->capacity > r->max / 2 ? r->max : 2 * r->capacity;
    struct ring_columns same = {.stride = r->stride, .keep = r->stride};
    return ring_move(r, capacity, &same, names, buckets, err);
}

svs_code svi_ring_restride(struct svi_ring *r, int32_t stride, int32_t keep, int32_t from, int32_t to,
                           int32_t tail, svs_error *err) {
    struct ring_columns c = {stride, keep, from, to, tail};
    return r->max ? ring_move(r, r->capacity, &c, r->names, r->buckets, err) : SVS_OK;
}

double svi_ring_memory(double max, int stride) {
    return max * (sizeof(struct svi_slot) + 8.0 * stride);
}

/* ---- samples */

int32_t svi_ring_push(struct svi_ring *r, svs_value id) {
    int32_t slot = svi_ring_at(r, r->count);
    struct svi_slot *s = &r->slots[slot];
    *s = (struct svi_slot){
        .live = true, .factor = 1, .id = id, .older = NONE, .newer = NONE, .number = r->pushed++};
    r->count++;
    r->live++;
    ring_own_name(r, slot);
    if (id.kind != SVS_NONE) {
        s->hash = ring_hash_of(id);
        ring_chain(r, slot);
    }
    return slot;
}

void svi_ring_pop(struct svi_ring *r) {
    if (r->slots[r->first].live)
        svi_ring_kill(r, r->first);
    r->first = svi_ring_at(r, 1);
    r->count--;
    r->dead--;
}

void svi_ring_kill(struct svi_ring *r, int32_t slot) {
    struct svi_slot *s = &r->slots[slot];
    s->live = false;
    r->live--;
    while (r->dead < r->count && !r->slots[svi_ring_at(r, r->dead)].live)
        r->dead++;
    if (s->id.kind == SVS_NONE)
        return;
    if (s->newer != NONE)
        r->slots[s->newer].older = s->older;
    else
        r->buckets[s->hash & r->bucket_mask] = s->older;
    if (s->older != NONE)
        r->slots[s->older].newer = s->newer;
}

void svi_ring_squeeze(struct svi_ring *r) {
    int32_t kept = 0;
    ring_clear_buckets(r);
    for (int32_t i = 0; i < r->count; i++) {
        const int32_t from = svi_ring_at(r, i), to = svi_ring_at(r, kept);
        if (!r->slots[from].live)
            continue;
        if (to != from) {
            r->slots[to] = r->slots[from];
            memcpy(svi_ring_row(r, to), svi_ring_row(r, from), (size_t)r->stride * sizeof *r->rows);
            ring_own_name(r, to);
        }
        if (r->slots[to].id.kind != SVS_NONE)
            ring_chain(r, to);
        kept++;
    }
    r->count = kept;
    r->dead = 0;
}

static int32_t ring_matching(const struct svi_ring *r, int32_t slot, svs_value id, uint32_t hash) {
    while (slot != NONE && !(r->slots[slot].hash == hash && svs_value_equal(r->slots[slot].id, id)))
        slot = r->slots[slot].older;
    return slot;
}

int32_t svi_ring_find(const struct svi_ring *r, svs_value id) {
    if (!r->buckets || id.kind == SVS_NONE)
        return NONE;
    uint32_t hash = ring_hash_of(id);
    return ring_matching(r, r->buckets[hash & r->bucket_mask], id, hash);
}

int32_t svi_ring_find_older(const struct svi_ring *r, int32_t slot) {
    const struct svi_slot *s = &r->slots[slot];
    return ring_matching(r, s->older, s->id, s->hash);
}

static const char *ring_check_chain(const struct svi_ring *r, int32_t slot) {
    const struct svi_slot *s = &r->slots[slot];
    if (s->hash != ring_hash_of(s->id))
        return "a slot's hash is not its id's";
    if (s->newer == NONE && r->buckets[s->hash & r->bucket_mask] != slot)
        return "the newest of a bucket is not its head";
    if (s->older != NONE && (r->slots[s->older].newer != slot || r->slots[s->older].number >= s->number))
        return "a chain is broken or out of order";
    return NULL;
}

const char *svi_ring_check(const struct svi_ring *r) {
    int32_t live = 0;
    int64_t chained = 0, ids = 0, last = -1;
    for (int32_t i = 0; i < r->count; i++) {
        int32_t slot = svi_ring_at(r, i);
        const bool has_id = r->slots[slot].live && r->slots[slot].id.kind != SVS_NONE;
        const char *wrong = has_id ? ring_check_chain(r, slot) : NULL;
        if (wrong)
            return wrong;
        live += r->slots[slot].live;
        ids += has_id;
        if (r->slots[slot].number <= last)
            return "numbers do not rise";
        last = r->slots[slot].number;
    }
    for (size_t b = 0; r->buckets && b <= r->bucket_mask; b++)
        for (int32_t s = r->buckets[b]; s != NONE && chained <= ids; s = r->slots[s].older)
            chained++;
    if (live != r->live)
        return "the live count is wrong";
    for (int32_t i = 0; i <= r->dead && i < r->count; i++)
        if (r->slots[svi_ring_at(r, i)].live != (i == r->dead))
            return "the count of dead ones before the oldest is wrong";
    return chained == ids ? NULL : "the index does not hold exactly the live ids";
}

/* ---- the archive */

#define PIECE_DOUBLES 32768 /* of rows: what a second-level cache holds */
#define PIECE_SLOTS   4096
#define KEY_MAX       64

/* The state of a slot in one byte. */
#define LIVE    1u
#define LEARNED 2u
#define KIND(s) ((s) >> 2) /* enum svs_value_kind of the id */

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
    char *names;  /* the strings, one after the other */
    int64_t names_size;
    unsigned char *state, *column[COLUMNS];
    int64_t last_order;
};

static bool ring_piece_new(struct ring_piece *p, const struct svi_ring_kind *kind) {
    *p = (struct ring_piece){.kind = kind, .width = kind->features + kind->scores};
    p->of = kind->waiting ? WAITING : kind->regress ? TARGETED : LABELLED;
    p->slots = PIECE_DOUBLES / (p->width + 1) + 1;
    p->slots = p->slots < PIECE_SLOTS ? p->slots : PIECE_SLOTS;
    size_t n = (size_t)p->slots, row = (size_t)p->width * sizeof(double);
    size_t slot = row + sizeof(int64_t) + COLUMNS * sizeof(double) + SVS_NAME_MAX + 1;
    p->rows = svi_alloc_array(n, slot);
    if (!p->rows)
        return false;
    p->ids = (int64_t *)(p->rows + n * (size_t)p->width);
    unsigned char *at = (unsigned char *)(p->ids + n);
    for (int c = 0; c < COLUMNS; c++, at += n * sizeof(double))
        p->column[c] = at;
    p->names = (char *)at;
    p->state = at + n * SVS_NAME_MAX;
    return true;
}

/* Saving. */

/* Entry i of the piece from a slot. */
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
            memcpy(p->column[c] + (size_t)i * columns[c].size, (const char *)s + columns[c].offset,
                   columns[c].size);
    memset(to, 0, (size_t)p->width * sizeof *to);
    if (s->live) {
        memcpy(to, row, (size_t)p->kind->features * sizeof *to);
        memcpy(to + p->kind->features, row + p->kind->scores_at,
               p->kind->waiting ? (size_t)s->rows * sizeof *to : 0);
    }
}

static void ring_gather(struct ring_piece *p, const struct svi_ring *r, int32_t from) {
    static const struct svi_slot dead = {0};
    p->names_size = 0;
    for (int i = 0; i < p->n; i++) {
        int32_t at = svi_ring_at(r, from + i);
        ring_gather_slot(p, i, r->slots[at].live ? &r->slots[at] : &dead, svi_ring_row(r, at));
    }
}

/* Loading. */

static bool ring_check_state(struct svi_archive *a, struct ring_piece *p) {
    bool good = true;
    p->names_size = 0;
    for (int i = 0; i < p->n; i++) {
        unsigned s = p->state[i], kind = KIND(s);
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

/* Fills the slot that was pushed for entry i. False: it says what cannot be. */
static bool ring_scatter(struct ring_piece *p, const struct svi_ring *r, int32_t at, int i) {
    struct svi_slot *s = &r->slots[at];
    const double *from = p->rows + (size_t)i * (size_t)p->width;
    double *row = svi_ring_row(r, at);
    for (int c = 0; c < COLUMNS; c++)
        if (columns[c].of & p->of)
            memcpy((char *)s + columns[c].offset, p->column[c] + (size_t)i * columns[c].size,
                   columns[c].size);
    if (!ring_good_slot(p, s, from))
        return false;
    memcpy(row, from, (size_t)p->kind->features * sizeof *row);
    s->learned = p->state[i] & LEARNED;
    if (p->kind->waiting) {
        s->rows = s->class_count < 3 ? 1 : s->class_count;
        memcpy(row + p->kind->scores_at, from + p->kind->features, (size_t)s->rows * sizeof *row);
        return true;
    }
    if (p->kind->regress)
        s->label = -1;
    else
        s->target = NAN;
    p->last_order = s->order;
    return true;
}

static void ring_push_all(struct svi_archive *a, struct svi_ring *r, struct ring_piece *p) {
    const char *name = p->names;
    for (int i = 0; i < p->n && svi_archive_ok(a); i++) {
        svs_value id = {.kind = (uint8_t)KIND(p->state[i])};
        if (id.kind == SVS_INT)
            id.as.i = p->ids[i];
        if (id.kind == SVS_STR) {
            id.length = (uint32_t)p->ids[i];
            id.as.s = name;
            name += id.length;
            if (!svi_archive_check(a, svi_utf8_valid(id.as.s, id.length), "an id is not valid UTF-8"))
                return;
        }
        if (svi_ring_reserve(r, id, NULL) != SVS_OK) {
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the samples held");
            return;
        }
        int32_t at = svi_ring_push(r, id);
        if (p->state[i] & LIVE)
            svi_archive_check(a, ring_scatter(p, r, at, i), "a sample is out of range");
        else
            svi_ring_kill(r, at);
    }
}

static const char *ring_key(const struct ring_piece *p, const char *field, char *text) {
    snprintf(text, KEY_MAX, "%s %d %s", p->kind->name, p->number, field);
    return text;
}

static void ring_archive_piece(struct svi_archive *a, struct ring_piece *p) {
    char text[KEY_MAX];
    svi_archive_bytes(a, ring_key(p, "states", text), p->state, p->n);
    svi_archive_int64s(a, ring_key(p, "ids", text), p->ids, p->n, INT64_MIN, INT64_MAX);
    if (!svi_archive_ok(a) || (a->loading && !ring_check_state(a, p)))
        return;
    svi_archive_bytes(a, ring_key(p, "names", text), p->names, p->names_size);
    for (int c = 0; c < COLUMNS && svi_archive_ok(a); c++)
        if (columns[c].of & p->of)
            a->form->block(a, ring_key(p, columns[c].name, text), columns[c].type, p->column[c], p->n);
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
    if (!ring_piece_new(&p, kind)) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for a piece of the samples held");
        return;
    }
    for (int32_t from = 0; from < count && svi_archive_ok(a); from += p.n, p.number++) {
        p.n = count - from < p.slots ? count - from : p.slots;
        if (!a->loading)
            ring_gather(&p, r, from);
        ring_archive_piece(a, &p);
        if (a->loading && svi_archive_ok(a))
            ring_push_all(a, r, &p);
    }
    svi_free(p.rows);
}

void svi_ring_archive_numbers(struct svi_archive *a, struct svi_ring *r, const char *name) {
    int64_t last = -1;
    bool rising = true;
    int64_t *numbers = svi_alloc_array((size_t)r->count + 1, sizeof *numbers);
    if (!numbers) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the numbers of the samples held");
        return;
    }
    for (int32_t i = 0; i < r->count; i++)
        numbers[i] = r->slots[svi_ring_at(r, i)].number;
    svi_archive_int64s(a, name, numbers, r->count, 0, r->pushed - 1);
    for (int32_t i = 0; a->loading && svi_archive_ok(a) && i < r->count; i++) {
        rising &= numbers[i] > last;
        last = r->slots[svi_ring_at(r, i)].number = numbers[i];
    }
    svi_free(numbers);
    svi_archive_check(a, rising, "the numbers of the samples held do not rise");
}

void svi_ring_archive_factors(struct svi_archive *a, struct svi_ring *r, const char *name) {
    double piece[256];
    char text[KEY_MAX];
    for (int32_t from = 0, n; from < r->count && svi_archive_ok(a); from += n) {
        bool good = true;
        n = r->count - from < 256 ? r->count - from : 256;
        for (int32_t i = 0; i < n; i++) {
            const struct svi_slot *s = &r->slots[svi_ring_at(r, from + i)];
            piece[i] = s->live ? s->factor : 1;
        }
        snprintf(text, sizeof text, "%s %d", name, from / 256);
        svi_archive_finite(a, text, piece, n);
        for (int32_t i = 0; a->loading && svi_archive_ok(a) && i < n; i++) {
            struct svi_slot *s = &r->slots[svi_ring_at(r, from + i)];
            s->factor = piece[i];
            good &= s->factor > 0 && (!s->live || svi_slot_weight(s) > 0) &&
                    (!s->live || svi_slot_weight(s) <= SVI_VALUE_MAX);
        }
        svi_archive_check(a, good, "the factor of a sample's class is out of range");
    }
}
