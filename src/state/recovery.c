/* Recovery: loads the newest sound checkpoint, then applies the journal after it, record by record.
 *
 * Each record goes through the function that applied it the first time (record.c), so the result is the state
 * of the ended process bit for bit; the stream is muted where the caller wants no events. A checkpoint of
 * another program or instruction set is loaded and its model rebuilt, because other kernels round differently
 * and the bits could not be continued. Where part of the journal is lost and the caller accepts that, each
 * source may continue once at any number; the samples between are reported as lost.
 *
 * A command may read a directory to which a process writes; if files vanish under it, svi_recover starts
 * over. Read recovery_recover first, then a checkpoint and the journal from the top. */
#include "state/recovery.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "fleet/fleet.h"
#include "linalg/kernels.h"
#include "svmstream/svmstream.h"

#define JUMPS_REPORTED 10    /* lines about lost samples; later ones are summed up */
#define TOLERANCE      1e-10 /* residual of a loaded model beyond which it is reported */

/* ---- a checkpoint */

struct recovering {
    const struct svi_state_dir *dir;
    const struct svi_recovery_options *o;
    svi_sink *sink;
    void *user;
    struct svi_recovery *r;
    struct svi_checkpoint checkpoint;
    svi_journal_reader *reader;
};

/* An empty stream with r->settings, muted before it can send anything. */
static svs_code make_stream(struct recovering *w, svs_error *err) {
    struct svi_recovery *r = w->r;
    if (w->o->otherwise) /* keys.memory is no part of the state: the value of this start holds */
        r->settings.keys_memory = w->o->otherwise->keys_memory;
    r->stream = svi_stream_new(&r->settings, r->epoch, w->sink, w->user, err);
    if (!r->stream)
        return err->code;
    if (!w->o->one_thread)
        svi_stream_use_threads(r->stream);
    svi_stream_mute(r->stream, w->o->silent);
    svi_stream_score_all(r->stream, w->o->score_all);
    svi_engine_keep_model(svi_stream_root(r->stream));
    return SVS_OK;
}

/* Rebuilds the model of a checkpoint that another program or instruction set wrote: its kernels round
 * differently, so the bits could not be continued. Otherwise the bits stay, and a large residual is only
 * reported: a rebuild would make the recovery differ from the process that ended. The residual is taken
 * before the rebuild, which would hide it. */
static void recovery_check_model(struct recovering *w) {
    const struct svi_checkpoint *c = &w->checkpoint;
    struct svi_recovery *r = w->r;
    const char *isa = svi_kernels_get(SVS_ISA_BEST)->name;
    r->residual = svi_engine_residual(svi_stream_root(r->stream));
    r->rebuilt = strcmp(c->program, SVS_VERSION) != 0 || strcmp(c->isa, isa) != 0;
    if (r->rebuilt)
        svi_stream_rebuild(r->stream);
    if (r->rebuilt && w->o->log)
        fprintf(w->o->log,
                "state: the checkpoint is of svmstream %s on %s, this is %s on %s: the model is rebuilt "
                "from its samples\n",
                c->program, c->isa, SVS_VERSION, isa);
    if (!r->rebuilt && r->residual > TOLERANCE && w->o->log)
        fprintf(w->o->log,
                "state: the model is kept bit for bit; it solves the system of its window to %.1e\n",
                r->residual);
}

/* Puts the settings of a trial in force, as `ctl config` would at this point. It happens at no time of the
 * stream, so the event that reports the change is not sent. */
static svs_code recovery_try(const struct recovering *w, svs_error *err) {
    struct svi_recovery *r = w->r;
    svi_stream_mute(r->stream, true);
    svs_code code = svi_stream_configure(r->stream, w->o->with, 0, NULL, err);
    svi_stream_mute(r->stream, w->o->silent);
    r->settings = *svi_stream_settings(r->stream);
    return code;
}

static svs_code recovery_load(struct recovering *w, uint64_t number, svs_error *err) {
    struct svi_recovery *r = w->r;
    const struct svi_checkpoint *c = &w->checkpoint;
    svs_code code = svi_checkpoint_read(w->dir, number, &w->checkpoint, err);
    if (code == SVS_OK)
        code = svi_settings_unpack(&r->settings, "the checkpoint's settings", c->settings.data,
                                   c->settings.size, err);
    r->epoch = c->epoch;
    if (code == SVS_OK)
        code = make_stream(w, err);
    if (code == SVS_OK)
        code = svi_stream_load(r->stream, c, err);
    if (code == SVS_OK && w->o->with)
        code = recovery_try(w, err);
    if (code != SVS_OK) {
        svi_stream_free(&r->stream);
        return code;
    }
    recovery_check_model(w);
    r->checkpointed = true;
    r->checkpoint = number;
    memcpy(r->hash, c->hash, sizeof r->hash);
    return SVS_OK;
}

