/* The state of a stream as a checkpoint: the sections of its root (engine/engine_archive.c), then what there
 * is besides, by the table of its kind.
 *
 * Sections that are late follow from what is written between the mark of a checkpoint and its end: states of
 * keys, or the list of their files. The last section of a stream with keys is the sum of their hashes.
 *
 * A stream that gets higher limits is replaced by another one, made from its sections. To return to
 * an older state, another stream is made from the settings of that time, and lends its root that
 * state. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_archive.h"
#include "linalg/kernels.h"
#include "store/checkpoint_file.h"
#include "svmstream/svmstream.h"
#include "wire/archive_file.h"

void svi_stream_archive_sources(struct svi_archive *a, svi_stream *s) {
    svi_sources_archive(a, s->entry.sources);
}

/* Not hashed: two runs over the same samples differ in when they arrived. */
void svi_stream_archive_source_times(struct svi_archive *a, svi_stream *s) {
    svi_sources_times_archive(a, s->entry.sources);
}

/* Not hashed: times of arrival and the epoch are in the events. */
void svi_stream_archive_alerts(struct svi_archive *a, svi_stream *s) {
    svi_kept_alerts_archive(a, s->alerts);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        svi_kept_alerts_limit(s->alerts, s->root->s->alert_keep);
}

/* ---- out */

static svs_code save_one(svi_stream *s, const struct svi_stream_section *of, struct svi_checkpoint *c,
                         svs_error *err) {
    struct svi_archive_out out;
    if (of->present && !of->present(s))
        return SVS_OK;
    struct svi_section *to = &c->section[c->sections++];
    to->offset = c->bodies.size;
    to->hashed = of->hashed;
    snprintf(to->name, sizeof to->name, "%s", of->name);
    svi_archive_out_begin(&out, &c->bodies, of->name, err);
    of->archive(&out.archive, s);
    const svs_code code = svi_archive_out_end(&out);
    to->size = c->bodies.size - to->offset;
    return code;
}

svs_code svi_stream_save_part(svi_stream *s, bool late, struct svi_checkpoint *c, svs_error *err) {
    for (int i = 0; i < s->verbs->section_count; i++)
        if (s->verbs->sections[i].late == late)
            SVI_TRY(save_one(s, &s->verbs->sections[i], c, err));
    return SVS_OK;
}

svs_code svi_stream_save_early(svi_stream *s, struct svi_checkpoint *c, svs_error *err) {
    struct svi_engine *root = svi_stream_settle(s);
    snprintf(c->program, sizeof c->program, "%s", SVS_VERSION);
    snprintf(c->isa, sizeof c->isa, "%s", svi_kernels_get(SVS_ISA_BEST)->name);
    snprintf(c->stream, sizeof c->stream, "%s", root->s->stream);
    c->epoch = s->epoch;
    c->bodies.size = c->settings.size = 0;
    c->sections = 0;
    SVI_TRY(svi_engine_save(root, c, err));
    SVI_TRY(svi_stream_save_part(s, false, c, err));
    return svi_settings_pack(root->s, &c->settings, err);
}

/* The parts have an order: states of keys that are archived last compute the sum that the last section
 * writes. */
svs_code svi_stream_save(svi_stream *s, struct svi_checkpoint *c, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    const svs_code code = svi_stream_save_early(s, c, err);
    return code == SVS_OK ? svi_stream_save_part(s, true, c, err) : code;
}

size_t svi_stream_size(svi_stream *s) {
    size_t size = svi_engine_size(svi_stream_settle(s));
    svs_error err;
    /* An archive without a target only counts. Late sections are left out where states of keys are in files:
     * those are not written with the checkpoint. */
    for (int i = 0; i < s->verbs->section_count; i++) {
        const struct svi_stream_section *of = &s->verbs->sections[i];
        struct svi_archive_out out;
        if (s->in_files && of->late)
            continue;
        svi_archive_out_begin(&out, NULL, of->name, &err);
        if (!of->present || of->present(s))
            of->archive(&out.archive, s);
        size += out.size;
    }
    return size;
}

/* As that of svi_stream_save, without the states of keys, of which only the sum of their hashes counts: it is
 * in the last section. */
svs_code svi_stream_hash(svi_stream *s, char *hash, svs_error *err) {
    struct svi_checkpoint c = {0};
    svs_error local;
    err = err ? err : &local;
    svs_code code = svi_stream_save_early(s, &c, err);
    if (code == SVS_OK && s->verbs->add_up && (code = s->verbs->add_up(s, err)) == SVS_OK)
        code = save_one(s, &s->verbs->sections[s->verbs->section_count - 1], &c, err);
    if (code == SVS_OK) {
        svi_checkpoint_hash(&c);
        svi_hash_text(c.hash, hash);
    }
    svi_checkpoint_clear(&c);
    return code;
}

/* ---- in */

