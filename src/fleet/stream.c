/* A stream of either kind: what exists once, however many engines it has. It also has the simpler
 * kind, a stream of one engine. The other kind, a fleet, is in fleet.c. The state is in
 * stream_save.c, figures are in stream_figures.c.
 *
 * A query or change from outside is passed to the root, the engine of the samples without a key,
 * when all threads are idle (svi_stream_settle). It then reaches the other engines by the verbs of
 * the kind (struct svi_stream_verbs). A verb that is NULL means that the root is all. Events come
 * back by the sink of the stream, which sends them unless it is muted.
 *
 * In the order of reading: svi_stream_apply_later (samples), one_take, svi_stream_command,
 * svi_stream_prepare and svi_stream_take (settings in two steps, of which only the first can fail),
 * svi_stream_settle. */
#include "fleet/stream.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/arrival_clock.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_archive.h"

/* ---- one engine */

/* The elements of a message, for one engine. Columns are matched once for the message, and not at all where
 * every element was accepted before. */
static svs_code one_take(svi_stream *s, struct svi_envelope *env, const struct svi_arrival *a,
                         struct svi_receipt *r, svs_error *err) {
    svs_code code = a->skip < a->count ? svi_engine_match_columns(s->root, env, err) : SVS_OK;
    svi_engine_ask(s->root->scratch, r->scores);
    for (int64_t i = 0; i < a->count && code == SVS_OK; i++, svi_stream_mutes_time(s, s->root->time)) {
        svs_error why;
        why.text[0] = '\0';
        if (i < a->skip) {
            svi_engine_pass_element(s->root, env, r);
            continue;
        }
        /* The first accepted sample fixes the columns: names in the settings that match none can be reported
         * only now. */
        const bool first = s->root->kept[SVI_KEPT_SEEN] == 0;
        const svs_code one = svi_engine_take_element(s->root, env, a->now, &why);
        r->accepted += one == SVS_OK;
        if (first && s->root->kept[SVI_KEPT_SEEN] > 0)
            svi_stream_check_names(s, s->root, a->now);
        if (one != SVS_OK)
            svi_engine_refuse_input(s->root, env, false, one, &why, a->now, r);
    }
    svi_engine_ask(s->root->scratch, NULL);
    return code;
}

static const struct svi_stream_section one_sections[] = {SVI_STREAM_SECTIONS};

static void one_alert(svi_stream *s, struct svi_event *event, bool alone);

static const struct svi_stream_verbs one_verbs = {.take = one_take,
                                                  .alert = one_alert,
                                                  .sections = one_sections,
                                                  .section_count =
                                                      sizeof one_sections / sizeof one_sections[0]};

static void one_sink(void *user, const struct svi_event *event) {
    svi_stream *s = user;
    if (event->topic == SVI_TOPIC_ALERT)
        svi_stream_publish_alert(s, event, s->root ? s->root->time : -INFINITY);
    else
        svi_stream_send(s, event);
}

static void one_alert(svi_stream *s, struct svi_event *event, bool alone) {
    (void)alone;
    event->seq = s->root->seq[SVI_TOPIC_ALERT]++;
    svi_stream_send(s, event);
}

/* ---- of either kind */

/* An alert is kept before it is published: what a subscriber has seen can be asked for. */
static void stream_send_alert(svi_stream *s, struct svi_event event) {
    if (svi_kept_alerts_add(s->alerts, &event) != SVS_OK)
        s->root->out_of_memory = true;
    if (!s->common.muted && !event.as.alert.kept_only)
        s->sink(s->user, &event);
}

void svi_stream_send(svi_stream *s, const struct svi_event *event) {
    if (event->topic == SVI_TOPIC_ALERT)
        stream_send_alert(s, *event);
    else if (!s->common.muted)
        s->sink(s->user, event);
}

const svi_kept_alerts *svi_stream_alerts(svi_stream *s) {
    svi_stream_settle(s);
    return s->alerts;
}

static svi_stream *stream_one(svs_error *err) {
    svi_stream *s = svi_alloc(sizeof *s);
    if (s)
        s->verbs = &one_verbs;
    else
        svi_fail_memory(err, "the stream");
    return s;
}

