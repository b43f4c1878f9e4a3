/* The engine: one stream's life without any I/O. What comes in, in this file; what goes out, in
 * engine_events.c.
 *
 * An envelope is entered (its number held against the table of sources), then each of its elements goes the
 * same way alone, however it was framed: decoded into the row of the shape, checked (nothing changes until
 * all checks have passed and all room is made), scored and learned by the learner, judged by the novelty
 * stage, counted, published. The children return what has changed; only the engine publishes.
 *
 * Two invariants: a refused element changes nothing but the counters, and everything that happens is a
 * function of the calls and their `now`, so that a journal that repeats the calls repeats the state bit for
 * bit.
 *
 * Read engine_learn and engine_accept first, then svi_engine_apply; commands and refits follow. */
#include "engine/engine.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "config/settings_change.h"
#include "config/settings_record.h"
#include "engine/engine_internal.h"
#include "fleet/key_table.h"
#include "learner/learner_held.h"
#include "learner/learner_prior.h"
#include "learner/scratch.h"
#include "wire/decode.h"

struct svi_settings *svi_held_settings_new(const struct svi_settings *s, svs_error *err) {
    struct svi_held_settings *held = svi_alloc(sizeof *held);
    if (!held) {
        svi_fail_memory(err, "the settings");
        return NULL;
    }
    held->s = *s;
    held->users = 1;
    return &held->s;
}

struct svi_settings *svi_held_settings_use(struct svi_settings *s) {
    ((struct svi_held_settings *)s)->users++;
    return s;
}

void svi_held_settings_leave(struct svi_settings **s) {
    struct svi_held_settings *held = (struct svi_held_settings *)*s;
    if (held && --held->users == 0)
        svi_free(held);
    *s = NULL;
}

struct svi_engine_scratch *svi_engine_scratch_new(const struct svi_settings *s, svs_error *err) {
    struct svi_engine_scratch *scratch = svi_alloc(sizeof *scratch);
    if (!scratch)
        svi_fail_memory(err, "the room of a thread");
    else if (svi_settings_keyed(s) &&
             (!(scratch->learner = svi_learner_scratch_new(err)) ||
              svi_shape_room_init(&scratch->row, (int)s->max_features, err) != SVS_OK))
        svi_engine_scratch_free(&scratch);
    return scratch;
}

void svi_engine_scratch_free(struct svi_engine_scratch **s) {
    if (*s) {
        svi_learner_scratch_free(&(*s)->learner);
        svi_shape_room_clear(&(*s)->row);
        svi_novelty_rooms_clear(&(*s)->novelty);
    }
    svi_free(*s);
    *s = NULL;
}

svs_code svi_engine_use_scratch(struct svi_engine *e, struct svi_engine_scratch *s, svs_error *err) {
    if (e->scratch == s)
        return SVS_OK;
    svs_code code = svi_learner_use_scratch(e->learner, s->learner, err);
    if (code == SVS_OK)
        code = svi_novelty_stage_use_rooms(e->novelty, &s->novelty, err);
    if (code != SVS_OK)
        return code;
    e->scratch = s;
    svi_shape_use_room(&e->schema.shape, &s->row);
    return SVS_OK;
}

void svi_engine_rest(struct svi_engine *e) {
    svi_learner_rest(e->learner);
    svi_novelty_stage_rest(e->novelty);
}

static void stream_free(struct svi_stream **of) {
    if (!*of)
        return;
    svi_sources_free(&(*of)->sources);
    svi_engine_scratch_free(&(*of)->scratch);
    svi_free(*of);
    *of = NULL;
}

static void engine_free_refit(struct svi_engine *e) {
    if (!e->refit || e->refit == &e->of->no_refit)
        return;
    svi_refit_policy_free(e->refit);
    svi_free(e->refit);
}

void svi_engine_free(svi_engine **e) {
    if (!*e)
        return;
    struct svi_stream *of = svi_engine_is_root(*e) || !(*e)->of->root ? (*e)->of : NULL;
    if (of && of->fleet)
        of->keyed->end(of);
    svi_novelty_queue_free(&(*e)->queue); /* first: it may be at work */
    svs_learner_free(&(*e)->learner);
    svi_metrics_free(&(*e)->metrics);
    engine_free_refit(*e);
    svi_engine_free_novelty(*e);
    svi_quality_stage_free(&(*e)->quality_stage);
    svi_engine_free_rules(*e);
    svi_schema_clear(&(*e)->schema);
    svi_columns_clear(&(*e)->columns);
    svi_free((*e)->carried);
    svi_bank_free(&(*e)->bank);
    svi_free((*e)->host_scores);
    svi_free((*e)->gaps);
    svi_free((*e)->names);
    svi_free((*e)->means);
    svi_bytes_clear(&(*e)->columns_of_model);
    svi_bytes_clear(&(*e)->last_model);
    svi_bank_weights_clear(&(*e)->bank_weights);
    svi_held_settings_leave(&(*e)->s);
    svi_free(*e);
    stream_free(&of);
    *e = NULL;
}

svs_code svi_engine_new_carried(double **carried, int max_features, svs_error *err) {
    *carried = svi_alloc_array((size_t)max_features, sizeof **carried);
    if (!*carried)
        return svi_fail_memory(err, "the last values of the features");
    for (int j = 0; j < max_features; j++)
        (*carried)[j] = NAN;
    return SVS_OK;
}

svs_code svi_engine_new_novelty(const struct svi_engine *e, const struct svi_settings *s,
                                struct svi_novelty_stage **made, svs_error *err) {
    if (e->of->root && s->novelty == SVI_NOVELTY_NONE) {
        *made = &e->of->no_novelty;
        return SVS_OK;
    }
    *made = svi_alloc_plain(sizeof **made);
    if (!*made)
        return svi_fail_memory(err, "the novelty of a stream");
    svs_code code = svi_novelty_stage_new(*made, s, err);
    if (svi_settings_keyed(s))
        svi_novelty_stage_share_rooms(*made, &e->scratch->novelty);
    return code;
}

svs_code svi_engine_new_rules(const struct svi_engine *e, const struct svi_settings *s,
                              struct svi_rules **made, svs_error *err) {
    struct svi_rules none;
    if (svi_settings_keyed(s))
        svi_rules_init_lean(&none);
    else
        svi_rules_init(&none);
    svi_rules_configure(&none, s);
    if (e->of->root && !none.any) {
        *made = &e->of->no_rules;
        return SVS_OK;
    }
    *made = svi_alloc_plain(sizeof **made);
    if (!*made)
        return svi_fail_memory(err, "the rules of a stream");
    **made = none;
    return SVS_OK;
}

