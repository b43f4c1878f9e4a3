#include "engine/recovery.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "engine/engine_archive.h"
#include "engine/keeper.h"
#include "engine/origin.h"
#include "engine/settings_kept.h"
#include "linalg/pass.h"
#include "svmstream/svmstream.h"

#define TOLD      10    /* sources that lost samples */
#define TOLERANCE 1e-10 /* of the model in the system of its window */

/* ---- one record */

static svs_code repeat_start(struct svi_control *c, const struct svi_record *r, svs_error *err) {
    svs_code code = svi_settings_unpack(c->settings, "the journal's settings", r->payload, r->size, err);
    if (code == SVS_OK && svi_settings_raised(c->settings, svi_engine_settings(c->engine)))
        code = svi_engine_widen(&c->engine, c->settings, err);
    if (code == SVS_OK)
        svi_engine_configure(c->engine, c->settings);
    return code;
}

static svs_code code_of(const char *name, size_t length) {
    for (int code = 1; code < SVS_CODE_COUNT; code++) {
        const char *known = svs_code_name((svs_code)code);
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return (svs_code)code;
    }
    return SVS_INVALID;
}

static svs_code repeat_refusal(struct svi_control *c, const struct svi_record *r, svs_error *err) {
    char text[64 + SVS_ERROR_TEXT];
    if (r->size >= sizeof text)
        return svi_fail(err, SVS_DAMAGED, "record %" PRIu64 " is a refusal of %zu bytes", r->number, r->size);
    memcpy(text, r->payload, r->size);
    text[r->size] = '\0';
    const size_t word = strcspn(text, " ");
    svi_engine_refuse(c->engine, code_of(text, word), text + word + (text[word] == ' '), NULL, 0, r->now);
    return SVS_OK;
}

svs_code svi_record_repeat(struct svi_control *c, const struct svi_record *r, struct svi_bytes *scratch,
                           svs_error *err) {
    switch (r->kind) {
    case SVI_RECORD_FRAME:
    case SVI_RECORD_SOURCED: /* what was refused then is refused again */
        svi_engine_frame(c->engine, r->payload, r->size, r->now, r->kind == SVI_RECORD_SOURCED, NULL);
        return SVS_OK;
    case SVI_RECORD_CONTROL:
        return svi_control_handle(c, r->payload, r->size, r->now, scratch);
    case SVI_RECORD_REFIT:
        return svi_engine_refit_repeat(c->engine, r->payload, r->size, err);
    case SVI_RECORD_REFUSAL:
        return repeat_refusal(c, r, err);
    case SVI_RECORD_STATS:
        svi_engine_publish_stats(c->engine, r->now);
        return SVS_OK;
    case SVI_RECORD_START:
        return repeat_start(c, r, err);
    case SVI_RECORD_STOP:
        svi_engine_publish_model(c->engine, true);
        return SVS_OK;
    default:
        return svi_fail(err, SVS_DAMAGED, "record %" PRIu64 " is of the unknown kind %d", r->number, r->kind);
    }
}

/* ---- a checkpoint */

struct recovering {
    const struct svi_folder *folder;
    const struct svi_recovery_options *o;
    svi_sink *sink;
    void *user;
    struct svi_recovery *r;
    struct svi_checkpoint checkpoint;
    svi_journal_reader *reader;
    struct svi_bytes scratch;
    struct svi_control control;
    bool lossy; /* records were passed over */
};

static void say(const struct recovering *w, const char *what, const svs_error *why) {
    if (w->o->log)
        fprintf(w->o->log, "%s%s%s\n", what, why ? ": " : "", why ? why->text : "");
}

static svs_code make_engine(struct recovering *w, svs_error *err) {
    struct svi_recovery *r = w->r;
    r->engine = svi_engine_new(&r->settings, r->epoch, w->sink, w->user, err);
    if (!r->engine)
        return err->code;
    svi_engine_mute(r->engine, w->o->silent);
    svi_engine_keep_model(r->engine);
    w->control = (struct svi_control){.engine = r->engine, .settings = &r->settings, .repeating = true};
    return SVS_OK;
}