static svs_code stream_begin(svi_stream *s, struct svi_shared_settings *shared, svs_error *err) {
    const struct svi_engine_setup setup = {.common = &s->common, .scratch = s->scratch};
    if (s->keyed)
        return svi_fleet_begin(s, shared, &setup, err);
    s->root = svi_engine_new(shared, &setup, s->epoch, one_sink, s, err);
    return s->root ? SVS_OK : err->code;
}

svi_stream *svi_stream_new(const struct svi_settings *settings, uint64_t epoch, svi_sink *sink, void *user,
                           svs_error *err) {
    const bool keyed = svi_settings_keyed(settings);
    /* The BLAS divides sums by its number of threads: another number gives other bits. */
    openblas_set_num_threads(svi_settings_blas_threads(settings));
    svi_stream *s = keyed ? svi_fleet_new(err) : stream_one(err);
    struct svi_shared_settings *shared = s ? svi_shared_settings_new(settings, err) : NULL;
    if (!shared) {
        svi_stream_free(&s);
        return NULL;
    }
    s->keyed = s->common.keys_allowed = keyed;
    s->common.sink_numbers_alerts = true;
    s->common.units = &s->units;
    s->epoch = epoch;
    s->sink = sink;
    s->user = user;
    /* Until svi_stream_encode says otherwise all topics have a payload. */
    s->encoded = ~0u;
    s->figures.started = s->figures.rate_since = s->figures.rate = NAN;
    s->figures.smallest_p = INFINITY;
    svs_code code = svi_entry_init(&s->entry, settings->max_sources, err);
    if (code == SVS_OK && !(s->mutes = svi_mutes_new(err)))
        code = err->code;
    s->common.mutes = s->mutes;
    if (code == SVS_OK &&
        (!(s->scratch = svi_engine_scratch_new(settings, err)) || !(s->alerts = svi_kept_alerts_new(err))))
        code = err->code;
    if (code == SVS_OK)
        svi_kept_alerts_limit(s->alerts, settings->alert_keep);
    if (code == SVS_OK)
        code = stream_begin(s, shared, err);
    svi_shared_settings_leave(&shared);
    if (code != SVS_OK)
        svi_stream_free(&s);
    return s;
}

void svi_stream_free(svi_stream **s) {
    if (!*s)
        return;
    /* The fleet's keys go before the root and the scratch, which their engines use. */
    if ((*s)->verbs->clear)
        (*s)->verbs->clear(*s);
    svi_engine_free(&(*s)->root);
    svi_entry_clear(&(*s)->entry);
    svi_units_clear(&(*s)->units);
    svi_mutes_free(&(*s)->mutes);
    svi_engine_scratch_free(&(*s)->scratch);
    svi_kept_alerts_free(&(*s)->alerts);
    svi_free(*s);
    *s = NULL;
}

void svi_stream_use_threads(svi_stream *s) {
    /* A fleet has threads for its keys; one engine a second thread for novelty. */
    s->later = s->keyed;
    if (!s->later)
        s->root->two_threads = true;
}

bool svi_stream_has_threads(const svi_stream *s) {
    return s->later && s->root->s->threads > 1;
}

void svi_stream_encode(svi_stream *s, unsigned topics) {
    s->encoded = topics;
}

/* After a journal was repeated (muted) the rate starts again: what was repeated did not come within this
 * time. Lacks of memory during it are of the past as well. */
void svi_stream_mute(svi_stream *s, bool muted) {
    struct svi_engine *root = svi_stream_settle(s);
    s->common.muted = muted;
    if (muted)
        return;
    s->figures.started = s->figures.rate_since = s->figures.rate = NAN;
    s->figures.smallest_p = INFINITY;
    s->figures.rate_seen = root->kept[SVI_KEPT_SEEN];
    root->out_of_memory_before = root->refused[SVS_NO_MEMORY];
}

void svi_stream_score_all(svi_stream *s, bool all) {
    s->common.score_all = all;
}

void svi_stream_leave_scores_unnumbered(svi_stream *s) {
    s->common.scores_unnumbered = true;
}

void svi_stream_mark(svi_stream *s, int64_t mark) {
    s->common.mark = mark;
}

const struct svi_engine *svi_stream_latest(svi_stream *s) {
    const struct svi_engine *e = s->verbs->latest ? s->verbs->latest(s) : NULL;
    return e ? e : s->root;
}