/* Loads the newest sound checkpoint. SVI_FROM_OLDEST: the newest but one, else the newest; older ones are no
 * use, since the journal between them and the next may have been removed. Finding none is no error. */
static svs_code load_sound(struct recovering *w, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = svi_state_dir_list(w->dir, "checkpoint", &numbers, &count, err);
    const bool oldest = w->o->from == SVI_FROM_OLDEST;
    for (int i = oldest && count > 2 ? count - 2 : 0; i < count && code == SVS_OK && !w->r->checkpointed;
         i++) {
        code = recovery_load(w, numbers[oldest ? i : count - 1 - i], err);
        /* Another checkpoint can make up for a damaged one, but not for lack of memory or a later version. */
        if (code != SVS_DAMAGED && code != SVS_SETTING && code != SVS_IO)
            continue;
        if (w->o->log)
            fprintf(w->o->log, "state: skipping a checkpoint that cannot be loaded: %s\n", err->text);
        w->r->damaged++;
        code = SVS_OK;
    }
    svi_free(numbers);
    return code;
}

/* ---- the journal */

static bool record_starts(const struct svi_record *r) {
    return r->kind == SVI_RECORD_START;
}

/* An empty stream for a journal without a checkpoint. Its settings are those of the first record, a start. If
 * the first records are lost, so are their settings; then sources may begin at any number, too. */
static svs_code recovery_begin(struct recovering *w, const struct svi_record *first, svs_error *err) {
    struct svi_recovery *r = w->r;
    struct svi_journal_found found;
    if (w->o->with)
        r->settings = *w->o->with;
    else if (first->number > 0 && w->o->otherwise)
        r->settings = *w->o->otherwise;
    else if (first->number > 0)
        svi_settings_default(&r->settings);
    else if (!record_starts(first))
        return svi_fail(err, SVS_DAMAGED,
                        "the journal does not begin with a start record, and there is no checkpoint");
    else if (svi_settings_unpack(&r->settings, "the journal's settings", first->payload, first->size, err) !=
             SVS_OK)
        return err->code;
    svi_journal_reader_found(w->reader, &found);
    r->epoch = found.epoch;
    SVI_TRY(make_stream(w, err));
    if (first->number > 0)
        svi_entry_allow_gaps(svi_stream_entry(r->stream), true);
    return SVS_OK;
}

/* Reports the samples that a source skipped with this message, which happens after a loss only. */
static void report_jump(struct recovering *w, const struct svi_receipt *receipt) {
    struct svi_recovery *r = w->r;
    char shown[80];
    if (receipt->jumped_from < 0)
        return;
    r->jumps++;
    r->lost_samples += receipt->first - receipt->jumped_from;
    if (w->o->log && r->jumps <= JUMPS_REPORTED)
        fprintf(w->o->log,
                "state: LOST: samples %" PRId64 " to %" PRId64
                " of the source %s, which continues with %" PRId64 "\n",
                receipt->jumped_from, receipt->first - 1,
                svi_escape(shown, sizeof shown, receipt->src, strlen(receipt->src)), receipt->first);
}

/* Applies one record. With other settings (o->with) this is a trial. Refits, changes of settings
 * and starts of the recorded run do not apply to a trial. A recorded return to an older state is an
 * error in it, since the record holds a state made with the old settings. */
static svs_code recovery_apply(struct recovering *w, const struct svi_record *record, svs_error *err) {
    struct svi_journal_found found;
    struct svi_receipt receipt = {.jumped_from = -1};
    svs_code code = w->r->stream ? SVS_OK : recovery_begin(w, record, err);
    const bool old_settings =
        record_starts(record) || record->kind == SVI_RECORD_REFIT || record->kind == SVI_RECORD_CONFIG;
    /* The pause before a recorded start is part of the input, unlike its settings. */
    if (code == SVS_OK && w->o->with && record_starts(record))
        svi_stream_begin(w->r->stream, record->now);
    if (code != SVS_OK || (w->o->with && old_settings))
        return code;
    if (w->o->with && record->kind == SVI_RECORD_LOAD)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "at record %" PRIu64
                        " the stream returned to an older state with other settings: --until %" PRIu64
                        " ends before it",
                        record->number, record->number);
    /* From the first loss on the reader cannot know which samples are lost, so each source may jump once. */
    svi_journal_reader_found(w->reader, &found);
    if (found.lost)
        svi_entry_allow_gaps(svi_stream_entry(w->r->stream), true);
    /* The stream may be another one after this, when a start raised a limit. */
    svi_stream_leave_open(w->r->stream, true);
    code = svi_record_apply(&w->r->stream, &w->r->settings, record, &receipt, err);
    /* Lack of memory refuses samples that were accepted the first time: the state would differ silently. */
    if (code == SVS_OK)
        code = svi_stream_lost_key(w->r->stream, err);
    if (code == SVS_OK && svi_stream_out_of_memory(w->r->stream))
        code = svi_fail(err, SVS_NO_MEMORY, "out of memory for record %" PRIu64 " of the journal",
                        record->number);
    report_jump(w, &receipt);
    if (w->o->turn)
        w->o->turn(w->user);
    if (w->o->with) /* refits of a trial run at once, on this thread, so that its results are reproducible */
        svi_engine_refit_here(svi_stream_root(w->r->stream));
    return code;
}

