/* journal.h: the write-ahead log: every input that changes the state, in order, written before it takes
 * effect.
 *
 * A journal is a sequence of segments `journal-<first record>`. A segment consists of msgpack objects only,
 * so any msgpack library can read it:
 *
 *   header  {format: "svmstream-journal", v: layout, secret, program, stream, epoch,
 *            first: number of its first record, chain: check of the record before that, again: secret, check}
 *   record  [number, kind, now, durable, payload (bin), check]
 *
 * number counts from 0 without gaps over all segments; now is the arrival clock (seconds); all records below
 * `durable` were known to be on disk when this one was written. The check is the last item: XXH3 (64 bits) of
 * the object's bytes before it. The header's check is seeded with `chain`; a record's with the previous check
 * (for the first record: the header's) xor the segment's secret. Items have fixed sizes (uint 64, float 64,
 * bin 32), so the previous check always stands right before a record. The secret is random and never leaves
 * the directory: bytes that a producer sends can never pass for a record, wherever a crash tears the file. It
 * is stored twice, because no record can be verified without it.
 *
 * A crash leaves a torn tail: a bad record in the last segment, with no sound record after it that declares
 * it durable (each record can be verified alone: its seed stands right before it). The tail is truncated. A
 * bad record that was durable, or one in an earlier segment (each is synced before the next begins), is
 * damage: reading fails, or with accept_loss continues at the next sound record.
 *
 * An empty file begun-<first record> marks the newest segment, so that the loss of the whole segment is
 * noticed. The mark is made durable after the segment and before any record of it is acknowledged. A
 * directory without the mark is accepted: a crash may have come before it was made. */
#ifndef SVI_JOURNAL_H
#define SVI_JOURNAL_H

#include <stddef.h>

#include "store/state_dir.h"

enum svi_fsync { SVI_FSYNC_ALWAYS = 0, SVI_FSYNC_INTERVAL, SVI_FSYNC_NEVER };

struct svi_record {
    uint64_t number;
    int kind;               /* 0 to 127; its meaning is the engine's */
    double now;             /* arrival clock, seconds */
    uint64_t durable;       /* records below this number were on disk when it was written */
    const uint8_t *payload; /* not owned */
    size_t size;            /* bytes of the payload */
};

/* The place of the next record. A checkpoint stores it, so that reading can begin there. */
struct svi_position {
    uint64_t number;  /* of the next record */
    uint64_t segment; /* number of the first record of its segment */
    uint64_t offset;  /* its byte in that segment; 0: the segment does not exist yet */
    uint64_t chain;   /* check of the object before it */
    uint64_t secret;  /* of the segment, if that exists */
};

/* ---- reading */

struct svi_journal_reader_options {
    uint64_t epoch;   /* that the segments must have (the checkpoint's); 0: that of the first segment */
    size_t largest;   /* bytes of the largest payload accepted */
    bool accept_loss; /* skip damage instead of failing */
};

typedef struct svi_journal_reader svi_journal_reader;

/* Reads from `from` on. With offset 0 the segment is found by its number, and a journal without segments
 * reads as empty. SVS_DAMAGED: a required segment is missing; else the codes of svi_journal_read. */
svi_journal_reader *svi_journal_reader_new(const struct svi_state_dir *dir, const struct svi_position *from,
                                           const struct svi_journal_reader_options *o, svs_error *err);
void svi_journal_reader_free(svi_journal_reader **r);

/* The layout of the segment that begins with these bytes; SVI_STATE_LAYOUT if its header is damaged. */
uint64_t svi_segment_layout(const uint8_t *bytes, size_t size);

enum svi_journal_read { SVI_JOURNAL_RECORD, SVI_JOURNAL_END, SVI_JOURNAL_FAIL };

/* The next record; its payload is valid until the next call. FAIL is final: SVS_DAMAGED with file, byte and
 * advice (--accept-loss); SVS_TOO_LARGE: a sound record exceeds `largest`; SVS_UNAVAILABLE: another layout;
 * SVS_IO; SVS_NO_MEMORY. */
enum svi_journal_read svi_journal_read(svi_journal_reader *r, struct svi_record *record, svs_error *err);

struct svi_journal_found {
    struct svi_position end; /* after the last sound record */
    uint64_t epoch;          /* of its segments; 0: it has none */
    uint64_t records;        /* returned so far */
    uint64_t torn;           /* bytes after the end in the last segment */
    uint64_t lost_records;   /* skipped with accept_loss, as far as record numbers show */
    uint64_t lost_bytes;     /* skipped */
    int damages;             /* damaged places that were skipped; the loss at one may be unknown */
    bool lost;               /* damage was skipped between the last two records, or before the end */
    int segments;            /* listed */
};
void svi_journal_reader_found(const svi_journal_reader *r, struct svi_journal_found *found);

