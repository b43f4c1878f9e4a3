/* fleet.h: what is asked of the keys of a stream (fleet/stream.h); of one without keys nothing comes of it.
 */
#ifndef SVI_FLEET_H
#define SVI_FLEET_H

#include "fleet/stream.h"

/* The keys of the stream that are wanted, the first ones in that order, q->limit at most: entries is room for
 * as many. Returns how many; *matching: of how many. 0 where the stream has no keys. What they hold may be
 * out of memory: svi_key_entry's `last` says what is to be known. */
struct svi_key_query;
struct svi_key_entry;
int svi_stream_keys(svi_stream *s, const struct svi_key_query *q, const struct svi_key_entry **entries,
                    int64_t *matching);
/* When the last sample of one of them came, by the arrival clock as it is now; the time in which no process
 * ran is left out. */
double svi_stream_key_last_arrival(svi_stream *s, const struct svi_key_entry *entry);
int64_t svi_stream_key_count(const svi_stream *s);

/* Of one key with that many features, columns of context among them, and classes: what it takes in the heap
 * once all is full, about (to a tenth). */
double svi_key_memory(const struct svi_settings *s, int d, int contexts, int classes);

/* What keys of that many features and classes take, and how many of them may be in memory. */
struct svi_keys_memory {
    double each;    /* bytes of one that is in memory */
    double entry;   /* bytes of any, wherever it is */
    double share;   /* bytes for all keys where keys.memory is 0; 0: what the machine has is not known */
    double machine; /* bytes that the process may have, */
    const char *of; /* by this limit (base/machine_memory.h) */
    int64_t most;   /* that may be in memory, where there are no others */
};
void svi_keys_memory(const struct svi_settings *s, int d, int classes, struct svi_keys_memory *m);

/* The features that are named, or a usual number of them. */
int svi_keys_features(const struct svi_settings *s);

/* How many may be in memory of that many. */
int64_t svi_keys_in_memory(const struct svi_settings *s, const struct svi_keys_memory *m, int64_t keys);

/* ---- states of keys in files beside the checkpoints */

/* As svi_stream_save, in pieces, for a stream with keys whose states are kept in files of this directory from
 * here on (svi_stream_keep_keys): what has changed of them since the last one is written bit by bit, between
 * other calls, and *c is the state at svi_stream_save_begin. Codes of svi_key_files_append: it is given up.
 * Without keys the first call does all. sync, which another thread may call between the end and the next
 * begin, makes durable what *c needs. */
struct svi_state_dir;
svs_code svi_stream_keep_keys(svi_stream *s, const struct svi_state_dir *dir, svs_error *err);
svs_code svi_stream_save_begin(svi_stream *s, struct svi_checkpoint *c, svs_error *err);
svs_code svi_stream_save_on(svi_stream *s, double seconds, bool *done, svs_error *err);
svs_code svi_stream_save_end(svi_stream *s, struct svi_checkpoint *c, svs_error *err);
svs_code svi_stream_sync_keys(svi_stream *s, svs_error *err);

/* Before one begins: files of which much is dead are written again, for about so long; *done: it is. */
svs_code svi_stream_tidy_keys(svi_stream *s, double seconds, bool *done, svs_error *err);

#endif