/* Position of the first record for a recovery without a checkpoint. Only with accept_loss, or for a reader
 * that asked for SVI_FROM_START, may the journal begin later than at record 0. */
static svs_code first_record(struct recovering *w, struct svi_position *start, svs_error *err) {
    struct svi_state_dir_ends journal;
    svs_code code = svi_state_dir_find(w->dir, "journal", &journal, err);
    start->number = start->segment = journal.first;
    const bool part = w->o->accept_loss || w->o->from == SVI_FROM_START;
    if (code == SVS_OK && start->number > 0 && !part)
        code = svi_fail(err, SVS_DAMAGED,
                        "no intact checkpoint is left, and the journal begins at record %" PRIu64
                        ": restore the directory from a copy, or give --accept-loss to continue with the "
                        "remaining records",
                        start->number);
    return code;
}

/* Applies the journal from the checkpoint, or from its first record, up to o->until. */
static svs_code recovery_read_journal(struct recovering *w, svs_error *err) {
    struct svi_position start = {0};
    const struct svi_journal_reader_options o = {w->r->checkpointed ? w->r->epoch : 0, SVI_RECORD_LARGEST,
                                                 w->o->accept_loss};
    const struct svi_position *from = w->r->checkpointed ? &w->checkpoint.position : &start;
    enum svi_journal_read what = SVI_JOURNAL_RECORD;
    struct svi_record record;
    svs_code code = w->r->checkpointed ? SVS_OK : first_record(w, &start, err);
    if (code != SVS_OK)
        return code;
    w->r->first = from->number;
    if (!(w->reader = svi_journal_reader_new(w->dir, from, &o, err)))
        return err->code;
    while (code == SVS_OK && (what = svi_journal_read(w->reader, &record, err)) == SVI_JOURNAL_RECORD &&
           record.number < w->o->until)
        code = recovery_apply(w, &record, err);
    if (what == SVI_JOURNAL_FAIL)
        code = err->code;
    svi_journal_reader_found(w->reader, &w->r->found);
    if (code == SVS_OK && what == SVI_JOURNAL_RECORD) /* record o->until was read but not applied */
        w->r->found.records--;
    /* Without a checkpoint the records before the first one are lost, which the reader cannot see. */
    if (w->o->from != SVI_FROM_START && start.number > 0) {
        w->r->found.damages++;
        w->r->found.lost_records += start.number;
    }
    if (w->r->stream)
        svi_entry_allow_gaps(svi_stream_entry(w->r->stream), false);
    if (w->r->stream)
        svi_stream_leave_open(w->r->stream, false);
    return code;
}

static void recovery_report(const struct recovering *w) {
    const struct svi_recovery *r = w->r;
    FILE *log = w->o->log;
    if (!log)
        return;
    if (r->stream)
        fprintf(log, "state: %" PRId64 " samples", svi_stream_seen(r->stream));
    if (r->stream && r->checkpointed)
        fprintf(log, ", checkpoint after record %" PRIu64, r->checkpoint);
    if (r->stream)
        fprintf(log, ", %" PRIu64 " records applied in %.2f s\n", r->found.records, r->seconds);
    if (r->found.torn > 0)
        fprintf(log,
                "state: torn tail truncated: the last %" PRIu64 " bytes of the journal, from record %" PRIu64
                " on (never synced)\n",
                r->found.torn, r->found.end.number);
    if (r->found.damages > 0 && r->found.lost_records == 0)
        fprintf(log, "state: LOST: a part of the journal of unknown size is damaged or missing\n");
    else if (r->found.damages > 0)
        fprintf(log,
                "state: LOST: %" PRIu64 " records (%" PRIu64
                " bytes) of the journal at least are damaged or missing\n",
                r->found.lost_records, r->found.lost_bytes);
    if (r->jumps > JUMPS_REPORTED)
        fprintf(log, "state: LOST: %" PRId64 " samples in all, in %d gaps of sources\n", r->lost_samples,
                r->jumps);
}