/* `limits` and `context` are the settings that name columns. */
bool svi_stream_strangers(svi_stream *s, char *text, size_t size) {
    const struct svi_settings *settings = svi_stream_settle(s)->s;
    return (settings->limits[0] || settings->context[0]) &&
           svi_engine_strangers(svi_stream_latest(s), settings, text, size);
}

void svi_stream_check_names(svi_stream *s, const struct svi_engine *e, double now) {
    char reason[SVS_ERROR_TEXT];
    if (svi_engine_strangers(e, s->root->s, reason, sizeof reason))
        svi_publish_error(s->root, SVS_UNKNOWN_COLUMN, reason, NULL, 0, now);
}

/* ---- what it consists of */

const struct svi_settings *svi_stream_settings(const svi_stream *s) {
    return s->root->s;
}

uint64_t svi_stream_epoch(const svi_stream *s) {
    return s->epoch;
}

struct svi_entry *svi_stream_entry(svi_stream *s) {
    return &s->entry;
}

svi_engine *svi_stream_root(svi_stream *s) {
    return s->keyed ? svi_stream_settle(s) : s->root; /* alone it settles by itself */
}

svi_engine *svi_stream_engine(svi_stream *s, const char *key, svs_error *err) {
    return s->verbs->engine ? s->verbs->engine(s, key, err) : s->root;
}

/* Which key a command is about; "" if it names none: then it is about the stream. A label or a forget must
 * name its key, as in fleet_read. */
svs_code svi_stream_key_of(const svi_stream *s, const struct svi_command *c, char *key, svs_error *err) {
    const bool named = c->key.type != SVI_ITEM_TYPE_COUNT;
    const bool about = c->op == SVI_COMMAND_LABEL || c->op == SVI_COMMAND_FORGET;
    key[0] = '\0';
    if (named && !s->keyed)
        return svi_engine_fail_keyless(err);
    if (!named && s->keyed && about)
        return svi_fleet_fail_missing(c->op == SVI_COMMAND_LABEL, err);
    return named ? svi_item_key(&c->key, key, err) : SVS_OK;
}

svi_engine *svi_stream_engine_of(svi_stream *s, const struct svi_command *c, char *key, svs_error *err) {
    return svi_stream_key_of(s, c, key, err) == SVS_OK ? svi_stream_engine(s, key, err) : NULL;
}

/* The key of the element takes precedence over that of the command. A key that does not exist is scored by a
 * guest, an engine as a new key would have it, if there is a prior. */
svs_code svi_stream_score(svi_stream *s, const char *key, struct svi_envelope *env, struct svi_scored *out,
                          svs_error *err) {
    char own[SVS_KEY_MAX + 1];
    svs_code code = SVS_OK;
    svi_engine *e = NULL;
    *out = (struct svi_scored){.yhat = svs_none(), .predicted = -1};
    svi_envelope_peek(env);
    const bool named = svi_element_states(&env->first, SVI_KEY_KEY);
    if (named)
        code = s->keyed ? svi_element_key(&env->first, own, err) : svi_engine_fail_keyless(err);
    if (code == SVS_OK && !(e = svi_stream_engine(s, named ? own : key, err)))
        code = err->code;
    /* out->made makes svi_engine_score hand the engine to the caller, which frees it. Without a guest *err
     * still says that the key is unknown. */
    if (code == SVS_UNKNOWN_KEY)
        e = out->made = s->verbs->guest(s, err);
    if (e) {
        svi_engine_receive_shared(e, s->verbs->consult ? s->verbs->consult(s, named ? own : key, env) : NULL);
        const svs_code scored = svi_engine_score(e, env, out->made, out, err);
        svi_engine_receive_shared(e, NULL);
        return scored;
    }
    /* The element was not read: it is passed over, so that the next one can be. */
    svi_envelope_pass(env);
    return err->code;
}