/* The models of keys are exact at any time. */
static svs_code engine_new_refit(struct svi_engine *e, svs_error *err) {
    e->refit = e->of->root ? &e->of->no_refit : svi_alloc(sizeof *e->refit);
    if (!e->refit)
        return svi_fail_memory(err, "the refit");
    return e->of->root ? SVS_OK : svi_refit_policy_new(e->refit, e->s, err);
}

void svi_engine_free_novelty(struct svi_engine *e) {
    if (!e->novelty || e->novelty == &e->of->no_novelty)
        return;
    svi_novelty_stage_free(e->novelty);
    svi_free(e->novelty);
}

void svi_engine_free_rules(struct svi_engine *e) {
    if (!e->rules || e->rules == &e->of->no_rules)
        return;
    svi_rules_clear(e->rules);
    svi_free(e->rules);
}

/* Of fixed columns it is known from the start which are never scaled. */
static void engine_unscale(struct svi_engine *e) {
    for (int j = 0; j < e->schema.shape.d; j++)
        if (svi_schema_unscaled(&e->schema, j))
            svi_engine_leave_unscaled(e, j);
}

static bool engine_new_bank(struct svi_engine *e, const svs_options *host, svs_error *err) {
    e->host_scores = svi_alloc_array((size_t)host->max_classes, sizeof *e->host_scores);
    if (!e->host_scores)
        svi_fail_memory(err, "the scores of a bank");
    return e->host_scores && (e->bank = svi_engine_make_bank(e->s, host, e->schema.shape.d, err));
}

svi_metrics *svi_engine_new_metrics(const struct svi_settings *s, svs_error *err) {
    return (svi_settings_keyed(s) ? svi_metrics_new_lean : svi_metrics_new)(
        (svs_task)s->task, svi_quality_window(s), (int)s->max_classes, err);
}

/* A key will probably have the columns of the one that began before it. */
static int engine_columns_of_others(const struct svi_engine *e) {
    return e->of->columns > e->schema.shape.d ? e->of->columns : e->schema.shape.d;
}

static bool engine_new_parts(struct svi_engine *e, svs_error *err) {
    svs_options o;
    struct svi_class_weights weights;
    if (svi_settings_learning(e->s, &weights, &o, err) != SVS_OK)
        return false;
    struct svi_schema_options schema;
    svi_settings_schema(e->s, &schema);
    schema.room = svi_settings_keyed(e->s) ? &e->scratch->row : NULL;
    svi_columns_init(&e->columns, (int)e->s->max_features);
    return svi_schema_init(&e->schema, &schema, err) == SVS_OK &&
           (e->s->missing != SVI_MISSING_CARRY ||
            svi_engine_new_carried(&e->carried, (int)e->s->max_features, err) == SVS_OK) &&
           svi_publish_reserve(e, e->schema.shape.d, err) == SVS_OK && engine_new_refit(e, err) == SVS_OK &&
           svi_engine_new_novelty(e, e->s, &e->novelty, err) == SVS_OK &&
           svi_engine_new_rules(e, e->s, &e->rules, err) == SVS_OK &&
           svi_quality_stage_new(&e->quality_stage, e->s, err) == SVS_OK &&
           (e->learner = e->of->root ? svi_learner_new_for(&o, e->schema.shape.d, engine_columns_of_others(e),
                                                           e->scratch->learner, err)
                                     : svi_learner_new(&o, e->schema.shape.d, NULL, err)) &&
           (e->s->method != SVI_METHOD_AUTO || engine_new_bank(e, &o, err)) &&
           (e->metrics = svi_engine_new_metrics(e->s, err));
}

/* `held` is a user's of his own, and is left when it fails. */
static struct svi_engine *engine_make(struct svi_settings *held, struct svi_stream *of, const char *key,
                                      svs_error *err) {
    struct svi_engine *e = svi_alloc_plain(sizeof *e);
    if (!e) {
        svi_fail_memory(err, "the engine");
        svi_held_settings_leave(&held);
        if (!of->root)
            stream_free(&of);
        return NULL;
    }
    e->s = held;
    e->of = of;
    e->scratch = of->scratch;
    e->key = key;
    e->time = -DBL_MAX;
    e->next_publish = held->publish_every > 0 ? held->publish_every : -1;
    e->next_score = held->scores > 0 ? held->scores : -1;
    if (engine_new_parts(e, err)) {
        svi_learner_relax(e->learner, e->bank);
        svi_engine_repeat_old(e);
        svi_metrics_leave_loss(e->metrics, e->quality_stage.on);
        engine_unscale(e);
        e->published_version = svs_learner_version(e->learner);
    } else {
        svi_engine_free(&e);
    }
    return e;
}

struct svi_engine *svi_engine_new_key(struct svi_engine *root, struct svi_settings *s, const char *key,
                                      svs_error *err) {
    return engine_make(svi_held_settings_use(s), root->of, key, err);
}

static struct svi_stream *stream_new(const struct svi_settings *s, svs_error *err) {
    struct svi_stream *of = svi_alloc(sizeof *of);
    if (!of) {
        svi_fail_memory(err, "the stream");
        return NULL;
    }
    of->name_length = strlen(s->stream);
    of->started = of->rate_since = of->rate = NAN;
    of->encoded = ~0u;
    svi_rules_init(&of->no_rules);
    if (!(of->scratch = svi_engine_scratch_new(s, err)) ||
        !(of->sources = svi_sources_new(s->max_sources, err)))
        stream_free(&of);
    return of;
}

svi_engine *svi_engine_new_with(const struct svi_settings *s, const struct svi_keyed_calls *keyed,
                                uint64_t epoch, svi_sink *sink, void *user, svs_error *err) {
    const bool has_keys = keyed && svi_settings_keyed(s);
    struct svi_settings *held = svi_held_settings_new(s, err);
    struct svi_stream *of = held ? stream_new(s, err) : NULL;
    openblas_set_num_threads(svi_settings_blas_threads(s)); /* another number gives other bits */
    if (!of) {
        svi_held_settings_leave(&held);
        return NULL;
    }
    of->epoch = epoch;
    of->sink = sink;
    of->user = user;
    of->keyed = keyed;
    struct svi_engine *e = engine_make(held, of, has_keys ? "" : NULL, err);
    if (!e)
        return NULL;
    of->root = e;
    if (has_keys && keyed->begin(e, err) != SVS_OK)
        svi_engine_free(&e);
    return e;
}

