/* Keys by name: open addressing over pointers, with lists through the entries.
 *
 * The first 8 bits of a hash say which of PARTS small tables a key is in, and each grows by itself.
 * Of a million keys only some thousands move at once, so no sample waits for all of them. Places
 * are taken by linear probing and freed by moving back what follows, without marks of removed
 * entries. A stream whose keys change all the time thus does not slow down. At most 3/4 of them are
 * taken. A table of the same kind counts the keys that each source began.
 *
 * Three lists run through the entries:
 *  - before/after, in the order of beginning, which all results follow;
 *  - sooner/later, by when keys were last seen, sorted only on demand;
 *  - newer/older, of the keys in memory, about by last use, which affects time alone.
 *
 * Order: table_place, svi_key_table_add, svi_key_table_remove, then each list with its own. */
#include "fleet/key_table.h"

#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"

#define MIN_OWNER_PLACES 64 /* places; a power of 2 */
#define MIN_PART_PLACES  8  /* of a part; a power of 2 */
#define PARTS            256
#define MAX_CHANCES      64 /* keys that are passed over when one is to leave memory */
#define PART_SHIFT       56 /* of a hash: what is left says which part */

struct owner_count {
    uint64_t owner;
    int64_t keys; /* 0: the place is free */
};

/* The hash is here too: a search passes other keys without reading their entries. */
struct key_spot {
    uint64_t hash;
    struct svi_key_entry *key; /* NULL: it is free */
};

struct table_part {
    struct key_spot *place; /* NULL: no key was in it yet */
    size_t places, taken;   /* places: a power of 2 */
};

struct svi_key_table {
    struct table_part part[PARTS];
    struct owner_count *owners;
    size_t owner_places, owner_count;
    int64_t part_of_owner, beyond; /* keys of owners beyond that many each */
    int64_t count, in_memory;
    struct svi_key_entry *first, *last, *newest, *oldest;
    struct svi_key_entry *silent, *latest; /* ends of the list by `last_arrival` */
    uint64_t turns;
    bool ordered; /* by turns: by silence */
};

uint64_t svi_key_hash(const char *name, size_t length) {
    return XXH3_64bits(name, length);
}

svi_key_table *svi_key_table_new(svs_error *err) {
    svi_key_table *t = svi_alloc(sizeof *t);
    if (t)
        t->owners = svi_alloc_array(t->owner_places = MIN_OWNER_PLACES, sizeof *t->owners);
    if (!t || !t->owners) {
        svi_fail_memory(err, "the table of keys");
        svi_key_table_free(&t);
    }
    return t;
}

void svi_key_table_free(svi_key_table **t) {
    if (!*t)
        return;
    for (struct svi_key_entry *k = (*t)->first, *after; k; k = after) {
        after = k->after;
        svi_prior_key_clear(&k->common);
        svi_free(k);
    }
    for (int i = 0; i < PARTS; i++)
        svi_free((*t)->part[i].place);
    svi_free((*t)->owners);
    svi_free(*t);
    *t = NULL;
}

/* ---- how many keys each source began */

/* The place of this owner, or the free one where it belongs. There is always a free place (owners_reserve).
 */
static struct owner_count *owner_find(const svi_key_table *t, uint64_t owner) {
    size_t i = owner & (t->owner_places - 1);
    while (t->owners[i].keys > 0 && t->owners[i].owner != owner)
        i = (i + 1) & (t->owner_places - 1);
    return &t->owners[i];
}

static bool owners_reserve(svi_key_table *t) {
    struct owner_count *old = t->owners;
    const size_t places = t->owner_places;
    if (4 * (t->owner_count + 1) <= 3 * places)
        return true;
    struct owner_count *wider = svi_alloc_array(2 * places, sizeof *wider);
    if (!wider)
        return false;
    t->owners = wider;
    t->owner_places = 2 * places;
    for (size_t i = 0; i < places; i++)
        if (old[i].keys > 0)
            *owner_find(t, old[i].owner) = old[i];
    svi_free(old);
    return true;
}