svs_code svi_stream_score_row(svi_stream *s, const char *key, struct svi_message *m, struct svi_scoring *w,
                              struct svi_scored *out, svs_error *err) {
    *out = (struct svi_scored){.yhat = svs_none(), .predicted = -1};
    if (!s->keyed)
        return svi_engine_score_row(s->root, m, false, w, out, err);
    svi_engine *e = svi_stream_engine(s, key, err);
    if (!e && err->code == SVS_UNKNOWN_KEY)
        e = out->made = s->verbs->guest(s, err);
    if (!e)
        return err->code;
    svi_engine_receive_shared(e, svi_fleet_shared_peek_row(s, key, m));
    svs_code code = svi_fleet_move_row(e, m, err);
    if (code == SVS_OK)
        code = svi_engine_score_row(e, m, out->made, w, out, err);
    svi_engine_receive_shared(e, NULL);
    return code;
}

svs_code svi_stream_model_event(svi_stream *s, const char *key, svs_model *m, struct svi_event *event,
                                svs_error *err) {
    svi_engine *e = svi_stream_engine(s, key, err);
    svs_code code = e ? svi_engine_model_event(e, m, event, err) : err->code;
    event->key = s->keyed ? key : NULL;
    return code;
}

svs_code svi_stream_bank_event(svi_stream *s, const char *key, struct svi_bank_description *description,
                               struct svi_event *event, svs_error *err) {
    svi_engine *e = svi_stream_engine(s, key, err);
    svs_code code = e ? svi_engine_bank_event(e, description, event, err) : err->code;
    event->key = s->keyed ? key : NULL;
    event->epoch = s->epoch; /* asked for, it has that of the stream; published, that of the key */
    return code;
}

/* ---- apply */

static void stream_reach(svi_stream *s, enum svi_note_kind kind, double step, double now) {
    if (s->verbs->reach)
        s->verbs->reach(s, kind, step, now);
}

static void stream_end(svi_stream *s) {
    if (!s->open)
        svi_stream_settle(s);
    if (s->verbs->end)
        s->verbs->end(s);
}

void svi_stream_ask(svi_stream *s, struct svi_reply_scores *asked) {
    s->asked = asked;
}

svs_code svi_stream_apply(svi_stream *s, struct svi_envelope *env, double now, bool sourced,
                          struct svi_receipt *r) {
    struct svi_receipt scratch;
    const svs_code code = svi_stream_apply_later(s, env, now, sourced, r ? r : &scratch);
    if (s->keyed || s->asked)
        svi_stream_settle(s);
    return code;
}

/* One message: the entry checks its source and sequence number, the kind takes its elements, and the entry
 * notes what became of it. With key threads the elements may still be under way when this returns; the
 * receipt is complete after svi_stream_settle. */
svs_code svi_stream_apply_later(svi_stream *s, struct svi_envelope *env, double now, bool sourced,
                                struct svi_receipt *r) {
    struct svi_receipt scratch;
    struct svi_arrival a = {.now = now, .idle = s->root->s->sources_idle, .sourced = sourced};
    svs_error err;
    s->receipt = r;
    s->arrival = s->keyed ? s->arrival : now;
    r = r ? r : &scratch;
    r->scores = s->asked;
    svs_code code = svi_entry_begin(&s->entry, env, &a, r, &err);
    /* The last source has just left: rules that wait for rows would report a silence that is intended. */
    if (a.last_left) {
        svi_rules_pause(s->root->rules);
        stream_reach(s, SVI_NOTE_QUIET, 0, now);
    }
    if (code == SVS_OK)
        code = s->verbs->take(s, env, &a, r, &err);
    /* A refusal of the message as a whole is an event of the root, behind the events of all elements before
     * it. */
    if (code != SVS_OK)
        svi_engine_refuse_input(svi_stream_root(s), env, true, code, &err, now, r);
    svi_entry_end(&s->entry, &a, code, r);
    r->seq = svi_stream_seen(s) - 1;
    stream_end(s);
    return code;
}

svs_code svi_stream_message(svi_stream *s, struct svi_message *m, const void *bytes, size_t length,
                            double now, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    const bool first = !s->keyed && s->root->kept[SVI_KEPT_SEEN] == 0;
    s->arrival = now;
    const svs_code code = s->verbs->take_row ? s->verbs->take_row(s, m, bytes, length, now, err)
                                             : svi_engine_row(s->root, m, bytes, length, now, err);
    if (first && s->root->kept[SVI_KEPT_SEEN] > 0)
        svi_stream_check_names(s, s->root, now);
    svi_stream_mutes_time(s, s->root->time);
    stream_end(s);
    return code;
}