double svi_engine_state_memory(const struct svi_settings *s, int d, int classes) {
    svs_options o;
    struct svi_class_weights weights;
    svi_settings_learning(s, &weights, &o, NULL);
    const double column =
        2 * sizeof(double) + 2 * sizeof(uint32_t) + (s->missing == SVI_MISSING_CARRY ? sizeof(double) : 0);
    const double name = 2 * sizeof(char *) + SVS_NAME_MAX; /* in the registry, and as models point to it */
    struct svi_schema_options schema;
    svi_settings_schema(s, &schema);
    return sizeof(struct svi_engine) + sizeof(struct svi_held_settings) + svi_schema_memory(&schema, d) +
           svs_learner_memory(&o, d, classes) + svi_engine_bank_memory(s, &o, d, classes) +
           svi_metrics_memory(o.task, svi_quality_window(s), o.max_classes, svi_settings_keyed(s)) +
           svi_sources_memory(s->max_sources) + svi_novelty_stage_memory(s, d) +
           svi_quality_stage_memory(s, d, classes) + svi_rules_memory(s, d) +
           (double)s->max_features * column + d * name;
}

#define BLOCK_HEAD 16 /* bytes that the heap adds to a block, about */

double svi_engine_key_memory(const struct svi_settings *s, int d, int contexts, int classes) {
    svs_options o;
    struct svi_class_weights weights;
    struct svi_rules rules;
    int blocks = 20;
    svi_settings_learning(s, &weights, &o, NULL);
    svi_rules_init_lean(&rules);
    svi_rules_configure(&rules, s);
    const bool novelty = s->novelty != SVI_NOVELTY_NONE, desk = strcmp(s->alert_budget, "none") != 0;
    svs_options few = o; /* of a bank, too, what is of classes comes with them */
    few.max_classes = classes;
    blocks += s->key_prior > 0 ? 2 : 0;
    blocks += (novelty ? 26 : 0) + (novelty && desk ? 16 : 0) + (rules.any ? 6 : 0);
    return sizeof(struct svi_engine) + sizeof(struct svi_key_entry) + SVS_KEY_MAX / 4 +
           svi_learner_lean_memory(&o, d, classes) - (classes + 1.0) * SVS_NAME_MAX +
           svi_engine_bank_memory(s, &few, d, classes) + (s->key_prior > 0 ? svi_learner_prior_memory(d) : 0) +
           svi_metrics_memory(o.task, svi_quality_window(s), o.max_classes, true) +
           svi_quality_stage_memory(s, d, classes) - sizeof(struct svi_quality_stage) + d * sizeof(char *) +
           svi_novelty_stage_lean_memory(s, d, contexts) +
           (rules.any ? sizeof rules + svi_rules_memory(s, d) : 0) + blocks * BLOCK_HEAD +
           (s->missing == SVI_MISSING_CARRY ? (double)s->max_features * sizeof(double) : 0);
}

double svi_engine_memory(const struct svi_settings *s, int d, int classes) {
    return svi_engine_state_memory(s, d, classes) + svi_refit_memory(s, d, classes) +
           svi_novelty_queue_memory(s, d, classes);
}

/* ---- what a message must meet before the learner sees it; nothing here changes anything but x and err */

static svs_code check_origin(const struct svi_engine *e, const struct svi_message *m, double now,
                             svs_error *err) {
    char shown[80];
    if (m->stream.kind == SVS_STR && (m->stream.length != e->of->name_length ||
                                      memcmp(m->stream.as.s, e->s->stream, e->of->name_length) != 0))
        return svi_fail(err, SVS_OTHER_STREAM, "the sample is for stream '%s', this process serves '%s'",
                        svi_escape(shown, sizeof shown, m->stream.as.s, m->stream.length), e->s->stream);
    if (m->ts > now + e->s->ts_ahead)
        return svi_fail(err, SVS_TS_AHEAD,
                        "ts %.3f lies %.3f s ahead of the clock, ts.ahead allows %g: is it in seconds?",
                        m->ts, m->ts - now, e->s->ts_ahead);
    return SVS_OK;
}

static svs_code engine_check_label(const struct svi_engine *e, svs_value y, svs_error *err) {
    char shown[80];
    bool regress = e->s->task == SVS_REGRESS;
    bool good = regress ? y.kind != SVS_STR : y.kind != SVS_REAL;
    if (good || y.kind == SVS_NONE)
        return SVS_OK;
    svs_value_text(y, shown, sizeof shown);
    if (regress)
        return svi_fail(err, SVS_BAD_LABEL,
                        "y is the string '%s': a regression needs a number (task: regress)", shown);
    return svi_fail(err, SVS_BAD_LABEL,
                    "y is %s: a class is an integer, a bool or a string (for numbers: task regress)", shown);
}

static bool class_is_known(const struct svi_engine *e, svs_value y) {
    for (int k = 0; k < svs_learner_class_count(e->learner); k++)
        if (svs_value_equal(svs_learner_class(e->learner, k), y))
            return true;
    return false;
}

/* Would the learner refuse a sample that brings new columns, or takes one over? It must be known before that
 * is done, so that a refused sample changes none. */
static svs_code check_before_growth(const struct svi_engine *e, const struct svi_message *m, svs_error *err) {
    for (int j = 0; j < m->d; j++)
        if (!(fabs(m->x[j]) <= SVI_VALUE_MAX))
            return svi_fail(err, SVS_TOO_LARGE,
                            "feature %d is %g; values beyond 1e100 cannot be computed with", j, m->x[j]);
    if (m->y.kind == SVS_REAL && !(fabs(m->y.as.r) <= SVI_VALUE_MAX)) /* of a regression */
        return svi_fail(err, SVS_BAD_LABEL, "the target of a regression is a finite number of at most 1e100");
    bool full = svs_learner_class_count(e->learner) >= e->s->max_classes;
    if (e->s->task == SVS_CLASSIFY && m->y.kind != SVS_NONE && full && !class_is_known(e, m->y))
        return svi_fail(err, SVS_LIMIT, "y is one class more than max.classes (%d)", (int)e->s->max_classes);
    return SVS_OK;
}

/* A class that is new finds room, and those that come with the prior. */
static svs_code engine_make_class_room(struct svi_engine *e, svs_value y, svs_error *err) {
    const int coming = svi_learner_classes_coming(e->learner);
    const bool fresh = y.kind != SVS_NONE && !class_is_known(e, y);
    const int classes = svs_learner_class_count(e->learner) + coming + fresh;
    if (e->s->task != SVS_CLASSIFY || classes < 3 || (!fresh && coming == 0))
        return SVS_OK;
    return svi_quality_stage_reserve(&e->quality_stage, classes, err);
}

