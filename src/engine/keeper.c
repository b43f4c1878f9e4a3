#include "engine/keeper.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "engine/engine_archive.h"
#include "engine/inlet.h"
#include "engine/recovery.h"
#include "engine/settings_kept.h"
#include "engine/worker.h"

#define KEPT             2                  /* checkpoints */
#define JOURNAL_MOST     (64 * 1024 * 1024) /* bytes between checkpoints, however little work they were */
#define LOOK_SECONDS     0.005              /* until it is looked whether a sync has come back */
#define STALL_SHARE      0.05               /* of the time may go into taking checkpoints */
#define SLACK            65536              /* bytes */
#define PIECE            (1024 * 1024)      /* bytes of a state that are gathered at once, at most */
#define CHECKPOINT_SHARE 1.25               /* of a state's size its room has */

struct svi_keeper {
    struct svi_folder folder;
    svi_journal *journal;
    svi_engine *engine;
    bool keep_all;
    bool always;  /* every commit is synced, so whatever took effect is on disk */
    double every; /* seconds of work between checkpoints, 0 = none */
    double work;  /* since the last */
    double due;   /* monotonic: when the journal wants to be synced */

    svi_worker *syncer;
    struct svi_journal_sync sync;        /* the syncer's while it is busy */
    double sync_seconds;                 /* that one of those takes which a turn waits for, lately */
    uint64_t era, era_syncing, era_kept; /* svi_engine_set_era */

    svi_worker *scribe;
    struct svi_checkpoint checkpoint; /* the scribe's while it is busy, as the next three */
    size_t room;                      /* that it shall make for the next one; 0 = it writes this one */
    int64_t size;
    svs_error result;
    size_t size_before; /* of the bodies of the one before */
    bool waits;         /* the checkpoint, until the journal before it is on disk */
    int64_t bytes_at;   /* of the journal at the last */
    double since;       /* monotonic: when the oldest record that is not on disk was written; 0 = all are */
    uint64_t newest;    /* records in the newest checkpoint */
    bool any;           /* there is one */
    double stall;       /* seconds that taking the last one took */
    int64_t written, failed;
};

/* ---- checkpoints */

/* All but the newest two go, then the part of the journal that only they needed: for good, since a checkpoint
 * that a power cut brought back without its journal would make the folder a damaged one. */
static svs_code clear_away(svi_keeper *k, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = svi_folder_list(&k->folder, "checkpoint", &numbers, &count, err);
    if (code == SVS_OK)
        code = svi_folder_clear(&k->folder, "checkpoint", numbers, count - KEPT, err);
    if (code == SVS_OK && !k->keep_all && count >= KEPT)
        code = svi_journal_trim(&k->folder, numbers[count - KEPT], k->checkpoint.position.segment, err);
    svi_free(numbers);
    return code;
}

/* Some MiB are touched for the first time: the stream would wait for that longer than for the copying. */
static void make_room(struct svi_bytes *b, size_t room) {
    svi_bytes_clear(b);
    b->data = svi_alloc(room);
    b->capacity = b->data ? room : 0;
}

/* All that may wait for the disk is done here. */
static void write_down(void *job) {
    svi_keeper *k = job;
    if (k->room > 0) {
        make_room(&k->checkpoint.bodies, k->room);
        return;
    }
    k->result.code = svi_checkpoint_write(&k->folder, &k->checkpoint, &k->size, &k->result);
    if (k->result.code == SVS_OK)
        k->result.code = clear_away(k, &k->result);
}

static const struct svi_trade scribe_trade = {"checkpoints", write_down, NULL, true};

static void sync_down(void *job) {
    svi_journal_sync_run(job);
}

static const struct svi_trade syncer_trade = {"syncs", sync_down, NULL, true};

/* All syncs that the stream does not wait for are one thread's, one at a time: of two, one might find nothing
 * left to write while it has not come back yet that the other could not. */
static svs_code begin_sync(svi_keeper *k, svs_error *err) {
    svs_code code = svi_journal_sync_begin(k->journal, &k->sync, err);
    k->era_syncing = k->era++;
    svi_engine_set_era(k->engine, k->era, k->era_kept);
    if (code == SVS_OK)
        svi_worker_submit(k->syncer, &k->sync);
    k->due = 0;
    return code;
}

