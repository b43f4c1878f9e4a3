/* The registry of feature names: entries in the order of their columns, and a hash table from name to column.
 *
 * Each entry owns its name in a separate block that never moves, so that events may point to it. A name can
 * be replaced (a category's value hands its feature to another value); the block of the former name is
 * returned to the caller, which can put it back when the row is refused.
 *
 * The table uses open addressing with linear probing and at most half of its slots. Removal closes the gap by
 * moving up later entries of the same run instead of leaving tombstones, so names can be removed in any order
 * and lookups never slow down. Entries keep their hashes: growing computes none, and a probe compares names
 * only where the hashes are equal. */
#include "data/feature_names.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/span.h"
#include "svmstream/value.h"

#define FEATURES_MAX   1000000
#define FIRST_CAPACITY 16

struct entry {
    char *name; /* NUL-terminated, in a separate block: it must not move when the registry grows; owned */
    uint32_t hash;
    uint32_t length;
};

struct svs_features {
    struct entry *entries; /* by column */
    int32_t *slots;        /* column + 1, 0 = empty; a power of two, at least twice `capacity` */
    size_t slot_count;
    int count, capacity, max;
    uint64_t changes;
};

/* One round of mixing: the multiplication spreads bits upwards, the shift brings them back to the low bits,
 * which select the slot. */
