/* A hash table of prefixes with open addressing. A name is looked up once for each length that occurs among
 * them, so the cost does not depend on their number. */
#include "net/prefixes.h"

#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"

#define MIN_PLACES 16

struct svi_prefix {
    uint64_t hash;
    size_t length;
    char text[];
};

void svi_prefixes_clear(struct svi_prefixes *p) {
    for (size_t i = 0; i < p->places; i++)
        svi_free(p->place[i]);
    svi_free(p->place);
    *p = (struct svi_prefixes){0};
}

/* The slot of a prefix, or the empty slot where it would go (open addressing, linear probing). Terminates
 * because a quarter of the slots is always empty. */
static size_t prefix_place(const struct svi_prefixes *p, uint64_t hash, const char *text, size_t length) {
    size_t i = hash & (p->places - 1);
    for (const struct svi_prefix *x; (x = p->place[i]); i = (i + 1) & (p->places - 1))
        if (x->hash == hash && x->length == length && memcmp(x->text, text, length) == 0)
            break;
    return i;
}

/* Keeps the load at most 3/4, doubling the table before an insertion. False: no memory, and the table is as
 * before. */
static bool prefixes_widen(struct svi_prefixes *p) {
    if (4 * ((size_t)p->count + 1) <= 3 * p->places)
        return true;
    struct svi_prefix **old = p->place;
    const size_t before = p->places, places = before ? 2 * before : MIN_PLACES;
    struct svi_prefix **wider = svi_alloc_array(places, sizeof *wider);
    if (!wider)
        return false;
    p->place = wider;
    p->places = places;
    for (size_t i = 0; i < before; i++)
        if (old[i])
            p->place[prefix_place(p, old[i]->hash, old[i]->text, old[i]->length)] = old[i];
    svi_free(old);
    return true;
}

void svi_prefixes_add(struct svi_prefixes *p, const char *text, size_t length) {
    const uint64_t hash = XXH3_64bits(text, length);
    if (p->places && p->place[prefix_place(p, hash, text, length)])
        return;
    struct svi_prefix *x = NULL;
    if (p->count < SVI_PREFIXES_MAX && prefixes_widen(p))
        x = svi_alloc(sizeof *x + length);
    /* Never cleared by removals: which prefixes are missing is not known any more. */
    if (!x) {
        p->full = true;
        return;
    }
    x->hash = hash;
    x->length = length;
    memcpy(x->text, text, length);
    p->place[prefix_place(p, hash, text, length)] = x;
    p->of_length[length]++;
    p->count++;
}

void svi_prefixes_remove(struct svi_prefixes *p, const char *text, size_t length) {
    if (!p->places)
        return;
    const size_t mask = p->places - 1;
    size_t hole = prefix_place(p, XXH3_64bits(text, length), text, length);
    if (!p->place[hole])
        return;
    svi_free(p->place[hole]);
    p->of_length[length]--;
    p->count--;
    /* Closes the gap: every entry after it whose probe sequence crosses the gap moves into it, so that no
     * search stops too early. No tombstones are needed. */
    for (size_t i = (hole + 1) & mask; p->place[i]; i = (i + 1) & mask) {
        if (((i - p->place[i]->hash) & mask) < ((i - hole) & mask))
            continue;
        p->place[hole] = p->place[i];
        hole = i;
    }
    p->place[hole] = NULL;
}

bool svi_prefixes_match(const struct svi_prefixes *p, const char *name, size_t length) {
    for (size_t n = 0; n <= length && n <= SVI_TOPIC_MAX && p->count > 0; n++)
        if (p->of_length[n] > 0 && p->place[prefix_place(p, XXH3_64bits(name, n), name, n)])
            return true;
    return p->full;
}
