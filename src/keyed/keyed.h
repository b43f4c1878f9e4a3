/* keyed.h: the engine of a stream (engine/engine.h), which has keys where the setting `key` says so: each key
 * has an engine of its own then, under that of the stream, and what is asked of all of them is asked here. */
#ifndef SVI_KEYED_H
#define SVI_KEYED_H

#include "engine/engine.h"

/* settings are copied. NULL on failure. Owner: the caller (svi_engine_free). */
svi_engine *svi_engine_new(const struct svi_settings *s, uint64_t epoch, svi_sink *sink, void *user,
                           svs_error *err);

/* The keys of the stream that are wanted, the first ones in that order, q->limit at most: entries is room for
 * as many. Returns how many; *matching: of how many. 0 where the stream has no keys. What they hold may be
 * out of memory: svi_key_entry's `last` says what is to be known. */
struct svi_key_query;
struct svi_key_entry;
int svi_engine_keys(svi_engine *e, const struct svi_key_query *q, const struct svi_key_entry **entries,
                    int64_t *matching);
int64_t svi_engine_key_count(const svi_engine *e);

/* ---- states of keys in files beside the checkpoints */

/* As svi_engine_save, in pieces, for a stream with keys whose states are kept in files of this directory from
 * here on (svi_engine_keep_keys): what has changed of them since the last one is written bit by bit, between
 * other calls, and *c is the state at svi_engine_save_begin. Codes of svi_key_files_append: it is given up.
 * Without keys the first call does all. sync, which another thread may call between the end and the next
 * begin, makes durable what *c needs. */
struct svi_state_dir;
svs_code svi_engine_keep_keys(svi_engine *e, const struct svi_state_dir *dir, svs_error *err);
svs_code svi_engine_save_begin(svi_engine *e, struct svi_checkpoint *c, svs_error *err);
svs_code svi_engine_save_on(svi_engine *e, double seconds, bool *done, svs_error *err);
svs_code svi_engine_save_end(svi_engine *e, struct svi_checkpoint *c, svs_error *err);
svs_code svi_engine_sync_keys(svi_engine *e, svs_error *err);

/* Before one begins: files of which much is dead are written again, for about so long; *done: it is. */
svs_code svi_engine_tidy_keys(svi_engine *e, double seconds, bool *done, svs_error *err);

#endif
