/* keeper.h: keeps the state of an engine in a folder, so that a restart goes on where the last run ended.
 *
 * Everything that changes the state is written to a journal before it takes effect (svi_keeper_note, commit);
 * from time to time the state itself is written beside the stream, by a thread of its own (a checkpoint). A
 * restart takes the newest sound checkpoint and repeats the journal behind it through the same functions. So
 * nothing is ever acknowledged or published that is not kept, and the same numbers go out again.
 *
 * One thread uses a keeper. */
#ifndef SVI_KEEPER_H
#define SVI_KEEPER_H

#include <stdio.h>

#include "engine/engine.h"

/* Kinds of records; the payload of each. */
enum svi_record_kind {
    SVI_RECORD_FRAME = 1, /* a message as it came */
    SVI_RECORD_SOURCED,   /* the same, with src and n looked at */
    SVI_RECORD_CONTROL,   /* a control request */
    SVI_RECORD_REFIT,     /* svi_refit_pack: it took effect here */
    SVI_RECORD_REFUSAL,   /* "CODE REASON": a refusal from outside the stream */
    SVI_RECORD_STATS,     /* nothing: stats were published */
    SVI_RECORD_START,     /* svi_settings_pack: a process began with these settings */
    SVI_RECORD_STOP       /* nothing: it ended, and published its model */
};

typedef struct svi_keeper svi_keeper;

/* Takes up the state in s->state_dir, or begins one: *engine is new, and is the caller's to free (after the
 * keeper). *s becomes what to go on with (svi_settings_merge). What was found is told to `log` (may be NULL).
 * NULL: SVS_IO, SVS_DAMAGED, SVS_SETTING, SVS_NO_MEMORY; *engine is NULL then. */
svi_keeper *svi_keeper_open(struct svi_settings *s, svi_sink *sink, void *user, FILE *log,
                            svi_engine **engine, svs_error *err);

/* Waits for a checkpoint that is being written; writes nothing more. */
void svi_keeper_free(svi_keeper **k);

/* Gathers what is about to take effect, then writes it with one write. SVS_DISK_FULL: nothing of what was
 * gathered is kept, and nothing of it may take effect; later may work. SVS_IO: the process must end. */
svs_code svi_keeper_note(svi_keeper *k, enum svi_record_kind kind, double now, const void *payload,
                         size_t size, svs_error *err);
svs_code svi_keeper_commit(svi_keeper *k, svs_error *err);

/* Is every commit synced (level durable and above)? Then the disk may work while what was committed before
 * takes effect: begin writes what was gathered, and syncs beside; end waits for it. What is between them may
 * not take effect yet, and nothing else may be begun. Codes as above. */
bool svi_keeper_syncs(const svi_keeper *k);
svs_code svi_keeper_begin(svi_keeper *k, svs_error *err);
svs_code svi_keeper_end(svi_keeper *k, svs_error *err);

/* Seconds that the disk takes for what is begun, lately; 0 = nothing was. */
double svi_keeper_sync_seconds(const svi_keeper *k);

void svi_keeper_drop(svi_keeper *k); /* what was gathered and not written (k may be NULL) */

/* Both at once, for one record. */
svs_code svi_keeper_write(svi_keeper *k, enum svi_record_kind kind, double now, const void *payload,
                          size_t size, svs_error *err);

/* Notes a refusal from outside the stream; svi_engine_refuse then tells it. */
svs_code svi_keeper_note_refusal(svi_keeper *k, svs_code code, const char *reason, double now,
                                 svs_error *err);

/* Writes down and tells one (k may be NULL); `bytes`: what was refused. That it could not be written down
 * shows at svi_keeper_turn; for want of room it is told all the same. */
void svi_keeper_refuse(svi_keeper *k, svi_engine *e, svs_code code, const char *reason, const void *bytes,
                       size_t length, double now);

/* The last number of a source that is on disk, -1 = none. */
int64_t svi_keeper_durable(const svi_keeper *k, const char *src);

/* After each turn, which took `work` seconds of the processor. Syncs when it is due, begins a checkpoint when
 * it is due, ends one that was written. SVS_IO: the process must end. */
svs_code svi_keeper_turn(svi_keeper *k, double work, svs_error *err);

double svi_keeper_wait(const svi_keeper *k); /* seconds until svi_keeper_turn has something to do */
int svi_keeper_fd(const svi_keeper *k);      /* readable: the same, now */

/* A checkpoint of now, on disk when it returns. *record: after how many records; hash: SVI_HASH_TEXT bytes,
 * may be NULL. SVS_DISK_FULL, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_keeper_save(svi_keeper *k, uint64_t *record, char *hash, svs_error *err);

/* Bytes that a keeper of an engine whose state takes `state` bytes holds at most, and the messages that an
 * inlet has in hand meanwhile. */
double svi_keeper_memory(const struct svi_settings *s, double state);

/* Figures for the stats, by svi_engine_note. */
void svi_keeper_figures(const svi_keeper *k);

#endif