/* The bits of another program or instruction set would not be continued as they were begun. */
static void look_over(struct recovering *w) {
    const struct svi_checkpoint *c = &w->checkpoint;
    struct svi_recovery *r = w->r;
    const char *isa = svi_kernels_get(SVS_ISA_BEST)->name;
    r->residual = svi_engine_residual(r->engine);
    r->rebuilt = strcmp(c->program, svs_version()) != 0 || strcmp(c->isa, isa) != 0;
    if (r->rebuilt)
        svi_engine_rebuild(r->engine);
    if (r->rebuilt && w->o->log)
        fprintf(w->o->log,
                "state: the checkpoint is of svmstream %s on %s, this is %s on %s: the model is made afresh "
                "from its samples\n",
                c->program, c->isa, svs_version(), isa);
    if (!r->rebuilt && r->residual > TOLERANCE && w->o->log)
        fprintf(w->o->log,
                "state: the model is kept bit for bit; it solves the system of its window to %.1e\n",
                r->residual);
}

static svs_code load(struct recovering *w, uint64_t number, svs_error *err) {
    struct svi_recovery *r = w->r;
    const struct svi_checkpoint *c = &w->checkpoint;
    svs_code code = svi_checkpoint_read(w->folder, number, &w->checkpoint, err);
    if (code == SVS_OK)
        code = svi_settings_unpack(&r->settings, "the checkpoint's settings", c->settings.data,
                                   c->settings.size, err);
    r->epoch = c->epoch;
    if (code == SVS_OK)
        code = make_engine(w, err);
    if (code == SVS_OK)
        code = svi_engine_load(r->engine, c, err);
    if (code != SVS_OK) {
        svi_engine_free(&r->engine);
        return code;
    }
    look_over(w);
    r->checkpointed = true;
    r->checkpoint = number;
    memcpy(r->hash, c->hash, sizeof r->hash);
    return SVS_OK;
}

/* The newest or oldest sound one, if there is any. */
static svs_code load_sound(struct recovering *w, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = svi_folder_list(w->folder, "checkpoint", &numbers, &count, err);
    for (int i = 0; i < count && code == SVS_OK && !w->r->checkpointed; i++) {
        code = load(w, numbers[w->o->from == SVI_FROM_OLDEST ? i : count - 1 - i], err);
        if (code != SVS_DAMAGED && code != SVS_SETTING && code != SVS_IO)
            continue;
        say(w, "state: a checkpoint is passed over", err);
        w->r->damaged++;
        code = SVS_OK;
    }
    svi_free(numbers);
    return code;
}

/* ---- the journal */

/* Without a checkpoint the settings are those of the first record. */
static svs_code begin(struct recovering *w, const struct svi_record *first, svs_error *err) {
    struct svi_recovery *r = w->r;
    struct svi_journal_found found;
    if (w->o->with)
        r->settings = *w->o->with;
    else if (first->number > 0 && w->o->otherwise)
        r->settings = *w->o->otherwise;
    else if (first->number > 0)
        svi_settings_default(&r->settings);
    else if (first->kind != SVI_RECORD_START)
        return svi_fail(err, SVS_DAMAGED,
                        "the journal does not begin with a start, and there is no checkpoint");
    else if (svi_settings_unpack(&r->settings, "the journal's settings", first->payload, first->size, err) !=
             SVS_OK)
        return err->code;
    svi_journal_reader_found(w->reader, &found);
    r->epoch = found.epoch;
    svs_code code = make_engine(w, err);
    w->lossy = first->number > 0;
    if (code == SVS_OK && w->lossy)
        svi_engine_allow_gaps(r->engine, true);
    return code;
}

/* With other settings the refits are others too. */
static void refit_at_once(svi_engine *e) {
    struct svi_refit *job = svi_engine_refit_take(e);
    if (!job)
        return;
    svi_refit_run(job);
    svi_engine_refit_give(e);
}

/* From which number on a source goes on, behind a loss; its name only if this record can tell. */
struct track {
    char name[SVS_NAME_MAX + 1];
    int64_t next, first; /* known before; of the record */
};