static svs_code end_sync(svi_keeper *k, svs_error *err) {
    svs_code code = svi_journal_sync_end(k->journal, &k->sync, err);
    if (code == SVS_OK && k->era_syncing > k->era_kept)
        k->era_kept = k->era_syncing;
    svi_engine_set_era(k->engine, k->era, k->era_kept);
    return code;
}

/* What is in a checkpoint must not be newer than what is in the journal: that is synced before it is written.
 */
static svs_code hand_over(svi_keeper *k, svs_error *err) {
    if (svi_journal_durable(k->journal) < k->checkpoint.position.number)
        return svi_worker_busy(k->syncer) ? SVS_OK : begin_sync(k, err);
    k->waits = false;
    svi_worker_submit(k->scribe, k);
    return SVS_OK;
}

static svs_code begin_checkpoint(svi_keeper *k, svs_error *err) {
    const double began = svi_monotonic();
    const struct svi_position at = svi_journal_position(k->journal);
    k->work = 0;
    k->bytes_at = svi_journal_bytes(k->journal);
    if (k->any && at.number == k->newest)
        return SVS_OK;
    k->size_before = k->checkpoint.bodies.size;
    svs_code code = svi_engine_save(k->engine, &k->checkpoint, err);
    k->failed += code != SVS_OK;
    k->waits = code == SVS_OK;
    k->checkpoint.position = at;
    if (code == SVS_OK)
        code = hand_over(k, err);
    k->stall = svi_monotonic() - began;
    return code;
}

/* One is due: at once, unless its room has to be made first. */
static svs_code prepare_checkpoint(svi_keeper *k, svs_error *err) {
    const struct svi_bytes *b = &k->checkpoint.bodies;
    const bool steady = b->size > 0 && b->size == k->size_before; /* as with a full window */
    const size_t size = steady ? b->size : svi_engine_size(k->engine);
    if (size + SLACK <= b->capacity)
        return begin_checkpoint(k, err);
    k->room = (size_t)(CHECKPOINT_SHARE * (double)size) + 2 * SLACK;
    svi_worker_submit(k->scribe, k);
    return SVS_OK;
}

/* Was that all that the scribe did? */
static bool made_room(svi_keeper *k) {
    const bool made = k->room > 0;
    k->room = 0;
    return made;
}

/* A full disk is no reason to end: the next one may find room. */
static svs_code end_checkpoint(svi_keeper *k, svs_error *err) {
    if (k->result.code != SVS_OK) {
        k->failed++;
        return svi_fail(err, k->result.code, "%s", k->result.text);
    }
    k->newest = k->checkpoint.position.number;
    k->any = true;
    k->written++;
    return SVS_OK;
}

static svs_code unless_full(svs_code code) {
    return code == SVS_DISK_FULL || code == SVS_NO_MEMORY ? SVS_OK : code;
}

/* All that took effect so far is on disk. */
static void end_era(svi_keeper *k) {
    k->era_kept = k->era++;
    svi_engine_set_era(k->engine, k->era, k->era_kept);
}

svs_code svi_keeper_save(svi_keeper *k, uint64_t *record, char *hash, svs_error *err) {
    svs_code code = SVS_OK;
    if (svi_worker_wait(k->syncer)) /* if it failed, no later sync would hear of it */
        code = end_sync(k, err);
    if (svi_worker_wait(k->scribe) && !made_room(k) && code == SVS_OK)
        code = unless_full(end_checkpoint(k, err));
    k->waits = false; /* a newer one takes its place */
    if (code == SVS_OK && (code = svi_journal_sync(k->journal, err)) == SVS_OK)
        end_era(k);
    if (code == SVS_OK)
        code = begin_checkpoint(k, err);
    if (code == SVS_OK && svi_worker_wait(k->scribe))
        code = end_checkpoint(k, err);
    if (code == SVS_OK && record)
        *record = k->newest;
    if (code == SVS_OK && hash)
        svi_hash_text(k->checkpoint.hash, hash);
    return code;
}

