/* The whole state of an engine as sections of a checkpoint, bit for bit.
 *
 * One function a section both saves and loads (base/archive.h), so the two cannot drift apart; the table
 * `sections` is the list. Sections marked `hashed` make the fingerprint of the state: what a journal, applied
 * again, comes to. The section `tallies` holds what differs between two runs over the same input for reasons
 * of time alone, `clock` what publish.seconds brought about, `source times` when each source was heard, and
 * `last model` the event that late subscribers get; none of them is hashed. Nor are `novelty range` and
 * `lasting`, or the fingerprints in older checkpoints would be those of no state: what they do shows in
 * p-values.
 *
 * The names of sections and fields are in the checkpoints of users: they never change. */
#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/shape.h"
#include "engine/engine_internal.h"
#include "store/key_files.h"
#include "config/settings_record.h"
#include "learner/learner_archive.h"
#include "learner/learner_prior.h"
#include "store/checkpoint_file.h"
#include "linalg/kernels.h"
#include "svmstream/svmstream.h"
#include "wire/archive_file.h"
#include "wire/archive_packed.h"

#define MOST (INT64_MAX / 4) /* of what is counted: sums of two stay in range */

/* Which model events there were. Where publish.seconds counts, two runs over the same input differ in that:
 * zeros stand for it then in what is hashed, and section `clock` has it. */
static void archive_published(struct svi_archive *a, struct svi_engine *e, bool hidden) {
    double time = hidden ? 0 : e->published_time;
    uint64_t version = hidden ? 0 : e->published_version, events = hidden ? 0 : e->seq[SVI_TOPIC_MODEL];
    svi_archive_double(a, "published time", &time);
    svi_archive_uint64(a, "published version", &version);
    svi_archive_uint64(a, "model events", &events);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    e->published_time = time;
    e->published_version = version;
    e->seq[SVI_TOPIC_MODEL] = events;
}

static void archive_core(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_double(a, "time", &e->time);
    svi_archive_double(a, "event time", &e->event_ts);
    svi_archive_int64(a, "seen", &e->kept[SVI_KEPT_SEEN], 0, MOST);
    svi_archive_int64(a, "labelled", &e->kept[SVI_KEPT_LABELLED], 0, MOST);
    svi_archive_int64(a, "next publish", &e->next_publish, -1, MOST);
    svi_archive_int64(a, "next score", &e->next_score, -1, MOST);
    archive_published(a, e, e->s->publish_seconds > 0 && !e->of->by_engine_time);
    svi_archive_uint64(a, "score events", &e->seq[SVI_TOPIC_SCORE]);
    svi_archive_uint64(a, "alert events", &e->seq[SVI_TOPIC_ALERT]);
    svi_archive_check(a, !isnan(e->time), "the time is none");
}

static void archive_shape(struct svi_archive *a, struct svi_engine *e) {
    bool carries = e->carried != NULL;
    svi_shape_archive(a, &e->schema.shape);
    svi_archive_bool(a, "carries", &carries);
    if (!svi_archive_check(a, carries == (e->carried != NULL), "the setting missing was another"))
        return;
    if (a->loading && svi_publish_reserve(e, e->schema.shape.d, a->err) != SVS_OK)
        return;
    if (carries)
        svi_archive_doubles(a, "carried", e->carried, e->schema.shape.d);
}

static void archive_schema(struct svi_archive *a, struct svi_engine *e) {
    svi_schema_archive(a, &e->schema);
}

static bool has_schema(const struct svi_engine *e) {
    return svi_schema_archived(&e->schema);
}

/* Not hashed: what was refused before may be repeated, and counts again. */
static void archive_filled(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_int64(a, "filled", &e->kept[SVI_KEPT_FILLED_MISSING], 0, MOST);
    svi_schema_missing_archive(a, &e->schema);
}

static bool has_filled(const struct svi_engine *e) {
    return e->schema.missing != NULL;
}

static void archive_learner(struct svi_archive *a, struct svi_engine *e) {
    svi_learner_archive(a, e->learner);
}

