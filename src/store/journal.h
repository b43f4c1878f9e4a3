/* journal.h: every input that changes the state, in order, written before it takes effect (a write-ahead
 * log).
 *
 * A journal is a row of segments `journal-<first record>`. A segment is nothing but msgpack objects one after
 * another, so that any msgpack library reads it:
 *
 *   header  {format: "svmstream-journal", v: layout, secret, program, stream, epoch,
 *            first: number of its first record, chain: check of the last record before, again: secret, check}
 *   record  [number, kind, now, durable, payload (bin), check]
 *
 * number counts from 0 without gaps over all segments; now is the arrival clock; durable: how many records
 * (numbers below it) were known to be on disk when this one was written; check is the last item: XXH3 (64
 * bits) of the object's bytes before it, seeded with the check before (of the first record: the header's),
 * for records xor the segment's secret; the header's own seed is `chain`. Items have fixed sizes (uint 64,
 * float 64, bin 32), so that the place of the check before a record is known. The secret is drawn at random
 * and never leaves the directory: what a producer sends never passes for a record, whatever a crash tears
 * around it. It stands twice, for without it no record can be checked.
 *
 * A crash leaves a torn tail: a bad record in the last segment with no sound record after it that says it
 * was durable (each record can be checked alone: its seed stands right before it). The tail is cut off. A bad
 * record that was durable, or one in an earlier segment (which is synced before the next begins), is damage:
 * it is refused, or with accept_loss passed over up to the next sound record.
 *
 * That the newest segment is gone altogether shows by the name of an empty file, begun-<its first record>,
 * which is made durable after the segment is and before a record of it is acknowledged. A directory without
 * that file is read as it is: a crash may have come before it. */
#ifndef SVI_JOURNAL_H
#define SVI_JOURNAL_H

#include <stddef.h>

#include "store/state_dir.h"

enum svi_fsync { SVI_FSYNC_ALWAYS = 0, SVI_FSYNC_INTERVAL, SVI_FSYNC_NEVER };

struct svi_record {
    uint64_t number;
    int kind; /* 0 to 127; what it means is the engine's */
    double now;
    uint64_t durable;
    const uint8_t *payload;
    size_t size;
};

/* Where the next record goes. A checkpoint keeps it, so that reading can begin there. */
struct svi_position {
    uint64_t number;  /* of that record */
    uint64_t segment; /* first record of the segment it goes to */
    uint64_t offset;  /* bytes in that segment; 0 = the segment is not there yet */
    uint64_t chain;   /* check of what stands before */
    uint64_t secret;  /* of the segment, where it is there */
};

/* ---- reading */

struct svi_journal_reader_options {
    uint64_t epoch; /* of the checkpoint; 0 = take the first segment's */
    size_t largest; /* bytes of a payload at most */
    bool accept_loss;
};

typedef struct svi_journal_reader svi_journal_reader;

/* From `from` on (offset 0: the segment is searched by its number, and a journal that never had segments
 * reads as empty). SVS_DAMAGED: a segment that is needed is missing; and what svi_journal_read fails with. */
svi_journal_reader *svi_journal_reader_new(const struct svi_state_dir *dir, const struct svi_position *from,
                                           const struct svi_journal_reader_options *o, svs_error *err);
void svi_journal_reader_free(svi_journal_reader **r);

/* The layout of the segment that begins with these bytes; SVI_STATE_LAYOUT where they do not tell. */
uint64_t svi_segment_layout(const uint8_t *bytes, size_t size);

enum svi_journal_read { SVI_JOURNAL_RECORD, SVI_JOURNAL_END, SVI_JOURNAL_FAIL };

/* The next record, valid until the next call. FAIL, for good: SVS_DAMAGED with file, byte and what to do
 * (--accept-loss); SVS_TOO_LARGE: a sound record above `largest`; SVS_UNAVAILABLE: of another layout;
 * SVS_IO, SVS_NO_MEMORY. */
enum svi_journal_read svi_journal_read(svi_journal_reader *r, struct svi_record *record, svs_error *err);

