/* The engine: one learner with its stages and no I/O. This file has the input; output is in engine_events.c.
 *
 * Elements take the same path one by one, however they were framed: decoded into the row of the shape,
 * checked and given capacity in all stages, scored and learned by the learner, assessed by the novelty stage,
 * counted, published. Stages return what has changed; only the engine publishes. A row like those before it,
 * which nearly every row of plain numbers is, goes straight to the learner; engine_is_due finds the rows that
 * need more.
 *
 * Two invariants. A refused element changes nothing but the counters: all checks and all allocations come
 * before the first change. Everything is a function of the calls and their `now`, so a journal that repeats
 * the calls repeats the state bit for bit.
 *
 * Read engine_learn and engine_accept first, then svi_engine_take_element; commands and refits follow. */
#include "engine/engine.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alerts/alarm_report.h"
#include "alerts/context.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "config/settings_record.h"
#include "engine/alert_options.h"
#include "config/rule_settings.h"
#include "engine/engine_internal.h"
#include "learner/learner_held.h"
#include "learner/learner_prior.h"
#include "learner/scratch.h"
#include "wire/decode.h"

#define QUALITY_WINDOW     1000 /* samples of windowed quality, when nothing is held */
#define QUALITY_WINDOW_MAX 1000000
#define SHRINK_MIN         32 /* samples that `shrink` keeps at least, or 2 (d + 1) if that is more */

struct svi_shared_settings *svi_shared_settings_new(const struct svi_settings *s, svs_error *err) {
    struct svi_shared_settings *shared = svi_alloc(sizeof *shared);
    if (!shared) {
        svi_fail_memory(err, "the settings");
        return NULL;
    }
    shared->s = *s;
    shared->users = 1;
    return shared;
}

struct svi_shared_settings *svi_shared_settings_use(struct svi_shared_settings *s) {
    s->users++;
    return s;
}

void svi_shared_settings_leave(struct svi_shared_settings **s) {
    if (*s && --(*s)->users == 0)
        svi_free(*s);
    *s = NULL;
}

void svi_engine_share_settings(struct svi_engine *e, struct svi_shared_settings *s) {
    svi_shared_settings_use(s);
    svi_shared_settings_leave(&e->shared);
    e->shared = s;
    e->s = &s->s;
    svi_engine_capacity_changed(e);
}

void svi_engine_send_to(struct svi_engine *e, svi_sink *sink, void *user) {
    e->sink = sink;
    e->user = user;
}

static bool engine_new_stack_scratch(struct svi_engine_scratch *scratch, const struct svi_settings *s,
                                     svs_error *err) {
    if (!svi_settings_stacked(s))
        return true;
    scratch->stack = svi_alloc_array(svi_engine_stack_scratch((int)s->max_classes), sizeof *scratch->stack);
    if (!scratch->stack)
        svi_fail_memory(err, "the stacks of keys");
    return scratch->stack;
}

struct svi_engine_scratch *svi_engine_scratch_new(const struct svi_settings *s, svs_error *err) {
    struct svi_engine_scratch *scratch = svi_alloc(sizeof *scratch);
    if (!scratch)
        svi_fail_memory(err, "the room of a thread");
    else if (svi_settings_keyed(s) &&
             (!(scratch->learner = svi_learner_scratch_new(err)) ||
              !engine_new_stack_scratch(scratch, s, err) ||
              svi_shape_scratch_init(&scratch->row, (int)s->max_features, err) != SVS_OK))
        svi_engine_scratch_free(&scratch);
    return scratch;
}

void svi_engine_scratch_free(struct svi_engine_scratch **s) {
    if (*s) {
        svi_learner_scratch_free(&(*s)->learner);
        svi_shape_scratch_clear(&(*s)->row);
        svi_shared_scratch_clear(&(*s)->novelty);
        svi_free((*s)->stack);
    }
    svi_free(*s);
    *s = NULL;
}

svs_code svi_engine_use_scratch(struct svi_engine *e, struct svi_engine_scratch *s, svs_error *err) {
    if (e->scratch == s)
        return SVS_OK;

    SVI_TRY(svi_learner_use_scratch(e->learner, s->learner, err));
    svs_learner *whole = svi_engine_whole(e);
    svs_code code = whole ? svi_learner_use_scratch(whole, s->learner, err) : SVS_OK;
    if (code == SVS_OK && (code = svi_alert_stage_use_scratch(e->novelty, &s->novelty, err)) != SVS_OK &&
        whole)
        (void)svi_learner_use_scratch(whole, e->scratch->learner, &(svs_error){SVS_OK, ""});
    /* All of it is in one scratch, or two threads could work in the same one. The way back needs no memory:
     * the former scratch has the capacity still. */
    if (code != SVS_OK) {
        (void)svi_learner_use_scratch(e->learner, e->scratch->learner, &(svs_error){SVS_OK, ""});
        return code;
    }
    e->scratch = s;
    svi_shape_use_scratch(&e->schema.shape, &s->row);
    return SVS_OK;
}

/* Frees the stages that the engine owns; placeholders belong to the stream. */
static void engine_free_stages(struct svi_engine *e) {
    if (e->refit && !e->off) {
        svi_refit_policy_free(e->refit);
        svi_free(e->refit);
    }
    if (e->novelty && svi_engine_has_novelty(e)) {
        svi_alert_stage_free(e->novelty);
        svi_free(e->novelty);
    }
    if (e->rules && svi_engine_has_rules(e)) {
        svi_rules_clear(e->rules);
        svi_free(e->rules);
    }
}

void svi_engine_free(svi_engine **e) {
    if (!*e)
        return;
    if ((*e)->bank)
        svi_bank_help((*e)->bank, NULL);
    svi_novelty_queue_free(&(*e)->queue); /* first: its thread may be using the novelty stage */
    svs_learner_free(&(*e)->learner);
    engine_free_stages(*e);
    svi_quality_stage_free(&(*e)->quality_stage);
    svi_schema_clear(&(*e)->schema);
    svi_columns_clear(&(*e)->columns);
    svi_free((*e)->carried);
    svi_outliers_free(&(*e)->outliers);
    svi_bank_free(&(*e)->bank);
    svi_engine_free_stack(*e);
    svi_free((*e)->host_scores);
    svi_free((*e)->gaps);
    svi_free((*e)->names);
    svi_free((*e)->means);
    svi_bytes_clear(&(*e)->columns_of_model);
    svi_bytes_clear(&(*e)->last_model);
    svi_bank_weights_clear(&(*e)->bank_weights);
    svi_shared_settings_leave(&(*e)->shared);
    svi_free(*e);
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
                                struct svi_alert_stage **made, svs_error *err) {
    if (e->off && s->novelty == SVI_NOVELTY_NONE)
        return SVS_OK;
    *made = svi_alloc_plain(sizeof **made);
    if (!*made)
        return svi_fail_memory(err, "the novelty of a stream");
    struct svi_alert_stage_options o;
    const svs_code code = svi_engine_alert_options(s, &o, err);
    svi_alert_stage_init(*made, &o);
    if (svi_settings_keyed(s))
        svi_alert_stage_share_scratch(*made, &e->scratch->novelty);
    return code;
}

