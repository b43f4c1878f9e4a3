/* The whole state of an engine as sections of a checkpoint, bit for bit.
 *
 * One function for each section both saves and loads it (base/archive.h), so the two cannot
 * diverge; the table `sections` lists them. Those marked `hashed` form the fingerprint of the
 * state, which a replay of the journal must reproduce. What may differ between two runs over the
 * same input is not hashed:
 *  - counts of refusals, which may be repeated (`tallies`, `filled`);
 *  - effects of publish.seconds (`clock`);
 *  - times at which sensors were last seen (`silence`);
 *  - the event that late subscribers get (`last model`).
 *
 * A checkpoint has named sections. The state of a key is packed without names, by place in the
 * table, so new sections are added at the end. Another section, field or order of them is another
 * layout (store/state_dir.h). */
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

/* Number and version of the model events. With publish.seconds they differ between two runs over the same
 * input: then the hashed section has zeros (`hidden`), and section `clock`, which is read later, the numbers.
 */
static void archive_published(struct svi_archive *a, struct svi_engine *e, bool hidden) {
    uint64_t version = hidden ? 0 : e->published_version, events = hidden ? 0 : e->seq[SVI_TOPIC_MODEL];
    svi_archive_uint64(a, "published version", &version);
    svi_archive_uint64(a, "model events", &events);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    e->published_version = version;
    e->seq[SVI_TOPIC_MODEL] = events;
}

static void archive_core(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_double(a, "time", &e->time);
    svi_archive_double(a, "event time", &e->event_ts);
    svi_archive_int64(a, "seen", &e->kept[SVI_KEPT_SEEN], 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "labelled", &e->kept[SVI_KEPT_LABELLED], 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "next publish", &e->next_publish, -1, SVI_COUNT_MAX);
    svi_archive_int64(a, "next score", &e->next_score, -1, SVI_COUNT_MAX);
    archive_published(a, e, e->s->publish_seconds > 0);
    svi_archive_uint64(a, "score events", &e->seq[SVI_TOPIC_SCORE]);
    svi_archive_uint64(a, "alert events", &e->seq[SVI_TOPIC_ALERT]);
    svi_archive_check(a, !isnan(e->time), "the time is not valid");
}