static void archive_bank(struct svi_archive *a, struct svi_engine *e) {
    svi_bank_archive(a, e->bank);
    if (a->loading && svi_archive_ok(a))
        svi_archive_check(a, svi_bank_follows(e->bank, e->learner), "the bank is not one of this learner");
}

static bool has_bank(const struct svi_engine *e) {
    return e->bank;
}

static void archive_metrics(struct svi_archive *a, struct svi_engine *e) {
    svi_metrics_archive(a, e->metrics);
}

static void archive_refit(struct svi_archive *a, struct svi_engine *e) {
    svi_refit_policy_archive(a, e->refit);
}

static void archive_novelty(struct svi_archive *a, struct svi_engine *e) {
    svi_novelty_stage_archive(a, e->novelty);
}

static void archive_range(struct svi_archive *a, struct svi_engine *e) {
    svi_novelty_stage_range_archive(a, e->novelty);
}

static void rebuild_range(struct svi_engine *e) {
    svi_novelty_stage_range_rebuild(e->novelty);
}

static void archive_desk(struct svi_archive *a, struct svi_engine *e) {
    svi_novelty_stage_desk_archive(a, e->novelty);
}

static bool has_desk(const struct svi_engine *e) {
    return svi_novelty_stage_has_desk(e->novelty);
}

static void archive_judges(struct svi_archive *a, struct svi_engine *e) {
    svi_novelty_stage_judges_archive(a, e->novelty);
}

static void archive_quality(struct svi_archive *a, struct svi_engine *e) {
    svi_quality_stage_archive(a, &e->quality_stage);
}

static bool has_quality(const struct svi_engine *e) {
    return e->quality_stage.on;
}

static void archive_rules(struct svi_archive *a, struct svi_engine *e) {
    svi_rules_archive(a, e->rules);
}

/* Not hashed: two runs over the same samples differ in when they came. */
static void archive_silence(struct svi_archive *a, struct svi_engine *e) {
    svi_rules_silence_archive(a, e->rules);
}

static bool has_rules(const struct svi_engine *e) {
    return e->rules->any;
}

static void archive_sources(struct svi_archive *a, struct svi_engine *e) {
    svi_sources_archive(a, e->of->sources);
}

/* Not hashed, so that a state of before there were these has the fingerprint that it had. */
static void archive_source_times(struct svi_archive *a, struct svi_engine *e) {
    svi_sources_times_archive(a, e->of->sources);
}

/* Counted here rather than found in the parts when figures are asked for. */
static const struct {
    int name;
    enum svi_kept_counter kept;
} counted[] = {{SVI_COUNTER_REFUSED, SVI_KEPT_REFUSED},
               {SVI_COUNTER_DUPLICATES, SVI_KEPT_DUPLICATES},
               {SVI_COUNTER_DROPPED_MISSING, SVI_KEPT_DROPPED_MISSING},
               {SVI_COUNTER_CARRIED_MISSING, SVI_KEPT_CARRIED_MISSING},
               {SVI_COUNTER_PUBLISHED_MODELS, SVI_KEPT_PUBLISHED_MODELS},
               {SVI_COUNTER_PUBLISHED_SCORES, SVI_KEPT_PUBLISHED_SCORES}};

static void archive_refused(struct svi_archive *a, struct svi_engine *e, int from, int to) {
    char name[64];
    for (int code = from; code <= to; code++) {
        snprintf(name, sizeof name, "refused.%s", svs_code_name((svs_code)code));
        svi_archive_int64(a, name, &e->refused[code], 0, MOST);
    }
}

static void archive_tallies(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_uint64(a, "stats events", &e->seq[SVI_TOPIC_STATS]);
    svi_archive_uint64(a, "error events", &e->seq[SVI_TOPIC_ERROR]);
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++)
        svi_archive_int64(a, svi_counter_table[counted[i].name].name, &e->kept[counted[i].kept], 0, MOST);
    archive_refused(a, e, 1, SVS_NUMERIC); /* the codes that checkpoints have held from the first on */
    svi_refit_policy_tallies_archive(a, e->refit);
}

static void archive_later_tallies(struct svi_archive *a, struct svi_engine *e) {
    int last = SVS_CODE_COUNT - 1;
    svi_archive_int(a, "last code", &last, SVS_NUMERIC, SVS_CODE_COUNT - 1);
    archive_refused(a, e, SVS_NUMERIC + 1, last);
}