struct svi_journal_found {
    struct svi_position end; /* after the last sound record */
    uint64_t epoch;          /* of its segments; 0 = there are none */
    uint64_t records;        /* read */
    uint64_t torn;           /* bytes after the end in the last segment */
    uint64_t lost_records;   /* passed over (accept_loss), as far as their numbers show */
    uint64_t lost_bytes;
    int damages; /* places that were passed over; what was lost there may not be known */
    bool lost;   /* since the last record that was returned something was passed over */
    int segments;
};
void svi_journal_reader_found(const svi_journal_reader *r, struct svi_journal_found *found);

/* ---- writing */

struct svi_journal_options {
    const char *stream;
    uint64_t epoch;
    int64_t segment; /* bytes after which a new one begins */
    enum svi_fsync fsync;
    double interval; /* seconds between syncs */
};

typedef struct svi_journal svi_journal;

/* Before a journal is read that is to be continued: what a sync that failed left in memory alone must not be
 * taken for what is on disk, so the last segment will be read from there. SVS_IO, SVS_NO_MEMORY. */
svs_code svi_journal_forget(const struct svi_state_dir *dir, svs_error *err);

/* Continues at `at`, after which nothing of value stands: cuts off what there is (a torn tail, and whole
 * later segments), or begins a new journal. The directory is locked and outlives the journal. */
svi_journal *svi_journal_new(const struct svi_state_dir *dir, const struct svi_journal_options *o,
                             const struct svi_position *at, svs_error *err);
/* Writes nothing more; what was not committed is gone. */
void svi_journal_free(svi_journal **j);

/* Gathers a record. SVS_NO_MEMORY, SVS_INVALID (its kind), SVS_TOO_LARGE (2 GiB): it is not in. */
svs_code svi_journal_append(svi_journal *j, int kind, double now, const void *payload, size_t size,
                            svs_error *err);

/* Writes what was gathered, with one write, and syncs if the policy says always.
 * SVS_DISK_FULL (no room, or too many files are open to begin a segment): nothing of it is in the file, all
 * that was gathered is dropped, and the journal may be used again. SVS_IO: a write or a sync failed, and what
 * is on disk is not known, or a sync has found that the file was removed: the process must end, every further
 * call fails. Nothing gathered: SVS_OK at no cost.
 */
svs_code svi_journal_commit(svi_journal *j, svs_error *err);

/* The same without that sync: the caller brings it about (svi_journal_sync_begin). */
svs_code svi_journal_write(svi_journal *j, svs_error *err);

/* Drops what was gathered and not committed. */
void svi_journal_abort(svi_journal *j);

/* Nothing is gathered: gives back the room of a large record. */
void svi_journal_release(svi_journal *j);

/* Makes everything committed durable now, whatever the policy. */
svs_code svi_journal_sync(svi_journal *j, svs_error *err);

/* With the policy interval: is it time (seconds, monotonic) to sync? *due: when to ask again (INFINITY:
 * nothing is unsynced). With any policy after a failure, which svi_journal_sync_begin then reports. */
bool svi_journal_due(svi_journal *j, double time, double *due);

/* A sync that the stream does not wait for: begun and ended by the journal's owner, run by any thread in
 * between. It has a descriptor of its own, for each descriptor hears of a lost write once (without one to be
 * had, svi_journal_sync_begin does it all). */
struct svi_journal_sync {
    int fd; /* -1 = all is on disk, there is nothing to run */
    int error;
    double seconds;           /* that it took */
    uint64_t segment, number; /* records below it will be on disk */
};
svs_code svi_journal_sync_begin(svi_journal *j, struct svi_journal_sync *s, svs_error *err); /* SVS_IO */
void svi_journal_sync_run(void *sync); /* a task of a worker */
/* SVS_IO: it failed, as for svi_journal_commit. Closes the descriptor. */
svs_code svi_journal_sync_end(svi_journal *j, struct svi_journal_sync *s, svs_error *err);

/* Where the next record goes (what was gathered counts as written). */
struct svi_position svi_journal_position(const svi_journal *j);
uint64_t svi_journal_durable(const svi_journal *j); /* records (numbers below it) known to be on disk */
uint64_t svi_journal_syncs(const svi_journal *j);   /* so far: grows with each */
int64_t svi_journal_bytes(const svi_journal *j);    /* written by this process */

/* Removes segments in which every record is below `number`, from any thread: `current` is the segment that
 * was being written when it was last asked for (svi_position), and stays. */
svs_code svi_journal_trim(const struct svi_state_dir *dir, uint64_t number, uint64_t current, svs_error *err);

#endif
