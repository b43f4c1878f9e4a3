/* A bounded table of names: entries in the order in which they were added, and an index by hash.
 *
 * Removing a name moves those after it up by one and rebuilds the index. That happens at most once for each
 * name, and it keeps the order, which checkpoints have as well. When the table is full, the name to remove is
 * found by a walk over all entries. `oldest` is a lower bound of their last_seen: it avoids the walk while no
 * name can have been silent for long enough, but never changes its result. */
#include "engine/sources.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fnv.h"

#define FIRST_CAPACITY 8 /* names; doubled when full */

struct svi_sources {
    struct svi_source *of;
    int32_t *place; /* 2 capacity places, a power of 2: 1 + index of a name, 0 = free; linear probing */
    int64_t count, capacity, max;
    int64_t recent; /* index found last, which is usually looked up several times */
    double oldest;  /* no name was last seen before this time */
};

svi_sources *svi_sources_new(int64_t max, svs_error *err) {
    if (max < 1 || max > INT32_MAX / 2) {
        svi_fail(err, SVS_INVALID, "there is not enough memory for a table of %lld sources", (long long)max);
        return NULL;
    }
    svi_sources *p = svi_alloc(sizeof *p);
    if (!p) {
        svi_fail_memory(err, "the table of sources");
        return NULL;
    }
    p->max = max;
    p->oldest = -INFINITY;
    return p;
}

void svi_sources_free(svi_sources **p) {
    if (!*p)
        return;
    svi_free((*p)->of);
    svi_free((*p)->place);
    svi_free(*p);
    *p = NULL;
}

int64_t svi_sources_count(const svi_sources *p) {
    return p->count;
}

/* Not keyed: the table is bounded, so names that are chosen to collide cost a bounded walk. */
static uint64_t sources_hash(const char *name, size_t length) {
    return svi_fnv_fold(svi_fnv(SVI_FNV_SEED, name, length));
}

static bool sources_is(const struct svi_source *s, const char *name, size_t length) {
    return memcmp(s->name, name, length) == 0 && s->name[length] == '\0';
}

/* The place of a name, or the free one where it belongs. Half of the places are free, so the walk ends. */
static int32_t *place_of(const svi_sources *p, const char *name, size_t length) {
    uint64_t mask = 2 * (uint64_t)p->capacity - 1;
    for (uint64_t i = sources_hash(name, length) & mask;; i = (i + 1) & mask) {
        if (p->place[i] == 0)
            return &p->place[i];
        if (sources_is(&p->of[p->place[i] - 1], name, length))
            return &p->place[i];
    }
}

struct svi_source *svi_sources_find(svi_sources *p, const char *name, size_t length) {
    if (p->capacity == 0 || length == 0 || length > SVS_NAME_MAX || memchr(name, 0, length))
        return NULL;
    if (p->recent < p->count && sources_is(&p->of[p->recent], name, length))
        return &p->of[p->recent];
    const int32_t found = *place_of(p, name, length);
    if (found)
        p->recent = found - 1;
    return found ? &p->of[found - 1] : NULL;
}

/* Enters all names into an empty index. */
static void sources_place_all(svi_sources *p) {
    for (int64_t i = 0; i < p->count; i++)
        *place_of(p, p->of[i].name, strlen(p->of[i].name)) = (int32_t)(i + 1);
}

static svs_code sources_grow(svi_sources *p) {
    int64_t capacity = p->capacity ? 2 * p->capacity : FIRST_CAPACITY;
    int32_t *place = svi_alloc_array(2 * (size_t)capacity, sizeof *place);
    struct svi_source *of =
        place ? svi_realloc(p->of, (size_t)p->capacity * sizeof *of, (size_t)capacity * sizeof *of) : NULL;
    if (!of) {
        svi_free(place);
        return SVS_NO_MEMORY;
    }
    svi_free(p->place);
    p->of = of;
    p->place = place;
    p->capacity = capacity;
    sources_place_all(p);
    return SVS_OK;
}

void svi_sources_remove(svi_sources *p, struct svi_source *source) {
    const int64_t after = p->count - 1 - (source - p->of);
    memmove(source, source + 1, (size_t)after * sizeof *source);
    p->count--;
    memset(p->place, 0, 2 * (size_t)p->capacity * sizeof *p->place);
    sources_place_all(p);
}

void svi_sources_touch(svi_sources *p, struct svi_source *source, double now) {
    source->last_seen = now;
    p->oldest = fmin(p->oldest, now);
}

void svi_sources_move_times(svi_sources *p, double from, double step) {
    for (int64_t i = 0; i < p->count; i++)
        if (p->of[i].last_seen > from)
            p->of[i].last_seen += step;
    p->oldest += fmin(step, 0); /* still a lower bound, whichever times moved */
}

/* The source that has been silent longest. A source whose last message is not known (loaded without times)
 * counts as seen now. */
