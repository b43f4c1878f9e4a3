/* Going back to a checkpoint: the checkpoint is read into a second, muted stream, and the journal after it is
 * applied there if the command says so.
 *
 * Applied again are the samples, labels, forgets and moves of the clock. Commands that change the stream as a
 * whole (reset, prune, config, earlier loads) are left out, which is how such a command is undone; so are
 * refits, which were made from other samples. The record of the load (load_record.c) holds the result, so a
 * recovery repeats none of this.
 *
 * Failures leave the stream as it is. They must not be SVS_IO, which would end the process. */
#include "state/load.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/kernels.h"
#include "state/recovery.h"
#include "svmstream/svmstream.h"

#define LISTED 12 /* newest checkpoints that an error text lists */

/* ---- a checkpoint */

/* SVS_UNAVAILABLE, with a list of the kept checkpoints: this one is not kept. */
static svs_code load_find(const struct svi_state_dir *dir, uint64_t wanted, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    bool found = false;
    char names[SVS_ERROR_TEXT / 2] = "";
    svs_code code = svi_state_dir_list(dir, SVI_CHECKPOINT, &numbers, &count, err);
    for (int i = 0; i < count; i++)
        found = found || numbers[i] == wanted;
    for (int i = count > LISTED ? count - LISTED : 0; i < count; i++) {
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%" PRIu64, at ? ", " : "", numbers[i]);
    }
    svi_free(numbers);
    if (code != SVS_OK || found)
        return code;
    return svi_fail(err, SVS_UNAVAILABLE,
                    "there is no checkpoint %" PRIu64
                    "; there %s %s (checkpoint.keep sets how many are kept)",
                    wanted, count == 1 ? "is" : "are", count ? names : "none");
}

/* The write-ahead takes SVS_IO for a failure of its own files and ends the process; a failure to read older
 * files is not among those. */
static svs_code load_failure(svs_code code, svs_error *err) {
    return err->code = code == SVS_IO ? SVS_DAMAGED : code;
}

static svs_code load_checkpoint(struct svi_load *l, const struct svi_state_dir *dir, const svi_stream *stream,
                                uint64_t number, struct svi_checkpoint *c, svs_error *err) {
    svs_code code = load_find(dir, number, err);
    if (code == SVS_OK)
        code = svi_checkpoint_read(dir, number, c, err);
    if (code != SVS_OK)
        return load_failure(code, err);
    if (!(l->then = svi_stream_then(stream, c, err)))
        return err->code;
    if (strcmp(c->program, SVS_VERSION) != 0 || strcmp(c->isa, svi_kernels_get(SVS_ISA_BEST)->name) != 0)
        svi_stream_rebuild(l->then);
    return SVS_OK;
}

/* ---- what follows it */

static bool load_of_source(const struct svi_envelope *env, const struct svi_load_options *o) {
    return o->without && env->has_src && env->src_good && env->src_length == o->without_length &&
           memcmp(env->src, o->without, o->without_length) == 0;
}

/* Does `relearn` apply this record again? An unreadable message or command was refused and changed nothing.
 */
static bool load_repeats(const struct svi_record *r, const struct svi_load_options *o) {
    struct svi_envelope env;
    struct svi_command c;
    switch (r->kind) {
    case SVI_RECORD_FRAME:
    case SVI_RECORD_SOURCED:
        svi_envelope_read(&env, r->payload, r->size);
        return !load_of_source(&env, o);
    case SVI_RECORD_CONTROL:
        return svi_command_read(&c, r->payload, r->size, NULL) == SVS_OK &&
               (c.op == SVI_COMMAND_LABEL || c.op == SVI_COMMAND_FORGET);
    case SVI_RECORD_CLOCK: /* the arrival times of later records go by the moved clock */
        return true;
    default:
        return false;
    }
}

/* SVS_UNAVAILABLE: records from `first` on have been removed; without a journal, all up to `end`. */
static svs_code load_check_journal(const struct svi_state_dir *dir, uint64_t first, uint64_t end,
                                   svs_error *err) {
    struct svi_state_dir_ends journal;
    svs_code code = svi_state_dir_find(dir, SVI_JOURNAL, &journal, err);
    const uint64_t oldest = journal.any ? journal.first : end;
    if (code != SVS_OK)
        return code;
    if (oldest > first)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "the records %" PRIu64 " to %" PRIu64
                        " cannot be learned again, because the journal no longer has them: load without "
                        "relearn, and set journal.keep all for the future",
                        first, oldest - 1);
    return SVS_OK;
}

/* Applies the records from the checkpoint up to `end`, the position at which the load was asked for. */
static svs_code load_relearn(struct svi_load *l, const struct svi_state_dir *dir,
                             const struct svi_load_options *o, const struct svi_checkpoint *c, uint64_t end,
                             svs_error *err) {
    const struct svi_journal_reader_options how = {.epoch = c->epoch, .largest = SVI_RECORD_LARGEST};
    const int64_t before = svi_stream_seen(l->then);
    enum svi_journal_read what = SVI_JOURNAL_END;
    struct svi_record r;
    svs_code code = load_check_journal(dir, c->position.number, end, err);
    svi_journal_reader *reader = code == SVS_OK ? svi_journal_reader_new(dir, &c->position, &how, err) : NULL;
    if (!reader)
        return load_failure(err->code, err);
    while (code == SVS_OK && (what = svi_journal_read(reader, &r, err)) == SVI_JOURNAL_RECORD &&
           r.number < end)
        if (load_repeats(&r, o))
            code = svi_record_apply(&l->then, NULL, &r, NULL, err);
    if (what == SVI_JOURNAL_FAIL)
        code = load_failure(err->code, err);
    svi_journal_reader_free(&reader);
    /* Refusals for lack of memory are events, not failures of apply; here they would lose samples silently.
     */
    if (code == SVS_OK && svi_stream_out_of_memory(l->then))
        code = svi_fail(err, SVS_NO_MEMORY, "out of memory for the samples to learn again");
    l->relearned = svi_stream_seen(l->then) - before;
    return code;
}

svs_code svi_load_prepare(struct svi_load *l, const struct svi_state_dir *dir, const svi_stream *stream,
                          const struct svi_load_options *o, uint64_t end, svs_error *err) {
    struct svi_checkpoint c = {0};
    svs_code code = load_checkpoint(l, dir, stream, o->checkpoint, &c, err);
    const int64_t seen = code == SVS_OK ? svi_stream_seen(l->then) : 0;
    if (code == SVS_OK && o->relearn)
        code = load_relearn(l, dir, o, &c, end, err);
    svi_checkpoint_clear(&c);
    const size_t size = (size_t)snprintf(l->reason, sizeof l->reason,
                                         "the stream returned after sample %" PRId64
                                         " to the state after record %" PRIu64 " (sample %" PRId64 ")",
                                         svi_stream_seen(stream), o->checkpoint, seen);
    if (o->relearn)
        snprintf(l->reason + size, sizeof l->reason - size,
                 "; %" PRId64 " samples after it were learned again", l->relearned);
    if (code != SVS_OK)
        svi_load_clear(l);
    return code;
}