svs_code svi_engine_new_rules(const struct svi_engine *e, const struct svi_settings *s,
                              struct svi_rules **made, svs_error *err) {
    struct svi_rules none;
    svi_rules_init(&none, svi_settings_keyed(s));
    svi_rules_configure(&none, s);
    if (e->off && !none.any)
        return SVS_OK;
    *made = svi_alloc_plain(sizeof **made);
    if (!*made)
        return svi_fail_memory(err, "the rules of a stream");
    **made = none;
    return SVS_OK;
}

static svs_code engine_new_refit(struct svi_engine *e, svs_error *err) {
    if (e->off)
        return SVS_OK;
    e->refit = svi_alloc(sizeof *e->refit);
    return e->refit ? svi_refit_policy_new(e->refit, e->s, err) : svi_fail_memory(err, "the refit");
}

/* Fixed columns are known from the start, including which of them are never scaled. */
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

/* The windowed figures cover as many samples as are held, up to QUALITY_WINDOW_MAX. The second calibrator is
 * for refits, or with keys, which have none, for the best linear member of a bank. */
struct svi_quality_options svi_engine_quality_options(const struct svi_settings *s) {
    const int64_t held = svi_settings_stacked(s) ? SVI_STACK_WINDOW : s->window;
    const int64_t window = held < QUALITY_WINDOW_MAX ? held : QUALITY_WINDOW_MAX;
    const bool keyed = svi_settings_keyed(s), learns = s->method != SVI_METHOD_NONE;
    double a_day = 0;
    (void)svi_settings_alert_budget_read(s->alert_budget, &a_day, NULL); /* it was checked before */
    return (struct svi_quality_options){
        .task = (svs_task)s->task,
        .probabilities = s->task == SVS_CLASSIFY && learns && s->max_classes > 1,
        .second = !keyed || (s->method == SVI_METHOD_AUTO && !s->key_shared),
        .log_odds = s->method == SVI_METHOD_AUTO && s->serve != SVI_SERVE_LINEAR &&
                    strcmp(s->class_weight, "none") == 0,
        .many = keyed,
        .max_classes = (int)s->max_classes,
        .window = window < 1 ? QUALITY_WINDOW : window,
        .interval = s->interval,
        .alarm_rate = learns ? s->drift_rate : 0,
        .a_day = a_day,
        .prices = s->decision_cost};
}

/* Makes the parts: the schema first, since it gives the columns, and the bank last, since it needs its host.
 * After a failure svi_engine_free frees what was made. */
static bool engine_new_parts(struct svi_engine *e, int columns, svs_error *err) {
    const struct svi_quality_options quality = svi_engine_quality_options(e->s);
    svs_options o;
    struct svi_class_weights weights;
    if (svi_settings_learning(e->s, &weights, &o, err) != SVS_OK)
        return false;
    struct svi_schema_options schema;
    svi_settings_schema(e->s, &schema);
    schema.scratch = svi_settings_keyed(e->s) ? &e->scratch->row : NULL;
    schema.units = e->common->units;
    svi_columns_init(&e->columns, (int)e->s->max_features);
    return svi_schema_init(&e->schema, &schema, err) == SVS_OK &&
           (e->s->missing != SVI_MISSING_CARRY ||
            svi_engine_new_carried(&e->carried, (int)e->s->max_features, err) == SVS_OK) &&
           (!svi_outliers_wanted(e->s) || (e->outliers = svi_outliers_new(err))) &&
           svi_publish_reserve(e, e->schema.shape.d, err) == SVS_OK && engine_new_refit(e, err) == SVS_OK &&
           svi_engine_new_novelty(e, e->s, &e->novelty, err) == SVS_OK &&
           svi_engine_new_rules(e, e->s, &e->rules, err) == SVS_OK &&
           svi_quality_stage_new(&e->quality_stage, &quality, err) == SVS_OK &&
           (e->learner = e->off
                             ? svi_learner_new_for(&o, e->schema.shape.d,
                                                   columns > e->schema.shape.d ? columns : e->schema.shape.d,
                                                   e->scratch->learner, err)
                             : svi_learner_new(&o, e->schema.shape.d, NULL, err)) &&
           (e->s->method != SVI_METHOD_AUTO ||
            (svi_settings_stacked(e->s) ? svi_engine_new_stack(e, &o, err) == SVS_OK
                                        : engine_new_bank(e, &o, err)));
}

struct svi_engine *svi_engine_new(struct svi_shared_settings *s, const struct svi_engine_setup *setup,
                                  uint64_t epoch, svi_sink *sink, void *user, svs_error *err) {
    struct svi_engine *e = svi_alloc_plain(sizeof *e);
    if (!e) {
        svi_fail_memory(err, "the engine");
        return NULL;
    }
    e->shared = svi_shared_settings_use(s);
    e->s = &s->s;
    e->common = setup->common;
    e->scratch = setup->scratch;
    /* Placeholders before the stages: engine_new_parts replaces those of stages that are on. */
    if ((e->off = setup->off)) {
        e->novelty = &e->off->novelty;
        e->rules = &e->off->rules;
        e->refit = &e->off->refit;
    }
    e->label = setup->label;
    e->epoch = epoch;
    svi_engine_send_to(e, sink, user);
    e->time = -DBL_MAX;
    svi_engine_capacity_changed(e);
    e->next_publish = e->s->publish_every > 0 ? e->s->publish_every : -1;
    e->next_score = e->s->scores > 0 ? e->s->scores : -1;
    if (engine_new_parts(e, setup->columns, err)) {
        svi_learner_relax(e->learner,
                          e->bank); /* one of many learners: its rounding hardly shows in the stack */
        engine_unscale(e);
        e->published_version = svs_learner_version(e->learner);
    } else {
        svi_engine_free(&e);
    }
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
    const struct svi_quality_options quality = svi_engine_quality_options(s);
    struct svi_alert_stage_options alerts;
    svi_settings_schema(s, &schema);
    svi_engine_alert_options(s, &alerts, NULL);
    return sizeof(struct svi_engine) + sizeof(struct svi_shared_settings) + svi_schema_memory(&schema, d) +
           svs_learner_memory(&o, d, classes) + svi_engine_bank_memory(s, &o, d, classes) +
           svi_sources_memory(s->max_sources) +
           svi_alert_stage_memory(&alerts, d, s->context[0] ? SVI_CONTEXT_COLUMNS : 0, false) +
           svi_quality_stage_memory(&quality, d, classes) + svi_rules_memory(s, d) +
           (svi_outliers_wanted(s) ? svi_outliers_memory(d) : 0) + (double)s->max_features * column +
           d * name;
}