/* Not rebuilt from the state, which samples have moved on since it was published. */
static void archive_last_model(struct svi_archive *a, struct svi_engine *e) {
    struct svi_bytes *m = &e->last_model;
    int64_t size = (int64_t)m->size;
    svi_archive_int64(a, "size", &size, 0, INT32_MAX);
    if (svi_archive_loading(a) && svi_archive_ok(a) && size > 0) {
        if (!svi_archive_check(a, size <= svi_archive_left(a), "the model is truncated"))
            return;
        if (!(m->data = svi_alloc((size_t)size))) {
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the last model");
            return;
        }
        m->size = m->capacity = (size_t)size;
    }
    svi_archive_bytes(a, "event", m->data, (int64_t)m->size);
}

/* Where engine time came from, on which no result depends until the clock is moved; and what the clock had
 * published. */
static void archive_clock(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_bool(a, "by arrival", &e->by_arrival);
    bool by_engine_time = e->of->by_engine_time;
    svi_archive_bool(a, "by engine time", &by_engine_time);
    if (svi_engine_is_root(e))
        e->of->by_engine_time = by_engine_time;
    archive_published(a, e, false);
}

/* As the program published that wrote no such section. */
static void begin_by_engine_time(struct svi_engine *e) {
    if (svi_engine_is_root(e))
        svi_engine_publish_by_engine_time(e, true);
}

/* Each alert so far was one of novelty. */
static void begin_episodes(struct svi_engine *e) {
    struct svi_episodes *n = &e->quality_stage.drift.episodes;
    n->count = n->novelty = e->novelty->alert.opened;
}

static void leave_empty(struct svi_engine *e) {
    (void)e;
}

static bool is_root(const struct svi_engine *e) {
    return svi_engine_is_root(e);
}

static bool has_keys(const struct svi_engine *e) {
    return is_root(e) && e->of->fleet;
}

static void archive_keys(struct svi_archive *a, struct svi_engine *e) {
    e->of->keyed->archive(a, e, SVI_KEYED_ONCE);
}

static bool has_key_prior(const struct svi_engine *e) {
    return has_keys(e) && e->of->keyed->has(e, SVI_KEYED_PRIOR);
}

static void archive_key_prior(struct svi_archive *a, struct svi_engine *e) {
    e->of->keyed->archive(a, e, SVI_KEYED_PRIOR);
}

static void archive_prior(struct svi_archive *a, struct svi_engine *e) {
    svi_learner_prior_archive(a, e->learner);
}

static bool has_prior(const struct svi_engine *e) {
    return svi_learner_has_prior(e->learner);
}

static void archive_groups(struct svi_archive *a, struct svi_engine *e) {
    e->of->keyed->archive(a, e, SVI_KEYED_GROUPS);
}

static void archive_key_states(struct svi_archive *a, struct svi_engine *e) {
    e->of->keyed->archive(a, e, SVI_KEYED_STATES);
}

static void archive_key_files(struct svi_archive *a, struct svi_engine *e) {
    e->of->keyed->archive(a, e, SVI_KEYED_FILES);
}

static bool has_key_states(const struct svi_engine *e) {
    return has_keys(e) && e->of->keyed->has(e, SVI_KEYED_STATES);
}

static bool has_key_files(const struct svi_engine *e) {
    return has_keys(e) && e->of->keyed->has(e, SVI_KEYED_FILES);
}

static void archive_key_totals(struct svi_archive *a, struct svi_engine *e) {
    e->of->keyed->archive(a, e, SVI_KEYED_TOTALS);
}

static void archive_key_sum(struct svi_archive *a, struct svi_engine *e) {
    e->of->keyed->archive(a, e, SVI_KEYED_SUM);
}

static bool has_shared_desk(const struct svi_engine *e) {
    return e->of->fleet && has_desk(e);
}

static void archive_shared_desk(struct svi_archive *a, struct svi_engine *e) {
    svi_novelty_stage_split_archive(a, e->novelty);
}