/* The learner's columns come last: once it has them, the schema has to follow. */
static svs_code engine_make_room(struct svi_engine *e, const struct svi_message *m, bool changes,
                                 svs_error *err) {
    svs_code code = changes ? check_before_growth(e, m, err) : SVS_OK;
    const bool fits = svi_novelty_queue_waits(e->queue) && m->d <= e->queue->columns;
    if (changes || !fits || svi_schema_has_new_names(&e->schema))
        svi_engine_settle(e);
    if (code == SVS_OK && !fits)
        code = svi_novelty_stage_reserve(e->novelty, m, err);
    if (code == SVS_OK)
        code = svi_drift_stage_reserve(&e->quality_stage.drift, m->d, err);
    if (code == SVS_OK)
        code = svi_rules_reserve(e->rules, m->d, err);
    if (code == SVS_OK)
        code = engine_make_class_room(e, m->y, err);
    if (code == SVS_OK)
        code = svi_publish_reserve(e, m->d, err);
    if (code == SVS_OK && changes)
        code = svi_engine_grow(e, m, err);
    if (code == SVS_OK) {
        svi_engine_tell_categories(e);
        svi_engine_tell_context(e, m->d);
        code = svi_novelty_stage_reserve_context(e->novelty, err);
    }
    return code;
}

/* ---- one message */

/* `refit`: the scores are those of the refit; x: the row, NULL where it is not known any more. Returns what
 * becomes of the quality alert. */
static enum svi_alert_change engine_judge(struct svi_engine *e, const svs_step *step, bool refit,
                                          const double *x, int d) {
    double error = step->label != step->predicted;
    if (e->s->task == SVS_REGRESS) {
        if (isnan(step->target))
            return SVI_ALERT_NONE;
        error = step->target - step->scores[0];
        svi_metrics_value(e->metrics, step->target, step->scores[0]);
    } else {
        if (step->label < 0)
            return SVI_ALERT_NONE;
        svi_metrics_class(e->metrics, step->label, step->predicted, step->scores, step->rows,
                          step->class_count);
    }
    svi_quality_stage_judge(&e->quality_stage, step, refit);
    e->kept[SVI_KEPT_LABELLED]++;
    return svi_drift_stage_judge(&e->quality_stage.drift, error, x, d, e->event_ts, e->kept[SVI_KEPT_SEEN]);
}

/* The quality alert changed: that is published, and on a rise what `drift.action` says is done. The step is
 * not to be read after this. */
static void engine_alarm(struct svi_engine *e, enum svi_alert_change change, svs_value id) {
    const struct svi_drift_stage *s = &e->quality_stage.drift;
    const int64_t some = 2 * ((int64_t)svs_learner_dimension(e->learner) + 1);
    struct svi_alert_report report;
    char subject[SVI_SUBJECT];
    svs_error err;
    svi_engine_settle(e); /* alerts are numbered as they come */
    svi_drift_stage_report(s, id, &e->schema.shape, svi_engine_subject(e, subject), e->event_ts, change,
                           &report);
    svi_publish_alert(e, &report, e->event_ts);
    if (change == SVI_ALERT_CLOSE)
        return;
    if (e->s->drift_action == SVI_DRIFT_SHRINK)
        svi_learner_shrink(e->learner, s->span, some > SVI_DRIFT_STAGE_KEPT ? some : SVI_DRIFT_STAGE_KEPT);
    else if (e->s->drift_action == SVI_DRIFT_REFIT)
        e->out_of_memory = svi_engine_refit(e, &err) == SVS_NO_MEMORY || e->out_of_memory;
    /* off, or one runs: the alert says enough */
}

/* Its novelty, its score if that is due, and what becomes of the alert: now, or in the queue to the second
 * thread. */
static void engine_tell(struct svi_engine *e, const struct svi_message *m, const svs_step *step,
                        int64_t seen) {
    const bool due = seen == e->next_score, scored = due || e->of->scores_all;
    struct svi_score score;
    struct svi_alert_report report;
    char subject[SVI_SUBJECT];
    if (due)
        e->next_score += e->s->scores;
    if (scored)
        svi_fill_score(e, m, step, &score);
    const bool lasts =
        !scored || !score.event.as.score.members; /* what the bank says is gone with the next sample */
    if (lasts && svi_engine_queue(e, m, scored ? &score : NULL))
        return;
    svi_engine_settle(e);
    svi_engine_share(e);
    const enum svi_alert_change change = svi_novelty_stage_judge(e->novelty, m, e->time);
    const struct svi_novelty_said said = svi_novelty_stage_said(e->novelty);
    if (scored)
        svi_publish_score(e, &score, &said);
    if (svi_novelty_report(e->novelty, m, &e->schema, svi_engine_subject(e, subject), e->event_ts, change,
                           &report))
        svi_publish_alert(e, &report, e->event_ts);
    svi_novelty_stage_learn(e->novelty, m);
}

static void engine_accept(struct svi_engine *e, const struct svi_message *m, const svs_step *step,
                          double now) {
    int64_t seen = ++e->kept[SVI_KEPT_SEEN];
    e->event_ts = isnan(m->ts) ? now : m->ts;
    if (seen == 1)
        e->published_time = e->time;
    if (e->carried)
        memcpy(e->carried, m->x, (size_t)m->d * sizeof *m->x);
    const enum svi_alert_change quality = engine_judge(e, step, e->refit->serves, m->x, m->d);
    engine_tell(e, m, step, seen);
    svi_engine_rules_row(e, m, now);
    if (quality != SVI_ALERT_NONE)
        engine_alarm(e, quality, m->id);
    if (svi_refit_policy_step(e->refit, e->learner, seen, e->time))
        svi_engine_publish_model(e, true);
    const bool due = e->of->by_engine_time && e->s->publish_seconds > 0 &&
                     e->time - e->published_time >= e->s->publish_seconds;
    const bool reached = seen == e->next_publish;
    if (reached)
        e->next_publish += e->s->publish_every;
    if (due || reached)
        svi_engine_publish_model(e, false);
}

/* Probabilities first, then what the label says of the scores that each model gave. */
static void engine_calibrate(struct svi_engine *e, const svs_step *online, svs_step *served) {
    struct svi_quality_stage *q = &e->quality_stage;
    const struct svi_refit_policy *r = e->refit;
    svi_quality_stage_score(q, e->learner, served, r->serves);
    svi_quality_stage_calibrate(q, false, online->scores, online->rows, online->class_count, online->label);
    if (r->have)
        svi_quality_stage_calibrate(q, true, r->scores, r->model.rows, r->model.class_count, online->label);
    else if (e->bank)
        svi_engine_bank_calibrate(e, online->label);
}