#define BLOCK_HEAD 16 /* bytes that the heap adds to each block, about */

double svi_engine_key_memory(const struct svi_settings *s, int d, int contexts, int classes) {
    svs_options o;
    struct svi_class_weights weights;
    struct svi_rules rules;
    const struct svi_quality_options quality = svi_engine_quality_options(s);
    struct svi_alert_stage_options alerts;
    int blocks = 20; /* number of heap blocks, counted with the parts that are on */
    svi_settings_learning(s, &weights, &o, NULL);
    svi_engine_alert_options(s, &alerts, NULL);
    svi_rules_init(&rules, true);
    svi_rules_configure(&rules, s);
    svs_options few = o; /* what a bank holds for each class is allocated when the class appears */
    few.max_classes = classes;
    blocks += s->key_prior > 0 ? 2 : 0;
    blocks += (alerts.on ? 26 : 0) + (alerts.on && alerts.policy.a_day > 0 ? 17 : 0) + (rules.any ? 6 : 0);
    return sizeof(struct svi_engine) + svi_learner_shared_memory(&o, d, classes) -
           (classes + 1.0) * SVS_NAME_MAX + svi_engine_bank_memory(s, &few, d, classes) +
           (s->key_prior > 0 ? svi_learner_prior_memory(d) : 0) +
           svi_quality_stage_memory(&quality, d, classes) - sizeof(struct svi_quality_stage) +
           d * sizeof(char *) + svi_alert_stage_memory(&alerts, d, contexts, true) +
           (rules.any ? sizeof rules + svi_rules_memory(s, d) : 0) + blocks * BLOCK_HEAD +
           (s->missing == SVI_MISSING_CARRY ? (double)s->max_features * sizeof(double) : 0);
}

double svi_engine_memory(const struct svi_settings *s, int d, int classes) {
    return svi_engine_state_memory(s, d, classes) + svi_refit_memory(s, d, classes) +
           svi_novelty_queue_memory(s, d, classes);
}

/* ---- checks before the learner sees a message; nothing here changes more than x and err */

/* For a message that names its stream, or whose time stamp is later than now. */
static svs_code check_claims(const struct svi_engine *e, const struct svi_message *m, double now,
                             svs_error *err) {
    char shown[80];
    if (m->stream.kind == SVS_STR && (m->stream.length != strlen(e->s->stream) ||
                                      memcmp(m->stream.as.s, e->s->stream, m->stream.length) != 0))
        return svi_fail(err, SVS_WRONG_STREAM, "the sample is for stream '%s', this process serves '%s'",
                        svi_escape(shown, sizeof shown, m->stream.as.s, m->stream.length), e->s->stream);
    if (m->ts > now + e->s->ts_ahead)
        return svi_fail(err, SVS_TS_AHEAD,
                        "ts %.3f lies %.3f s ahead of the clock, ts.ahead allows %g: is it in seconds, and "
                        "the clock of its sender right?",
                        m->ts, m->ts - now, e->s->ts_ahead);
    return SVS_OK;
}

static inline svs_code check_origin(const struct svi_engine *e, const struct svi_message *m, double now,
                                    svs_error *err) {
    return m->stream.kind == SVS_STR || m->ts > now ? check_claims(e, m, now, err) : SVS_OK;
}

static svs_code engine_refuse_label(bool regress, svs_value y, svs_error *err) {
    char shown[80];
    svs_value_text(y, shown, sizeof shown);
    if (regress)
        return svi_fail(err, SVS_BAD_LABEL,
                        "y is the string '%s': a regression needs a number (task: regress)", shown);
    return svi_fail(err, SVS_BAD_LABEL,
                    "y is %s: a class is an integer, a bool or a string (for numbers: task regress)", shown);
}

static inline svs_code engine_check_label(const struct svi_engine *e, svs_value y, svs_error *err) {
    const bool regress = e->s->task == SVS_REGRESS;
    return y.kind != (regress ? SVS_STR : SVS_REAL) ? SVS_OK : engine_refuse_label(regress, y, err);
}

static bool class_is_known(const struct svi_engine *e, svs_value y) {
    for (int k = 0; k < svs_learner_class_count(e->learner); k++)
        if (svs_value_equal(svs_learner_class(e->learner, k), y))
            return true;
    return false;
}

/* The checks of the learner, made earlier for a sample that adds or reassigns columns: once the columns have
 * changed, the sample must not be refused any more. */
static svs_code check_before_growth(const struct svi_engine *e, const struct svi_message *m, svs_error *err) {
    for (int j = 0; j < m->d; j++)
        if (!(fabs(m->x[j]) <= SVI_VALUE_MAX))
            return svi_fail(err, SVS_TOO_LARGE,
                            "feature %d is %g; values beyond 1e100 are too large to compute with", j,
                            m->x[j]);
    if (m->y.kind == SVS_REAL && !(fabs(m->y.as.r) <= SVI_VALUE_MAX)) /* of a regression */
        return svi_fail(err, SVS_BAD_LABEL, "the target of a regression is a finite number of at most 1e100");
    bool full = svs_learner_class_count(e->learner) >= e->s->max_classes;
    if (e->s->task == SVS_CLASSIFY && m->y.kind != SVS_NONE && full && !class_is_known(e, m->y))
        return svi_fail(err, SVS_LIMIT, "y would be one class more than max.classes (%d): raise it",
                        (int)e->s->max_classes);
    return SVS_OK;
}