static struct track look_ahead(const struct recovering *w, const struct svi_record *record) {
    struct track t = {.name = ""};
    struct svi_origin o;
    if (!w->lossy || record->kind != SVI_RECORD_SOURCED)
        return t;
    svi_origin_find(record->payload, record->size, &o);
    if (svi_origin_name(&o, NULL) != SVS_OK || svi_origin_number(&o, &t.first, NULL) != SVS_OK)
        return t;
    memcpy(t.name, o.src.body, o.src.length);
    t.next = svi_engine_source_next(w->r->engine, t.name);
    return t;
}

static void tell_jump(struct recovering *w, const struct track *t) {
    struct svi_recovery *r = w->r;
    char shown[80];
    if (!t->name[0] || t->first <= t->next || svi_engine_source_next(r->engine, t->name) <= t->first)
        return;
    r->jumps++;
    r->lost_samples += t->first - t->next;
    if (w->o->log && r->jumps <= TOLD)
        fprintf(w->o->log,
                "state: LOST: samples %" PRId64 " to %" PRId64
                " of the source %s, which goes on with %" PRId64 "\n",
                t->next, t->first - 1, svi_escape(shown, sizeof shown, t->name, strlen(t->name)), t->first);
}

static svs_code repeat(struct recovering *w, const struct svi_record *record, svs_error *err) {
    struct svi_journal_found found;
    svs_code code = w->r->engine ? SVS_OK : begin(w, record, err);
    bool theirs = record->kind == SVI_RECORD_START || record->kind == SVI_RECORD_REFIT;
    if (code != SVS_OK || (w->o->with && theirs))
        return code;
    svi_journal_reader_found(w->reader, &found);
    if (found.lost)
        svi_engine_allow_gaps(w->r->engine, true);
    w->lossy = w->lossy || found.lost;
    const struct track track = look_ahead(w, record);
    code = svi_record_repeat(&w->control, record, &w->scratch, err);
    w->r->engine = w->control.engine; /* a start may have raised a limit */
    if (code == SVS_OK && (w->control.failed || svi_engine_starved(w->r->engine)))
        code = svi_fail(err, SVS_NO_MEMORY, "memory ran out for record %" PRIu64 " of the journal",
                        record->number);
    tell_jump(w, &track);
    if (w->o->with)
        refit_at_once(w->r->engine);
    return code;
}

/* Without a checkpoint the whole stream must be there, unless less will do. */
static svs_code first_record(struct recovering *w, struct svi_position *start, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = svi_folder_list(w->folder, "journal", &numbers, &count, err);
    if (code == SVS_OK && count > 0)
        start->number = start->segment = numbers[0];
    svi_free(numbers);
    const bool part = w->o->accept_loss || w->o->from == SVI_FROM_START;
    if (code == SVS_OK && start->number > 0 && !part)
        code = svi_fail(err, SVS_DAMAGED,
                        "there is no sound checkpoint, and the journal begins at record %" PRIu64
                        ": --accept-loss goes on with what is left",
                        start->number);
    return code;
}

static svs_code read_journal(struct recovering *w, svs_error *err) {
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
    if (!(w->reader = svi_journal_reader_new(w->folder, from, &o, err)))
        return err->code;
    while (code == SVS_OK && (what = svi_journal_read(w->reader, &record, err)) == SVI_JOURNAL_RECORD &&
           record.number < w->o->until)
        code = repeat(w, &record, err);
    if (what == SVI_JOURNAL_FAIL)
        code = err->code;
    svi_journal_reader_found(w->reader, &w->r->found);
    if (code == SVS_OK && what == SVI_JOURNAL_RECORD) /* the one that was left out */
        w->r->found.records--;
    if (w->o->from != SVI_FROM_START && start.number > 0) {
        w->r->found.damages++;
        w->r->found.lost_records += start.number;
    }
    if (w->r->engine)
        svi_engine_allow_gaps(w->r->engine, false);
    return code;
}