static svs_code engine_learn(struct svi_engine *e, struct svi_message *m, double now, svs_error *err) {
    if (m->cells && svi_schema_row(&e->schema, m, err) != SVS_OK)
        return err->code;
    if (!m->has_x)
        return svi_fail(err, SVS_MISSING_X, "the sample has no x");
    svs_code code = svi_schema_calendar(&e->schema, m, isnan(m->ts) ? now : m->ts, err);
    if (code == SVS_OK)
        code = svi_shape_fits(&e->schema.shape, m, err);
    if (code == SVS_OK && m->missing > 0 && svi_schema_policy(&e->schema, m) == SVI_MISSING_DROP) {
        e->kept[SVI_KEPT_DROPPED_MISSING]++;
        svi_schema_restore(&e->schema);
        svi_engine_settle(e);
        svi_novelty_stage_gap(e->novelty);
        svi_engine_rules_dropped(e, m, now);
        return SVS_OK;
    }
    if (code == SVS_OK && m->missing > 0)
        code = svi_engine_fill_missing(e, m, err);
    if (code == SVS_OK)
        code = engine_check_label(e, m->y, err);
    const bool changes =
        m->d > svs_learner_dimension(e->learner) || e->schema.renewed_count > 0 || e->unplaced;
    if (code == SVS_OK)
        code = engine_make_room(e, m, changes, err);
    if (code != SVS_OK)
        return code;
    svs_step step;
    svs_sample sample = {.x = m->x, .d = m->d, .id = m->id, .y = m->y, .weight = m->weight};
    if (e->s->method == SVI_METHOD_NONE) /* nothing to learn, nothing to wait for */
        sample.id = sample.y = svs_none();
    const double own = isnan(m->ts) ? now : m->ts, time = fmax(e->time, own);
    code = svs_learner_step(e->learner, &sample, time, &step, err);
    if (code == SVS_OK || changes)
        svi_schema_commit(&e->schema, m); /* new columns stay even if memory ran out after them */
    if (code != SVS_OK)
        return code;
    svi_engine_note_held(e);
    svi_schema_used(&e->schema);
    svi_schema_count_missing(&e->schema, m);
    if (m->missing > 0)
        svi_engine_count_missing(e, m);
    if (own > e->time)
        e->by_arrival = isnan(m->ts);
    e->time = time;
    if (e->bank)
        svi_engine_bank_step(e, &sample, time, &step);
    const svs_step online = step;
    svi_refit_policy_score(e->refit, m, &step);
    if (svi_quality_stage_needs_leverage(&e->quality_stage, &step))
        step.leverage = svi_learner_leverage(e->learner, m->x);
    engine_calibrate(e, &online, &step);
    engine_accept(e, m, &step, now);
    return SVS_OK;
}

/* Is it said of which sample a command speaks, and could there be such a one? */
static svs_code check_command(const struct svi_engine *e, const char *op, svs_value id, svs_error *err) {
    if (id.kind == SVS_NONE)
        return svi_fail(err, SVS_BAD_ID, "%s needs the id of the sample", op);
    if (e->s->method == SVI_METHOD_NONE)
        return svi_fail(err, SVS_UNKNOWN_ID, "method none keeps no samples: send y with x, or choose alsvm");
    return SVS_OK;
}

static svs_code engine_label(struct svi_engine *e, svs_value id, svs_value y, svs_error *err) {
    svs_step step;
    svs_code code = check_command(e, "label", id, err);
    if (code == SVS_OK && y.kind == SVS_NONE)
        return svi_fail(err, SVS_BAD_LABEL, "label needs a y");
    if (code == SVS_OK)
        code = engine_check_label(e, y, err);
    if (code == SVS_OK)
        code = svi_drift_stage_reserve(&e->quality_stage.drift, svs_learner_dimension(e->learner), err);
    if (code == SVS_OK)
        code = engine_make_class_room(e, y, err);
    if (code == SVS_OK) {
        svi_engine_bank_before_label(e, id);
        code = svs_learner_label(e->learner, id, y, e->time, &step, err);
    }
    if (code != SVS_OK)
        return code;
    svi_engine_bank_label(e, id, y, e->time, step.label);
    svi_engine_note_held(e);
    const double *row = svi_learner_newest(e->learner); /* of this sample; NULL without a window */
    if (row && e->schema.columns)
        svi_schema_used_row(&e->schema, row, svs_learner_dimension(e->learner));
    svi_quality_stage_score(&e->quality_stage, e->learner, &step, false);
    svi_quality_stage_calibrate(&e->quality_stage, false, step.scores, step.rows, step.class_count,
                                step.label);
    const double *scores = row ? svi_refit_policy_peek(e->refit, row, &step) : NULL;
    if (scores) /* a sample that waited is none that the refit was made of */
        svi_quality_stage_calibrate(&e->quality_stage, true, scores, e->refit->model.rows,
                                    e->refit->model.class_count, step.label);
    /* the scores of its arrival, by the online model */
    const enum svi_alert_change quality =
        engine_judge(e, &step, false, row, svs_learner_dimension(e->learner));
    if (quality != SVI_ALERT_NONE)
        engine_alarm(e, quality, id);
    return code;
}

static svs_code engine_forget(struct svi_engine *e, svs_value id, int *count, svs_error *err) {
    svs_code code = check_command(e, "forget", id, err);
    if (code == SVS_OK && e->bank)
        svi_bank_forget(e->bank, e->learner, id, e->time);
    return code == SVS_OK ? svs_learner_forget(e->learner, id, e->time, count, err) : code;
}

static svs_code engine_take(struct svi_engine *e, struct svi_message *m, double now, svs_error *err) {
    svs_code code = check_origin(e, m, now, err);
    if (code != SVS_OK)
        return code;
    if (m->op == SVI_LEARN)
        return engine_learn(e, m, now, err);
    if (m->ts > e->time) { /* a command is no sample: it has a time only if it says so */
        e->time = m->ts;
        e->by_arrival = false;
    }
    return m->op == SVI_LABEL ? engine_label(e, m->id, m->y, err) : engine_forget(e, m->id, NULL, err);
}

static void engine_undo(struct svi_engine *e, svs_code code, const svs_error *err, const void *bytes,
                        size_t length, double now) {
    svi_schema_restore(&e->schema);
    svi_publish_error(e, code, err->text, bytes, length, now);
}

