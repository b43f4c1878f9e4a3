/* Write-ahead: a journal, and checkpoints that bound how much of it a restart has to apply.
 *
 * Three threads share the work. The stream's thread appends and commits records, and copies the state between
 * two turns. The checkpoint thread writes that copy and then removes what it replaces. The fsync thread does
 * the syncs in the background, one at a time: with two at once, one could find nothing left to write and
 * succeed while the other has not yet reported its failure.
 *
 * Durability is counted in fsync generations. A generation ends when its sync is started and is durable when
 * that sync has succeeded; the entry notes for each source the generation in which its last number arrived.
 *
 * Invariants: a checkpoint is never newer than the journal on disk, and nothing takes effect before its
 * record is committed. Read in order: checkpoints, the stream, start and end. */
#include "state/write_ahead.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "store/io.h"
#include "fleet/fleet.h"
#include "state/recovery.h"
#include "store/key_files.h"
#include "store/layout.h"
#include "config/settings_record.h"
#include "base/worker.h"

#define NEEDED            2 /* checkpoints that a restart may need, with the journal after them */
#define MAX_JOURNAL_BYTES (64 * 1024 * 1024) /* between checkpoints, however little work they were */
#define SYNC_POLL_SECONDS 0.005              /* between two checks whether a sync has ended */
#define MAX_STALL_SHARE   0.05               /* share of the work that taking checkpoints may cost */
#define STALL_SHARE       0.005              /* share aimed at: few of 1000 samples wait for one */
#define SPENT_KEYS        0.2                /* share of the work for saving the states of keys */
#define MAX_DELAY_TIMES   4                  /* longest delay to meet STALL_SHARE, in checkpoint.seconds */
#define SLACK             65536              /* bytes by which a state may grow until it is saved */
#define PIECE             (1024 * 1024)      /* most bytes of a state that are gathered at once */
#define CHECKPOINT_SHARE  1.25               /* capacity of the copy, in sizes of the state */
#define MAX_SLICE_SECONDS 0.002              /* of one turn for the states of keys */
#define MIN_SLICE_SECONDS 0.0002

/* Progress of a checkpoint. With keys it takes many turns: its position in the journal is fixed between the
 * two phases. */
enum write_ahead_phase {
    CHECKPOINT_NONE = 0,
    CHECKPOINT_TIDIES, /* rewrites key files that are mostly dead; the position is still open */
    CHECKPOINT_SAVES   /* writes the states of keys as they were at the position */
};

struct svi_write_ahead {
    struct svi_state_dir dir;
    svi_journal *journal;
    svi_stream *stream;
    bool keep_all;
    int64_t keep; /* number of checkpoints */
    bool keyed;   /* states of keys are in separate files */
    bool always;  /* every commit is synced, so whatever took effect is on disk */
    double every; /* seconds of work between checkpoints, 0 = no checkpoints */
    double work;  /* seconds since the last one */
    double due;   /* monotonic: when the journal has to be synced; 0 = ask it at the next turn */

    svi_worker *fsync_thread;
    struct svi_journal_sync sync; /* owned by the fsync thread while it is busy */
    double sync_seconds;          /* smoothed duration of the syncs that a turn waited for */
    uint64_t fsync_generation, fsync_generation_pending,
        fsync_generation_durable; /* svi_entry_set_fsync_generation */

    svi_worker *checkpoint_thread;
    struct svi_checkpoint checkpoint; /* owned by the checkpoint thread while it is busy, as the next three */
    bool prepares;                    /* it makes space for the next checkpoint and writes none */
    size_t wanted;                    /* bytes of capacity to allocate; 0 = there is enough */
    svs_error result;
    size_t size_before; /* bytes of the bodies of the previous checkpoint */
    bool waits;         /* the checkpoint is complete, but the journal before it is not yet on disk */
    int64_t bytes_at;   /* size of the journal at the last checkpoint */
    double since;       /* monotonic: when the oldest record that is not on disk was written; 0 = all are */
    uint64_t newest;    /* records before the newest checkpoint */
    bool any;           /* `newest` is valid */
    double stall;       /* longest time for which the last checkpoint held up the stream, seconds */
    double spent;       /* total time that it took from the stream, seconds */
    enum write_ahead_phase phase;
    int64_t written, failed;
};

/* ---- checkpoints */