/* ---- the stream */

svs_code svi_keeper_note(svi_keeper *k, enum svi_record_kind kind, double now, const void *payload,
                         size_t size, svs_error *err) {
    return svi_journal_append(k->journal, kind, now, payload, size, err);
}

/* Since when is there something that a power cut would take? */
static void look_at_disk(svi_keeper *k) {
    if (svi_journal_durable(k->journal) == svi_journal_position(k->journal).number)
        k->since = 0;
    else if (k->since == 0)
        k->since = svi_monotonic();
}

svs_code svi_keeper_commit(svi_keeper *k, svs_error *err) {
    const uint64_t syncs = svi_journal_syncs(k->journal);
    svs_code code = svi_journal_commit(k->journal, err);
    if (svi_journal_syncs(k->journal) != syncs)
        end_era(k);
    k->due = 0;
    look_at_disk(k);
    return code;
}

bool svi_keeper_syncs(const svi_keeper *k) {
    return k->always;
}

svs_code svi_keeper_begin(svi_keeper *k, svs_error *err) {
    svs_code code = svi_journal_write(k->journal, err);
    if (code == SVS_OK)
        code = svi_journal_sync_begin(k->journal, &k->sync, err);
    if (code == SVS_OK && k->sync.fd >= 0)
        svi_worker_submit(k->syncer, &k->sync);
    return code;
}

svs_code svi_keeper_end(svi_keeper *k, svs_error *err) {
    svs_code code = SVS_OK;
    if (svi_worker_wait(k->syncer)) {
        k->sync_seconds = 0.5 * (k->sync_seconds + k->sync.seconds);
        code = svi_journal_sync_end(k->journal, &k->sync, err);
    }
    look_at_disk(k);
    return code;
}

double svi_keeper_sync_seconds(const svi_keeper *k) {
    return k->sync_seconds;
}

/* Nobody waits for the disk between two syncs that are due: a slow one would hold the stream up. */
static svs_code sync_beside(svi_keeper *k, double now, svs_error *err) {
    svs_code code = SVS_OK;
    if (svi_worker_busy(k->syncer) && svi_worker_collect(k->syncer))
        code = end_sync(k, err);
    if (code == SVS_OK && k->waits)
        code = hand_over(k, err);
    if (code == SVS_OK && !svi_worker_busy(k->syncer) && svi_journal_due(k->journal, now, &k->due))
        code = begin_sync(k, err);
    if (svi_worker_busy(k->syncer))
        k->due = now + LOOK_SECONDS;
    return code;
}

void svi_keeper_drop(svi_keeper *k) {
    if (k)
        svi_journal_drop(k->journal);
}

svs_code svi_keeper_write(svi_keeper *k, enum svi_record_kind kind, double now, const void *payload,
                          size_t size, svs_error *err) {
    svs_code code = svi_keeper_note(k, kind, now, payload, size, err);
    return code == SVS_OK ? svi_keeper_commit(k, err) : code;
}

svs_code svi_keeper_note_refusal(svi_keeper *k, svs_code code, const char *reason, double now,
                                 svs_error *err) {
    char record[64 + SVS_ERROR_TEXT];
    const int size = snprintf(record, sizeof record, "%s %s", svs_code_name(code), reason);
    return svi_keeper_note(k, SVI_RECORD_REFUSAL, now, record, (size_t)size, err);
}

void svi_keeper_refuse(svi_keeper *k, svi_engine *e, svs_code code, const char *reason, const void *bytes,
                       size_t length, double now) {
    if (k && svi_keeper_note_refusal(k, code, reason, now, NULL) == SVS_OK)
        (void)svi_keeper_commit(k, NULL);
    svi_engine_refuse(e, code, reason, bytes, length, now);
}

int64_t svi_keeper_durable(const svi_keeper *k, const char *src) {
    const bool all = svi_journal_durable(k->journal) == svi_journal_position(k->journal).number;
    return all || k->always ? svi_engine_source_next(k->engine, src) - 1
                            : svi_engine_source_durable(k->engine, src);
}