/* States of keys name a section by its place here: new ones come at the end. */
static const struct {
    const char *name;
    bool hashed;
    void (*archive)(struct svi_archive *, struct svi_engine *);
    /* Instead, for a checkpoint of before there was one; NULL: refused. */
    void (*absent)(struct svi_engine *);
    bool (*present)(const struct svi_engine *); /* NULL: always; else only then it is written */
    bool late;                                  /* svi_engine_save_late */
} sections[] = {
    {"engine", true, archive_core, NULL, NULL, false},
    {"shape", true, archive_shape, NULL, NULL, false},
    {"schema", true, archive_schema, leave_empty, has_schema, false},
    {"learner", true, archive_learner, NULL, NULL, false},
    {"bank", true, archive_bank, leave_empty, has_bank, false},
    {"metrics", true, archive_metrics, NULL, NULL, false},
    {"refit", true, archive_refit, NULL, NULL, false},
    {"novelty", true, archive_novelty, NULL, NULL, false},
    {"desk", true, archive_desk, leave_empty, has_desk, false},
    {"judges", true, archive_judges, leave_empty, has_desk, false},
    {"quality", true, archive_quality, begin_episodes, has_quality, false},
    {"rules", true, archive_rules, leave_empty, has_rules, false},
    {"sources", true, archive_sources, leave_empty, is_root, false},
    {"source times", false, archive_source_times, leave_empty, is_root, false},
    {"tallies", false, archive_tallies, NULL, NULL, false},
    {"later tallies", false, archive_later_tallies, leave_empty, NULL, false},
    {"last model", false, archive_last_model, leave_empty, NULL, false},
    {"clock", false, archive_clock, begin_by_engine_time, NULL, false},
    {"novelty range", false, archive_range, rebuild_range, NULL, false},
    {"silence", false, archive_silence, leave_empty, has_rules, false},
    {"filled", false, archive_filled, leave_empty, has_filled, false},
    {"shared desk", true, archive_shared_desk, leave_empty, has_shared_desk, false},
    {"alert groups", true, archive_groups, leave_empty, has_keys, false},
    {"keys", true, archive_keys, leave_empty, has_keys, false},
    {"key prior", true, archive_key_prior, leave_empty, has_key_prior, false},
    {"prior", true, archive_prior, leave_empty, has_prior, false},
    {"key totals", false, archive_key_totals, leave_empty, has_keys, false},
    {"key states", false, archive_key_states, leave_empty, has_key_states, true},
    {SVI_KEY_FILES, false, archive_key_files, leave_empty, has_key_files, true},
    {"key sum", true, archive_key_sum, leave_empty, has_keys, true},
};

#define PACKED_HEAD 5 /* bytes */
#define SECTIONS    ((int)(sizeof sections / sizeof sections[0]))
_Static_assert(sizeof sections / sizeof sections[0] <= SVI_SECTIONS_MAX, "a checkpoint has room for all");

static svs_code save_section(struct svi_engine *e, int i, struct svi_checkpoint *c, svs_error *err) {
    struct svi_archive_out out;
    if (sections[i].present && !sections[i].present(e))
        return SVS_OK;
    struct svi_section *s = &c->section[c->sections++];
    const size_t offset = c->bodies.size;
    svi_archive_out_begin(&out, &c->bodies, sections[i].name, err);
    sections[i].archive(&out.archive, e);
    svs_code code = svi_archive_out_end(&out);
    snprintf(s->name, sizeof s->name, "%s", sections[i].name);
    s->hashed = sections[i].hashed;
    s->offset = offset;
    s->size = c->bodies.size - offset;
    return code;
}

svs_code svi_engine_save_early(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err) {
    svs_code code = SVS_OK;
    svi_engine_settle(e);
    snprintf(c->program, sizeof c->program, "%s", svs_version());
    snprintf(c->isa, sizeof c->isa, "%s", svi_kernels_get(SVS_ISA_BEST)->name);
    snprintf(c->stream, sizeof c->stream, "%s", e->s->stream);
    c->epoch = e->of->epoch;
    c->bodies.size = c->settings.size = 0;
    c->sections = 0;
    for (int i = 0; i < SECTIONS && code == SVS_OK; i++)
        if (!sections[i].late)
            code = save_section(e, i, c, err);
    return code == SVS_OK ? svi_settings_pack(e->s, &c->settings, err) : code;
}