/* Index of the checkpoint to remove first; `numbers` ascends. The newest NEEDED ones stay, since a restart
 * may need them, and so does the oldest unless there is no other choice. Of the others the one is removed
 * whose removal leaves the smallest gap relative to its age, so that the distances grow with the age. */
static int write_ahead_spare(const uint64_t *numbers, int count) {
    int spare = 0;
    double smallest = INFINITY;
    for (int i = 1; i < count - NEEDED; i++) {
        const double gap = (double)(numbers[i + 1] - numbers[i - 1]),
                     age = (double)(numbers[count - 1] - numbers[i]) + 1;
        if (gap / age < smallest) {
            smallest = gap / age;
            spare = i;
        }
    }
    return spare;
}

/* Removes the key files that none of these checkpoints refers to. */
static svs_code clear_keys(svi_write_ahead *w, const uint64_t *checkpoints, int count, svs_error *err) {
    struct svi_checkpoint c = {0};
    uint64_t *files = NULL, newest = 0;
    int left = 0;
    svs_error unread;
    svs_code code = svi_state_dir_list(&w->dir, SVI_KEYS, &files, &left, err);
    for (int i = 0; i < count && left > 0 && code == SVS_OK; i++) {
        svi_key_files *named = svi_key_files_new(&w->dir, err);
        code = named ? SVS_OK : err->code;
        /* An unreadable checkpoint may refer to any file, so none is removed. */
        if (code == SVS_OK && (svi_checkpoint_read(&w->dir, checkpoints[i], &c, &unread) != SVS_OK ||
                               svi_key_files_of(named, &c, &unread) != SVS_OK))
            left = 0;
        if (code == SVS_OK && svi_key_files_newest(named) > newest)
            newest = svi_key_files_newest(named);
        for (int j = left - 1; j >= 0 && code == SVS_OK; j--)
            if (svi_key_files_has(named, files[j]))
                memmove(files + j, files + j + 1, (size_t)(left-- - j - 1) * sizeof *files);
        svi_key_files_free(&named);
    }
    /* Files newer than all that are referred to may belong to the checkpoint in progress. */
    while (left > 0 && files[left - 1] > newest)
        left--;
    if (code == SVS_OK && left > 0)
        code = svi_state_dir_clear(&w->dir, SVI_KEYS, files, left, err);
    svi_free(files);
    svi_checkpoint_clear(&c);
    return code;
}

/* Removes surplus checkpoints, then the journal before the newest NEEDED, then unused key files. The order
 * matters, and so does that each removal is durable before the next: a checkpoint that a power cut brought
 * back without its journal would make the directory look damaged. */
static svs_code clear_away(svi_write_ahead *w, int64_t keep, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = svi_state_dir_list(&w->dir, "checkpoint", &numbers, &count, err);
    while (code == SVS_OK && count > keep) {
        const int spare = write_ahead_spare(numbers, count);
        code = svi_state_dir_clear(&w->dir, "checkpoint", numbers + spare, 1, err);
        memmove(numbers + spare, numbers + spare + 1, (size_t)(--count - spare) * sizeof *numbers);
    }
    if (code == SVS_OK && !w->keep_all && count >= NEEDED)
        code = svi_journal_trim(&w->dir, numbers[count - NEEDED], w->checkpoint.position.segment, err);
    if (code == SVS_OK)
        code = clear_keys(w, numbers, count, err);
    svi_free(numbers);
    return code;
}

/* Allocates the buffer of the next checkpoint and touches its pages here, because the page faults would hold
 * up the stream longer than the copy itself. With keys all checkpoints but the newest are removed first,
 * which limits the states of keys on disk to two generations. */
static void make_way(svi_write_ahead *w) {
    struct svi_bytes *b = &w->checkpoint.bodies;
    svs_error err;
    if (w->wanted > 0) {
        svi_bytes_clear(b);
        b->data = svi_alloc(w->wanted);
        b->capacity = b->data ? w->wanted : 0;
        if (b->data) /* the kernel maps the pages of a large block at the first write only */
            memset(b->data, 0, b->capacity);
        w->wanted = 0;
    }
    if (w->keyed)
        (void)clear_away(w, 1, &err); /* what fails now is removed after the next checkpoint */
}