void svi_stream_refuse(svi_stream *s, svs_code code, const char *reason, const void *bytes, size_t length,
                       double now) {
    svi_engine_refuse(svi_stream_settle(s), code, reason, bytes, length, now);
}

double svi_stream_deadline(const svi_stream *s) {
    return fmin(fmin(svi_engine_deadline(s->root), svi_mutes_deadline(s->mutes)),
                s->verbs->deadline ? s->verbs->deadline(s) : INFINITY);
}

void svi_stream_pass(svi_stream *s, double now) {
    svi_stream_settle(s);
    s->arrival = now;
    svi_engine_pass(s->root, now);
    if (s->verbs->pass)
        s->verbs->pass(s, now);
    svi_stream_mutes_pass(s, now);
}

void svi_stream_begin(svi_stream *s, double now) {
    svi_rules_begin(s->root->rules, now);
    stream_reach(s, SVI_NOTE_BEGIN, 0, now);
}

/* The model's bits were made by another program or instruction set: it is made again, in keys when they are
 * next touched. */
void svi_stream_rebuild(svi_stream *s) {
    svi_learner_rebuild(s->root->learner);
    stream_reach(s, SVI_NOTE_REBUILD, 0, 0);
}

/* Is a time that is held ahead of the clock of this machine? *step is the most negative correction that any
 * engine needs. */
bool svi_stream_ahead(svi_stream *s, double now, double *step) {
    const bool ahead = svi_engine_ahead(svi_stream_root(s), now, step);
    const double arrived = s->verbs->arrived ? s->verbs->arrived(s) : -INFINITY;
    if (arrived > now + SVI_CLOCK_TOLERANCE)
        *step = fmin(*step, now - arrived);
    return ahead || *step < 0;
}

/* All arrival times that are held move by `step`: the differences between them, which rules and rates go by,
 * stay. */
void svi_stream_move_clock(svi_stream *s, double step, double now) {
    char reason[SVS_ERROR_TEXT] =
        "the state is later than the clock of this machine: its times were moved back";
    struct svi_engine *root = svi_stream_settle(s);
    svi_sources_move_times(s->entry.sources, -INFINITY, step); /* arrival times, whatever the engine's are */
    svi_engine_move_clock(root, step, now);
    svi_mutes_move_clock(s->mutes, step, now);
    stream_reach(s, SVI_NOTE_CLOCK, step, now);
    s->figures.started += step;
    s->figures.rate_since += step;
    /* With step 0 only time stamps of producers lay ahead of the clock; svi_engine_move_clock has brought
     * these back. */
    if (step != 0)
        snprintf(reason, sizeof reason,
                 "the clock of this machine was moved by %+.3f s after sample %" PRId64
                 ": arrival times continue from there, and the times held were moved along",
                 step, root->kept[SVI_KEPT_SEEN]);
    svi_publish_error(root, SVS_CLOCK_MOVED, reason, NULL, 0, now);
}

/* ---- command */

svs_code svi_stream_prepare(svi_stream *s, const struct svi_settings *settings,
                            struct svi_engine_change **change, svs_error *err) {
    svs_code code = svi_engine_prepare(s->root, settings, change, err);
    if (code == SVS_OK && s->verbs->reserve && (code = s->verbs->reserve(s, err)) != SVS_OK)
        svi_engine_change_free(change);
    return code;
}

/* Cannot fail: memory was reserved by svi_stream_prepare. The former settings are held until the comparison.
 */
void svi_stream_take(svi_stream *s, struct svi_engine_change **change, double now,
                     struct svi_configured *done) {
    struct svi_engine *root = svi_stream_settle(s);
    struct svi_shared_settings *before = svi_shared_settings_use(root->shared);
    svi_engine_take(root, change, now, done);
    svi_kept_alerts_limit(s->alerts, root->s->alert_keep);
    stream_reach(s, SVI_NOTE_CONFIG, 0, now);
    if (strcmp(before->s.limits, root->s->limits) != 0 || strcmp(before->s.context, root->s->context) != 0)
        svi_stream_check_names(s, svi_stream_latest(s), now);
    svi_shared_settings_leave(&before);
}