static struct svi_source *sources_most_silent(svi_sources *p, double now) {
    struct svi_source *found = p->of;
    for (int64_t i = 0; i < p->count; i++) {
        struct svi_source *s = &p->of[i];
        s->last_seen = isnan(s->last_seen) ? now : s->last_seen;
        found = s->last_seen < found->last_seen ? s : found;
    }
    p->oldest = found->last_seen;
    return found;
}

/* Removes the source that has been silent longest, if that is longer than `idle`. False: none is. */
static bool sources_give_way(svi_sources *p, double now, double idle) {
    if (!(idle > 0 && now - p->oldest > idle))
        return false;
    struct svi_source *silent = sources_most_silent(p, now);
    const bool removed = now - silent->last_seen > idle;
    if (removed)
        svi_sources_remove(p, silent);
    return removed;
}

int64_t svi_sources_owned(const svi_sources *p, uint64_t owner, double now, double idle) {
    int64_t owned = 0;
    for (int64_t i = 0; i < p->count; i++)
        owned += p->of[i].owner == owner && !(idle > 0 && now - p->of[i].last_seen > idle);
    return owned;
}

struct svi_source *svi_sources_add(svi_sources *p, const char *name, size_t length, double now, double idle,
                                   svs_error *err) {
    char shown[80];
    if (p->count == p->max && !sources_give_way(p, now, idle)) {
        svi_fail(err, SVS_LIMIT,
                 "source %s is one more than max.sources (%lld), and none has been silent for longer than "
                 "sources.idle: raise max.sources",
                 svi_escape(shown, sizeof shown, name, length), (long long)p->max);
        return NULL;
    }
    if (p->count == p->capacity && sources_grow(p) != SVS_OK) {
        svi_fail_memory(err, "one more source");
        return NULL;
    }
    struct svi_source *added = &p->of[p->count++];
    memcpy(added->name, name, length);
    added->name[length] = '\0';
    added->next = added->safe = added->safer = 0;
    svi_source_set_at(added, NULL, 0, false);
    added->fsync_generation = added->losses = added->owner = 0;
    *place_of(p, added->name, length) = (int32_t)p->count;
    svi_sources_touch(p, added, now);
    return added;
}

/* Adds a producer while loading; a name that is already in the table is damage. */
static struct svi_source *load_name(struct svi_archive *a, svi_sources *p, const char *key) {
    char name[SVS_NAME_MAX + 1] = "";
    svi_archive_text(a, key, name, sizeof name);
    const size_t length = strlen(name);
    const bool fresh = length > 0 && !svi_sources_find(p, name, length);
    if (!svi_archive_check(a, fresh, "a source has no name, or a duplicate one"))
        return NULL;
    return svi_sources_add(p, name, length, NAN, 0, a->err);
}

static void sources_cursor(struct svi_archive *a, struct svi_source *of, int i) {
    char key[SVI_KEY_MAX];
    int size = of->at_size;
    svi_archive_int(a, svi_archive_key(key, "at size", i), &size, 0, SVS_NAME_MAX);
    if (size == 0 || !svi_archive_ok(a))
        return;
    of->at_size = (uint8_t)size;
    svi_archive_bool(a, svi_archive_key(key, "at text", i), &of->at_text);
    svi_archive_bytes(a, svi_archive_key(key, "at", i), of->at, size);
}

void svi_sources_archive(struct svi_archive *a, svi_sources *p) {
    int64_t count = p->count;
    svi_archive_int64(a, "count", &count, 0, p->max);
    for (int64_t i = 0; i < count && svi_archive_ok(a); i++) {
        char key[SVI_KEY_MAX];
        svi_archive_key(key, "source", (int)i);
        struct svi_source *of = svi_archive_loading(a) ? load_name(a, p, key) : &p->of[i];
        if (!svi_archive_loading(a))
            svi_archive_text(a, key, of->name, sizeof of->name);
        if (of)
            svi_archive_int64(a, svi_archive_key(key, "next", (int)i), &of->next, 0, SVI_NEXT_MAX);
        if (of)
            sources_cursor(a, of, (int)i);
        if (of && svi_archive_loading(a)) /* what was loaded is on disk, in whatever generation */
            of->safe = of->safer = of->next;
    }
}

void svi_sources_times_archive(struct svi_archive *a, svi_sources *p) {
    for (int64_t i = 0; i < p->count && svi_archive_ok(a); i++) {
        char key[SVI_KEY_MAX];
        struct svi_source *of = &p->of[i];
        uint64_t owner = svi_owner_is_key(of->owner) ? of->owner : 0; /* connections end with the process */
        svi_archive_double(a, svi_archive_key(key, "heard", (int)i), &of->last_seen);
        svi_archive_uint64(a, svi_archive_key(key, "owner", (int)i), &owner);
        if (svi_archive_loading(a))
            of->owner = owner;
    }
}

double svi_sources_memory(int64_t max) {
    double capacity = FIRST_CAPACITY;
    while (capacity < (double)max)
        capacity *= 2;
    return sizeof(svi_sources) + capacity * (sizeof(struct svi_source) + 2 * sizeof(int32_t));
}
