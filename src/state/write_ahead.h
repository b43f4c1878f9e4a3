/* write_ahead.h: keeps the state of an engine in a directory, so that a restart goes on where the last run
 * ended.
 *
 * Everything that changes the state is appended to a journal and committed before it takes effect; from time
 * to time the state itself is written as a checkpoint, by a thread of its own, while the stream goes on. A
 * restart loads the newest good checkpoint and applies the journal after it through the same functions. So
 * nothing is ever acknowledged or published that is not kept, and the same event numbers go out again.
 *
 * A write-ahead is used by one thread. */
#ifndef SVI_WRITE_AHEAD_H
#define SVI_WRITE_AHEAD_H

#include <stdio.h>

#include "state/load.h"
#include "state/record.h"

typedef struct svi_write_ahead svi_write_ahead;

/* Takes up the state in s->state_dir, or begins one: *stream is new, and is the caller's to free (after the
 * write-ahead). *s becomes what to go on with (svi_settings_merge). What was found is logged to `log` (may be
 * NULL). NULL: SVS_IO, SVS_DAMAGED, SVS_SETTING, SVS_NO_MEMORY; *stream is NULL then. */
svi_write_ahead *svi_write_ahead_open(struct svi_settings *s, svi_sink *sink, void *user, FILE *log,
                                      svi_stream **stream, svs_error *err);

/* Waits for a checkpoint that is being written; writes nothing more. */
void svi_write_ahead_free(svi_write_ahead **w);

/* append collects what is about to take effect; commit writes all of it with one write. SVS_DISK_FULL:
 * nothing of what was collected is kept, and nothing of it may take effect; later may work. SVS_IO: the
 * process must end. */
svs_code svi_write_ahead_append(svi_write_ahead *w, enum svi_record_kind kind, double now,
                                const void *payload, size_t size, svs_error *err);
svs_code svi_write_ahead_commit(svi_write_ahead *w, svs_error *err);

/* Is every commit synced (level durable and above)? Then the disk may work while what was committed before
 * takes effect: begin writes what was collected and starts its sync in the background, end waits for it. What
 * is between them may not take effect yet, and nothing else may be begun. Codes as above. */
bool svi_write_ahead_syncs(const svi_write_ahead *w);
svs_code svi_write_ahead_begin(svi_write_ahead *w, svs_error *err);
svs_code svi_write_ahead_end(svi_write_ahead *w, svs_error *err);

/* Seconds that such a sync has taken recently; 0 = there was none. */
double svi_write_ahead_sync_seconds(const svi_write_ahead *w);

void svi_write_ahead_abort(
    svi_write_ahead *w); /* drops what was appended and not committed (w may be NULL) */

/* append and commit of one record. */
svs_code svi_write_ahead_write(svi_write_ahead *w, enum svi_record_kind kind, double now, const void *payload,
                               size_t size, svs_error *err);

/* Appends a refusal from outside the stream; svi_stream_refuse then publishes it. */
svs_code svi_write_ahead_append_refusal(svi_write_ahead *w, svs_code code, const char *reason, double now,
                                        svs_error *err);

/* Writes and publishes one (w may be NULL); `bytes`: what was refused. That it could not be written shows at
 * svi_write_ahead_turn; on a full disk it is published all the same. */
void svi_write_ahead_refuse(svi_write_ahead *w, svi_stream *stream, svs_code code, const char *reason,
                            const void *bytes, size_t length, double now);

/* The last number of a source that is on disk, -1 = none. */
int64_t svi_write_ahead_durable(const svi_write_ahead *w, const char *src);

/* After each turn, which took `work` seconds of CPU time. Syncs when it is due, begins a checkpoint when it
 * is due, ends one that was written. SVS_IO: the process must end. */
svs_code svi_write_ahead_turn(svi_write_ahead *w, double work, svs_error *err);

double
svi_write_ahead_wait(const svi_write_ahead *w);   /* seconds until svi_write_ahead_turn has something to do */
int svi_write_ahead_fd(const svi_write_ahead *w); /* readable: the same, now */

/* A checkpoint of now, on disk when it returns. *record: after how many records; hash: SVI_HASH_TEXT bytes,
 * may be NULL. SVS_DISK_FULL, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_write_ahead_save(svi_write_ahead *w, uint64_t *record, char *hash, svs_error *err);

/* The stream goes back to a checkpoint that is kept (svi_load_prepare), on disk when it returns; *s: the
 * settings of the process. Codes of svi_load_prepare and svi_load_pack, SVS_DISK_FULL: nothing has changed;
 * SVS_IO: the process must end. */
struct svi_loaded {
    uint64_t record;   /* the number of its record */
    int64_t relearned; /* samples */
};
svs_code svi_write_ahead_load(svi_write_ahead *w, const struct svi_load_options *o, struct svi_settings *s,
                              double now, struct svi_loaded *out, svs_error *err);

/* Bytes at most, besides the engine: *share of the size of its state, and *fixed; turn: bytes of the messages
 * that are written together. */
void svi_write_ahead_memory(double turn, double *share, double *fixed);

/* Gauges for the stats, by svi_stream_set_gauge. */
void svi_write_ahead_figures(const svi_write_ahead *w);

#endif