svs_code svi_engine_reserve_class(struct svi_engine *e, svs_value y, svs_error *err) {
    if (e->s->task != SVS_CLASSIFY || !svi_settings_keyed(e->s)) /* without keys max.classes are allocated */
        return SVS_OK;
    const int coming = svi_learner_classes_coming(e->learner);
    const bool fresh = y.kind != SVS_NONE && !class_is_known(e, y);
    const svs_value *new_class = svi_engine_stack_new_class(e, fresh);
    const int classes = svs_learner_class_count(e->learner) + coming + fresh + (new_class != NULL);
    if (classes >= 3 && (fresh || coming > 0 || new_class))
        SVI_TRY(svi_quality_stage_reserve(&e->quality_stage, classes, err));
    return new_class ? svi_learner_meet_class(e->learner, *new_class, err) : SVS_OK;
}

/* Is there capacity for the row in all parts? One comparison with the columns reserved last covers all but
 * novelty, whose parts also fill up with samples. While samples are queued, novelty must not be read: the
 * queue has its own capacity. */
static inline bool engine_has_capacity(const struct svi_engine *e, const struct svi_message *m) {
    return m->d == e->capacity_d &&
           (svi_novelty_queue_waits(e->queue) || svi_alert_stage_has_capacity(e->novelty, m->d));
}

/* Does the capacity last for the next row? Not with keys where rules are on, which free memory while no alert
 * is open, or where a row may add a class. */
static bool engine_capacity_lasts(const struct svi_engine *e) {
    return !svi_settings_keyed(e->s) || (!e->rules->any && e->s->task != SVS_CLASSIFY);
}

/* Reserves in all parts. `fits`: the capacity noted by the queue covers the row, so novelty is not asked;
 * otherwise the queue is empty.
 */
static svs_code engine_reserve(struct svi_engine *e, const struct svi_message *m, bool fits, svs_error *err) {
    e->capacity_d = -1; /* until all have agreed: what fails on the way is asked for again */
    if (!fits && !svi_alert_stage_has_capacity(e->novelty, m->d))
        SVI_TRY(svi_alert_stage_reserve(e->novelty, m->d, m->kind != SVI_DENSE, err));
    SVI_TRY(svi_alarm_reserve(&e->quality_stage.alarm, m->d, err));
    SVI_TRY(svi_rules_reserve(e->rules, m->d, err));
    SVI_TRY(svi_engine_reserve_class(e, m->y, err));
    SVI_TRY(svi_publish_reserve(e, m->d, err));
    e->capacity_d = engine_capacity_lasts(e) ? m->d : -1;
    return SVS_OK;
}

/* Reserves for a due row and adds its columns. The learner's columns come last: after that the schema has to
 * commit to them, so nothing else may fail. */
static svs_code engine_reserve_row(struct svi_engine *e, const struct svi_message *m, bool changes,
                                   svs_error *err) {
    const svs_code code = changes ? check_before_growth(e, m, err) : SVS_OK;
    const bool fits = svi_novelty_queue_waits(e->queue) && m->d <= e->queue->columns;
    /* The queue is emptied before the parts are read, and before names change that its alerts would use. */
    if (changes || !fits || svi_schema_has_new_names(&e->schema))
        svi_engine_settle(e);
    if (code != SVS_OK)
        return code;
    if (changes || !engine_has_capacity(e, m))
        SVI_TRY(engine_reserve(e, m, fits, err));
    const svs_code grown = changes ? svi_engine_grow(e, m, err) : SVS_OK;
    if (grown != SVS_OK) /* otherwise the next row would not be due, and the growth would stay unfinished */
        svi_engine_capacity_changed(e);
    return grown;
}

/* Passes the columns of the learner on to novelty. If this or the step of the learner fails, both keep them.
 */
static svs_code engine_report_columns(struct svi_engine *e, int d, svs_error *err) {
    svi_engine_refresh_categories(e);
    svi_engine_refresh_context(e, d);
    return svi_detectors_reserve_context(&e->novelty->detectors, err);
}

/* ---- one message */

/* Counts a labelled sample in the prequential figures and the quality alarm. x: the row, d values; NULL where
 * it is no longer known. Returns the change of the alarm, which the caller publishes after the score. */
static enum svi_alarm_change engine_assess(struct svi_engine *e, const svs_step *step, const double *x, int d,
                                           bool timed) {
    const bool regress = e->s->task == SVS_REGRESS;
    if (regress ? isnan(step->target) : step->label < 0)
        return SVI_ALARM_NONE;
    const double error = regress ? step->target - step->scores[0] : step->label != step->predicted;
    svi_quality_stage_update(&e->quality_stage, step);
    e->kept[SVI_KEPT_LABELLED]++;
    /* Rows without a time of their own know the hour only where they arrive one by one. */
    struct svi_alarm *alarm = &e->quality_stage.alarm;
    alarm->row_seconds = timed ? 0 : e->s->alert_interval;
    alarm->dated = timed || !(e->s->alert_interval > 0);
    alarm->policies = e->common->policies;
    return svi_alarm_update(&e->quality_stage.alarm, error, x, d, e->event_ts, e->kept[SVI_KEPT_SEEN]);
}

/* Publishes a change of the quality alert and, unless it closed, takes the action of `drift.action`.
 * Invalidates the step, since the learner may shrink. */
static void engine_alarm(struct svi_engine *e, enum svi_alarm_change change, svs_value id) {
    const struct svi_alarm *s = &e->quality_stage.alarm;
    const int64_t determined = 2 * ((int64_t)svs_learner_dimension(e->learner) + 1);
    struct svi_alert_report report;
    char subject[SVI_SUBJECT];
    svs_error err;
    if (change != SVI_ALARM_NONE) {
        svi_engine_settle(e); /* queued samples may open alerts, whose numbers come first */
        svi_alarm_report(s, id, &e->schema, svi_engine_subject(e, subject), e->event_ts,
                         svi_engine_row_in_lines(e), change, &report);
        svi_publish_alert(e, &report, e->event_ts);
    }
    if (!s->rose) /* the action follows the rise, whether the budget reports it or not */
        return;
    if (e->s->drift_action == SVI_DRIFT_SHRINK)
        svi_learner_shrink(e->learner, s->span, determined > SHRINK_MIN ? determined : SHRINK_MIN);
    else if (e->s->drift_action == SVI_DRIFT_REFIT)
        e->out_of_memory = svi_engine_refit(e, &err) == SVS_NO_MEMORY || e->out_of_memory;
    /* Other failures mean that refits are off or one is running, which needs no report besides the alert. */
}