static void owner_leave(svi_key_table *t, uint64_t owner) {
    struct owner_count *count = owner_find(t, owner);
    /* `beyond` is the sum of max(0, keys - part) over all owners: it falls by one where this owner is above
     * its part. */
    t->beyond -= count->keys > t->part_of_owner;
    if (count->keys == 0 || --count->keys > 0)
        return;
    t->owner_count--;
    /* Deletion from linear probing (Knuth, 6.4, Algorithm R): each entry up to the next free place moves
     * into the hole, unless its home lies behind the hole, where a search for it would not pass. */
    const size_t mask = t->owner_places - 1;
    size_t hole = (size_t)(count - t->owners);
    for (size_t i = (hole + 1) & mask; t->owners[i].keys > 0; i = (i + 1) & mask) {
        const size_t home = t->owners[i].owner & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        t->owners[hole] = t->owners[i];
        hole = i;
    }
    t->owners[hole] = (struct owner_count){0};
}

/* The sum is kept up to date for one part, that of the last call; another part, after other settings, is
 * added up again. */
int64_t svi_key_table_beyond(svi_key_table *t, int64_t part) {
    if (part == t->part_of_owner)
        return t->beyond;
    t->part_of_owner = part;
    t->beyond = 0;
    for (size_t i = 0; i < t->owner_places; i++)
        t->beyond += t->owners[i].keys > part ? t->owners[i].keys - part : 0;
    return t->beyond;
}

int64_t svi_key_table_owned(const svi_key_table *t, uint64_t owner) {
    return owner_find(t, owner)->keys;
}

/* ---- keys */

/* The place of this key, or the free one where it belongs. Low bits of the hash choose the place; the high
 * ones have chosen the part, and give no more evidence within it. */
static size_t table_place(const struct table_part *part, uint64_t hash, const char *name, size_t length) {
    const size_t mask = part->places - 1;
    size_t i = hash & mask;
    for (const struct svi_key_entry *k; (k = part->place[i].key); i = (i + 1) & mask)
        if (part->place[i].hash == hash && k->head.length == length && memcmp(k->name, name, length) == 0)
            break;
    return i;
}

struct svi_key_entry *svi_key_table_find(const svi_key_table *t, const char *name, size_t length) {
    const uint64_t hash = svi_key_hash(name, length);
    const struct table_part *part = &t->part[hash >> PART_SHIFT];
    return part->place ? part->place[table_place(part, hash, name, length)].key : NULL;
}

const void *svi_key_table_spot(const svi_key_table *t, uint64_t hash) {
    const struct table_part *part = &t->part[hash >> PART_SHIFT];
    return part->place ? &part->place[hash & (part->places - 1)] : NULL;
}

/* By the hash alone, without reading the entry: its caller only fetches it. */
const struct svi_key_entry *svi_key_table_guess(const svi_key_table *t, uint64_t hash) {
    const struct table_part *part = &t->part[hash >> PART_SHIFT];
    const size_t mask = part->places - 1;
    if (!part->place)
        return NULL;
    size_t i = hash & mask;
    while (part->place[i].key && part->place[i].hash != hash)
        i = (i + 1) & mask;
    return part->place[i].key;
}

/* Entries keep their address; only the places move. */
static bool places_reserve(struct table_part *part) {
    const struct table_part old = *part;
    if (4 * (old.taken + 1) <= 3 * old.places)
        return true;
    const size_t places = old.places ? 2 * old.places : MIN_PART_PLACES;
    struct key_spot *wider = svi_alloc_array(places, sizeof *wider);
    if (!wider)
        return false;
    *part = (struct table_part){wider, places, old.taken};
    for (size_t i = 0; i < old.places; i++)
        if (old.place[i].key)
            wider[table_place(part, old.place[i].hash, old.place[i].key->name,
                              old.place[i].key->head.length)] = old.place[i];
    svi_free(old.place);
    return true;
}

