/* write_ahead.h: keeps the state of a stream in a directory, so that a restart continues where the last run
 * ended.
 *
 * Every change of the state is appended to a journal and committed before it takes effect. A separate thread
 * writes the whole state as a checkpoint from time to time, while the stream continues. A restart loads the
 * newest good checkpoint and applies the journal after it through the same functions. Therefore nothing is
 * acknowledged or published before it is kept, and a restart sends the same event numbers again.
 *
 * All functions are called by the stream's thread. */
#ifndef SVI_WRITE_AHEAD_H
#define SVI_WRITE_AHEAD_H

#include <stdio.h>

#include "state/load.h"
#include "state/record.h"

typedef struct svi_write_ahead svi_write_ahead;

/* Recovers the state in s->state_dir, or begins a new one. The caller owns *stream and frees it after the
 * write-ahead. *s becomes the settings to continue with (svi_settings_merge). Results are logged to `log`
 * (may be NULL). Returns NULL, with *stream NULL, on SVS_IO, SVS_DAMAGED, SVS_SETTING, SVS_NO_MEMORY. */
svi_write_ahead *svi_write_ahead_open(struct svi_settings *s, svi_sink *sink, void *user, FILE *log,
                                      svi_stream **stream, svs_error *err);

/* Waits for a running sync or checkpoint, then frees *w; writes no further checkpoint. */
void svi_write_ahead_free(svi_write_ahead **w);

/* append collects records that are about to take effect; commit writes all of them with one write.
 * SVS_DISK_FULL: none of them is kept, so none may take effect; a later commit may succeed. SVS_IO: the
 * process must end. */
svs_code svi_write_ahead_append(svi_write_ahead *w, enum svi_record_kind kind, double now,
                                const void *payload, size_t size, svs_error *err);
svs_code svi_write_ahead_commit(svi_write_ahead *w, svs_error *err);

/* syncs: is every commit synced (level durable and above)? Then the disk can work while earlier records take
 * effect: begin writes the collected records and starts their sync in the background, end waits for that
 * sync. Those records must not take effect before end, and no second begin may come before it. Codes as
 * above. */
bool svi_write_ahead_syncs(const svi_write_ahead *w);
svs_code svi_write_ahead_begin(svi_write_ahead *w, svs_error *err);
svs_code svi_write_ahead_end(svi_write_ahead *w, svs_error *err);

/* Duration of such a sync, smoothed, in seconds; 0 = none so far. */
double svi_write_ahead_sync_seconds(const svi_write_ahead *w);

void svi_write_ahead_abort(
    svi_write_ahead *w); /* drops records appended and not yet committed (w may be NULL) */

/* Appends and commits one record. */
svs_code svi_write_ahead_write(svi_write_ahead *w, enum svi_record_kind kind, double now, const void *payload,
                               size_t size, svs_error *err);

/* Appends a refusal from outside the stream; svi_stream_refuse then publishes it. */
svs_code svi_write_ahead_append_refusal(svi_write_ahead *w, svs_code code, const char *reason, double now,
                                        svs_error *err);

/* Writes a refusal and publishes it (w may be NULL); `bytes` is the refused input. A failed write is reported
 * by the next svi_write_ahead_turn; on a full disk the refusal is published nevertheless. */
void svi_write_ahead_refuse(svi_write_ahead *w, svi_stream *stream, svs_code code, const char *reason,
                            const void *bytes, size_t length, double now);

/* The last sequence number of source `src` that is on disk; -1 = none. */
int64_t svi_write_ahead_durable(const svi_write_ahead *w, const char *src);

/* To be called after each turn of the server, which took `work` seconds of CPU time. Starts a sync or a
 * checkpoint that is due, and finishes a checkpoint that was written. SVS_IO: the process must end. */
svs_code svi_write_ahead_turn(svi_write_ahead *w, double work, svs_error *err);

double
svi_write_ahead_wait(const svi_write_ahead *w);   /* seconds until svi_write_ahead_turn has something to do */
int svi_write_ahead_fd(const svi_write_ahead *w); /* readable: it has something to do now */

/* Takes a checkpoint of the present state, on disk when it returns. *record: number of records before it;
 * hash: SVI_HASH_TEXT bytes; both may be NULL. SVS_DISK_FULL, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_write_ahead_save(svi_write_ahead *w, uint64_t *record, char *hash, svs_error *err);

/* Restores the stream to a kept checkpoint (svi_load_prepare); the record of it is on disk when this returns.
 * *s: the settings of the process. Codes of svi_load_prepare and svi_load_pack, SVS_DISK_FULL: nothing has
 * changed; SVS_IO: the process must end. */
struct svi_loaded {
    uint64_t record;   /* number of the SVI_RECORD_LOAD record */
    int64_t relearned; /* samples after the checkpoint that were learned again */
};
svs_code svi_write_ahead_load(svi_write_ahead *w, const struct svi_load_options *o, struct svi_settings *s,
                              double now, struct svi_loaded *out, svs_error *err);

/* Upper bound of the memory besides the engine, in bytes: *share times the size of the state, plus *fixed.
 * `turn`: bytes of the messages that one turn writes together. */
void svi_write_ahead_memory(double turn, double *share, double *fixed);

/* Sets the gauges of the stats that describe the journal and the checkpoints (svi_stream_set_gauge). */
void svi_write_ahead_figures(const svi_write_ahead *w);

#endif