static svs_code engine_fail_keyless(svs_error *err) {
    return svi_fail(err, SVS_BAD_KEY, "this stream has one model and no keys: start it with --key");
}

svs_code svi_engine_row(struct svi_engine *e, struct svi_message *m, const void *bytes, size_t length,
                        double now, svs_error *err) {
    svi_engine_note_held(e); /* a sample may have been forgotten */
    svs_code code =
        m->key.kind != SVS_NONE && !e->of->fleet ? engine_fail_keyless(err) : engine_take(e, m, now, err);
    if (code != SVS_OK)
        engine_undo(e, code, err, bytes, length, now);
    return code;
}

svs_code svi_engine_message(svi_engine *e, struct svi_message *m, const void *bytes, size_t length,
                            double now, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    const svs_code code = e->of->fleet ? e->of->keyed->take_row(e, m, bytes, length, now, err)
                                       : svi_engine_row(e, m, bytes, length, now, err);
    svi_engine_end_message(e);
    return code;
}

struct svi_schema *svi_engine_schema(svi_engine *e) {
    return &e->schema;
}

/* ---- one envelope */

static void engine_refuse(struct svi_engine *e, const struct svi_envelope *env, svs_code code,
                          const svs_error *err, const void *bytes, size_t size, double now,
                          struct svi_receipt *r) {
    engine_undo(e, code, err, env->shown ? env->shown : bytes, env->shown ? env->shown_size : size, now);
    r->refused++;
    r->error = *err;
    r->error.code = code;
}

/* The values of an array, whose columns the message names, into the order of the stream. *named: the element
 * only names columns. */
static svs_code engine_order(struct svi_engine *e, const struct svi_envelope *env, struct svi_message *m,
                             bool *named, svs_error *err) {
    *named = env->columns && m->op == SVI_LEARN && !m->has_x;
    if (!*named)
        return svi_columns_order(&e->columns, &e->schema, env, m, err);
    svs_code code = svi_columns_match(&e->columns, &e->schema, env, false, err);
    svi_engine_settle(e); /* columns get names */
    if (code == SVS_OK)
        svi_schema_commit_names(&e->schema);
    return code;
}

/* Of a stream without keys. */
static svs_code engine_refuse_key(const struct svi_engine *e, const struct svi_element *el, svs_error *err) {
    return svi_element_tells(el, SVI_KEY_KEY) && !svi_settings_keyless(e->s) ? engine_fail_keyless(err)
                                                                             : SVS_OK;
}

svs_code svi_engine_take_element(struct svi_engine *e, struct svi_envelope *env, double now, svs_error *err) {
    struct svi_message m;
    bool named = false;
    env->order = &e->columns;
    svi_engine_note_held(e); /* a sample may have been forgotten */
    svs_code code = svi_envelope_next(env, &e->schema, &m, err);
    if (code == SVS_OK && svi_element_has(&env->first, SVI_KEY_KEY) && !e->of->fleet)
        code = engine_refuse_key(e, &env->first, err);
    if (code == SVS_OK)
        code = engine_order(e, env, &m, &named, err);
    return code == SVS_OK && !named ? engine_take(e, &m, now, err) : code;
}

void svi_engine_refuse_element(struct svi_engine *e, const struct svi_envelope *env, svs_code code,
                               const svs_error *err, double now, struct svi_receipt *r) {
    engine_refuse(e, env, code, err, env->element, env->element_size, now, r);
}

/* It was taken before: it is only passed over. */
static void engine_pass_element(struct svi_engine *e, struct svi_envelope *env, struct svi_receipt *r) {
    svi_envelope_pass(env);
    e->kept[SVI_KEPT_DUPLICATES]++;
    r->duplicates++;
}

static void engine_next_element(struct svi_engine *e, struct svi_envelope *env, double now,
                                struct svi_receipt *r) {
    svs_error err;
    err.text[0] = '\0';
    const svs_code code = svi_engine_take_element(e, env, now, &err);
    if (code == SVS_OK)
        r->accepted++;
    else
        svi_engine_refuse_element(e, env, code, &err, now, r);
}

static svs_code refuse_forgotten(const struct svi_receipt *r, svs_error *err) {
    char shown[80];
    return svi_fail(err, SVS_SOURCE_FORGOTTEN,
                    "source %s is not known (any more), and n is %lld, not 0: say hello; what was not "
                    "acknowledged is numbered from 0 again",
                    svi_escape(shown, sizeof shown, r->src, strlen(r->src)), (long long)r->first);
}

static struct svi_source *engine_add_source(struct svi_engine *e, const struct svi_envelope *env, double now,
                                            svs_error *err) {
    return svi_sources_add(e->of->sources, env->src, env->src_length, now, e->s->sources_idle, err);
}

/* Holds the message's number against the table of sources. *skip: its first elements that were taken before.
 * After a loss, the first message of a source says where it goes on; one that comes later and does not follow
 * was refused when it came, and is again. */
static svs_code engine_enter(struct svi_engine *e, const struct svi_envelope *env, double now,
                             struct svi_receipt *r, struct svi_source **source, int64_t *skip,
                             svs_error *err) {
    if (svi_envelope_check_source(env, err) != SVS_OK)
        return err->code;
    if (!env->has_src)
        return SVS_OK;
    r->first = env->n;
    memcpy(r->src, env->src, env->src_length);
    r->src[env->src_length] = '\0';
    *source = svi_sources_find(e->of->sources, env->src, env->src_length);
    int64_t next = *source ? (*source)->next : 0;
    r->n = next - 1;
    const bool may_jump = e->of->gaps_allowed && r->first <= SVI_NEXT_MAX / 2 &&
                          (*source ? (*source)->losses : 0) < e->of->losses;
    if (r->first > next && !may_jump)
        return *source ? svi_fail(err, SVS_GAP, "n is %lld, but %lld comes next: send again from there",
                                  (long long)r->first, (long long)next)
                       : refuse_forgotten(r, err);
    if (!*source && !(*source = engine_add_source(e, env, now, err)))
        return err->code;
    svi_sources_hear(e->of->sources, *source, now);
    if (r->first > next) {
        r->jumped_from = next;
        (*source)->next = next = r->first;
    }
    if (r->first + env->left > next) /* not all of it was taken before */
        (*source)->losses = e->of->losses;
    *skip = next - r->first < env->left ? next - r->first : env->left;
    return SVS_OK;
}

/* All sources have gone. */
static void engine_hear_none(struct svi_engine *e) {
    svi_rules_rest(e->rules);
    if (e->of->fleet)
        e->of->keyed->rest(e);
}