svs_code svi_stream_load(svi_stream *s, const struct svi_checkpoint *c, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    s->from = c->dir;
    /* Sections are looked up by name and read in the order of the table, not of the file: later ones rely on
     * earlier ones. */
    svs_code code = svi_engine_load(s->root, c, err);
    for (int i = 0; i < s->verbs->section_count && code == SVS_OK; i++) {
        struct svi_archive_in in;
        const struct svi_stream_section *of = &s->verbs->sections[i];
        const struct svi_section *from = svi_checkpoint_find(c, of->name);
        /* A section that is present on a condition may be missing; the condition itself is part of the
         * settings. */
        if (!from && !of->present)
            return svi_fail(err, SVS_DAMAGED, "there is no section %s", of->name);
        if (!from)
            continue;
        svi_archive_in_begin(&in, c->bodies.data + from->offset, from->size, of->name, err);
        of->archive(&in.archive, s);
        code = svi_archive_in_end(&in);
    }
    return code;
}

svs_code svi_stream_verify(svi_stream *s, double *difference, svs_error *err) {
    const svs_code code = svi_learner_verify(s->root->learner, difference, err);
    return code == SVS_OK && s->verbs->verify ? s->verbs->verify(s, difference, err) : code;
}

/* ---- another in its place */

static svi_stream *stream_like(const svi_stream *s, const struct svi_settings *settings, svs_error *err) {
    return svi_stream_new(settings, s->epoch, s->sink, s->user, err);
}

/* Limits fix sizes when an engine is created, so higher ones need another stream, filled from a checkpoint
 * in memory. The old stream is freed only when the new one is complete. */
svs_code svi_stream_widen(svi_stream **stream, const struct svi_settings *settings, svs_error *err) {
    struct svi_checkpoint c = {0};
    svi_stream *s = *stream;
    struct svi_settings *limits = svi_alloc(sizeof *limits);
    if (!limits)
        return svi_fail_memory(err, "the settings");
    *limits = *settings;
    svi_settings_adopt(limits, s->root->s); /* what else changes is the business of svi_stream_configure */
    svs_code code = svi_stream_save(s, &c, err);
    svi_stream *wider = code == SVS_OK ? stream_like(s, limits, err) : NULL;
    svi_free(limits);
    if (wider)
        code = svi_stream_load(wider, &c, err);
    else if (code == SVS_OK)
        code = err->code;
    svi_checkpoint_clear(&c);
    if (code != SVS_OK) {
        svi_stream_free(&wider);
        return code;
    }
    /* What is set by calls is not part of the state, and is carried over by hand. */
    wider->root->two_threads = s->root->two_threads;
    wider->root->keeps_model = s->root->keeps_model;
    wider->open = s->open;
    wider->common.muted = s->common.muted;
    wider->common.score_all = s->common.score_all;
    wider->entry.gaps_allowed = s->entry.gaps_allowed;
    wider->entry.losses = s->entry.losses;
    svi_stream_free(stream);
    *stream = wider;
    return SVS_OK;
}

/* The settings of then, but with the limits of now, which fix sizes. After the load the settings of
 * SVI_CHANGE_LIVE are those of now. */
static svs_code load_then(const svi_stream *s, const struct svi_checkpoint *c, struct svi_settings *settings,
                          svi_stream **then, svs_error *err) {
    svs_code code =
        svi_settings_unpack(settings, "the settings of then", c->settings.data, c->settings.size, err);
    if (code == SVS_OK)
        svi_settings_keep_limits(settings, s->root->s);
    if (code == SVS_OK && !(*then = stream_like(s, settings, err)))
        return err->code;
    if (code != SVS_OK)
        return code;
    svi_stream_mute(*then, true);
    code = svi_stream_load(*then, c, err);
    if (code == SVS_OK)
        code = svi_engine_check_back(s->root, (*then)->root, err);
    svi_settings_adopt_live(settings, s->root->s);
    return code == SVS_OK ? svi_stream_configure(*then, settings, s->root->time, NULL, err) : code;
}

svi_stream *svi_stream_then(const svi_stream *s, const struct svi_checkpoint *c, svs_error *err) {
    svi_stream *then = NULL;
    if (c->epoch != s->epoch || strcmp(c->stream, s->root->s->stream) != 0) {
        svi_fail(err, SVS_UNAVAILABLE, "it is a state of another stream, or of another epoch of this one");
        return NULL;
    }
    struct svi_settings *settings = svi_alloc(sizeof *settings);
    svs_code code = settings ? load_then(s, c, settings, &then, err) : svi_fail_memory(err, "the settings");
    svi_free(settings);
    if (code != SVS_OK)
        svi_stream_free(&then);
    return then;
}

void svi_stream_go_back(svi_stream *s, svi_stream **then, const char *reason, double now) {
    struct svi_engine *root = svi_stream_settle(s);
    svi_engine_go_back(root, svi_stream_settle(*then), reason, now);
    svi_stream_free(then);
}