/* Does the sample with this number get a score event? */
static inline bool engine_publishes(const struct svi_engine *e, int64_t seen) {
    return seen == e->next_score || e->common->score_all;
}

/* Is the score of the sample with this number needed, for an event or for a reply? */
static inline bool engine_wants_score(const struct svi_engine *e, int64_t seen) {
    return engine_publishes(e, seen) || e->scratch->asked;
}

/* The score of a sample for the reply alone: there is no novelty, and no event is due. */
static __attribute__((noinline)) void engine_answer_score(struct svi_engine *e, const struct svi_message *m,
                                                          const svs_step *step) {
    const struct svi_alert_scores none = {0};
    struct svi_score score = {.reply = e->scratch->asked};
    e->scratch->asked->scored++;
    svi_fill_score(e, m, step, &score);
    svi_publish_score(e, &score, &none);
}

/* Assesses the novelty of an accepted sample and publishes its score, if that is due, and its alert: now, or
 * by way of the queue. Not inlined, as the two reports take much stack. */
static __attribute__((noinline)) void engine_publish_outcome(struct svi_engine *e,
                                                             const struct svi_message *m,
                                                             const svs_step *step, bool published) {
    const bool asked = e->scratch->asked, scored = published || asked;
    struct svi_score score;
    struct svi_alert_report report;
    struct svi_unlearned unlearned;
    char subject[SVI_SUBJECT];
    if (scored)
        svi_fill_score(e, m, step, &score);
    score.published = published;
    score.reply = e->scratch->asked;
    if (asked)
        e->scratch->asked->scored++;
    /* The members' scores are overwritten by the next sample, so such an event cannot wait. */
    const bool lasts = !scored || !score.event.as.score.members;
    if (lasts && !svi_rules_pending(e->rules) && svi_engine_queue(e, m, scored ? &score : NULL))
        return;
    svi_engine_settle(e);
    svi_engine_share(e);
    const struct svi_alert_sample sample = {.x = m->x,
                                            .gaps = m->gaps,
                                            .d = m->d,
                                            .number = e->kept[SVI_KEPT_SEEN],
                                            .time = e->time,
                                            .timed = !isnan(m->ts),
                                            .labelled = m->y.kind != SVS_NONE,
                                            .unlearned = svi_engine_unlearned(e, m->d, &unlearned)};
    const struct svi_alert_subject of = {&e->schema, svi_engine_subject(e, subject), m->id, e->event_ts};
    const enum svi_alert_change change = svi_alert_stage_assess(e->novelty, &sample);
    const struct svi_alert_scores novelty = svi_alert_stage_scores(e->novelty);
    if (scored)
        svi_publish_score(e, &score, &novelty);
    svi_engine_rules_report(e, m->id);
    /* The report compares the sample with the normal values before it, so learning comes last. */
    if (svi_alert_report_change(e->novelty, &sample, &of, change, &report))
        svi_publish_alert(e, &report, e->event_ts);
    svi_alert_stage_learn(e->novelty, &sample);
}

static inline void engine_publish_score(struct svi_engine *e, const struct svi_message *m,
                                        const svs_step *step, int64_t seen) {
    const bool published = engine_publishes(e, seen);
    if (seen == e->next_score)
        e->next_score += e->s->scores;
    if (published || !svi_alert_stage_idle(e->novelty))
        engine_publish_outcome(e, m, step, published);
    else if (e->scratch->asked)
        engine_answer_score(e, m, step);
}

/* Everything after the step of the learner, in the order of the events: score, rules, novelty alert, quality
 * alert, model. Rules come before novelty: where both find a cause, the plain statement is the alert, and
 * novelty joins it (engine_cases.c). A row with something to report by rules is therefore not queued.
 * `raw`: the row as received, which alerts and events show; model and
 * quality use m->x, which may be clipped. */
static void engine_accept(struct svi_engine *e, struct svi_message *m, double *raw, const svs_step *step,
                          double now) {
    int64_t seen = ++e->kept[SVI_KEPT_SEEN];
    e->event_ts = isnan(m->ts) ? now : m->ts;
    if (e->carried)
        memcpy(e->carried, m->x, (size_t)m->d * sizeof *m->x);
    const enum svi_alarm_change quality = engine_assess(e, step, m->x, m->d, !isnan(m->ts));
    e->kept[SVI_KEPT_CLIPPED] += m->x != raw; /* a clipped row is a copy */
    m->x = raw;
    svi_engine_rules_row(e, m, now);
    engine_publish_score(e, m, step, seen);
    svi_engine_rules_report(e, m->id); /* where nothing of the sample was published */
    if (e->outliers)
        svi_outliers_note(e->outliers, raw, m->d);
    /* From here on `step` is invalid: drift.action may shrink the window, and a refit may change the model.
     */
    if (quality != SVI_ALARM_NONE || e->quality_stage.alarm.rose)
        engine_alarm(e, quality, m->id);
    if (svi_refit_policy_step(e->refit, e->learner, seen, e->time))
        svi_engine_publish_model(e, true);
    if (seen == e->next_publish) {
        e->next_publish += e->s->publish_every;
        svi_engine_publish_model(e, false);
    }
}

/* Makes the probabilities of the served scores, then calibrates each model by the label. Probabilities first,
 * or they would know the label of their own sample. `scores` (rows values): those of the online model. */
static void engine_calibrate(struct svi_engine *e, const double *scores, int rows, int class_count,
                             svs_step *served) {
    struct svi_quality_stage *q = &e->quality_stage;
    const struct svi_refit_policy *r = e->refit;
    const int label = served->label;
    const bool wanted = engine_wants_score(e, e->kept[SVI_KEPT_SEEN] + 1);
    if (!wanted && !r->have && !e->bank &&
        svi_quality_stage_pair(q, served)) /* the common case, in one call */
        return;
    svi_quality_stage_score(q, e->learner, served, r->serves, wanted);
    svi_quality_stage_calibrate(q, false, scores, rows, class_count, label);
    if (r->have)
        svi_quality_stage_calibrate(q, true, r->scores, r->model.rows, r->model.class_count, label);
    else if (e->bank)
        svi_engine_bank_calibrate(e, label);
}