/* The end of a source, or the return of one that was forgotten: neither is a sample. */
static svs_code engine_greet(struct svi_engine *e, const struct svi_envelope *env, double now,
                             svs_error *err) {
    if (!env->src_good)
        return svi_fail(err, SVS_NO_SOURCE, "%s needs src, a name of 1 to %d bytes of UTF-8",
                        env->bye ? "bye" : "hello", SVS_NAME_MAX);
    struct svi_source *source = svi_sources_find(e->of->sources, env->src, env->src_length);
    if (env->bye && source)
        svi_sources_remove(e->of->sources, source);
    if (env->bye && svi_sources_count(e->of->sources) == 0)
        engine_hear_none(e);
    if (env->bye || source)
        return SVS_OK;
    if (env->n < 1 || env->n > SVI_NEXT_MAX / 2)
        return svi_fail(err, SVS_NO_SOURCE, "hello of a source that goes on needs n, a whole number from 1");
    if (!(source = engine_add_source(e, env, now, err)))
        return err->code;
    svi_source_take(source, env->n, e->of->fsync_generation);
    source->losses = e->of->losses;
    return SVS_OK;
}

/* May columns be missing from the list that the message begins with? Its samples are asked one by one. */
static bool engine_may_leave_out(const struct svi_engine *e, const struct svi_envelope *env) {
    const int missing = e->s->missing;
    if (e->schema.shape.without_words)
        return false;
    return missing == SVI_MISSING_AUTO ? env->first.seen >> SVI_KEY_MISSING & 1
                                       : missing != SVI_MISSING_REFUSE;
}

svs_code svi_engine_apply(svi_engine *e, struct svi_envelope *env, double now, bool sourced,
                          struct svi_receipt *r) {
    struct svi_receipt scratch;
    const svs_code code = svi_engine_apply_later(e, env, now, sourced, r ? r : &scratch);
    svi_engine_settle_keys(e);
    return code;
}

svs_code svi_engine_apply_later(svi_engine *e, struct svi_envelope *env, double now, bool sourced,
                                struct svi_receipt *r) {
    struct svi_receipt scratch;
    e->of->receipt = r;
    r = r ? r : &scratch;
    struct svi_source *source = NULL;
    int64_t skip = 0;
    svs_error err;
    r->accepted = r->refused = r->duplicates = 0;
    r->error.code = SVS_OK;
    r->error.text[0] = r->src[0] = '\0';
    r->n = r->first = r->jumped_from = -1;
    svs_code code = env->form.code;
    if (code != SVS_OK)
        err = env->form;
    const bool greets = sourced && (env->hello || env->bye);
    if (code == SVS_OK && greets)
        code = engine_greet(e, env, now, &err);
    else if (code == SVS_OK && sourced && env->left > 0)
        code = engine_enter(e, env, now, r, &source, &skip, &err);
    if (code == SVS_OK && !greets && !e->of->fleet &&
        skip < env->left) /* before its number is used up: it may come again with others */
        code = svi_columns_match(&e->columns, &e->schema, env, engine_may_leave_out(e, env), &err);
    const int64_t count = code == SVS_OK && !greets ? env->left : 0;
    for (int64_t i = 0; i < count; i++) {
        if (e->of->fleet && i % SVI_FLEET_AHEAD == 0 && i + 1 < count)
            e->of->keyed->look_ahead(e, env);
        if (i < skip)
            engine_pass_element(e, env, r);
        else if (e->of->fleet)
            e->of->keyed->take_element(e, env, now, r);
        else
            engine_next_element(e, env, now, r);
    }
    if (code != SVS_OK)
        engine_refuse(e, env, code, &err, env->bytes, env->size, now, r);
    if (source && code == SVS_OK && r->first + count > source->next)
        svi_source_take(source, r->first + count, e->of->fsync_generation);
    r->n = source ? source->next - 1 : r->n;
    r->seq = svi_engine_seen(e) - 1;
    svi_engine_end_message(e);
    if (e->of->fleet)
        e->of->keyed->evict(e);
    return code;
}

int64_t svi_engine_source_durable(const svi_engine *e, const char *src) {
    const struct svi_source *p = svi_sources_find(e->of->sources, src, strlen(src));
    return p ? svi_source_durable(p, e->of->fsync_generation_durable) : -1;
}

int64_t svi_engine_source_next(const svi_engine *e, const char *src) {
    const struct svi_source *p = svi_sources_find(e->of->sources, src, strlen(src));
    return p ? p->next : 0;
}

uint64_t *svi_engine_source_owner(svi_engine *e, const char *src, size_t length) {
    struct svi_source *p = svi_sources_find(e->of->sources, src, length);
    return p ? &p->owner : NULL;
}

int64_t svi_engine_sources_owned(const svi_engine *e, uint64_t owner, double now) {
    return svi_sources_owned(e->of->sources, owner, now, e->s->sources_idle);
}

int64_t svi_engine_sources(const svi_engine *e) {
    return svi_sources_count(e->of->sources);
}

/* ---- commands from outside the stream */

svs_code svi_engine_forget(svi_engine *e, svs_value id, double now, int *count, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    svs_code code = engine_forget(e, id, count, err);
    if (code != SVS_OK)
        svi_publish_error(e, code, err->text, NULL, 0, now);
    return code;
}

svs_code svi_engine_label(svi_engine *e, svs_value id, svs_value y, double now, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    svs_code code = engine_label(e, id, y, err);
    if (code != SVS_OK)
        svi_publish_error(e, code, err->text, NULL, 0, now);
    return code;
}

void svi_engine_reset(svi_engine *e) {
    struct svi_alert_report report;
    char subject[SVI_SUBJECT];
    svi_engine_settle(e);
    svs_learner_reset(e->learner);
    if (e->bank)
        svi_bank_reset(e->bank);
    svi_metrics_reset(e->metrics);
    if (svi_drift_stage_end(&e->quality_stage.drift, svi_engine_subject(e, subject), "the stream was reset",
                            &report))
        svi_publish_alert(e, &report, e->event_ts);
    svi_quality_stage_reset(&e->quality_stage);
    svi_refit_policy_reset(e->refit);
    if (svi_novelty_report_end(e->novelty, svi_engine_subject(e, subject), "the stream was reset", &report))
        svi_publish_alert(e, &report, e->event_ts);
    svi_novelty_stage_reset(e->novelty);
    svi_engine_rules_forget(e);
}

svs_code svi_engine_refit(svi_engine *e, svs_error *err) {
    return svi_refit_policy_start_now(e->refit, e->learner, e->kept[SVI_KEPT_SEEN], err);
}