/* The job of the checkpoint thread: everything that may wait for the disk. */
static void write_down(void *job) {
    svi_write_ahead *w = job;
    if (w->prepares) {
        make_way(w);
        return;
    }
    /* The key files are durable before the checkpoint that refers to them, and the checkpoint before anything
     * older is removed. In any other order a power cut leaves a checkpoint without its parts. */
    w->result.code = svi_stream_sync_keys(w->stream, &w->result);
    if (w->result.code == SVS_OK)
        w->result.code = svi_checkpoint_write(&w->dir, &w->checkpoint, NULL, &w->result);
    if (w->result.code == SVS_OK)
        w->result.code = clear_away(w, w->keep, &w->result);
}

static const struct svi_worker_task checkpoint_task = {"checkpoints", write_down, NULL, true};

static const struct svi_worker_task fsync_task = {"syncs", svi_journal_sync_run, NULL, true};

static void report_generation(svi_write_ahead *w) {
    svi_entry_set_fsync_generation(svi_stream_entry(w->stream), w->fsync_generation,
                                   w->fsync_generation_durable);
}

static svs_code begin_sync(svi_write_ahead *w, svs_error *err) {
    svs_code code = svi_journal_sync_begin(w->journal, &w->sync, err);
    /* Samples from here on are not covered by this sync, so they belong to the next generation. */
    w->fsync_generation_pending = w->fsync_generation++;
    report_generation(w);
    if (code == SVS_OK)
        svi_worker_submit(w->fsync_thread, &w->sync);
    w->due = 0;
    return code;
}

static svs_code end_sync(svi_write_ahead *w, svs_error *err) {
    svs_code code = svi_journal_sync_end(w->journal, &w->sync, err);
    /* A sync on the stream's thread may have made a later generation durable meanwhile (end_generation). */
    if (code == SVS_OK && w->fsync_generation_pending > w->fsync_generation_durable)
        w->fsync_generation_durable = w->fsync_generation_pending;
    report_generation(w);
    return code;
}

/* Gives the complete checkpoint to its thread once the journal before it is on disk; until then only starts
 * that sync, and is called again by later turns. A checkpoint newer than the durable journal would keep,
 * after a power cut, samples that the journal never had. */
static svs_code write_ahead_hand_over(svi_write_ahead *w, svs_error *err) {
    if (svi_journal_durable(w->journal) < w->checkpoint.position.number)
        return svi_worker_busy(w->fsync_thread) ? SVS_OK : begin_sync(w, err);
    w->waits = false;
    svi_worker_submit(w->checkpoint_thread, w);
    return SVS_OK;
}

/* Saves states of keys for about `seconds`. After the last one the checkpoint is complete and is handed over.
 * The time counts as a stall, since no sample is taken meanwhile. */
static svs_code go_on_saving(svi_write_ahead *w, double seconds, svs_error *err) {
    const double began = svi_monotonic();
    bool done = false;
    svs_code code = svi_stream_save_on(w->stream, seconds, &done, err);
    if (code == SVS_OK && done)
        code = svi_stream_save_end(w->stream, &w->checkpoint, err);
    if (code != SVS_OK || done)
        w->phase = CHECKPOINT_NONE;
    w->failed += code != SVS_OK;
    w->waits = code == SVS_OK && done;
    if (w->waits)
        code = write_ahead_hand_over(w, err);
    const double took = svi_monotonic() - began;
    w->stall = fmax(w->stall, took);
    w->spent += took;
    return code;
}

/* Fixes the position of a checkpoint and copies the state of the root. Nothing may be committed between the
 * two, or the checkpoint would claim records that it lacks. */
static svs_code begin_checkpoint(svi_write_ahead *w, double seconds, svs_error *err) {
    const double began = svi_monotonic();
    const struct svi_position at = svi_journal_position(w->journal);
    w->phase = CHECKPOINT_NONE;
    w->work = 0;
    w->bytes_at = svi_journal_bytes(w->journal);
    if (w->any && at.number == w->newest) /* no record since: the newest one is this one */
        return SVS_OK;
    w->size_before = w->checkpoint.bodies.size;
    svs_code code = svi_stream_save_begin(w->stream, &w->checkpoint, err);
    w->failed += code != SVS_OK;
    w->phase = code == SVS_OK ? CHECKPOINT_SAVES : CHECKPOINT_NONE;
    w->checkpoint.position = at;
    w->stall = w->spent = svi_monotonic() - began;
    return code == SVS_OK ? go_on_saving(w, seconds, err) : code;
}

/* Begins a checkpoint that is due: at once where its buffer is large enough, else after the checkpoint thread
 * has allocated one. Asking for the size costs a pass over the state, so two equal sizes in a row are
 * trusted; SLACK covers small growth. */
