/* Keys by name: open addressing over pointers, with lists through the entries.
 *
 * The first bits of a hash say which of several small tables a key is in, and each of these grows by itself:
 * of a million keys some thousands at once move to other places, so that no sample waits for all of them.
 * Places are taken by linear probing and given up by moving what follows back (no marks of removed entries,
 * so a stream whose keys come and go does not slow down). At most 3/4 of the places are taken. How many keys
 * each source began is counted in a table of the same kind, of numbers. */
#include "fleet/key_table.h"

#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"

#define OWNERS_LEAST 64 /* places; a power of 2 */
#define PLACES_LEAST 8  /* of a part; a power of 2 */
#define PARTS        256
#define CHANCES_MOST 64 /* keys that are passed over when one is to leave memory */
#define PART_SHIFT   56 /* of a hash: what is left says which part */

struct owner_count {
    uint64_t owner;
    int64_t keys; /* 0: the place is free */
};

/* The hash is here too: who looks for another key does not touch this one. */
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
    struct svi_key_entry *first, *last, *newest, *oldest, *silent, *heard; /* heard: the last one */
    uint64_t turns;
    bool ordered; /* by turns: silent to heard */
};

uint64_t svi_key_hash(const char *name, size_t length) {
    return XXH3_64bits(name, length);
}

svi_key_table *svi_key_table_new(svs_error *err) {
    svi_key_table *t = svi_alloc(sizeof *t);
    if (t)
        t->owners = svi_alloc_array(t->owner_places = OWNERS_LEAST, sizeof *t->owners);
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

/* ---- who began how many */

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
    struct owner_count *gone = owner_find(t, owner);
    t->beyond -= gone->keys > t->part_of_owner;
    if (gone->keys == 0 || --gone->keys > 0)
        return;
    t->owner_count--;
    const size_t mask = t->owner_places - 1;
    size_t hole = (size_t)(gone - t->owners);
    for (size_t i = (hole + 1) & mask; t->owners[i].keys > 0; i = (i + 1) & mask) {
        const size_t home = t->owners[i].owner & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        t->owners[hole] = t->owners[i];
        hole = i;
    }
    t->owners[hole] = (struct owner_count){0};
}

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

static bool places_reserve(struct table_part *part) {
    const struct table_part old = *part;
    if (4 * (old.taken + 1) <= 3 * old.places)
        return true;
    const size_t places = old.places ? 2 * old.places : PLACES_LEAST;
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

/* Two lists that are in order, through `later`, as one. */
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

/* A merge sort from the bottom up over `later`, which needs no memory: lists of 1, 2, 4, ... keys. */
static struct svi_key_entry *sort_keys(svi_key_table *t, key_compare *compare) {
    struct svi_key_entry *part[64] = {NULL}, *all = NULL;
    for (struct svi_key_entry *k = t->first; k; k = k->after) {
        struct svi_key_entry *list = k;
        int i = 0;
        for (k->later = NULL; part[i]; part[i++] = NULL)
            list = merge_keys(part[i], list, compare);
        part[i] = list;
    }
    for (int i = 0; i < 64; i++)
        all = merge_keys(part[i], all, compare);
    return all;
}

/* ---- when they were heard */

static void turn_append(svi_key_table *t, struct svi_key_entry *k) {
    k->sooner = t->heard;
    k->later = NULL;
    *(t->heard ? &t->heard->later : &t->silent) = k;
    t->heard = k;
}

static void turn_leave(svi_key_table *t, struct svi_key_entry *k) {
    *(k->sooner ? &k->sooner->later : &t->silent) = k->later;
    *(k->later ? &k->later->sooner : &t->heard) = k->sooner;
}

void svi_key_table_hear(svi_key_table *t, struct svi_key_entry *k) {
    k->head.turn = ++t->turns;
    if (!t->ordered)
        return;
    turn_leave(t, k);
    turn_append(t, k);
}

/* A list through `later` becomes that of the turns. */
static void turns_take(svi_key_table *t, struct svi_key_entry *all) {
    t->silent = t->heard = NULL;
    for (struct svi_key_entry *k = all, *later; k; k = later) {
        later = k->later;
        turn_append(t, k);
    }
}

struct svi_key_entry *svi_key_table_silent(svi_key_table *t) {
    if (!t->ordered)
        turns_take(t, sort_keys(t, compare_turns));
    t->ordered = true;
    return t->silent;
}

/* ---- they come and go */

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
    t->beyond += ++o->keys > t->part_of_owner;
    t->count++;
    return k;
}

void svi_key_table_remove(svi_key_table *t, struct svi_key_entry *k) {
    struct table_part *part = &t->part[k->hash >> PART_SHIFT];
    const size_t mask = part->places - 1;
    size_t hole = table_place(part, k->hash, k->name, k->head.length);
    svi_key_table_leave(t, k);
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

void svi_key_table_use(svi_key_table *t, struct svi_key_entry *k) {
    if (k->listed)
        k->used = true;
    else
        use_list(t, k);
}

struct svi_key_entry *svi_key_table_oldest(svi_key_table *t) {
    struct svi_key_entry *k;
    for (int i = 0; i < CHANCES_MOST && (k = t->oldest) && k->used; i++) {
        svi_key_table_leave(t, k);
        use_list(t, k);
    }
    return t->oldest;
}
