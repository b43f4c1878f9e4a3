#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/ring.h"

#define NONE           (-1)
#define FIRST_CAPACITY 1024

static uint32_t hash_of(svs_value id) {
    uint64_t h = 14695981039346656037u;
    const unsigned char *bytes =
        id.kind == SVS_STR ? (const unsigned char *)id.as.s : (const unsigned char *)&id.as.i;
    size_t n = id.kind == SVS_STR ? id.length : sizeof id.as.i;
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 1099511628211u;
    return (uint32_t)(h ^ h >> 32);
}

static size_t bucket_count(int32_t capacity) {
    size_t n = 16;
    while (n < (size_t)capacity)
        n *= 2;
    return n;
}

static void chain(struct svi_ring *r, int32_t slot) {
    struct svi_slot *s = &r->slots[slot];
    int32_t *head = &r->buckets[s->hash & r->bucket_mask];
    s->older = *head;
    s->newer = NONE;
    if (*head != NONE)
        r->slots[*head].newer = slot;
    *head = slot;
}

static void unchain(struct svi_ring *r, int32_t slot) {
    struct svi_slot *s = &r->slots[slot];
    if (s->id.kind == SVS_NONE)
        return;
    if (s->newer != NONE)
        r->slots[s->newer].older = s->older;
    else
        r->buckets[s->hash & r->bucket_mask] = s->older;
    if (s->older != NONE)
        r->slots[s->older].newer = s->newer;
}

svs_code svi_ring_init(struct svi_ring *r, int32_t max, int32_t stride, svs_error *err) {
    *r = (struct svi_ring){.max = max, .stride = stride > 0 ? stride : 1};
    r->capacity = max < FIRST_CAPACITY ? max : FIRST_CAPACITY;
    if (max == 0)
        return SVS_OK;
    r->slots = svi_alloc_array((size_t)r->capacity, sizeof *r->slots);
    r->rows = svi_alloc_array((size_t)r->capacity * (size_t)r->stride, sizeof *r->rows);
    if (r->slots && r->rows)
        return SVS_OK;
    svi_ring_clear(r);
    return svi_fail_memory(err, "the samples held");
}

void svi_ring_clear(struct svi_ring *r) {
    svi_free(r->slots);
    svi_free(r->rows);
    svi_free(r->names);
    svi_free(r->buckets);
    *r = (struct svi_ring){0};
}

static void clear_buckets(struct svi_ring *r) {
    if (r->buckets)
        memset(r->buckets, 0xff, ((size_t)r->bucket_mask + 1) * sizeof *r->buckets); /* all NONE */
}

void svi_ring_empty(struct svi_ring *r) {
    r->first = r->count = r->live = 0;
    clear_buckets(r);
}

/* ---- room ------------------------------------------------------------------------------------------------
 */

struct room {
    struct svi_slot *slots;
    double *rows;
    char *names;
    int32_t *buckets;
    size_t bucket_count;
};

static bool take_room(struct room *n, int32_t capacity, int32_t stride, bool names, bool buckets) {
    n->bucket_count = bucket_count(capacity);
    n->slots = svi_alloc_array((size_t)capacity, sizeof *n->slots);
    n->rows = svi_alloc_array((size_t)capacity * (size_t)stride, sizeof *n->rows);
    n->names = names ? svi_alloc_array((size_t)capacity, SVS_NAME_MAX) : NULL;
    n->buckets = buckets ? svi_alloc_array(n->bucket_count, sizeof *n->buckets) : NULL;
    if (n->slots && n->rows && (n->names || !names) && (n->buckets || !buckets))
        return true;
    svi_free(n->slots);
    svi_free(n->rows);
    svi_free(n->names);
    svi_free(n->buckets);
    return false;
}

/* What becomes of a row: `keep` doubles stay, `tail` doubles move. */
struct columns {
    int32_t stride, keep, from, to, tail;
};