static void prepare_checkpoint(svi_write_ahead *w) {
    const struct svi_bytes *b = &w->checkpoint.bodies;
    const bool steady = b->size > 0 && b->size == w->size_before; /* as with a full window */
    const size_t size = steady ? b->size : svi_stream_size(w->stream);
    const bool enough = size + SLACK <= b->capacity;
    if (enough && !w->keyed) {
        w->phase = CHECKPOINT_TIDIES;
        return;
    }
    w->wanted = enough ? 0 : (size_t)(CHECKPOINT_SHARE * (double)size) + 2 * SLACK;
    w->prepares = true;
    svi_worker_submit(w->checkpoint_thread, w);
}

/* One turn's share of a checkpoint in progress. The slice grows with the work of the turn, so that a busy
 * stream finishes its checkpoint as well, within limits that keep the latency low. */
static svs_code advance_checkpoint(svi_write_ahead *w, double work, svs_error *err) {
    const double seconds = fmin(fmax(work, MIN_SLICE_SECONDS), MAX_SLICE_SECONDS);
    bool done = false;
    if (w->phase == CHECKPOINT_SAVES)
        return go_on_saving(w, seconds, err);
    svs_code code = svi_stream_tidy_keys(w->stream, seconds, &done, err);
    if (code != SVS_OK)
        w->phase = CHECKPOINT_NONE;
    return code == SVS_OK && done ? begin_checkpoint(w, seconds, err) : code;
}

/* The checkpoint thread has finished: it wrote the checkpoint, or only made space for the next one. */
static svs_code end_checkpoint(svi_write_ahead *w, svs_error *err) {
    const bool made_capacity = w->prepares;
    w->prepares = false;
    if (made_capacity)
        return SVS_OK;
    if (w->result.code != SVS_OK) {
        w->failed++;
        return svi_fail(err, w->result.code, "%s", w->result.text);
    }
    w->newest = w->checkpoint.position.number;
    w->any = true;
    w->written++;
    return SVS_OK;
}

/* A failed checkpoint loses nothing, since the journal is complete without it. Therefore a full disk or lack
 * of memory is not an error: the next checkpoint may succeed. */
static svs_code unless_full(svs_code code) {
    return code == SVS_DISK_FULL || code == SVS_NO_MEMORY ? SVS_OK : code;
}

/* After a sync on this thread: everything that took effect so far is on disk. */
static void end_generation(svi_write_ahead *w) {
    w->fsync_generation_durable = w->fsync_generation++;
    report_generation(w);
}

/* Waits for both background threads and takes their results. */
static svs_code write_ahead_settled(svi_write_ahead *w, svs_error *err) {
    svs_code code = SVS_OK;
    if (svi_worker_wait(w->fsync_thread)) /* the kernel reports a failed sync once: a later one may succeed */
        code = end_sync(w, err);
    if (svi_worker_wait(w->checkpoint_thread)) {
        svs_error second;
        const svs_code ended = unless_full(end_checkpoint(w, code == SVS_OK ? err : &second));
        code = code == SVS_OK ? ended : code;
    }
    return code;
}

svs_code svi_write_ahead_save(svi_write_ahead *w, uint64_t *record, char *hash, svs_error *err) {
    svs_code code = write_ahead_settled(w, err);
    w->waits = false; /* a complete one that still waits is replaced by the newer one below */
    /* A checkpoint in progress has to end before another one begins. */
    if (code == SVS_OK && w->phase == CHECKPOINT_SAVES) {
        code = unless_full(go_on_saving(w, INFINITY, err));
        w->waits = false;
        if (code == SVS_OK)
            code = write_ahead_settled(w, err);
    }
    /* With the journal durable, begin_checkpoint hands over at once and there is something to wait for. */
    if (code == SVS_OK && (code = svi_journal_sync(w->journal, err)) == SVS_OK)
        end_generation(w);
    if (code == SVS_OK)
        code = begin_checkpoint(w, INFINITY, err);
    if (code == SVS_OK && svi_worker_wait(w->checkpoint_thread))
        code = end_checkpoint(w, err);
    if (code == SVS_OK && record)
        *record = w->newest;
    if (code == SVS_OK && hash)
        svi_hash_text(w->checkpoint.hash, hash);
    return code;
}

/* The record holds the whole older state and is on disk before it takes effect. From then on a restart needs
 * neither the checkpoint nor the records that were learned again. */
