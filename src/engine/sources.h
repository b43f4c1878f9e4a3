/* sources.h: the producers of acknowledged input, and the first sequence number of each that was not taken
 * yet.
 *
 * A bounded table of names. A forgotten producer's samples would be applied twice, so a name leaves only when
 * its producer says bye, or when there is no room and it has been silent for long: the one that is silent
 * longest. Silence is measured in the arrival times of messages, so that a replay forgets the same names.
 * Lookup is O(1) and allocates nothing; a new name may. */
#ifndef SVI_SOURCES_H
#define SVI_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/value.h"

#define SVI_NEXT_MAX ((int64_t)1 << 61) /* numbers go on from here for longer than anybody counts */

struct svi_source {
    char name[SVS_NAME_MAX + 1]; /* NUL-terminated; no NUL inside */
    int64_t next;                /* contiguous from 0 */
    uint64_t fsync_generation;   /* of the disk, in which `next` moved last */
    int64_t safe, safer;         /* what `next` was when that fsync_generation began, and the one before it */
    uint64_t losses;             /* of the journal, after which it is known where this source goes on */
    double heard;                /* arrival time of its last message; NAN = not known */
    uint64_t owner;              /* whose place it takes, as the surroundings count it; 0 = not known */
};

/* `next` moves. A generation ends when what was taken in it is handed to fsync. */
static inline void svi_source_take(struct svi_source *p, int64_t next, uint64_t fsync_generation) {
    if (p->fsync_generation != fsync_generation) {
        p->safer = p->fsync_generation + 1 == fsync_generation ? p->safe : p->next;
        p->safe = p->next;
    }
    p->fsync_generation = fsync_generation;
    p->next = next;
}

/* The last number that is on disk when all up to fsync_generation `kept` is (two before the present one at
 * most); -1 = none. */
static inline int64_t svi_source_durable(const struct svi_source *p, uint64_t kept) {
    return (p->fsync_generation <= kept ? p->next : p->fsync_generation == kept + 1 ? p->safe : p->safer) - 1;
}

typedef struct svi_sources svi_sources;

/* At most `max` names (1 or more). NULL: SVS_INVALID, SVS_NO_MEMORY. Owner: the caller. */
svi_sources *svi_sources_new(int64_t max, svs_error *err);
void svi_sources_free(svi_sources **p);

int64_t svi_sources_count(const svi_sources *p);

/* The producer of that name (1 to SVS_NAME_MAX bytes), or NULL. Valid until the next svi_sources_add or
 * _remove. */
struct svi_source *svi_sources_find(svi_sources *p, const char *name, size_t length);

/* A new name (not in the table), with next = 0, heard `now`. Where the table is full, the name that has been
 * silent longest gives way, if it has been for longer than `idle` seconds (0: none does). NULL: SVS_LIMIT,
 * SVS_NO_MEMORY; nothing is changed. */
struct svi_source *svi_sources_add(svi_sources *p, const char *name, size_t length, double now, double idle,
                                   svs_error *err);

/* A message of this source came. */
void svi_sources_touch(svi_sources *p, struct svi_source *source, double now);

/* Forgets a source. */
void svi_sources_remove(svi_sources *p, struct svi_source *source);

/* The arrival clock was moved by `step`: times after `from` move along. */
void svi_sources_move_times(svi_sources *p, double from, double step);

/* How many have this owner and would not give way now. O(count). */
int64_t svi_sources_owned(const svi_sources *p, uint64_t owner, double now, double idle);

/* Names in the order of their first sight, and where each goes on. What is loaded, into an empty table, is on
 * disk. */
void svi_sources_archive(struct svi_archive *a, svi_sources *p);

/* When each was heard last, and the owners that outlive the process; after svi_sources_archive. Where this is
 * not kept, silence begins when room is needed for the first time. */
void svi_sources_times_archive(struct svi_archive *a, svi_sources *p);

/* An owner that is a key; those of connections have an even number, and end with the process. */
static inline bool svi_owner_is_key(uint64_t owner) {
    return owner & 1;
}

double svi_sources_memory(int64_t max); /* bytes at most */

#endif