static svs_code engine_refuse_outlier(const struct svi_engine *e, const struct svi_message *m,
                                      const struct svi_outlier *o, svs_error *err) {
    char shown[80], called[96] = "";
    const char *name = svi_schema_name(&e->schema, o->column);
    if (name)
        snprintf(called, sizeof called, " ('%s')", svi_escape(shown, sizeof shown, name, strlen(name)));
    return svi_fail(err, SVS_OUTLIER,
                    "feature %d%s is %g, further than %.3g from its normal %.3g, and the setting outlier "
                    "refuses that (clip and take do not)",
                    o->column, called, m->x[o->column], o->limit, o->center);
}

/* Clips or refuses a row that may have an outlier. The clipped row is a copy: alerts and events show the raw
 * values. */
static __attribute__((noinline)) svs_code engine_clip(struct svi_engine *e, struct svi_message *m,
                                                      svs_error *err) {
    struct svi_outlier first;
    double *clipped = svi_outliers_clip(e->outliers, m->x, m->d, &first);
    if (!clipped)
        return SVS_OK;
    if (e->s->outlier == SVI_OUTLIER_REFUSE)
        return engine_refuse_outlier(e, m, &first, err);
    m->x = clipped;
    return SVS_OK;
}

/* *raw: the row as received; m->x: the row for the model, clipped where it has outliers. */
static inline svs_code engine_limit(struct svi_engine *e, struct svi_message *m, double **raw,
                                    svs_error *err) {
    *raw = m->x;
    return e->outliers && svi_outliers_far(e->outliers, m->x, m->d) ? engine_clip(e, m, err) : SVS_OK;
}

/* Drops a row with a missing value, as the setting `missing` says. Dropped is not refused: it is counted and
 * causes no error event, and lags and rules take note of the gap. */
static svs_code engine_leave_out(struct svi_engine *e, const struct svi_message *m, double now,
                                 svs_error *err) {
    svi_engine_settle(e);
    if (svi_rules_reserve(e->rules, 0, err) != SVS_OK) /* the rules see the other values of the row */
        return err->code;
    e->kept[SVI_KEPT_DROPPED_MISSING]++;
    svi_schema_restore(&e->schema);
    svi_alert_stage_gap(e->novelty);
    svi_engine_rules_dropped(e, m, now);
    return SVS_OK;
}

/* Does the row need engine_prepare? Nearly no row of plain numbers does: it has the shape of those before it,
 * which have reserved all capacity. */
static inline bool engine_is_due(const struct svi_engine *e, const struct svi_message *m) {
    return !engine_has_capacity(e, m) || m->missing > 0 || e->schema.columns || e->s->context[0] ||
           !svi_shape_is_that_of(&e->schema.shape, m);
}

/* Results of engine_prepare. */
struct engine_done {
    bool left_out; /* dropped for a missing value: complete */
    bool changes;  /* columns were added or reassigned, and stay so even if memory runs out after that */
    double *raw;   /* the row as received, before outliers were clipped */
};

/* Everything that a due row may need before the learner sees it. The order matters: the calendar fills in
 * columns that count for the shape; missing values are replaced before outliers are
 * looked for, which reads the whole row; columns are added when all checks have passed. */
static svs_code engine_prepare(struct svi_engine *e, struct svi_message *m, double now,
                               struct engine_done *done, svs_error *err) {
    SVI_TRY(svi_schema_calendar(&e->schema, m, isnan(m->ts) ? now : m->ts, err));
    SVI_TRY(svi_shape_fits(&e->schema.shape, m, err));
    done->left_out = m->missing > 0 && svi_schema_policy(&e->schema, m) == SVI_MISSING_DROP;
    if (done->left_out)
        return engine_leave_out(e, m, now, err);
    if (m->missing > 0)
        SVI_TRY(svi_engine_fill_missing(e, m, err));
    SVI_TRY(engine_check_label(e, m->y, err));
    if (e->outliers)
        SVI_TRY(svi_outliers_reserve(e->outliers, m->d, err));
    SVI_TRY(engine_limit(e, m, &done->raw, err));
    const int had = svs_learner_dimension(e->learner);
    done->changes = m->d > had || e->schema.renewed_count > 0 || svi_learner_placed(e->learner) < had;
    const svs_code code = engine_reserve_row(e, m, done->changes, err);
    if (code == SVS_OK)
        return engine_report_columns(e, m->d, err);
    done->changes = svs_learner_dimension(e->learner) > had; /* the schema has to keep what the learner has */
    return code;
}

/* After a due row was learned. */
static void engine_count_row(struct svi_engine *e, const struct svi_message *m) {
    svi_engine_note_held(e);
    svi_schema_used(&e->schema);
    svi_schema_count_missing(&e->schema, m);
    if (m->missing > 0)
        svi_engine_count_missing(e, m);
}

/* One sample, from the decoded message to its events. */
static svs_code engine_learn(struct svi_engine *e, struct svi_message *m, double now, svs_error *err) {
    if (m->cells && svi_schema_row(&e->schema, m, err) != SVS_OK)
        return err->code;
    if (!m->has_x)
        return svi_fail(err, SVS_MISSING_X, "the sample has no x");
    const bool due = engine_is_due(e, m);
    struct engine_done done = {0};
    svs_code code = due ? engine_prepare(e, m, now, &done, err) : engine_check_label(e, m->y, err);
    if (done.left_out)
        return code;
    if (!due && code == SVS_OK)
        code = engine_limit(e, m, &done.raw, err);
    svs_step step;
    /* The sample is made here and not earlier: engine_limit may have replaced m->x by a clipped copy. */
    svs_sample sample = {.x = m->x, .d = m->d, .id = m->id, .y = m->y, .weight = m->weight};
    if (e->s->method == SVI_METHOD_NONE) /* nothing to learn, nothing to wait for */
        sample.id = sample.y = svs_none();
    const double own = isnan(m->ts) ? now : m->ts, time = own > e->time ? own : e->time;
    /* The step is the last thing that can be refused. It scores the sample before it learns it. */
    if (code == SVS_OK)
        code = svs_learner_step(e->learner, &sample, time, &step, err);
    if (done.changes || (due && code == SVS_OK))
        svi_schema_commit(&e->schema, m);
    if (code != SVS_OK)
        return code;
    if (due)
        engine_count_row(e, m);
    if (own > e->time)
        e->by_arrival = isnan(m->ts);
    e->time = time;
    /* From here on the step becomes that of the model that serves: first the bank's scores replace those of
     * its host, then a refit that serves replaces both. The scores in between are kept, for their own
     * calibration. */
    if (e->bank)
        svi_engine_bank_step(e, &sample, time, &step);
    else if (e->stack)
        svi_engine_stack_step(e, &sample, time, &step);
    const double *scores = step.scores;
    const int rows = step.rows, class_count = step.class_count;
    svi_refit_policy_score(e->refit, m, &step);
    /* A sample without a label was not learned, so P is still that of before and its x'Px is asked for
     * here. A learned one has it from the step, where it was computed before learning. */
    if (svi_quality_stage_needs_leverage(&e->quality_stage, &step))
        step.leverage = svi_learner_leverage(e->learner, m->x);
    engine_calibrate(e, scores, rows, class_count, &step);
    engine_accept(e, m, done.raw, &step, now);
    if (svs_learner_class_count(e->learner) > class_count)
        svi_engine_report_classes(e, class_count, now);
    return SVS_OK;
}