static void tell(const struct recovering *w) {
    const struct svi_recovery *r = w->r;
    FILE *log = w->o->log;
    if (!log || !r->engine)
        return;
    fprintf(log, "state: %" PRId64 " samples", svi_engine_seen(r->engine));
    if (r->checkpointed)
        fprintf(log, ", checkpoint after record %" PRIu64, r->checkpoint);
    fprintf(log, ", %" PRIu64 " records repeated in %.2f s\n", r->found.records, r->seconds);
    if (r->found.torn > 0)
        fprintf(log,
                "state: the last %" PRIu64 " bytes of the journal, from record %" PRIu64
                " on, are not sound and were not known to be on disk: they are cut off\n",
                r->found.torn, r->found.end.number);
    if (r->found.damages > 0 && r->found.lost_records == 0)
        fprintf(log,
                "state: LOST: a part of the journal is damaged or missing; how much it held is not known\n");
    else if (r->found.damages > 0)
        fprintf(log,
                "state: LOST: %" PRIu64 " records (%" PRIu64
                " bytes) of the journal at least are damaged or missing\n",
                r->found.lost_records, r->found.lost_bytes);
    if (r->jumps > TOLD)
        fprintf(log, "state: LOST: %" PRId64 " samples in all, in %d gaps of sources\n", r->lost_samples,
                r->jumps);
}

static svs_code recover(const struct svi_folder *f, const struct svi_recovery_options *o, svi_sink *sink,
                        void *user, struct svi_recovery *r, svs_error *err) {
    struct recovering w = {.folder = f, .o = o, .sink = sink, .user = user, .r = r};
    const double began = svi_monotonic();
    *r = (struct svi_recovery){.residual = NAN};
    svs_code code = o->from == SVI_FROM_START ? SVS_OK : load_sound(&w, err);
    if (code == SVS_OK)
        code = read_journal(&w, err);
    r->seconds = svi_monotonic() - began;
    if (code == SVS_OK)
        tell(&w);
    else
        svi_engine_free(&r->engine);
    svi_journal_reader_free(&w.reader);
    svi_checkpoint_clear(&w.checkpoint);
    svi_bytes_clear(&w.scratch);
    return code;
}

/* What changes when a process that writes has removed something. */
struct extent {
    uint64_t oldest_checkpoint, newest_checkpoint, oldest_segment; /* 0 = there is none */
};

static struct extent extent(const struct svi_folder *f) {
    uint64_t *numbers = NULL;
    int count = 0;
    struct extent e = {0};
    if (svi_folder_list(f, "checkpoint", &numbers, &count, NULL) == SVS_OK && count > 0) {
        e.oldest_checkpoint = numbers[0];
        e.newest_checkpoint = numbers[count - 1];
    }
    svi_free(numbers);
    numbers = NULL;
    if (svi_folder_list(f, "journal", &numbers, &count, NULL) == SVS_OK && count > 0)
        e.oldest_segment = numbers[0];
    svi_free(numbers);
    return e;
}

/* Who only looks may look while a process writes: behind each checkpoint it removes what was just going to be
 * read. */
svs_code svi_recover(const struct svi_folder *f, const struct svi_recovery_options *o, svi_sink *sink,
                     void *user, struct svi_recovery *r, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < SVI_READ_TRIES; i++) {
        const struct extent before = extent(f);
        code = recover(f, o, sink, user, r, err);
        const bool vanished = code == SVS_DAMAGED || code == SVS_IO;
        const struct extent after = extent(f);
        if (!vanished || f->lock >= 0 || memcmp(&before, &after, sizeof after) == 0)
            break;
    }
    return code;
}

svs_code svi_recovery_settings(const struct svi_folder *f, struct svi_settings *s, svs_error *err) {
    const struct svi_recovery_options o = {.from = SVI_FROM_OLDEST, .silent = true, .until = 1};
    struct svi_recovery *r = svi_alloc(sizeof *r);
    svs_code code = r ? svi_recover(f, &o, NULL, NULL, r, err) : svi_fail_memory(err, "the settings");
    if (code == SVS_OK && !r->engine)
        code = svi_fail(err, SVS_DAMAGED, "no state is kept in %.150s", f->path);
    if (code == SVS_OK) {
        *s = r->settings;
        svi_engine_free(&r->engine);
    }
    svi_free(r);
    return code;
}

svs_code svi_engine_hash(svi_engine *e, char *hash, svs_error *err) {
    struct svi_checkpoint c = {0};
    svs_code code = svi_engine_save(e, &c, err);
    if (code == SVS_OK) {
        svi_checkpoint_hash(&c);
        svi_hash_text(c.hash, hash);
    }
    svi_checkpoint_clear(&c);
    return code;
}