svs_code svi_write_ahead_load(svi_write_ahead *w, const struct svi_load_options *o, struct svi_settings *s,
                              double now, struct svi_loaded *out, svs_error *err) {
    struct svi_load l = {0};
    struct svi_bytes payload = {0};
    *out = (struct svi_loaded){.record = svi_journal_position(w->journal).number};
    svs_code code = write_ahead_settled(w, err);
    if (code == SVS_OK)
        code = svi_load_prepare(&l, &w->dir, w->stream, o, out->record, err);
    if (code == SVS_OK)
        code = svi_load_pack(&l, &payload, err);
    if (code == SVS_OK)
        code = svi_write_ahead_write(w, SVI_RECORD_LOAD, now, payload.data, payload.size, err);
    svi_bytes_clear(&payload);
    if (code == SVS_OK)
        svi_journal_release(w->journal); /* it grew to the size of the state for this record */
    if (code == SVS_OK && (code = svi_journal_sync(w->journal, err)) == SVS_OK)
        end_generation(w);
    if (code == SVS_OK) {
        out->relearned = l.relearned;
        svi_load_apply(&l, w->stream, s, now);
    }
    svi_load_clear(&l);
    return code;
}

/* ---- the stream */

svs_code svi_write_ahead_append(svi_write_ahead *w, enum svi_record_kind kind, double now,
                                const void *payload, size_t size, svs_error *err) {
    return svi_journal_append(w->journal, kind, now, payload, size, err);
}

/* Updates `since`, the time from which on a power cut would lose something. */
static void update_since(svi_write_ahead *w) {
    if (svi_journal_durable(w->journal) == svi_journal_position(w->journal).number)
        w->since = 0;
    else if (w->since == 0)
        w->since = svi_monotonic();
}

svs_code svi_write_ahead_commit(svi_write_ahead *w, svs_error *err) {
    const uint64_t syncs = svi_journal_syncs(w->journal);
    svs_code code = svi_journal_commit(w->journal, err);
    if (svi_journal_syncs(w->journal) != syncs) /* the commit itself synced, as when a segment was full */
        end_generation(w);
    w->due = 0;
    update_since(w);
    return code;
}

bool svi_write_ahead_syncs(const svi_write_ahead *w) {
    return w->always;
}

svs_code svi_write_ahead_begin(svi_write_ahead *w, svs_error *err) {
    SVI_TRY(svi_journal_write(w->journal, err));
    SVI_TRY(svi_journal_sync_begin(w->journal, &w->sync, err));
    if (w->sync.fd >= 0)
        svi_worker_submit(w->fsync_thread, &w->sync);
    return SVS_OK;
}

svs_code svi_write_ahead_end(svi_write_ahead *w, svs_error *err) {
    svs_code code = SVS_OK;
    if (svi_worker_wait(w->fsync_thread)) {
        w->sync_seconds = 0.5 * (w->sync_seconds + w->sync.seconds);
        code = svi_journal_sync_end(w->journal, &w->sync, err);
    }
    update_since(w);
    return code;
}

double svi_write_ahead_sync_seconds(const svi_write_ahead *w) {
    return w->sync_seconds;
}

/* Collects a finished sync, hands over a checkpoint that waited for it, and starts the next sync when it is
 * due. Never waits: a slow disk would hold up the stream. While a sync runs, `due` is the next poll. */
static svs_code sync_in_background(svi_write_ahead *w, double now, svs_error *err) {
    svs_code code = SVS_OK;
    if (svi_worker_busy(w->fsync_thread) && svi_worker_collect(w->fsync_thread))
        code = end_sync(w, err);
    if (code == SVS_OK && w->waits)
        code = write_ahead_hand_over(w, err);
    if (code == SVS_OK && !svi_worker_busy(w->fsync_thread) && svi_journal_due(w->journal, now, &w->due))
        code = begin_sync(w, err);
    if (svi_worker_busy(w->fsync_thread))
        w->due = now + SYNC_POLL_SECONDS;
    return code;
}

void svi_write_ahead_abort(svi_write_ahead *w) {
    if (w)
        svi_journal_abort(w->journal);
}

svs_code svi_write_ahead_write(svi_write_ahead *w, enum svi_record_kind kind, double now, const void *payload,
                               size_t size, svs_error *err) {
    svs_code code = svi_write_ahead_append(w, kind, now, payload, size, err);
    return code == SVS_OK ? svi_write_ahead_commit(w, err) : code;
}

