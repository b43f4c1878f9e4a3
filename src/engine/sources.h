/* sources.h: the producers of acknowledged input, each with the first sequence number that was not taken yet,
 * and with the cursor of its own that it stated for it.
 *
 * The table of names is bounded. If a producer were forgotten while it still sends, its samples could be
 * applied twice. A name is therefore removed only when its producer says bye, or when the table is full and
 * the producer has been silent for long: then the one that has been silent longest. Silence is measured in
 * arrival times of messages, so that a replay removes the same names. Lookup is O(1) and allocates nothing;
 * adding a name may. */
#ifndef SVI_SOURCES_H
#define SVI_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/archive.h"
#include "svmstream/value.h"

#define SVI_NEXT_MAX ((int64_t)1 << 61) /* numbers go on from here for longer than anybody counts */

struct svi_source {
    char name[SVS_NAME_MAX + 1]; /* NUL-terminated; no NUL inside */
    int64_t next;                /* first number not taken yet; numbers are contiguous from 0 */
    uint64_t fsync_generation;   /* generation in which `next` advanced last */
    int64_t safe, safer;         /* `next` at the start of that generation, and of the one before it */
    uint64_t losses;             /* losses of the journal after which this source has stated its number */
    double last_seen;            /* arrival time of its last message; NAN = not known */
    bool at_text;                /* the cursor arrived as a string, else as bin */
    uint8_t at_size;             /* its bytes; 0 = none */
    uint8_t at[SVS_NAME_MAX];    /* cursor of the message that advanced `next` last; opaque */
    uint64_t owner;              /* connection or key whose quota it counts against; 0 = not known */
};

/* Advances `next`. A generation ends when its numbers are handed to fsync. */
static inline void svi_source_take(struct svi_source *p, int64_t next, uint64_t fsync_generation) {
    if (p->fsync_generation != fsync_generation) {
        p->safer = p->fsync_generation + 1 == fsync_generation ? p->safe : p->next;
        p->safe = p->next;
    }
    p->fsync_generation = fsync_generation;
    p->next = next;
}

/* The last number that is on disk when all generations up to `kept` are (at most two before the present one);
 * -1 = none. */
static inline int64_t svi_source_durable(const struct svi_source *p, uint64_t kept) {
    return (p->fsync_generation <= kept ? p->next : p->fsync_generation == kept + 1 ? p->safe : p->safer) - 1;
}

/* Replaces the cursor by one of up to SVS_NAME_MAX bytes; 0: none. */
static inline void svi_source_set_at(struct svi_source *p, const uint8_t *at, size_t size, bool text) {
    p->at_text = text && size > 0;
    p->at_size = (uint8_t)size;
    if (size > 0)
        memcpy(p->at, at, size);
}

typedef struct svi_sources svi_sources;

/* At most `max` names (1 or more). NULL: SVS_INVALID, SVS_NO_MEMORY. Owner: the caller. */
svi_sources *svi_sources_new(int64_t max, svs_error *err);
void svi_sources_free(svi_sources **p);

int64_t svi_sources_count(const svi_sources *p);

/* The producer of that name (1 to SVS_NAME_MAX bytes), or NULL. Valid until the next svi_sources_add or
 * _remove. */
struct svi_source *svi_sources_find(svi_sources *p, const char *name, size_t length);

/* Adds a name (not in the table) with next = 0, last seen `now`. If the table is full, the name that has been
 * silent longest is removed, provided that it has been silent for more than `idle` seconds (0: none is
 * removed). NULL: SVS_LIMIT, SVS_NO_MEMORY; nothing has changed. */
struct svi_source *svi_sources_add(svi_sources *p, const char *name, size_t length, double now, double idle,
                                   svs_error *err);

/* A message of this source arrived. */
void svi_sources_touch(svi_sources *p, struct svi_source *source, double now);

/* Forgets a source. */
void svi_sources_remove(svi_sources *p, struct svi_source *source);

/* The arrival clock was moved by `step`: times after `from` move along. */
void svi_sources_move_times(svi_sources *p, double from, double step);

/* Number of sources of this owner that svi_sources_add would not remove now. O(count). */
int64_t svi_sources_owned(const svi_sources *p, uint64_t owner, double now, double idle);

/* Names in the order in which they were added, each with its next number and cursor. Loading fills an
 * empty table; loaded numbers count as on disk. */
void svi_sources_archive(struct svi_archive *a, svi_sources *p);

/* The time each was last seen, and the owners that outlive the process; after svi_sources_archive. Without
 * this section, silence counts from the first time that the table is full. */
void svi_sources_times_archive(struct svi_archive *a, svi_sources *p);

/* Is this owner a key? Owners that are connections have even numbers and do not outlive the process. */
static inline bool svi_owner_is_key(uint64_t owner) {
    return owner & 1;
}

double svi_sources_memory(int64_t max); /* bytes at most */

#endif