static svs_code recovery_recover(const struct svi_state_dir *f, const struct svi_recovery_options *o,
                                 svi_sink *sink, void *user, struct svi_recovery *r, svs_error *err) {
    struct recovering w = {.dir = f, .o = o, .sink = sink, .user = user, .r = r};
    const double began = svi_monotonic();
    *r = (struct svi_recovery){.residual = NAN};
    svs_code code = o->from == SVI_FROM_START ? SVS_OK : load_sound(&w, err);
    if (code == SVS_OK)
        code = recovery_read_journal(&w, err);
    r->seconds = svi_monotonic() - began;
    if (code == SVS_OK)
        recovery_report(&w);
    else
        svi_stream_free(&r->stream);
    svi_journal_reader_free(&w.reader);
    svi_checkpoint_clear(&w.checkpoint);
    return code;
}

/* Differs after a writing process has removed a checkpoint or a segment. */
struct extent {
    uint64_t oldest_checkpoint, newest_checkpoint, oldest_segment; /* 0 = none */
};

static struct extent recovery_extent(const struct svi_state_dir *f) {
    struct svi_state_dir_ends checkpoints, journal;
    svi_state_dir_find(f, "checkpoint", &checkpoints, NULL);
    svi_state_dir_find(f, "journal", &journal, NULL);
    return (struct extent){checkpoints.first, checkpoints.last, journal.first};
}

/* A directory may be read while a process writes to it. After each checkpoint that process removes older
 * files, perhaps those that were to be read next. A failure during which files were removed is therefore
 * tried again; the process that holds the lock removes nothing meanwhile and fails at once. */
svs_code svi_recover(const struct svi_state_dir *f, const struct svi_recovery_options *o, svi_sink *sink,
                     void *user, struct svi_recovery *r, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < SVI_READ_TRIES; i++) {
        const struct extent before = recovery_extent(f);
        if (o->again)
            o->again(user);
        code = recovery_recover(f, o, sink, user, r, err);
        const bool vanished = code == SVS_DAMAGED || code == SVS_IO;
        const struct extent after = recovery_extent(f);
        if (!vanished || f->lock >= 0 || memcmp(&before, &after, sizeof after) == 0)
            break;
    }
    return code;
}

struct svi_recovery *svi_recovery_new(const struct svi_state_dir *f, const struct svi_recovery_options *o,
                                      svs_error *err) {
    struct svi_recovery_options silent = *o;
    struct svi_recovery *r = svi_alloc(sizeof *r);
    silent.silent = true;
    svs_code code =
        r ? svi_recover(f, &silent, NULL, NULL, r, err) : svi_fail_memory(err, "the recovered state");
    if (code == SVS_OK && !r->stream) {
        struct svi_state_dir_ends checkpoints;
        svi_state_dir_find(f, SVI_CHECKPOINT, &checkpoints, NULL);
        code = o->from == SVI_FROM_START && checkpoints.any
                   ? svi_fail(err, SVS_EMPTY,
                              "there is no journal in %.120s, because an imported state begins with its "
                              "checkpoint: leave out --from-start",
                              f->path)
                   : svi_fail(err, SVS_EMPTY, "no state is kept in %.150s", f->path);
    }
    if (code != SVS_OK)
        svi_recovery_free(&r);
    return r;
}

void svi_recovery_free(struct svi_recovery **r) {
    if (*r)
        svi_stream_free(&(*r)->stream);
    svi_free(*r);
    *r = NULL;
}

svs_code svi_recovery_loads(const struct svi_checkpoint *c, svs_error *err) {
    struct svi_settings settings;
    SVI_TRY(
        svi_settings_unpack(&settings, "the checkpoint's settings", c->settings.data, c->settings.size, err));
    svi_stream *stream = svi_stream_new(&settings, c->epoch, NULL, NULL, err);
    if (!stream)
        return err->code;
    svi_stream_mute(stream, true);
    const svs_code code = svi_stream_load(stream, c, err);
    svi_stream_free(&stream);
    return code;
}

svs_code svi_recovery_whole(const struct svi_state_dir *f, bool *whole, svs_error *err) {
    struct svi_state_dir_ends journal;
    const svs_code code = svi_state_dir_find(f, "journal", &journal, err);
    *whole = journal.any && journal.first == 0;
    return code;
}

svs_code svi_recovery_settings(const struct svi_state_dir *f, struct svi_settings *s, svs_error *err) {
    const struct svi_recovery_options o = {.from = SVI_FROM_OLDEST, .until = 1};
    struct svi_recovery *r = svi_recovery_new(f, &o, err);
    if (!r)
        return err->code;
    *s = r->settings;
    svi_recovery_free(&r);
    return SVS_OK;
}