/* Does a command name its sample, and can there be one? */
static svs_code check_command(const struct svi_engine *e, const char *op, svs_value id, svs_error *err) {
    if (id.kind == SVS_NONE)
        return svi_fail(err, SVS_BAD_ID, "%s needs the id of the sample", op);
    if (e->s->method == SVI_METHOD_NONE)
        return svi_fail(err, SVS_UNKNOWN_ID, "method none keeps no samples: send y with x, or choose alsvm");
    return SVS_OK;
}

static svs_code engine_label(struct svi_engine *e, svs_value id, svs_value y, svs_error *err) {
    svs_step step;
    SVI_TRY(check_command(e, "label", id, err));
    if (y.kind == SVS_NONE)
        return svi_fail(err, SVS_BAD_LABEL, "label needs a y");
    SVI_TRY(engine_check_label(e, y, err));
    SVI_TRY(svi_alarm_reserve(&e->quality_stage.alarm, svs_learner_dimension(e->learner), err));
    SVI_TRY(svi_engine_reserve_class(e, y, err));
    const int classes = svs_learner_class_count(e->learner);
    /* The host moves the row from the waiting samples to the window, so the members score it before that. */
    svi_engine_bank_before_label(e, id);
    svi_engine_stack_before_label(e, id);
    SVI_TRY(svs_learner_label(e->learner, id, y, e->time, &step, err));
    svi_engine_bank_label(e, id, y, e->time, step.label);
    svi_engine_stack_label(e, id, y, e->time, &step);
    svi_engine_report_classes(e, classes, e->event_ts);
    svi_engine_note_held(e);
    const double *row = svi_learner_newest(e->learner); /* of this sample; NULL without a window */
    if (row && e->schema.columns)
        svi_schema_used_row(&e->schema, row, svs_learner_dimension(e->learner));
    svi_quality_stage_score(&e->quality_stage, e->learner, &step, false, false);
    svi_quality_stage_calibrate(&e->quality_stage, false, step.scores, step.rows, step.class_count,
                                step.label);
    const double *scores = row ? svi_refit_policy_peek(e->refit, row, &step) : NULL;
    if (scores) /* the refit was made without this sample, which was waiting then, so its score is honest */
        svi_quality_stage_calibrate(&e->quality_stage, true, scores, e->refit->model.rows,
                                    e->refit->model.class_count, step.label);
    /* The alarm gets the scores that the online model gave on arrival: a late label
     * must not assess a later model.
     */
    const enum svi_alarm_change quality =
        engine_assess(e, &step, row, svs_learner_dimension(e->learner), !e->by_arrival);
    if (quality != SVI_ALARM_NONE || e->quality_stage.alarm.rose)
        engine_alarm(e, quality, id);
    return SVS_OK;
}

static svs_code engine_forget(struct svi_engine *e, svs_value id, int *count, svs_error *err) {
    SVI_TRY(check_command(e, "forget", id, err));
    if (e->bank)
        svi_bank_forget(e->bank, e->learner, id, e->time);
    svi_engine_stack_forget(e, id);
    const svs_code code = svs_learner_forget(e->learner, id, e->time, count, err);
    /* A sample that left the window of its key may still have been in the bank of all keys. */
    const int elsewhere = code == SVS_UNKNOWN_ID ? svi_engine_removed_elsewhere(e) : 0;
    if (elsewhere > 0 && count)
        *count = elsewhere;
    return elsewhere > 0 ? SVS_OK : code;
}

static svs_code engine_take(struct svi_engine *e, struct svi_message *m, double now, svs_error *err) {
    SVI_TRY(check_origin(e, m, now, err));
    if (m->op == SVI_LEARN)
        return engine_learn(e, m, now, err);
    if (m->ts > e->time) { /* false without ts (NAN): a command moves the time only if it has one */
        e->time = m->ts;
        e->by_arrival = false;
    }
    return m->op == SVI_LABEL ? engine_label(e, m->id, m->y, err) : engine_forget(e, m->id, &m->removed, err);
}

/* Refuses an element: restores the schema, the only thing that decoding changes, and publishes the error. */
static void engine_undo(struct svi_engine *e, svs_code code, const svs_error *err, const void *bytes,
                        size_t length, double now) {
    svi_schema_restore(&e->schema);
    svi_publish_error(e, code, err->text, bytes, length, now);
}

svs_code svi_engine_fail_keyless(svs_error *err) {
    return svi_fail(err, SVS_BAD_KEY, "this stream has no keys: start it with --key");
}

svs_code svi_engine_row(struct svi_engine *e, struct svi_message *m, const void *bytes, size_t length,
                        double now, svs_error *err) {
    svi_engine_note_held(e); /* a command may have removed a sample since the last row */
    svs_code code = m->key.kind != SVS_NONE && !e->common->keys_allowed ? svi_engine_fail_keyless(err)
                                                                        : engine_take(e, m, now, err);
    if (code != SVS_OK)
        engine_undo(e, code, err, bytes, length, now);
    return code;
}

struct svi_schema *svi_engine_schema(svi_engine *e) {
    return &e->schema;
}

/* ---- one element */