svs_code svi_engine_save_late(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < SECTIONS && code == SVS_OK; i++)
        if (sections[i].late)
            code = save_section(e, i, c, err);
    return code;
}

svs_code svi_engine_save(svi_engine *e, struct svi_checkpoint *c, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    const svs_code code = svi_engine_save_early(e, c, err);
    return code == SVS_OK ? svi_engine_save_late(e, c, err) : code;
}

/* Do the parts fit each other? */
static svs_code engine_check_loaded(struct svi_engine *e, svs_error *err) {
    svi_engine_note_held(e);
    e->out_of_memory_before = e->refused[SVS_NO_MEMORY];
    if (svs_learner_dimension(e->learner) > e->schema.shape.d)
        return svi_fail(err, SVS_DAMAGED, "the learner has more features than the stream");
    if (e->refit->have && e->refit->model.d > e->schema.shape.d)
        return svi_fail(err, SVS_DAMAGED, "the refit has more features than the stream");
    return svi_quality_stage_reserve(&e->quality_stage, svs_learner_class_count(e->learner), err);
}

/* Of each: its place in the table, the size of its body (4 bytes, little-endian), its body. */
static svs_code pack_sections(struct svi_engine *e, bool hashed, struct svi_bytes *out, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < SECTIONS && code == SVS_OK; i++) {
        struct svi_packed_out to;
        const uint8_t head[PACKED_HEAD] = {(uint8_t)i};
        if (sections[i].hashed != hashed || (sections[i].present && !sections[i].present(e)))
            continue;
        if (svi_bytes_append(out, head, sizeof head) != SVS_OK)
            return svi_fail_memory(err, "the state of a key");
        const size_t offset = out->size;
        svi_packed_out_begin(&to, out, sections[i].name, err);
        sections[i].archive(&to.archive, e);
        code = err->code;
        const size_t size = out->size - offset;
        const uint32_t stored = htole32((uint32_t)size);
        if (code == SVS_OK && size > UINT32_MAX)
            code = svi_fail(err, SVS_TOO_LARGE, "the state of a key has more than 4 GiB");
        memcpy(out->data + offset - sizeof stored, &stored, sizeof stored);
    }
    return code;
}

svs_code svi_engine_pack(struct svi_engine *e, struct svi_bytes *out, size_t *hashed, svs_error *err) {
    const size_t begin = out->size;
    svi_engine_settle(e);
    svs_code code = pack_sections(e, true, out, err);
    *hashed = out->size - begin;
    return code == SVS_OK ? pack_sections(e, false, out, err) : code;
}

/* The body of a section of a packed state; NULL: it is not there. */
static const uint8_t *packed_find(const uint8_t *at, const uint8_t *end, int section, size_t *size) {
    uint32_t stored;
    while (end - at >= PACKED_HEAD) {
        const bool found = *at == section;
        memcpy(&stored, at + 1, sizeof stored);
        at += PACKED_HEAD;
        *size = le32toh(stored);
        if (*size > (size_t)(end - at))
            return NULL;
        if (found)
            return at;
        at += *size;
    }
    return NULL;
}

svs_code svi_engine_unpack(struct svi_engine *e, const uint8_t *bytes, size_t size, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < SECTIONS && code == SVS_OK; i++) {
        struct svi_packed_in in;
        size_t body_size;
        const uint8_t *body = packed_find(bytes, bytes + size, i, &body_size);
        if (!body && !sections[i].absent)
            return svi_fail(err, SVS_DAMAGED, "a key has no section %s", sections[i].name);
        if (!body) {
            sections[i].absent(e);
            continue;
        }
        svi_packed_in_begin(&in, body, body_size, sections[i].name, err);
        sections[i].archive(&in.archive, e);
        code = svi_packed_in_end(&in);
    }
    return code == SVS_OK ? engine_check_loaded(e, err) : code;
}