svs_code svi_write_ahead_append_refusal(svi_write_ahead *w, svs_code code, const char *reason, double now,
                                        svs_error *err) {
    char record[64 + SVS_ERROR_TEXT];
    const int size = snprintf(record, sizeof record, "%s %s", svs_code_name(code), reason);
    return svi_write_ahead_append(w, SVI_RECORD_REFUSAL, now, record, (size_t)size, err);
}

void svi_write_ahead_refuse(svi_write_ahead *w, svi_stream *stream, svs_code code, const char *reason,
                            const void *bytes, size_t length, double now) {
    if (w && svi_write_ahead_append_refusal(w, code, reason, now, NULL) == SVS_OK)
        (void)svi_write_ahead_commit(w, NULL);
    svi_stream_refuse(stream, code, reason, bytes, length, now);
}

int64_t svi_write_ahead_durable(const svi_write_ahead *w, const char *src) {
    const bool all = svi_journal_durable(w->journal) == svi_journal_position(w->journal).number;
    return all || w->always ? svi_entry_next(svi_stream_entry(w->stream), src) - 1
                            : svi_entry_durable(svi_stream_entry(w->stream), src);
}

/* Has there been enough work for another checkpoint? With w seconds of work since the last one, which stalled
 * the stream for s seconds at a time, this needs w >= checkpoint.seconds and s <= MAX_STALL_SHARE w. It also
 * waits for s <= STALL_SHARE w, but not beyond w = MAX_DELAY_TIMES checkpoint.seconds, since a restart has to
 * repeat the work. The total time spent on the last one is bounded as well: by SPENT_KEYS w with keys. */
static bool has_worked(const svi_write_ahead *w) {
    return w->every > 0 && w->work >= w->every && w->work * MAX_STALL_SHARE >= w->stall &&
           w->work * (w->keyed ? SPENT_KEYS : MAX_STALL_SHARE) >= w->spent &&
           (w->work * STALL_SHARE >= w->stall || w->work >= MAX_DELAY_TIMES * w->every);
}

svs_code svi_write_ahead_turn(svi_write_ahead *w, double work, svs_error *err) {
    svs_code code = SVS_OK;
    const double now = svi_monotonic();
    w->work += work;
    if (now >= w->due)
        code = sync_in_background(w, now, err);
    update_since(w);
    if (code == SVS_OK && svi_worker_busy(w->checkpoint_thread) && svi_worker_collect(w->checkpoint_thread)) {
        w->phase = w->prepares ? CHECKPOINT_TIDIES : w->phase;
        code = unless_full(end_checkpoint(w, err));
    }
    const bool grown = svi_journal_bytes(w->journal) - w->bytes_at >= MAX_JOURNAL_BYTES;
    /* The copy of the state belongs to the last checkpoint until that is written. */
    const bool idle = !w->waits && !svi_worker_busy(w->checkpoint_thread);
    if (code == SVS_OK && idle && w->phase == CHECKPOINT_NONE && (grown || has_worked(w)))
        prepare_checkpoint(w);
    if (code == SVS_OK && idle && w->phase != CHECKPOINT_NONE && !svi_worker_busy(w->checkpoint_thread))
        code = unless_full(advance_checkpoint(w, work, err));
    return code;
}

double svi_write_ahead_wait(const svi_write_ahead *w) {
    const double left = w->due - svi_monotonic();
    return left > 0 && w->phase == CHECKPOINT_NONE ? left : 0;
}

int svi_write_ahead_fd(const svi_write_ahead *w) {
    return svi_worker_fd(w->checkpoint_thread);
}

/* The copy of the state, the piece that gathers it, and the journal's records of a turn, whose buffer doubles
 * when it grows. */
void svi_write_ahead_memory(double turn, double *share, double *fixed) {
    *share = CHECKPOINT_SHARE;
    *fixed = sizeof(svi_write_ahead) + 2 * SLACK + PIECE + 2 * turn;
}

