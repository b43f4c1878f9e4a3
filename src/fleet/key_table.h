/* key_table.h: the keys of a stream by name: in the order in which they began, in that in which they were
 * heard last, and those in memory in the order of their last use. What a key holds is its user's; the table
 * knows its name, who began it and how to find it.
 *
 * Nothing that is computed depends on the order of last use: it only says which key goes to the disk first.
 * Which key is forgotten first is said by the order in which they were heard.
 */
#ifndef SVI_KEY_TABLE_H
#define SVI_KEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learner/prior_bounds.h"
#include "store/key_files.h"
#include "svmstream/error.h"

struct svi_engine;
struct svi_fleet;

/* One key. Read by its user; written by the table but for the members from `engine` on. */
struct svi_key_entry {
    uint64_t hash;
    struct svi_key_entry *before, *after; /* in the order of their beginning */
    struct svi_key_entry *newer, *older;  /* of those in memory, about by last use */
    struct svi_key_entry *sooner, *later; /* by when they were heard last, where that is asked for */
    struct svi_key_head head;
    struct svi_engine *engine; /* NULL: it is out of memory */
    struct svi_fleet *fleet;   /* that the engine is of */
    double heard;              /* arrival clock of the last one */
    struct svi_key_figures last;
    struct svi_prior_key common; /* what it is among others, where they share a prior */
    struct svi_key_place place;  /* of its last record in the files of the state */
    uint8_t kept_hash[16];       /* of what it holds there */
    uint32_t queued;             /* place among those that fall due (key_queue.h), from 1; 0: it does not */
    uint32_t slot, generation;   /* in the list of those that have changed since, from 1; 0: it has not */
    bool listed;                 /* it is in the order of last use, */
    bool used;                   /* and was used since it got its place there */
    bool cached;                 /* svi_key_cache has its state as it is */
    bool in_cache;               /* or as it was */
    char name[];                 /* UTF-8, 1 to SVS_KEY_MAX bytes and NUL */
};

typedef struct svi_key_table svi_key_table;

/* NULL: SVS_NO_MEMORY. Owner: the caller, who frees the engines of all entries before. */
svi_key_table *svi_key_table_new(svs_error *err);
void svi_key_table_free(svi_key_table **t);

/* The hash that decides about places, shards and threads: the same in every process. */
uint64_t svi_key_hash(const char *name, size_t length);

struct svi_key_entry *svi_key_table_find(const svi_key_table *t, const char *name, size_t length);

/* For base/fetch.h: where the key of a hash is looked for first, and the entry that is there (NULL: no key).
 */
const void *svi_key_table_spot(const svi_key_table *t, uint64_t hash);
const struct svi_key_entry *svi_key_table_guess(const svi_key_table *t, uint64_t hash);

/* A key that is not there yet, with engine NULL. NULL: SVS_NO_MEMORY, nothing has changed. */
struct svi_key_entry *svi_key_table_add(svi_key_table *t, const char *name, size_t length, uint64_t owner,
                                        svs_error *err);

/* It is gone, and freed; its engine is NULL. */
void svi_key_table_remove(svi_key_table *t, struct svi_key_entry *k);

/* In the order of their numbers and of their turns from now on, whatever order they were added in. */
void svi_key_table_sort(svi_key_table *t);

int64_t svi_key_table_count(const svi_key_table *t);
int64_t svi_key_table_in_memory(const svi_key_table *t);             /* of those listed */
int64_t svi_key_table_owned(const svi_key_table *t, uint64_t owner); /* keys that it began */
/* Those that sources began beyond `part` keys each; it takes a while when `part` is another one. */
int64_t svi_key_table_beyond(svi_key_table *t, int64_t part);
struct svi_key_entry *svi_key_table_first(const svi_key_table *t); /* then ->after; NULL: none */

/* Heard now. The one that was silent the longest (NULL: there is no key), then ->later: the first time that
 * it is asked for takes a while where there are many. */
void svi_key_table_touch(svi_key_table *t, struct svi_key_entry *k);
struct svi_key_entry *svi_key_table_silent(svi_key_table *t);

/* In memory and used now; out of memory; one of those in memory that were unused the longest (NULL: none). A
 * key that was used since it was last looked at has another chance, so that a use touches nothing else. */
void svi_key_table_use(svi_key_table *t, struct svi_key_entry *k);
void svi_key_table_leave(svi_key_table *t, struct svi_key_entry *k);
struct svi_key_entry *svi_key_table_oldest(svi_key_table *t);

#endif
