/* producers.h: who sends acknowledged input, and the first sequence number of each that was not taken yet.
 *
 * A table of names that only grows, up to a bound: a forgotten producer's samples would be applied twice.
 * Lookup is O(1) and allocates nothing; a new name may. */
#ifndef SVI_PRODUCERS_H
#define SVI_PRODUCERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/value.h"

#define SVI_NEXT_MAX ((int64_t)1 << 61) /* numbers go on from here for longer than anybody counts */

struct svi_producer {
    char name[SVS_NAME_MAX + 1]; /* NUL-terminated; no NUL inside */
    int64_t next;                /* contiguous from 0 */
    uint64_t era;                /* of the disk, in which `next` moved last */
    int64_t safe, safer;         /* what `next` was when that era began, and the one before it */
    uint64_t losses;             /* of the journal, behind which it is known where this source goes on */
};

/* `next` moves. An era ends when the disk is told to keep what was taken in it. */
static inline void svi_producer_take(struct svi_producer *p, int64_t next, uint64_t era) {
    if (p->era != era) {
        p->safer = p->era + 1 == era ? p->safe : p->next;
        p->safe = p->next;
    }
    p->era = era;
    p->next = next;
}

/* The last number that is on disk when all up to era `kept` is (two behind the present one at most); -1 =
 * none. */
static inline int64_t svi_producer_durable(const struct svi_producer *p, uint64_t kept) {
    return (p->era <= kept ? p->next : p->era == kept + 1 ? p->safe : p->safer) - 1;
}

typedef struct svi_producers svi_producers;

/* At most `max` names (1 or more). NULL: SVS_INVALID, SVS_NO_MEMORY. Owner: the caller. */
svi_producers *svi_producers_new(int64_t max, svs_error *err);
void svi_producers_free(svi_producers **p);

int64_t svi_producers_count(const svi_producers *p);

/* The producer of that name (1 to SVS_NAME_MAX bytes), or NULL. Valid until the next svi_producers_add. */
struct svi_producer *svi_producers_find(const svi_producers *p, const char *name, size_t length);

/* A new name (not in the table), with next = 0. NULL: SVS_LIMIT, SVS_NO_MEMORY; nothing is changed. */
struct svi_producer *svi_producers_add(svi_producers *p, const char *name, size_t length, svs_error *err);

/* Names in the order of their first sight, and where each goes on. What is loaded, into an empty table, is on
 * disk. */
void svi_producers_archive(struct svi_archive *a, svi_producers *p);

double svi_producers_memory(int64_t max); /* bytes at most */

#endif