/* ---- writing */

struct svi_journal_options {
    const char *stream;
    uint64_t epoch;
    int64_t segment; /* bytes after which a new segment begins */
    enum svi_fsync fsync;
    double interval; /* seconds between syncs */
};

typedef struct svi_journal svi_journal;

/* Called before reading a journal that will be continued: drops the last segment from the page cache. After a
 * failed sync the cache may hold data that never reached the disk; reading must see the disk. SVS_IO,
 * SVS_NO_MEMORY. */
svs_code svi_journal_forget(const struct svi_state_dir *dir, svs_error *err);

/* Continues at `at`, or begins a new journal there (offset 0). Everything after it is removed: a torn tail
 * and whole later segments. The directory must be locked and outlive the journal. NULL: SVS_IO,
 * SVS_DISK_FULL, SVS_DAMAGED (the segment is shorter than at->offset), SVS_NO_MEMORY. */
svi_journal *svi_journal_new(const struct svi_state_dir *dir, const struct svi_journal_options *o,
                             const struct svi_position *at, svs_error *err);
/* Discards what was not committed; neither writes nor syncs. */
void svi_journal_free(svi_journal **j);

/* Gathers a record in memory. SVS_NO_MEMORY, SVS_INVALID (its kind), SVS_TOO_LARGE (2 GiB): not gathered. */
svs_code svi_journal_append(svi_journal *j, int kind, double now, const void *payload, size_t size,
                            svs_error *err);

/* Writes the gathered records with one write, and syncs if the policy is `always`. With nothing gathered it
 * returns SVS_OK at no cost.
 * SVS_DISK_FULL (no space, or too many open files to begin a segment): nothing is in the file, the gathered
 * records are dropped, and the journal stays usable. SVS_IO: a write or sync failed and the disk's content is
 * unknown, or a sync found that the file was removed: every further call fails, and the process must end. */
svs_code svi_journal_commit(svi_journal *j, svs_error *err);

/* The same without the sync, which the caller must arrange (svi_journal_sync_begin). */
svs_code svi_journal_write(svi_journal *j, svs_error *err);

/* Drops the gathered records. */
void svi_journal_abort(svi_journal *j);

/* Frees the buffer of gathered records, if none is gathered: a large record may have grown it. */
void svi_journal_release(svi_journal *j);

/* Makes everything committed durable now, whatever the policy. */
svs_code svi_journal_sync(svi_journal *j, svs_error *err);

/* Is a sync due at `time` (seconds, monotonic) under the policy `interval`? *due: when to ask again;
 * INFINITY: nothing is unsynced. After a failure always true, whatever the policy: svi_journal_sync_begin
 * reports it. */
bool svi_journal_due(svi_journal *j, double time, double *due);

/* A sync that the stream does not wait for: begun and ended by the journal's owner, run by any thread in
 * between. It uses a separate descriptor, because the kernel reports a lost write once to each descriptor. If
 * no descriptor is available, svi_journal_sync_begin syncs at once. */
struct svi_journal_sync {
    int fd;           /* -1: everything is on disk, nothing to run */
    int error;        /* errno of the sync, 0: none */
    double seconds;   /* duration of the sync */
    uint64_t segment; /* that is synced */
    uint64_t number;  /* records below it will be on disk */
};
svs_code svi_journal_sync_begin(svi_journal *j, struct svi_journal_sync *s, svs_error *err); /* SVS_IO */
void svi_journal_sync_run(void *sync); /* a task of a worker */
/* Closes the descriptor. SVS_IO: the sync failed, with the consequences of svi_journal_commit. */
svs_code svi_journal_sync_end(svi_journal *j, struct svi_journal_sync *s, svs_error *err);

/* The place of the next record; gathered records count as written. */
struct svi_position svi_journal_position(const svi_journal *j);
uint64_t svi_journal_durable(const svi_journal *j); /* all records below this number are on disk */
uint64_t svi_journal_syncs(const svi_journal *j);   /* number of syncs so far */
int64_t svi_journal_bytes(const svi_journal *j);    /* written by this process */

/* Removes the segments in which every record is below `number`, from any thread. The segment `current` stays:
 * the one being written, as of the caller's last svi_position. */
svs_code svi_journal_trim(const struct svi_state_dir *dir, uint64_t number, uint64_t current, svs_error *err);

#endif