svs_code svi_keeper_turn(svi_keeper *k, double work, svs_error *err) {
    svs_code code = SVS_OK;
    const double now = svi_monotonic();
    k->work += work;
    if (now >= k->due)
        code = sync_beside(k, now, err);
    look_at_disk(k);
    if (code == SVS_OK && svi_worker_busy(k->scribe) && svi_worker_collect(k->scribe))
        code = unless_full(made_room(k) ? begin_checkpoint(k, err) : end_checkpoint(k, err));
    const bool worked = k->every > 0 && k->work >= k->every && k->work * STALL_SHARE >= k->stall,
               grown = svi_journal_bytes(k->journal) - k->bytes_at >= JOURNAL_MOST;
    if (code == SVS_OK && (worked || grown) && !k->waits && !svi_worker_busy(k->scribe))
        code = unless_full(prepare_checkpoint(k, err));
    return code;
}

double svi_keeper_wait(const svi_keeper *k) {
    const double left = k->due - svi_monotonic();
    return left > 0 ? left : 0;
}

int svi_keeper_fd(const svi_keeper *k) {
    return svi_worker_fd(k->scribe);
}

/* The checkpoint, what it is gathered in, and the journal's records of a turn, whose room doubles. */
double svi_keeper_memory(const struct svi_settings *s, double state) {
    return sizeof(svi_keeper) + CHECKPOINT_SHARE * state + 2 * SLACK + PIECE + 2 * svi_inlet_batch_memory(s) +
           svi_inlet_memory(s);
}

void svi_keeper_figures(const svi_keeper *k) {
    const uint64_t number = svi_journal_position(k->journal).number,
                   durable = svi_journal_durable(k->journal);
    svi_engine_note(k->engine, "journal_records", (double)number);
    svi_engine_note(k->engine, "journal_bytes", (double)svi_journal_bytes(k->journal));
    svi_engine_note(k->engine, "journal_undurable", (double)(number - durable));
    svi_engine_note(k->engine, "journal_age", k->since > 0 ? svi_monotonic() - k->since : 0);
    svi_engine_note(k->engine, "checkpoints", (double)k->written);
    svi_engine_note(k->engine, "checkpoints_failed", (double)k->failed);
    svi_engine_note(k->engine, "checkpoint_age", (double)(number - k->newest));
    svi_engine_note(k->engine, "checkpoint_milliseconds", 1000 * k->stall);
}

/* ---- start and end */

static enum svi_fsync policy(const struct svi_settings *s) {
    if (s->journal_fsync > 0)
        return (enum svi_fsync)(s->journal_fsync - 1);
    return svi_settings_delivery(s) >= SVI_DURABLE ? SVI_FSYNC_ALWAYS : SVI_FSYNC_INTERVAL;
}

/* Checkpoints behind the one that was taken cannot be read: they must not come first the next time. */
static svs_code set_aside(svi_keeper *k, const struct svi_recovery *r, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = r->damaged ? svi_folder_list(&k->folder, "checkpoint", &numbers, &count, err) : SVS_OK;
    for (int i = 0; code == SVS_OK && i < count; i++)
        if (!r->checkpointed || numbers[i] > r->checkpoint)
            code = svi_folder_set_aside(&k->folder, "checkpoint", numbers[i], err);
    svi_free(numbers);
    return code;
}

/* The first record of this process: from here on its settings hold. */
static svs_code note_start(svi_keeper *k, const struct svi_settings *s, svs_error *err) {
    struct svi_bytes text = {0};
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    svs_code code = svi_settings_pack(s, &text, err);
    if (code == SVS_OK)
        code = svi_keeper_write(k, SVI_RECORD_START, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec, text.data,
                                text.size, err);
    if (code == SVS_OK)
        code = svi_journal_sync(k->journal, err);
    svi_bytes_clear(&text);
    return code;
}