void svi_write_ahead_figures(const svi_write_ahead *w) {
    const uint64_t number = svi_journal_position(w->journal).number,
                   durable = svi_journal_durable(w->journal);
    int64_t free, size;
    svi_disk_bytes(w->dir.fd, &free, &size);
    svi_stream_set_gauge(w->stream, "disk_free", free >= 0 ? (double)free : NAN);
    svi_stream_set_gauge(w->stream, "disk_size", size >= 0 ? (double)size : NAN);
    svi_stream_set_gauge(w->stream, "journal_records", (double)number);
    svi_stream_set_gauge(w->stream, "journal_bytes", (double)svi_journal_bytes(w->journal));
    svi_stream_set_gauge(w->stream, "journal_undurable", (double)(number - durable));
    svi_stream_set_gauge(w->stream, "journal_age", w->since > 0 ? svi_monotonic() - w->since : 0);
    svi_stream_set_gauge(w->stream, "checkpoints", (double)w->written);
    svi_stream_set_gauge(w->stream, "checkpoints_failed", (double)w->failed);
    svi_stream_set_gauge(w->stream, "checkpoint_age", (double)(number - w->newest));
    svi_stream_set_gauge(w->stream, "checkpoint_milliseconds", 1000 * w->stall);
}

/* ---- start and end */

/* Renames the checkpoints newer than the loaded one, which could not be loaded, so that the next start does
 * not try them again. */
static svs_code set_aside(svi_write_ahead *w, const struct svi_recovery *r, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = r->damaged ? svi_state_dir_list(&w->dir, "checkpoint", &numbers, &count, err) : SVS_OK;
    for (int i = 0; code == SVS_OK && i < count; i++)
        if (!r->checkpointed || numbers[i] > r->checkpoint)
            code = svi_state_dir_set_aside(&w->dir, "checkpoint", numbers[i], err);
    svi_free(numbers);
    return code;
}

/* Writes and syncs the first record of this process: its settings hold for the records after it. */
static svs_code note_start(svi_write_ahead *w, const struct svi_settings *s, double now, svs_error *err) {
    struct svi_bytes text = {0};
    svs_code code = svi_settings_pack(s, &text, err);
    if (code == SVS_OK)
        code = svi_write_ahead_write(w, SVI_RECORD_START, now, text.data, text.size, err);
    if (code == SVS_OK)
        code = svi_journal_sync(w->journal, err);
    svi_bytes_clear(&text);
    return code;
}

/* Settles the settings to continue with and the stream: the recovered one, wider where a limit was raised, or
 * a new one. Both checks come before anything is written, so that a refused start leaves the directory as it
 * was. */
static svs_code write_ahead_settle(struct svi_recovery *r, struct svi_settings *s, svi_sink *sink, void *user,
                                   svi_stream **stream, svs_error *err) {
    svs_code code = r->stream ? svi_settings_merge(s, &r->settings, err) : SVS_OK;
    *stream = r->stream;
    if (code == SVS_OK)
        code = svi_settings_check(s, err);
    if (code != SVS_OK)
        return code;
    if (r->stream && (code = svi_engine_configurable(svi_stream_root(*stream), s, err)) != SVS_OK)
        return code;
    if (r->stream)
        return svi_settings_raised(s, &r->settings) ? svi_stream_widen(stream, s, err) : SVS_OK;
    /* A crash may have left a segment without a record; the records appended to it share its epoch. */
    r->epoch = r->found.epoch ? r->found.epoch : (uint64_t)(1e6 * svi_wall_clock());
    *stream = svi_stream_new(s, r->epoch, sink, user, err);
    if (*stream)
        svi_engine_keep_model(svi_stream_root(*stream));
    return *stream ? SVS_OK : err->code;
}

/* Flags that differ from the kept settings act like `ctl config`. All that can fail comes before the record
 * of the start, because a recovery repeats that record and must not fail at it. */
static svs_code write_ahead_start(svi_write_ahead *w, const struct svi_settings *s, FILE *log,
                                  svs_error *err) {
    char differences[160];
    struct svi_configured done;
    struct svi_engine_change *change;
    const double now = svi_wall_clock();
    svs_code code = svi_stream_prepare(w->stream, s, &change, err);
    if (code != SVS_OK)
        return code;
    svi_settings_differences(svi_stream_settings(w->stream), s, differences, sizeof differences);
    if ((code = note_start(w, s, now, err)) != SVS_OK) {
        svi_engine_change_free(&change);
        return code;
    }
    svi_stream_take(w->stream, &change, now, &done);
    svi_stream_begin(w->stream, now);
    if (!log || !differences[0])
        return SVS_OK;
    fprintf(log, "state: %s", differences);
    if (done.samples >= 0)
        fprintf(log, ": the model was rebuilt from %" PRId64 " samples", done.samples);
    fprintf(log, "\n");
    return SVS_OK;
}

/* Recovers the state, opens the journal at its end, and records the start. The stream stays muted until its
 * start is on disk; a refit that was running when the last process ended starts again after that. */
