/* key_table.h: the keys of a stream by name; also in the order in which they began, in that in which they
 * were last seen, and, for those in memory, in the order of their last use. The table knows the name of a
 * key, its owner and how to find it; what the key holds belongs to the caller.
 *
 * No result depends on the order of last use, which only decides which key is moved to disk first. The order
 * in which keys were last seen decides which key is removed first. */
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

/* What the bank of all keys knows of a key (fleet_shared.c). */
struct svi_key_share {
    float n;    /* labels, fading */
    float v[4]; /* of these, of each of the first classes; a regression: sum of the targets, the last one */
    bool out;   /* the key is excluded */
};

/* One key. The table writes the members before `engine`, the caller the others. */
struct svi_key_entry {
    uint64_t hash;
    struct svi_key_entry *before, *after; /* in the order in which keys began */
    struct svi_key_entry *newer, *older;  /* of keys in memory, approximately by last use */
    struct svi_key_entry *sooner, *later; /* by `last_arrival`, kept once it has been asked for */
    struct svi_key_head head;
    struct svi_engine *engine; /* NULL: out of memory */
    struct svi_fleet *fleet;   /* to which the engine belongs */
    double last_arrival;       /* arrival clock of the last sample */
    struct svi_key_figures last;
    struct svi_prior_key common; /* its description for the prior, where keys share one */
    struct svi_key_share share;  /* likewise for the bank of all keys */
    struct svi_key_place place;  /* of its last record in the files of the state */
    uint8_t kept_hash[16];       /* hash of that record's state */
    uint32_t queued;             /* index in the heap of due keys (key_queue.h), from 1; 0: not in it */
    uint32_t slot, generation;   /* index in the list of changed keys, from 1; 0: unchanged */
    bool listed;                 /* it is in the order of last use, */
    bool used;                   /* and was used since it got its place there */
    bool cached;                 /* svi_key_cache has its present state, */
    bool in_cache;               /* or an older one */
    char name[];                 /* UTF-8, 1 to SVS_KEY_MAX bytes and NUL */
};

typedef struct svi_key_table svi_key_table;

/* NULL: SVS_NO_MEMORY. Owner: the caller, which frees the engines of all entries before. */
svi_key_table *svi_key_table_new(svs_error *err);
void svi_key_table_free(svi_key_table **t);

/* The hash that determines places, parts and threads; the same in every process. */
uint64_t svi_key_hash(const char *name, size_t length);

struct svi_key_entry *svi_key_table_find(const svi_key_table *t, const char *name, size_t length);

/* For prefetching (base/fetch.h): the place where a hash is looked up first, and the entry there (NULL:
 * none). */
const void *svi_key_table_spot(const svi_key_table *t, uint64_t hash);
const struct svi_key_entry *svi_key_table_guess(const svi_key_table *t, uint64_t hash);

/* Adds a key that is not in the table, with engine NULL. NULL: SVS_NO_MEMORY, nothing has changed. */
struct svi_key_entry *svi_key_table_add(svi_key_table *t, const char *name, size_t length, uint64_t owner,
                                        svs_error *err);

/* Removes and frees an entry, whose engine must be NULL. */
void svi_key_table_remove(svi_key_table *t, struct svi_key_entry *k);

/* Sorts the keys by their numbers and turns, after they were loaded in another order. */
void svi_key_table_sort(svi_key_table *t);

int64_t svi_key_table_count(const svi_key_table *t);
int64_t svi_key_table_in_memory(const svi_key_table *t); /* number of listed keys */
int64_t svi_key_table_owned(const svi_key_table *t,
                            uint64_t owner); /* number of keys that this owner began */
/* Number of keys that owners began beyond `part` keys each; O(keys) if `part` differs from the last call. */
int64_t svi_key_table_beyond(svi_key_table *t, int64_t part);
struct svi_key_entry *svi_key_table_first(const svi_key_table *t); /* then ->after; NULL: none */

/* touch: the key is seen now. silent: the key that has been silent longest (NULL: no key), then ->later; the
 * first call sorts all keys. */
void svi_key_table_touch(svi_key_table *t, struct svi_key_entry *k);
struct svi_key_entry *svi_key_table_silent(svi_key_table *t);

/* use: the key is in memory and used now. leave: it is out of memory. oldest: one of the keys in memory that
 * have been unused longest (NULL: none). A key used since the last pass gets a second chance (clock
 * algorithm), so that a use touches no other entry. */
void svi_key_table_use(svi_key_table *t, struct svi_key_entry *k);
void svi_key_table_leave(svi_key_table *t, struct svi_key_entry *k);
struct svi_key_entry *svi_key_table_oldest(svi_key_table *t);

#endif