static uint64_t new_epoch(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* What to go on with, and the engine for it. */
static svs_code settle(struct svi_recovery *r, struct svi_settings *s, svi_sink *sink, void *user,
                       svi_engine **engine, svs_error *err) {
    svs_code code = r->engine ? svi_settings_merge(s, &r->settings, err) : SVS_OK;
    *engine = r->engine;
    if (code == SVS_OK)
        code = svi_settings_check(s, err);
    if (code != SVS_OK)
        return code;
    if (r->engine)
        return svi_settings_raised(s, &r->settings) ? svi_engine_widen(engine, s, err) : SVS_OK;
    /* A crash may have left a segment without a record: what follows in it is of its epoch. */
    r->epoch = r->found.epoch ? r->found.epoch : new_epoch();
    *engine = svi_engine_new(s, r->epoch, sink, user, err);
    if (*engine)
        svi_engine_keep_model(*engine);
    return *engine ? SVS_OK : err->code;
}

static svs_code take_up(svi_keeper *k, struct svi_settings *s, svi_sink *sink, void *user, FILE *log,
                        svi_engine **engine, svs_error *err) {
    struct svi_recovery r = {0};
    const struct svi_recovery_options o = {
        .accept_loss = s->accept_loss, .until = UINT64_MAX, .otherwise = s, .silent = true, .log = log};
    svs_code code = svi_journal_forget(&k->folder, err);
    if (code == SVS_OK)
        code = svi_recover(&k->folder, &o, sink, user, &r, err);
    if (code == SVS_OK && !r.engine && log)
        fprintf(log, "state: there is none in %s yet, a new one begins\n", s->state_dir);
    if (code == SVS_OK)
        code = settle(&r, s, sink, user, engine, err);
    k->always = policy(s) == SVI_FSYNC_ALWAYS;
    const struct svi_journal_options j = {s->stream, r.epoch, s->journal_segment, policy(s),
                                          s->journal_interval};
    if (code == SVS_OK)
        code = set_aside(k, &r, err);
    if (code == SVS_OK && !(k->journal = svi_journal_new(&k->folder, &j, &r.found.end, err)))
        code = err->code;
    if (code != SVS_OK)
        return code;
    k->engine = *engine;
    svi_engine_set_era(k->engine, k->era, k->era_kept);
    k->any = r.checkpointed;
    k->newest = r.checkpoint;
    k->work = r.seconds; /* what was repeated would be repeated again */
    code = note_start(k, s, err);
    if (code != SVS_OK)
        return code;
    svi_engine_configure(k->engine, s);
    svi_engine_mute(k->engine, false);
    svi_engine_refit_restart(k->engine);
    return r.found.damages > 0 || r.rebuilt ? svi_keeper_save(k, NULL, NULL, err) : SVS_OK;
}

svi_keeper *svi_keeper_open(struct svi_settings *s, svi_sink *sink, void *user, FILE *log,
                            svi_engine **engine, svs_error *err) {
    svi_keeper *k = svi_alloc(sizeof *k);
    *engine = NULL;
    if (!k) {
        svi_fail_memory(err, "the keeper of the state");
        return NULL;
    }
    k->folder.fd = k->folder.lock = k->sync.fd = -1;
    k->era = 1;
    k->keep_all = s->journal_keep == 1;
    k->every = s->checkpoint_seconds;
    svs_code code = svi_folder_open(&k->folder, s->state_dir, true, err);
    if (code == SVS_OK && (!(k->scribe = svi_worker_new(&scribe_trade, err)) ||
                           !(k->syncer = svi_worker_new(&syncer_trade, err))))
        code = err->code;
    if (code == SVS_OK)
        code = take_up(k, s, sink, user, log, engine, err);
    if (code != SVS_OK) {
        svi_keeper_free(&k);
        svi_engine_free(engine);
    }
    return k;
}

void svi_keeper_free(svi_keeper **pk) {
    svi_keeper *k = *pk;
    if (!k)
        return;
    svi_worker_free(&k->scribe);
    svi_worker_free(&k->syncer);
    if (k->journal) /* what they had open */
        (void)svi_journal_sync_end(k->journal, &k->sync, NULL);
    svi_journal_free(&k->journal);
    svi_folder_close(&k->folder);
    svi_checkpoint_clear(&k->checkpoint);
    svi_free(k);
    *pk = NULL;
}