size_t svi_engine_size(svi_engine *e) {
    size_t size = 0;
    svs_error err;
    const bool apart = has_keys(e) && e->of->keyed->in_files(e);
    svi_engine_settle(e);
    for (int i = 0; i < SECTIONS; i++) {
        struct svi_archive_out out;
        if (apart && sections[i].late)
            continue;
        svi_archive_out_begin(&out, NULL, sections[i].name, &err);
        if (!sections[i].present || sections[i].present(e))
            sections[i].archive(&out.archive, e);
        size += out.size;
    }
    return size;
}

svs_code svi_engine_load(svi_engine *e, const struct svi_checkpoint *c, svs_error *err) {
    svs_code code = SVS_OK;
    svs_error local;
    err = err ? err : &local;
    if (has_keys(e))
        e->of->keyed->load_from(e, c->dir);
    for (int i = 0; i < SECTIONS && code == SVS_OK; i++) {
        struct svi_archive_in in;
        const struct svi_section *s = svi_checkpoint_find(c, sections[i].name);
        if (!s && !sections[i].absent)
            return svi_fail(err, SVS_DAMAGED, "there is no section %s", sections[i].name);
        if (!s) {
            sections[i].absent(e);
            continue;
        }
        svi_archive_in_begin(&in, c->bodies.data + s->offset, s->size, sections[i].name, err);
        sections[i].archive(&in.archive, e);
        code = svi_archive_in_end(&in);
    }
    return code == SVS_OK ? engine_check_loaded(e, err) : code;
}

svs_code svi_engine_widen(svi_engine **e, const struct svi_settings *s, svs_error *err) {
    struct svi_checkpoint c = {0};
    struct svi_settings *limits = svi_alloc(sizeof *limits);
    if (!limits)
        return svi_fail_memory(err, "the settings");
    *limits = *s;
    svi_settings_adopt(limits, (*e)->s); /* what else changes is the business of svi_engine_configure */
    svs_code code = svi_engine_save(*e, &c, err);
    svi_engine *wider = code == SVS_OK ? svi_engine_new_with(limits, (*e)->of->keyed, (*e)->of->epoch,
                                                             (*e)->of->sink, (*e)->of->user, err)
                                       : NULL;
    svi_free(limits);
    if (wider)
        code = svi_engine_load(wider, &c, err);
    else if (code == SVS_OK)
        code = err->code;
    svi_checkpoint_clear(&c);
    if (code != SVS_OK) {
        svi_engine_free(&wider);
        return code;
    }
    wider->two_threads = (*e)->two_threads;
    wider->open = (*e)->open;
    wider->of->muted = (*e)->of->muted;
    wider->of->scores_all = (*e)->of->scores_all;
    wider->keeps_model = (*e)->keeps_model;
    wider->of->gaps_allowed = (*e)->of->gaps_allowed;
    wider->of->losses = (*e)->of->losses;
    svi_engine_free(e);
    *e = wider;
    return SVS_OK;
}

svs_code svi_engine_verify(svi_engine *e, double *difference, svs_error *err) {
    const svs_code code = svi_learner_verify(e->learner, difference, err);
    return code == SVS_OK && e->of->fleet ? e->of->keyed->verify(e, difference, err) : code;
}

double svi_engine_residual(svi_engine *e) {
    return svi_learner_residual(e->learner);
}

void svi_engine_rebuild(svi_engine *e) {
    svi_learner_rebuild(e->learner);
    svi_engine_note(e, SVI_NOTE_REBUILD, 0, 0);
}

/* As that of svi_engine_save, without the states of keys, of which only the sum of their hashes counts. */
svs_code svi_engine_hash(svi_engine *e, char *hash, svs_error *err) {
    struct svi_checkpoint c = {0};
    svs_error local;
    err = err ? err : &local;
    svs_code code = svi_engine_save_early(e, &c, err);
    if (code == SVS_OK && has_keys(e))
        code = e->of->keyed->add_up(e, err);
    if (code == SVS_OK && has_keys(e))
        code = save_section(e, SECTIONS - 1, &c, err);
    if (code == SVS_OK) {
        svi_checkpoint_hash(&c);
        svi_hash_text(c.hash, hash);
    }
    svi_checkpoint_clear(&c);
    return code;
}
