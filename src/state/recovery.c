/* Recovery: the newest checkpoint that loads, then the journal after it, record by record.
 *
 * Each record goes through the function that applied it first (record.c), into a muted engine where the
 * caller wants no events. A checkpoint of another program or instruction set is loaded and its model rebuilt,
 * for its bits could not be continued. Where part of the journal is lost and that is accepted, each source
 * may go on once at whatever number it gives; the samples between are reported as lost.
 *
 * A reader may look at a directory in which a process writes; what vanishes under it is read again
 * (svi_recover). Read recovery_recover first. */
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

#define JUMPS_REPORTED 10    /* sources that lost samples, one line each */
#define TOLERANCE      1e-10 /* of the model in the system of its window */

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

static svs_code make_stream(struct recovering *w, svs_error *err) {
    struct svi_recovery *r = w->r;
    if (w->o->otherwise) /* not recorded: of this start */
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

/* The bits of another program or instruction set would not be continued as they were begun. */
static void look_over(struct recovering *w) {
    const struct svi_checkpoint *c = &w->checkpoint;
    struct svi_recovery *r = w->r;
    const char *isa = svi_kernels_get(SVS_ISA_BEST)->name;
    r->residual = svi_engine_residual(svi_stream_root(r->stream));
    r->rebuilt = strcmp(c->program, svs_version()) != 0 || strcmp(c->isa, isa) != 0;
    if (r->rebuilt)
        svi_stream_rebuild(r->stream);
    if (r->rebuilt && w->o->log)
        fprintf(w->o->log,
                "state: the checkpoint is of svmstream %s on %s, this is %s on %s: the model is rebuilt "
                "from its samples\n",
                c->program, c->isa, svs_version(), isa);
    if (!r->rebuilt && r->residual > TOLERANCE && w->o->log)
        fprintf(w->o->log,
                "state: the model is kept bit for bit; it solves the system of its window to %.1e\n",
                r->residual);
}

/* Other settings, as `ctl config` would change them there; what they say now is of no time, and not sent. */
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
    look_over(w);
    r->checkpointed = true;
    r->checkpoint = number;
    memcpy(r->hash, c->hash, sizeof r->hash);
    return SVS_OK;
}

/* The newest sound one; or the newest but one, else the newest, if there is any: of the others that are kept
 * the journal may not lead on. */
static svs_code load_sound(struct recovering *w, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = svi_state_dir_list(w->dir, "checkpoint", &numbers, &count, err);
    const bool oldest = w->o->from == SVI_FROM_OLDEST;
    for (int i = oldest && count > 2 ? count - 2 : 0; i < count && code == SVS_OK && !w->r->checkpointed;
         i++) {
        code = recovery_load(w, numbers[oldest ? i : count - 1 - i], err);
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

/* Without a checkpoint the settings are those of the first record. */
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
                        "the journal does not begin with a start, and there is no checkpoint");
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

/* After a loss: from which number on a source goes on. */
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
                " of the source %s, which goes on with %" PRId64 "\n",
                receipt->jumped_from, receipt->first - 1,
                svi_escape(shown, sizeof shown, receipt->src, strlen(receipt->src)), receipt->first);
}

static svs_code recovery_apply(struct recovering *w, const struct svi_record *record, svs_error *err) {
    struct svi_journal_found found;
    struct svi_receipt receipt = {.jumped_from = -1};
    svs_code code = w->r->stream ? SVS_OK : recovery_begin(w, record, err);
    const bool theirs = record_starts(record) || record->kind == SVI_RECORD_REFIT ||
                        record->kind == SVI_RECORD_CONFIG; /* not those of what is tried instead */
    if (code == SVS_OK && w->o->with && record_starts(record))
        svi_stream_begin(w->r->stream, record->now);
    if (code != SVS_OK || (w->o->with && theirs))
        return code;
    if (w->o->with && record->kind == SVI_RECORD_LOAD)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "at record %" PRIu64
                        " the stream went back to an older state, which is one of the settings of then: "
                        "--until %" PRIu64 " ends before it",
                        record->number, record->number);
    svi_journal_reader_found(w->reader, &found);
    if (found.lost)
        svi_entry_allow_gaps(svi_stream_entry(w->r->stream), true);
    svi_stream_leave_open(w->r->stream, true);
    code = svi_record_apply(&w->r->stream, &w->r->settings, record, &receipt,
                            err); /* a start may raise a limit */
    if (code == SVS_OK)
        code = svi_stream_lost_key(w->r->stream, err);
    if (code == SVS_OK && svi_stream_out_of_memory(w->r->stream))
        code = svi_fail(err, SVS_NO_MEMORY, "memory ran out for record %" PRIu64 " of the journal",
                        record->number);
    report_jump(w, &receipt);
    if (w->o->turn)
        w->o->turn(w->user);
    if (w->o->with) /* with other settings the refits are others too */
        svi_engine_refit_here(svi_stream_root(w->r->stream));
    return code;
}

/* Without a checkpoint the whole stream must be there, unless less will do. */
static svs_code first_record(struct recovering *w, struct svi_position *start, svs_error *err) {
    struct svi_state_dir_ends journal;
    svs_code code = svi_state_dir_find(w->dir, "journal", &journal, err);
    start->number = start->segment = journal.first;
    const bool part = w->o->accept_loss || w->o->from == SVI_FROM_START;
    if (code == SVS_OK && start->number > 0 && !part)
        code = svi_fail(err, SVS_DAMAGED,
                        "there is no sound checkpoint, and the journal begins at record %" PRIu64
                        ": --accept-loss goes on with what is left",
                        start->number);
    return code;
}

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
    if (code == SVS_OK && what == SVI_JOURNAL_RECORD) /* the one that was left out */
        w->r->found.records--;
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
        fprintf(log,
                "state: LOST: a part of the journal is damaged or missing; how much it held is not known\n");
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

/* What changes when a process that writes has removed something. */
struct extent {
    uint64_t oldest_checkpoint, newest_checkpoint, oldest_segment; /* 0 = there is none */
};

static struct extent recovery_extent(const struct svi_state_dir *f) {
    struct svi_state_dir_ends checkpoints, journal;
    svi_state_dir_find(f, "checkpoint", &checkpoints, NULL);
    svi_state_dir_find(f, "journal", &journal, NULL);
    return (struct extent){checkpoints.first, checkpoints.last, journal.first};
}

/* A reader may look while a process writes: after each checkpoint it removes what was just going to be
 * read. */
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
    if (code == SVS_OK && !r->stream)
        code = svi_fail(err, SVS_EMPTY, "no state is kept in %.150s", f->path);
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