typedef int key_compare(const struct svi_key_entry *, const struct svi_key_entry *);

static int compare_entries(const struct svi_key_entry *a, const struct svi_key_entry *b) {
    return (a->head.number > b->head.number) - (a->head.number < b->head.number);
}

static int compare_turns(const struct svi_key_entry *a, const struct svi_key_entry *b) {
    const int c = (a->head.turn > b->head.turn) - (a->head.turn < b->head.turn);
    return c != 0 ? c : compare_entries(a, b);
}

/* Merges two lists that are in order, linked by `later`. On a tie a comes first: the sort is stable. */
static struct svi_key_entry *merge_keys(struct svi_key_entry *a, struct svi_key_entry *b,
                                        key_compare *compare) {
    struct svi_key_entry *first = NULL, **end = &first;
    while (a && b) {
        struct svi_key_entry **next = compare(a, b) <= 0 ? &a : &b;
        *end = *next;
        end = &(*end)->later;
        *next = *end;
    }
    *end = a ? a : b;
    return first;
}

/* A bottom-up merge sort over `later`, which needs no memory and so cannot fail. Each part[i] is
 * empty or a sorted list of 2^i keys. A new key is carried up like a bit that is added to a binary
 * number. */
static struct svi_key_entry *sort_keys(svi_key_table *t, key_compare *compare) {
    struct svi_key_entry *part[64] = {NULL}, *all = NULL;
    for (struct svi_key_entry *k = t->first; k; k = k->after) {
        struct svi_key_entry *list = k;
        int i = 0;
        for (k->later = NULL; part[i]; part[i++] = NULL)
            list = merge_keys(part[i], list, compare);
        part[i] = list;
    }
    /* The lists that are left, shorter ones first: those are the newer keys, so they are the second argument
     * of the merge. */
    for (int i = 0; i < 64; i++)
        all = merge_keys(part[i], all, compare);
    return all;
}

/* ---- when they were last seen */

static void turn_append(svi_key_table *t, struct svi_key_entry *k) {
    k->sooner = t->latest;
    k->later = NULL;
    *(t->latest ? &t->latest->later : &t->silent) = k;
    t->latest = k;
}

static void turn_leave(svi_key_table *t, struct svi_key_entry *k) {
    *(k->sooner ? &k->sooner->later : &t->silent) = k->later;
    *(k->later ? &k->later->sooner : &t->latest) = k->sooner;
}

/* Until the order is asked for the turn is all that is noted: a stream without keys.idle never pays for the
 * list. */
void svi_key_table_touch(svi_key_table *t, struct svi_key_entry *k) {
    k->head.turn = ++t->turns;
    if (!t->ordered)
        return;
    turn_leave(t, k);
    turn_append(t, k);
}

/* A list through `later` becomes that of the turns. */
static void turns_take(svi_key_table *t, struct svi_key_entry *all) {
    t->silent = t->latest = NULL;
    for (struct svi_key_entry *k = all, *later; k; k = later) {
        later = k->later;
        turn_append(t, k);
    }
}

/* From the first call on the list is kept in order, by each svi_key_table_touch. */
struct svi_key_entry *svi_key_table_silent(svi_key_table *t) {
    if (!t->ordered)
        turns_take(t, sort_keys(t, compare_turns));
    t->ordered = true;
    return t->silent;
}

/* ---- added and removed */

static void order_append(svi_key_table *t, struct svi_key_entry *k) {
    k->before = t->last;
    k->after = NULL;
    *(t->last ? &t->last->after : &t->first) = k;
    t->last = k;
}