void svi_engine_refuse_input(struct svi_engine *e, const struct svi_envelope *env, bool whole, svs_code code,
                             const svs_error *err, double now, struct svi_receipt *r) {
    const uint8_t *bytes = env->shown ? env->shown : whole ? env->bytes : env->element;
    const size_t size = env->shown ? env->shown_size : whole ? env->size : env->element_size;
    engine_undo(e, code, err, bytes, size, now); /* settles: the scores before it are in r->scores */
    r->refused++;
    r->error = *err;
    r->error.code = code;
    if (r->scores && !whole)
        svi_reply_scores_refusal(r->scores, &r->error);
}

/* Makes the next row due after a message has named columns: a row of unchanged width would not be otherwise.
 */
static inline void engine_look_for_names(struct svi_engine *e, const struct svi_envelope *env) {
    if (env->columns && svi_schema_has_new_names(&e->schema))
        svi_engine_capacity_changed(e);
}

/* Reorders the values of an array by the columns that its message names. *named: the element only names
 * columns and holds no sample. */
static svs_code engine_order(struct svi_engine *e, const struct svi_envelope *env, struct svi_message *m,
                             bool *named, svs_error *err) {
    *named = env->columns && m->op == SVI_LEARN && !m->has_x;
    if (!*named) {
        const svs_code code = svi_columns_order(&e->columns, &e->schema, env, m, err);
        engine_look_for_names(e, env);
        return code;
    }
    svs_code code = svi_columns_match(&e->columns, &e->schema, env, false, err);
    svi_engine_settle(e); /* alerts of queued samples must not get the new names */
    if (code == SVS_OK)
        svi_schema_commit_names(&e->schema);
    return code;
}

/* A label, a forget, or a sample that was left out has no score. */
static __attribute__((noinline)) void engine_answer_nothing(struct svi_engine *e) {
    svi_engine_settle(e); /* the scores of the samples before it come first */
    svi_reply_scores_nothing(e->scratch->asked);
}

svs_code svi_engine_take_element(struct svi_engine *e, struct svi_envelope *env, double now, svs_error *err) {
    struct svi_message m;
    bool named = false;
    const int64_t scored = e->scratch->asked ? e->scratch->asked->scored : 0;
    env->order = &e->columns;
    svi_engine_note_held(e); /* a command may have removed a sample since the last row */
    svs_code code = svi_envelope_next(env, &e->schema, &m, err);
    if (code == SVS_OK && !e->common->keys_allowed && svi_element_states(&env->first, SVI_KEY_KEY))
        code = svi_engine_fail_keyless(err);
    if (code == SVS_OK)
        code = engine_order(e, env, &m, &named, err);
    if (code != SVS_OK || named)
        return code;
    code = engine_take(e, &m, now, err);
    if (e->scratch->asked && code == SVS_OK && e->scratch->asked->scored == scored)
        engine_answer_nothing(e);
    return code;
}

void svi_engine_pass_element(struct svi_engine *e, struct svi_envelope *env, struct svi_receipt *r) {
    svi_envelope_pass(env);
    e->kept[SVI_KEPT_DUPLICATES]++;
    r->duplicates++;
    if (r->scores && !svi_element_only_names(&env->first))
        svi_reply_scores_duplicate(r->scores);
}

/* May the list of columns at the start of a message be incomplete? If the setting is auto, a message that
 * states `missing` is checked sample by sample. */
static bool engine_may_leave_out(const struct svi_engine *e, const struct svi_envelope *env) {
    const int missing = e->s->missing;
    return missing == SVI_MISSING_AUTO ? env->first.seen >> SVI_KEY_MISSING & 1
                                       : missing != SVI_MISSING_REFUSE;
}

svs_code svi_engine_match_columns(struct svi_engine *e, const struct svi_envelope *env, svs_error *err) {
    return svi_columns_match(&e->columns, &e->schema, env, engine_may_leave_out(e, env), err);
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

/* Alerts are ended before the stage that holds them is reset, or subscribers would never see them close. */
void svi_engine_reset(svi_engine *e) {
    static const char why[] = "the stream was reset";
    svi_engine_settle(e);
    svi_engine_capacity_changed(e);
    svs_learner_reset(e->learner);
    if (e->bank)
        svi_bank_reset(e->bank);
    svi_engine_stack_reset(e);
    svi_engine_end_drift(e, why);
    svi_quality_stage_reset(&e->quality_stage);
    svi_refit_policy_reset(e->refit);
    svi_engine_end_novelty(e, why);
    svi_alert_stage_reset(e->novelty);
    svi_engine_rules_forget(e);
    if (e->outliers)
        svi_outliers_reset(e->outliers);
}

svs_code svi_engine_refit(svi_engine *e, svs_error *err) {
    return svi_refit_policy_start_now(e->refit, e->learner, e->kept[SVI_KEPT_SEEN], err);
}

/* A label or forget command. */
static svs_code engine_command_sample(svi_engine *e, const struct svi_command *c, double now, int *count,
                                      svs_error *err) {
    svs_value id, y;
    SVI_TRY(svi_command_id(c, &id, err));
    if (c->op == SVI_COMMAND_LABEL)
        SVI_TRY(svi_command_label(c, &y, err));
    return c->op == SVI_COMMAND_LABEL ? svi_engine_label(e, id, y, now, err)
                                      : svi_engine_forget(e, id, now, count, err);
}

static svs_code engine_command_alert(svi_engine *e, const struct svi_command *c, double now, int *count,
                                     svs_error *err) {
    char by[SVS_NAME_MAX + 1];
    struct svi_given_verdict v = {.by = by};
    svs_code code = svi_command_verdict(c, &v.alert, &v.confirmed, err);
    svi_engine_settle(e);
    svi_engine_share(e);
    SVI_TRY(code);
    SVI_TRY(svi_command_by(c, by, err));
    SVI_TRY(svi_alert_stage_verdict(e->novelty, &v.alert, v.confirmed, err));
    svi_publish_verdict(e, &v, now);
    if (count)
        *count = (int)v.alert;
    return SVS_OK;
}

svs_code svi_engine_command(struct svi_engine *e, const struct svi_command *c, struct svi_settings *s,
                            double now, int *count, svs_error *err) {
    switch (c->op) {
    case SVI_COMMAND_FORGET:
    case SVI_COMMAND_LABEL:
        return engine_command_sample(e, c, now, count, err);
    case SVI_COMMAND_ALERT:
        return engine_command_alert(e, c, now, count, err);
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