svs_code svi_stream_configure(svi_stream *s, const struct svi_settings *settings, double now,
                              struct svi_configured *done, svs_error *err) {
    struct svi_engine_change *change;
    struct svi_configured unread;
    svs_error local;
    done = done ? done : &unread;
    done->samples = -1;
    SVI_TRY(svi_stream_prepare(s, settings, &change, err ? err : &local));
    svi_stream_take(s, &change, now, done);
    return SVS_OK;
}

/* All or nothing: a copy is changed and tried, and the settings of the process follow only when the stream
 * has taken them. */
static svs_code command_config(svi_stream *s, const struct svi_command *c, struct svi_settings *settings,
                               double now, int *count, svs_error *err) {
    struct svi_configured done = {.samples = -1};
    struct svi_settings *changed = svi_alloc(sizeof *changed);
    if (!changed)
        return svi_fail_memory(err, "the settings");
    *changed = *settings;
    svs_code code = svi_settings_change(changed, &c->set, c->bytes + c->size, err);
    if (code == SVS_OK)
        code = svi_stream_configure(s, changed, now, &done, err);
    if (code == SVS_OK)
        svi_settings_adopt(settings, changed);
    if (count)
        *count = (int)done.samples;
    svi_free(changed);
    return code;
}

svs_code svi_stream_command_engine(svi_stream *s, svi_engine *e, const struct svi_command *c,
                                   struct svi_settings *settings, double now, int *count, svs_error *err) {
    if (c->op == SVI_COMMAND_CONFIG)
        return command_config(s, c, settings, now, count, err);
    if (c->op != SVI_COMMAND_PUBLISH)
        return svi_engine_command(e, c, settings, now, count, err);
    svi_engine_publish_model(e, true);
    svi_stream_publish_stats(s, e, now);
    return SVS_OK;
}

svs_code svi_stream_command(svi_stream *s, const struct svi_command *c, struct svi_settings *settings,
                            double now, int *count, svs_error *err) {
    char key[SVS_KEY_MAX + 1];
    if (c->op == SVI_COMMAND_MUTE || c->op == SVI_COMMAND_UNMUTE) {
        svi_stream_root(s); /* settles */
        return svi_stream_mutes_command(s, c, now, err);
    }
    svs_code code = svi_stream_key_of(s, c, key, err);
    svi_stream_root(s);
    if (code != SVS_OK)
        return code;
    if (c->op == SVI_COMMAND_DROP && !s->verbs->command)
        return svi_fail(err, SVS_BAD_KEY, "the stream has no keys to drop");
    if (!key[0] && c->op != SVI_COMMAND_DROP)
        return svi_stream_command_engine(s, s->root, c, settings, now, count, err);
    if (c->op == SVI_COMMAND_CONFIG || c->op == SVI_COMMAND_LOAD || c->op == SVI_COMMAND_REFIT)
        return svi_fail(err, SVS_NOT_SUPPORTED, "%s is for the stream as a whole: leave out key",
                        svi_command_name(c->op));
    return s->verbs->command(s, key, c, now, count, err);
}

svs_code svi_stream_sums(svi_stream *s, struct svi_sums *r, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    return f ? svi_fleet_sums_record(f, r, err) : svi_engine_sums(svi_stream_root(s), r, err);
}

uint64_t svi_stream_sums_mark(svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    return f ? svi_fleet_sums_mark(f) : svi_engine_sums_mark(svi_stream_root(s));
}

void svi_stream_publish_due(svi_stream *s, double now) {
    svi_engine_publish_model(svi_stream_root(s), false);
    svi_stream_publish_stats(s, NULL, now);
}

/* ---- settle */

svi_engine *svi_stream_settle(svi_stream *s) {
    if (s->verbs->settle)
        s->verbs->settle(s);
    svi_engine_settle(s->root);
    return s->root;
}

void svi_stream_leave_open(svi_stream *s, bool open) {
    if (!open)
        svi_stream_settle(s);
    s->open = open;
}

uint64_t svi_stream_taken(const svi_stream *s) {
    return s->root->queue ? s->root->queue->taken : 0;
}

uint64_t svi_stream_published(const svi_stream *s) {
    return s->root->queue ? s->root->queue->published : 0;
}