static void archive_shape(struct svi_archive *a, struct svi_engine *e) {
    bool carries = e->carried != NULL;
    svi_shape_archive(a, &e->schema.shape);
    svi_archive_bool(a, "carries", &carries);
    if (!svi_archive_check(a, carries == (e->carried != NULL), "the setting missing was different"))
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

/* Not hashed: elements that were refused may be sent again and are counted twice then. */
static void archive_filled(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_int64(a, "filled", &e->kept[SVI_KEPT_FILLED_MISSING], 0, SVI_COUNT_MAX);
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

static bool has_stack(const struct svi_engine *e) {
    return e->stack;
}

/* ---- what watches the learner: quality, refits, novelty, rules. Each part archives itself. */

static void archive_metrics(struct svi_archive *a, struct svi_engine *e) {
    svi_metrics_archive(a, e->quality_stage.metrics);
}

static void archive_refit(struct svi_archive *a, struct svi_engine *e) {
    svi_refit_policy_archive(a, e->refit);
}

static void archive_novelty(struct svi_archive *a, struct svi_engine *e) {
    svi_alert_stage_archive(a, e->novelty);
}

static void archive_policy(struct svi_archive *a, struct svi_engine *e) {
    svi_alert_stage_policy_archive(a, e->novelty);
}

static bool has_policy(const struct svi_engine *e) {
    return svi_alert_stage_has_policy(e->novelty);
}

static void archive_detectors(struct svi_archive *a, struct svi_engine *e) {
    svi_alert_stage_detectors_archive(a, e->novelty);
}

/* The numbers of alerts go with quality: a verdict names an alert by them, also after a restart. */
static void archive_quality(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_int64(a, "episodes", &e->episodes.count, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "episode of novelty", &e->episodes.novelty, 0, SVI_COUNT_MAX);
    svi_archive_bool(a, "novelty is open", &e->episodes.open);
    svi_archive_int(a, "feature of novelty", &e->episodes.feature, -1, INT32_MAX / 2);
    svi_archive_int64(a, "episode of quality", &e->episodes.quality, 0, SVI_COUNT_MAX);
    svi_quality_stage_archive(a, &e->quality_stage);
}

static void archive_rules(struct svi_archive *a, struct svi_engine *e) {
    svi_rules_archive(a, e->rules);
}

/* Not hashed: for how long a sensor was silent depends on the clock. */
static void archive_silence(struct svi_archive *a, struct svi_engine *e) {
    svi_rules_silence_archive(a, e->rules);
}

static bool has_rules(const struct svi_engine *e) {
    return e->rules->any;
}

static void archive_refused(struct svi_archive *a, struct svi_engine *e) {
    char name[64];
    for (int code = SVS_OK + 1; code < SVS_CODE_COUNT; code++) {
        if (svi_code_is_remark((svs_code)code))
            continue;
        snprintf(name, sizeof name, "refused.%s", svs_code_name((svs_code)code));
        svi_archive_int64(a, name, &e->refused[code], 0, SVI_COUNT_MAX);
    }
}

/* Not hashed: how often something was refused or published depends on what was sent twice. */
static void archive_tallies(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_uint64(a, "stats events", &e->seq[SVI_TOPIC_STATS]);
    svi_archive_uint64(a, "error events", &e->seq[SVI_TOPIC_ERROR]);
    for (int i = SVI_KEPT_REFUSED; i < SVI_KEPT_COUNT; i++)
        if (i != SVI_KEPT_FILLED_MISSING) /* archive_filled */
            svi_archive_int64(a, svi_counter_table[svi_kept_place(i)].name, &e->kept[i], 0, SVI_COUNT_MAX);
    archive_refused(a, e);
    svi_refit_policy_tallies_archive(a, e->refit);
}

/* Kept as bytes: the state has changed since that event was published and cannot reproduce it. */
static void archive_last_model(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_block(a, "size", "event", &e->last_model, INT32_MAX, "the model is truncated",
                      "no memory for the last model");
}

/* Not hashed: the origin of engine time, which matters only when the clock is moved, and the numbers of
 * events that the clock caused. */
static void archive_clock(struct svi_archive *a, struct svi_engine *e) {
    svi_archive_bool(a, "by arrival", &e->by_arrival);
    archive_published(a, e, false);
}

/* The scales of the columns exist only under the setting `outlier`; a state with them cannot be loaded
 * without it. */
static void archive_outliers(struct svi_archive *a, struct svi_engine *e) {
    if (!svi_archive_check(a, e->outliers, "the setting outlier was different"))
        return;
    svi_outliers_archive(a, e->outliers);
    svi_archive_check(a, e->outliers->d <= e->schema.shape.d,
                      "there are scales of more columns than the stream has");
}

static bool has_outliers(const struct svi_engine *e) {
    return e->outliers;
}

static void archive_prior(struct svi_archive *a, struct svi_engine *e) {
    svi_learner_prior_archive(a, e->learner);
}

static bool has_prior(const struct svi_engine *e) {
    return svi_learner_has_prior(e->learner);
}

/* ---- of one engine among many: the prior of all keys, its share of the budget */

static bool has_shared_policy(const struct svi_engine *e) {
    return e->off && has_policy(e);
}

static void archive_shared_policy(struct svi_archive *a, struct svi_engine *e) {
    svi_budget_share_archive(a, &e->novelty->policy.budget);
}

/* Units belong to the whole stream. Not hashed: they are found by the reader of the input, not in the
 * samples. */
static void archive_units(struct svi_archive *a, struct svi_engine *e) {
    svi_units_archive(a, e->schema.o.units, e->schema.shape.max_features);
}

static bool has_units(const struct svi_engine *e) {
    return !e->off && e->schema.o.units && e->schema.o.units->count > 0;
}

/* Packed states of keys identify a section by its index here. Loading follows this order: the shape gives the
 * columns before the learner, and the learner the classes before what is indexed by them. */
static const struct {
    const char *name;
    bool hashed;
    void (*archive)(struct svi_archive *, struct svi_engine *);
    bool (*present)(const struct svi_engine *); /* is it written? NULL: always */
    bool grows; /* a new engine lacks it until samples fill it: may be absent when loading */
} sections[] = {
    {"engine", true, archive_core, NULL, false},
    {"shape", true, archive_shape, NULL, false},
    {"schema", true, archive_schema, has_schema, true},
    {"learner", true, archive_learner, NULL, false},
    {"bank", true, archive_bank, has_bank, false},
    {"metrics", true, archive_metrics, NULL, false},
    {"refit", true, archive_refit, NULL, false},
    {"novelty", true, archive_novelty, NULL, false},
    {"desk", true, archive_policy, has_policy, false},
    {"judges", true, archive_detectors, has_policy, false},
    {"quality", true, archive_quality, NULL, false},
    {"rules", true, archive_rules, has_rules, false},
    {"tallies", false, archive_tallies, NULL, false},
    {"last model", false, archive_last_model, NULL, false},
    {"clock", false, archive_clock, NULL, false},
    {"silence", false, archive_silence, has_rules, false},
    {"filled", false, archive_filled, has_filled, true},
    {"shared desk", true, archive_shared_policy, has_shared_policy, false},
    {"prior", true, archive_prior, has_prior, true},
    {"outliers", true, archive_outliers, has_outliers, false},
    {"units", false, archive_units, has_units, true},
    {"stack", true, svi_engine_stack_archive, has_stack, false},
};

#define PACKED_HEAD 5 /* bytes: index, size of the body */
#define SECTIONS    ((int)(sizeof sections / sizeof sections[0]))
_Static_assert(sizeof sections / sizeof sections[0] <= SVI_SECTIONS_MAX, "a checkpoint holds all");

/* Must this section be there when loading? */
static bool section_needed(const struct svi_engine *e, int i) {
    return !sections[i].grows && (!sections[i].present || sections[i].present(e));
}

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

svs_code svi_engine_save(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err) {
    svi_engine_settle(e);
    for (int i = 0; i < SECTIONS; i++)
        SVI_TRY(save_section(e, i, c, err));
    return SVS_OK;
}

/* After loading: refreshes what is derived from the state, and checks that the parts fit each other, since
 * each section could only check itself. */
static svs_code engine_check_loaded(struct svi_engine *e, svs_error *err) {
    svi_engine_note_held(e);
    svi_engine_capacity_changed(e);
    e->out_of_memory_before = e->refused[SVS_NO_MEMORY];
    if (svs_learner_dimension(e->learner) > e->schema.shape.d)
        return svi_fail(err, SVS_DAMAGED, "the learner has more features than the stream");
    if (e->refit->have && e->refit->model.d > e->schema.shape.d)
        return svi_fail(err, SVS_DAMAGED, "the refit has more features than the stream");
    const int classes = svs_learner_class_count(e->learner);
    return svi_quality_stage_reserve(&e->quality_stage, classes, err);
}

/* Appends the sections that are (not) hashed: for each its index in the table (1 byte), the size of its body
 * (4 bytes, little-endian), and the body. The size is filled in afterwards. */
static svs_code pack_sections(struct svi_engine *e, bool hashed, struct svi_bytes *out, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < SECTIONS && code == SVS_OK; i++) {
        struct svi_archive_out to;
        const uint8_t head[PACKED_HEAD] = {(uint8_t)i};
        if (sections[i].hashed != hashed || (sections[i].present && !sections[i].present(e)))
            continue;
        if (svi_bytes_append(out, head, sizeof head) != SVS_OK)
            return svi_fail_memory(err, "the state of a key");
        /* The head is there before the body: its size field, the last four bytes, is filled in below. */
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

/* The body of a section of a packed state; NULL: absent, or truncated. */
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
        struct svi_archive_in in;
        size_t body_size;
        const uint8_t *body = packed_find(bytes, bytes + size, i, &body_size);
        if (!body && section_needed(e, i))
            return svi_fail(err, SVS_DAMAGED, "a key has no section %s", sections[i].name);
        if (!body)
            continue;
        svi_packed_in_begin(&in, body, body_size, sections[i].name, err);
        sections[i].archive(&in.archive, e);
        code = svi_archive_in_end(&in);
    }
    return code == SVS_OK ? engine_check_loaded(e, err) : code;
}

size_t svi_engine_size(struct svi_engine *e) {
    size_t size = 0;
    svs_error err;
    svi_engine_settle(e);
    for (int i = 0; i < SECTIONS; i++) {
        struct svi_archive_out out;
        svi_archive_out_begin(&out, NULL, sections[i].name, &err);
        if (!sections[i].present || sections[i].present(e))
            sections[i].archive(&out.archive, e);
        size += out.size;
    }
    return size;
}

svs_code svi_engine_load(struct svi_engine *e, const struct svi_checkpoint *c, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < SECTIONS && code == SVS_OK; i++) {
        struct svi_archive_in in;
        const struct svi_section *s = svi_checkpoint_find(c, sections[i].name);
        if (!s && section_needed(e, i))
            return svi_fail(err, SVS_DAMAGED, "there is no section %s", sections[i].name);
        if (!s)
            continue;
        svi_archive_in_begin(&in, c->bodies.data + s->offset, s->size, sections[i].name, err);
        sections[i].archive(&in.archive, e);
        code = svi_archive_in_end(&in);
    }
    return code == SVS_OK ? engine_check_loaded(e, err) : code;
}

double svi_engine_residual(svi_engine *e) {
    return svi_learner_residual(e->learner);
}