static svs_code take_up(svi_write_ahead *w, struct svi_settings *s, svi_sink *sink, void *user, FILE *log,
                        svi_stream **stream, svs_error *err) {
    struct svi_recovery r = {0};
    const struct svi_recovery_options o = {.accept_loss = s->accept_loss,
                                           .until = UINT64_MAX,
                                           .otherwise = s,
                                           .one_thread = !svi_settings_two_threads(s),
                                           .silent = true,
                                           .log = log};
    svs_code code;
    /* The page cache may hold what a failed sync never wrote. It is dropped before anything is read, so
     * that the recovery sees what is on the disk. */
    if ((code = svi_journal_forget(&w->dir, err)) != SVS_OK ||
        (code = svi_recover(&w->dir, &o, sink, user, &r, err)) != SVS_OK)
        return code;
    if (!r.stream && log)
        fprintf(log, "state: nothing in %s yet; starting a new state\n", s->state_dir);
    if ((code = write_ahead_settle(&r, s, sink, user, stream, err)) != SVS_OK ||
        (code = set_aside(w, &r, err)) != SVS_OK)
        return code;
    w->always = svi_settings_fsync(s) == SVI_FSYNC_ALWAYS;
    const struct svi_journal_options j = {s->stream, r.epoch, s->journal_segment, svi_settings_fsync(s),
                                          s->journal_interval};
    if (!(w->journal = svi_journal_new(&w->dir, &j, &r.found.end, err)))
        return err->code;
    w->stream = *stream;
    /* Keys get their files before the first record: all that the recovery made without a place in a file
     * is noted as changed here, for the next checkpoint. */
    if ((code = svi_stream_keep_keys(w->stream, &w->dir, err)) != SVS_OK)
        return code;
    w->keyed = svi_settings_keyed(s);
    if (w->keyed) /* a stream with keys cannot go back to an older checkpoint, so more are of no use */
        w->keep = NEEDED;
    report_generation(w);
    w->any = r.checkpointed;
    w->newest = r.checkpoint;
    w->work = r.seconds; /* another crash before the next checkpoint would repeat this work as well */
    if ((code = write_ahead_start(w, s, log, err)) != SVS_OK)
        return code;
    svi_stream_mute(w->stream, false);
    svi_engine_refit_restart(svi_stream_root(w->stream));
    /* Without a new checkpoint the next start would meet the same damage, or rebuild the model again. */
    return r.found.damages > 0 || r.rebuilt ? svi_write_ahead_save(w, NULL, NULL, err) : SVS_OK;
}

svi_write_ahead *svi_write_ahead_open(struct svi_settings *s, svi_sink *sink, void *user, FILE *log,
                                      svi_stream **stream, svs_error *err) {
    svi_write_ahead *w = svi_alloc(sizeof *w);
    *stream = NULL;
    if (!w) {
        svi_fail_memory(err, "the write-ahead");
        return NULL;
    }
    w->dir.fd = w->dir.lock = w->sync.fd = -1;
    w->fsync_generation = 1;
    w->keep_all = s->journal_keep == SVI_JOURNAL_KEEP_ALL;
    w->every = s->checkpoint_seconds;
    w->keep = s->checkpoint_keep;
    svs_code code = svi_layout_open(&w->dir, s->state_dir, true, err);
    if (code == SVS_OK && (!(w->checkpoint_thread = svi_worker_new(&checkpoint_task, err)) ||
                           !(w->fsync_thread = svi_worker_new(&fsync_task, err))))
        code = err->code;
    if (code == SVS_OK)
        code = take_up(w, s, sink, user, log, stream, err);
    if (code != SVS_OK) {
        svi_write_ahead_free(&w);
        svi_stream_free(stream);
    }
    return w;
}

void svi_write_ahead_free(svi_write_ahead **pw) {
    svi_write_ahead *w = *pw;
    if (!w)
        return;
    /* The threads first: they use the journal, the directory and the checkpoint. */
    svi_worker_free(&w->checkpoint_thread);
    svi_worker_free(&w->fsync_thread);
    if (w->journal) /* closes the file of a sync that nobody collected */
        (void)svi_journal_sync_end(w->journal, &w->sync, NULL);
    svi_journal_free(&w->journal);
    svi_state_dir_close(&w->dir);
    svi_checkpoint_clear(&w->checkpoint);
    svi_free(w);
    *pw = NULL;
}
