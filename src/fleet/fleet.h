/* fleet.h: queries about the keys of a stream (fleet/stream.h), and their states in files. Without keys the
 * queries find none. */
#ifndef SVI_FLEET_H
#define SVI_FLEET_H

#include "fleet/stream.h"

/* Writes the keys that match the query to `entries` (q->limit places), in the order of the query. Returns
 * their number; *matching: the number of all that match. 0 for a stream without keys. A key may be out of
 * memory; `last` of its entry has the figures. */
struct svi_key_query;
struct svi_key_entry;
int svi_stream_keys(svi_stream *s, const struct svi_key_query *q, const struct svi_key_entry **entries,
                    int64_t *matching);
/* Arrival of the last sample of a key, by the present arrival clock; times without a running process are left
 * out. */
double svi_stream_key_last_arrival(svi_stream *s, const struct svi_key_entry *entry);
int64_t svi_stream_key_count(const svi_stream *s);

/* Estimated heap (within a tenth) of one key once all its windows are full: bytes for d features, of which
 * `contexts` are columns of context, and this number of classes. */
double svi_key_memory(const struct svi_settings *s, int d, int contexts, int classes);

/* Memory of keys with this number of features and classes, and how many fit. */
struct svi_keys_memory {
    double each;    /* bytes of a key in memory */
    double entry;   /* bytes of any key, in memory or not */
    double share;   /* bytes for all keys if keys.memory is 0; 0: the memory of the machine is not known */
    double machine; /* bytes that the process may use, */
    const char *of; /* by this limit (base/machine_memory.h) */
    int64_t most;   /* keys that fit in memory if there are no others */
};
void svi_keys_memory(const struct svi_settings *s, int d, int classes, struct svi_keys_memory *m);

/* The number of named features, or a typical number if none are named. */
int svi_keys_features(const struct svi_settings *s);

/* How many of `keys` keys may be in memory. */
int64_t svi_keys_in_memory(const struct svi_settings *s, const struct svi_keys_memory *m, int64_t keys);

/* Takes a merged prior (merge/prior_record.h), with which keys begin from now on; a recorded step of the
 * stream. Codes of svi_prior_record_decode; SVS_UNAVAILABLE: a stream without keys, or without key.prior;
 * then nothing has changed. */
svs_code svi_fleet_merged_take(svi_stream *s, const void *map, size_t size, svs_error *err);

/* Would it be taken? Codes as above; *again: it is the one that the stream has. Changes nothing. */
svs_code svi_fleet_merged_check(svi_stream *s, const void *map, size_t size, bool *again, svs_error *err);

/* ---- states of keys in files next to the checkpoints */

/* svi_stream_save in steps, for a stream with keys. svi_stream_keep_keys: their states are kept in files of
 * this directory from now on. Changes since the last checkpoint are written between other calls, by save_on,
 * for about `seconds` each; *c is the state at save_begin. Codes of svi_key_files_append: the checkpoint is
 * abandoned. Without keys save_begin does everything. sync_keys, which another thread may call between the
 * end and the next begin, makes durable what *c needs. */
struct svi_state_dir;
svs_code svi_stream_keep_keys(svi_stream *s, const struct svi_state_dir *dir, svs_error *err);
svs_code svi_stream_save_begin(svi_stream *s, struct svi_checkpoint *c, svs_error *err);
svs_code svi_stream_save_on(svi_stream *s, double seconds, bool *done, svs_error *err);
svs_code svi_stream_save_end(svi_stream *s, struct svi_checkpoint *c, svs_error *err);
svs_code svi_stream_sync_keys(svi_stream *s, svs_error *err);

/* Before save_begin: rewrites files that are mostly dead, for about `seconds`; *done: none is left. */
svs_code svi_stream_tidy_keys(svi_stream *s, double seconds, bool *done, svs_error *err);

#endif