static uint64_t feature_names_mix(uint64_t h) {
    h *= 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

static uint32_t feature_names_hash_of(const char *name, size_t length) {
    /* Eight bytes a step. The length is part of the seed, because the last word is padded with zeros. */
    uint64_t h = 0x9e3779b97f4a7c15u ^ length;
    uint64_t word = 0;
    for (; length >= 8; length -= 8, name += 8) {
        memcpy(&word, name, 8);
        h = feature_names_mix(h ^ word);
    }
    word = 0;
    memcpy(&word, name, length);
    return (uint32_t)feature_names_mix(h ^ word);
}

static bool feature_names_same(const struct entry *e, const char *name, size_t length) {
    return e->length == length && memcmp(e->name, name, length) == 0;
}

/* The slot that holds the name, or the empty one where it belongs. The loop ends, because half of the slots
 * are empty. */
static size_t slot_of(const svs_features *f, uint32_t hash, const char *name, size_t length) {
    size_t mask = f->slot_count - 1, at = hash & mask;
    while (f->slots[at] != 0) {
        const struct entry *e = &f->entries[f->slots[at] - 1];
        if (e->hash == hash && feature_names_same(e, name, length))
            break;
        at = (at + 1) & mask;
    }
    return at;
}

static svs_code feature_names_reserve(svs_features *f, svs_error *err) {
    if (f->count < f->capacity)
        return SVS_OK;
    /* Both blocks are made before either is replaced: on failure the registry is unchanged. */
    int capacity = f->capacity ? f->capacity * 2 : FIRST_CAPACITY;
    struct entry *entries = svi_alloc_plain_array((size_t)capacity, sizeof *entries);
    int32_t *slots = svi_alloc_plain_array((size_t)capacity * 2, sizeof *slots);
    if (!entries || !slots) {
        svi_free(entries);
        svi_free(slots);
        return svi_fail_memory(err, "feature names");
    }
    if (f->count > 0)
        memcpy(entries, f->entries, (size_t)f->count * sizeof *entries);
    svi_free(f->entries);
    svi_free(f->slots);
    f->entries = entries;
    f->slots = slots;
    f->slot_count = (size_t)capacity * 2;
    f->capacity = capacity;
    /* Enters all names into the larger table, by their stored hashes. */
    for (int column = 0; column < f->count; column++) {
        const struct entry *e = &f->entries[column];
        f->slots[slot_of(f, e->hash, e->name, e->length)] = column + 1;
    }
    return SVS_OK;
}

svs_features *svs_features_new(int max, svs_error *err) {
    if (max < 1 || max > FEATURES_MAX) {
        svi_fail(err, SVS_INVALID, "a registry holds 1 to %d feature names, not %d", FEATURES_MAX, max);
        return NULL;
    }
    svs_features *f = svi_alloc_plain(sizeof *f);
    if (!f) {
        svi_fail_memory(err, "feature names");
        return NULL;
    }
    f->max = max;
    return f;
}

void svs_features_free(svs_features **f) {
    if (!*f)
        return;
    svs_features_truncate(*f, 0);
    svi_free((*f)->entries);
    svi_free((*f)->slots);
    svi_free(*f);
    *f = NULL;
}

int svs_features_count(const svs_features *f) {
    return f->count;
}

int svs_features_find(const svs_features *f, const char *name, size_t length) {
    return f->count > 0 ? f->slots[slot_of(f, feature_names_hash_of(name, length), name, length)] - 1 : -1;
}

bool svi_feature_names_is(const svs_features *f, int column, const char *name, size_t length) {
    return column >= 0 && column < f->count && feature_names_same(&f->entries[column], name, length);
}

/* Length first, so that the text that is shown is short. */
static svs_code check_name_text(const char *name, size_t length, svs_error *err) {
    char text[80];
    if (length < 1 || length > SVS_NAME_MAX)
        return svi_fail(err, SVS_BAD_COLUMN, "a feature name has 1 to %d bytes, this one %zu", SVS_NAME_MAX,
                        length);
    svi_escape(text, sizeof text, name, length);
    if (!svi_utf8_valid(name, length) || memchr(name, 0, length))
        return svi_fail(err, SVS_BAD_COLUMN, "the feature name \"%s\" is not valid UTF-8: " SVI_LATIN1, text);
    return SVS_OK;
}

static svs_code check_name(const svs_features *f, const char *name, size_t length, svs_error *err) {
    char text[80];
    if (check_name_text(name, length, err) != SVS_OK)
        return SVS_BAD_COLUMN;
    svi_escape(text, sizeof text, name, length);
    if (f->count >= f->max)
        return svi_fail(err, SVS_LIMIT,
                        "feature \"%s\" would be number %d, but at most %d are allowed: raise max.features",
                        text, f->count + 1, f->max);
    return SVS_OK;
}

int svs_features_add(svs_features *f, const char *name, size_t length, svs_error *err) {
    int column = svs_features_find(f, name, length);
    if (column >= 0)
        return column;
    if (check_name(f, name, length, err) != SVS_OK)
        return -1;
    /* Everything that can fail comes before the first change. */
    char *copy = svi_alloc_plain(length + 1);
    if (!copy || feature_names_reserve(f, err) != SVS_OK) {
        svi_free(copy);
        svi_fail_memory(err, "a feature name");
        return -1;
    }
    memcpy(copy, name, length);
    struct entry e = {.name = copy, .hash = feature_names_hash_of(name, length), .length = (uint32_t)length};
    f->slots[slot_of(f, e.hash, name, length)] = f->count + 1;
    f->entries[f->count] = e;
    f->changes++;
    return f->count++;
}

const char *svs_features_name(const svs_features *f, int column) {
    return column >= 0 && column < f->count ? f->entries[column].name : NULL;
}

/* Empties the slot of an entry. Each later entry of the run whose home slot is at or before the hole moves up
 * into it, so that no probe meets an empty slot before the entry that it looks for. */
static void feature_names_leave(svs_features *f, const struct entry *e) {
    const size_t mask = f->slot_count - 1;
    size_t hole = slot_of(f, e->hash, e->name, e->length);
    for (size_t at = (hole + 1) & mask; f->slots[at] != 0; at = (at + 1) & mask) {
        const size_t home = f->entries[f->slots[at] - 1].hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue; /* its home is after the hole: probes for it do not pass the hole */
        f->slots[hole] = f->slots[at];
        hole = at;
    }
    f->slots[hole] = 0;
}

char *svi_feature_names_new_name(const svs_features *f, const char *name, size_t length, svs_error *err) {
    /* A name has one column: lookups would find only one of two. */
    if (svs_features_find(f, name, length) >= 0) {
        svi_fail(err, SVS_BAD_COLUMN, "the feature \"%.*s\" exists already", (int)length, name);
        return NULL;
    }
    if (check_name_text(name, length, err) != SVS_OK)
        return NULL;
    char *copy = svi_alloc_plain(length + 1);
    if (copy)
        memcpy(copy, name, length);
    else
        svi_fail_memory(err, "a feature name");
    return copy;
}

char *svi_feature_names_rename(svs_features *f, int column, char *name) {
    struct entry *e = &f->entries[column];
    char *before = e->name;
    const size_t length = strlen(name);
    /* The slot is found by the former name, so it is emptied before the entry changes. */
    feature_names_leave(f, e);
    *e =
        (struct entry){.name = name, .hash = feature_names_hash_of(name, length), .length = (uint32_t)length};
    f->slots[slot_of(f, e->hash, name, length)] = column + 1;
    f->changes++;
    return before;
}

void svs_features_truncate(svs_features *f, int count) {
    while (f->count > count && f->count > 0) {
        /* From the end: the columns before keep their numbers. */
        struct entry *e = &f->entries[f->count - 1];
        feature_names_leave(f, e);
        svi_free(e->name);
        *e = (struct entry){0};
        f->count--;
        f->changes++;
    }
}

uint64_t svi_feature_names_changes(const svs_features *f) {
    return f->changes;
}

bool svi_feature_names_check(const svs_features *f) {
    size_t used = 0;
    for (size_t i = 0; i < f->slot_count; i++)
        used += f->slots[i] != 0;
    bool good = used == (size_t)f->count && f->count <= f->max && f->count <= f->capacity;
    for (int column = 0; good && column < f->count; column++) {
        const struct entry *e = &f->entries[column];
        good = svs_features_find(f, e->name, e->length) == column && strlen(e->name) == e->length;
    }
    return good;
}