/* Everything moves to new room, oldest first, and the index is made anew. */
static svs_code move(struct svi_ring *r, int32_t capacity, const struct columns *c, bool names, bool buckets,
                     svs_error *err) {
    struct room n;
    if (!take_room(&n, capacity, c->stride, names, buckets))
        return svi_fail_memory(err, "more samples");
    struct svi_ring old = *r;
    r->slots = n.slots, r->rows = n.rows, r->names = n.names, r->buckets = n.buckets;
    r->bucket_mask = (uint32_t)(n.bucket_count - 1);
    r->capacity = capacity;
    r->stride = c->stride;
    r->first = 0;
    clear_buckets(r);
    for (int32_t i = 0; i < r->count; i++) {
        int32_t from = svi_ring_at(&old, i);
        struct svi_slot *s = &r->slots[i];
        *s = old.slots[from];
        const double *row = svi_ring_row(&old, from);
        memcpy(svi_ring_row(r, i), row, (size_t)c->keep * sizeof *row);
        memcpy(svi_ring_row(r, i) + c->to, row + c->from, (size_t)c->tail * sizeof *row);
        if (s->id.kind == SVS_STR) {
            memcpy(r->names + (size_t)i * SVS_NAME_MAX, s->id.as.s, s->id.length);
            s->id.as.s = r->names + (size_t)i * SVS_NAME_MAX;
        }
        if (s->live && s->id.kind != SVS_NONE)
            chain(r, i);
    }
    svi_free(old.slots);
    svi_free(old.rows);
    svi_free(old.names);
    svi_free(old.buckets);
    return SVS_OK;
}

svs_code svi_ring_reserve(struct svi_ring *r, svs_value id, svs_error *err) {
    bool grow = r->count == r->capacity && r->capacity < r->max;
    bool names = r->names || id.kind == SVS_STR, buckets = r->buckets || id.kind != SVS_NONE;
    if (!grow && names == !!r->names && buckets == !!r->buckets)
        return SVS_OK;
    int32_t capacity = !grow ? r->capacity : r->capacity > r->max / 2 ? r->max : 2 * r->capacity;
    struct columns same = {.stride = r->stride, .keep = r->stride};
    return move(r, capacity, &same, names, buckets, err);
}

svs_code svi_ring_restride(struct svi_ring *r, int32_t stride, int32_t keep, int32_t from, int32_t to,
                           int32_t tail, svs_error *err) {
    struct columns c = {stride, keep, from, to, tail};
    return r->max ? move(r, r->capacity, &c, r->names, r->buckets, err) : SVS_OK;
}

double svi_ring_memory(double max, int stride) {
    return max * (sizeof(struct svi_slot) + 8.0 * stride);
}

/* ---- samples ---------------------------------------------------------------------------------------------
 */

int32_t svi_ring_push(struct svi_ring *r, svs_value id) {
    int32_t slot = svi_ring_at(r, r->count);
    struct svi_slot *s = &r->slots[slot];
    *s = (struct svi_slot){.live = true, .id = id, .older = NONE, .newer = NONE, .number = r->pushed++};
    r->count++;
    r->live++;
    if (id.kind == SVS_STR) {
        memcpy(r->names + (size_t)slot * SVS_NAME_MAX, id.as.s, id.length);
        s->id.as.s = r->names + (size_t)slot * SVS_NAME_MAX;
    }
    if (id.kind != SVS_NONE) {
        s->hash = hash_of(id);
        chain(r, slot);
    }
    return slot;
}

void svi_ring_pop(struct svi_ring *r) {
    if (r->slots[r->first].live)
        svi_ring_kill(r, r->first);
    r->first = svi_ring_at(r, 1);
    r->count--;
}

void svi_ring_kill(struct svi_ring *r, int32_t slot) {
    unchain(r, slot);
    r->slots[slot].live = false;
    r->live--;
}

static int32_t matching(const struct svi_ring *r, int32_t slot, svs_value id, uint32_t hash) {
    while (slot != NONE && !(r->slots[slot].hash == hash && svs_value_equal(r->slots[slot].id, id)))
        slot = r->slots[slot].older;
    return slot;
}

int32_t svi_ring_find(const struct svi_ring *r, svs_value id) {
    if (!r->buckets || id.kind == SVS_NONE)
        return NONE;
    uint32_t hash = hash_of(id);
    return matching(r, r->buckets[hash & r->bucket_mask], id, hash);
}

int32_t svi_ring_find_older(const struct svi_ring *r, int32_t slot) {
    const struct svi_slot *s = &r->slots[slot];
    return matching(r, s->older, s->id, s->hash);
}

static const char *check_slot(const struct svi_ring *r, int32_t slot, bool *has_id) {
    const struct svi_slot *s = &r->slots[slot];
    *has_id = s->live && s->id.kind != SVS_NONE;
    if (!*has_id)
        return NULL;
    if (s->hash != hash_of(s->id))
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
        bool has_id;
        const char *wrong = check_slot(r, slot, &has_id);
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
    return chained == ids ? NULL : "the index does not hold exactly the live ids";
}