struct svi_key_entry *svi_key_table_add(svi_key_table *t, const char *name, size_t length, uint64_t owner,
                                        svs_error *err) {
    const uint64_t hash = svi_key_hash(name, length);
    struct table_part *part = &t->part[hash >> PART_SHIFT];
    /* What can fail comes first: places in both tables, then the entry. */
    struct svi_key_entry *k =
        places_reserve(part) && owners_reserve(t) ? svi_alloc_plain(sizeof *k + length + 1) : NULL;
    if (!k) {
        svi_fail_memory(err, "one more key");
        return NULL;
    }
    k->hash = hash;
    k->head.length = (uint8_t)length;
    memcpy(k->name, name, length);
    k->head.owner = owner;
    order_append(t, k);
    part->place[table_place(part, hash, name, length)] = (struct key_spot){hash, k};
    part->taken++;
    turn_append(t, k);
    struct owner_count *o = owner_find(t, owner);
    t->owner_count += o->keys == 0;
    o->owner = owner;
    /* See owner_leave. */
    t->beyond += ++o->keys > t->part_of_owner;
    t->count++;
    return k;
}

void svi_key_table_remove(svi_key_table *t, struct svi_key_entry *k) {
    struct table_part *part = &t->part[k->hash >> PART_SHIFT];
    const size_t mask = part->places - 1;
    size_t hole = table_place(part, k->hash, k->name, k->head.length);
    svi_key_table_leave(t, k);
    /* As in owner_leave. */
    for (size_t i = (hole + 1) & mask; part->place[i].key; i = (i + 1) & mask) {
        const size_t home = part->place[i].hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        part->place[hole] = part->place[i];
        hole = i;
    }
    part->place[hole] = (struct key_spot){0};
    part->taken--;
    *(k->before ? &k->before->after : &t->first) = k->after;
    *(k->after ? &k->after->before : &t->last) = k->before;
    turn_leave(t, k);
    owner_leave(t, k->head.owner);
    t->count--;
    svi_prior_key_clear(&k->common);
    svi_free(k);
}

/* After a load: keys were added in the order of their records. `turns` must not fall below any turn that a
 * key has, and the list of turns is put in order when it is next asked for. */
void svi_key_table_sort(svi_key_table *t) {
    struct svi_key_entry *all = sort_keys(t, compare_entries);
    t->first = t->last = NULL;
    for (struct svi_key_entry *k = all; k; k = k->later) {
        order_append(t, k);
        t->turns = k->head.turn > t->turns ? k->head.turn : t->turns;
    }
    turns_take(t, all);
    t->ordered = false;
}

int64_t svi_key_table_count(const svi_key_table *t) {
    return t->count;
}

int64_t svi_key_table_in_memory(const svi_key_table *t) {
    return t->in_memory;
}

struct svi_key_entry *svi_key_table_first(const svi_key_table *t) {
    return t->first;
}

/* ---- last use */

void svi_key_table_leave(svi_key_table *t, struct svi_key_entry *k) {
    if (!k->listed)
        return;
    *(k->newer ? &k->newer->older : &t->newest) = k->older;
    *(k->older ? &k->older->newer : &t->oldest) = k->newer;
    k->newer = k->older = NULL;
    k->listed = false;
    t->in_memory--;
}

static void use_list(svi_key_table *t, struct svi_key_entry *k) {
    k->used = false;
    k->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = k;
    t->newest = k;
    k->listed = true;
    t->in_memory++;
}

/* A use only sets a mark; the list is not touched. That is the second-chance form of least recently used. */
void svi_key_table_use(svi_key_table *t, struct svi_key_entry *k) {
    if (k->listed)
        k->used = true;
    else
        use_list(t, k);
}

/* A key that was used since it got its place goes to the new end, with its mark cleared. After MAX_CHANCES
 * of them the next one has to go, whatever its mark: the time of an eviction is bounded. */
struct svi_key_entry *svi_key_table_oldest(svi_key_table *t) {
    struct svi_key_entry *k;
    for (int i = 0; i < MAX_CHANCES && (k = t->oldest) && k->used; i++) {
        svi_key_table_leave(t, k);
        use_list(t, k);
    }
    return t->oldest;
}