/* A command about one sample. */
static svs_code engine_command_sample(svi_engine *e, const struct svi_command *c, double now, int *count,
                                      svs_error *err) {
    svs_value id, y;
    svs_code code = svi_command_id(c, &id, err);
    if (code == SVS_OK && c->op == SVI_COMMAND_LABEL)
        code = svi_command_label(c, &y, err);
    if (code != SVS_OK)
        return code;
    return c->op == SVI_COMMAND_LABEL ? svi_engine_label(e, id, y, now, err)
                                      : svi_engine_forget(e, id, now, count, err);
}

static svs_code engine_command_alert(svi_engine *e, const struct svi_command *c, svs_error *err) {
    int64_t number;
    bool is_true;
    svs_code code = svi_command_verdict(c, &number, &is_true, err);
    svi_engine_settle(e);
    svi_engine_share(e);
    return code == SVS_OK ? svi_novelty_stage_verdict(e->novelty, number, is_true, err) : code;
}

/* All or nothing: the process's settings follow the engine's. */
static svs_code engine_command_config(svi_engine *e, const struct svi_command *c, struct svi_settings *s,
                                      double now, int *count, svs_error *err) {
    struct svi_configured done = {.samples = -1};
    struct svi_settings *changed = svi_alloc(sizeof *changed);
    if (!changed)
        return svi_fail_memory(err, "the settings");
    *changed = *s;
    svs_code code = svi_settings_change(changed, &c->set, c->bytes + c->size, c->before, err);
    if (code == SVS_OK)
        code = svi_engine_configure(e, changed, now, &done, err);
    if (code == SVS_OK)
        svi_settings_adopt(s, changed);
    if (count)
        *count = (int)done.samples;
    svi_free(changed);
    return code;
}

static svs_code engine_command(svi_engine *e, const struct svi_command *c, struct svi_settings *s, double now,
                               int *count, svs_error *err) {
    switch (c->op) {
    case SVI_COMMAND_CONFIG:
        return engine_command_config(e, c, s, now, count, err);
    case SVI_COMMAND_PUBLISH:
        svi_engine_publish_model(e, true);
        svi_engine_publish_stats(e, now);
        return SVS_OK;
    case SVI_COMMAND_FORGET:
    case SVI_COMMAND_LABEL:
        return engine_command_sample(e, c, now, count, err);
    case SVI_COMMAND_ALERT:
        return engine_command_alert(e, c, err);
    case SVI_COMMAND_RESET:
        svi_engine_reset(e);
        return c->keeps_shape ? SVS_OK : svi_engine_prune(e, err);
    case SVI_COMMAND_PRUNE:
        return e->s->method != SVI_METHOD_NONE
                   ? svi_engine_prune(e, err)
                   : svi_fail(err, SVS_UNAVAILABLE,
                              "method none holds no samples: only reset drops features");
    case SVI_COMMAND_REFIT:
        return svi_engine_refit(e, err);
    case SVI_COMMAND_LOAD:
        return svi_engine_take_model(e, c->model, c->model_size, s, now, err);
    default:
        return svi_fail(err, SVS_INVALID, "%s does not change the state", svi_command_name(c->op));
    }
}

/* Of which key a command speaks; where it names none, the stream. */
static svs_code command_key(const svi_engine *e, const struct svi_command *c, char *key, svs_error *err) {
    const bool named = c->key.type != SVI_ITEM_TYPE_COUNT;
    const bool about = c->op == SVI_COMMAND_LABEL || c->op == SVI_COMMAND_FORGET;
    key[0] = '\0';
    if (named && !e->of->fleet)
        return svi_settings_keyless(e->s) ? SVS_OK : engine_fail_keyless(err);
    if (!named && e->of->fleet && about)
        return svi_fail(err, SVS_MISSING_KEY, "%s needs the key of its sample: '' where it has none",
                        svi_command_name(c->op));
    return named ? svi_item_key(&c->key, key, err) : SVS_OK;
}

svi_engine *svi_engine_of_key(svi_engine *e, const struct svi_command *c, svs_error *err) {
    char key[SVS_KEY_MAX + 1];
    return command_key(e, c, key, err) == SVS_OK ? svi_engine_named(e, key, err) : NULL;
}

svi_engine *svi_engine_named(svi_engine *e, const char *key, svs_error *err) {
    return e->of->fleet ? e->of->keyed->named(e, key, err) : e;
}

svs_code svi_engine_command(svi_engine *e, const struct svi_command *c, struct svi_settings *s, double now,
                            int *count, svs_error *err) {
    char key[SVS_KEY_MAX + 1];
    struct svi_key_entry *entry = NULL;
    svs_code code = command_key(e, c, key, err);
    svi_engine_settle_keys(e);
    if (code != SVS_OK)
        return code;
    if (c->op == SVI_COMMAND_DROP)
        return e->of->fleet ? e->of->keyed->drop(e, key, err)
                            : svi_fail(err, SVS_BAD_KEY, "the stream has no keys: there is none to drop");
    if (!key[0])
        return engine_command(e, c, s, now, count, err);
    if (c->op == SVI_COMMAND_CONFIG || c->op == SVI_COMMAND_LOAD || c->op == SVI_COMMAND_REFIT)
        return svi_fail(err, SVS_NOT_SUPPORTED, "%s is for the stream as a whole: leave out key",
                        svi_command_name(c->op));
    struct svi_engine *of_key = e->of->keyed->reach(e, key, &entry, err);
    if (!of_key)
        return err->code;
    code = engine_command(of_key, c, s, now, count, err);
    e->of->keyed->done(e, entry, false, now);
    return code;
}

/* ---- refits */

struct svi_refit *svi_engine_refit_take(svi_engine *e) {
    return svi_refit_policy_take(e->refit);
}

bool svi_engine_refit_left(svi_engine *e, const struct svi_refit *job) {
    return svi_refit_policy_left(e->refit, job);
}

void svi_engine_refit_give(svi_engine *e) {
    const int64_t seen = e->kept[SVI_KEPT_SEEN];
    const enum svi_refit_outcome outcome =
        svi_refit_policy_give(e->refit, e->learner, e->schema.shape.d, seen);
    if (outcome == SVI_REFIT_ADOPTED)
        svi_publish_refit(e);
    e->out_of_memory = e->out_of_memory || outcome == SVI_REFIT_OUT_OF_MEMORY;
}

void svi_engine_refit_here(svi_engine *e) {
    struct svi_refit *job = svi_engine_refit_take(e);
    if (job) {
        svi_refit_run(job);
        svi_engine_refit_give(e);
    }
}
