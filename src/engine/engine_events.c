/* Output of the engine: events, figures and the present model. Nothing else publishes.
 *
 * Scores, alerts, errors, models and figures enter from the stages of the engine; numbered events leave
 * through the sink of its owner. Every event passes through svi_publish, which numbers it by topic even while
 * the stream is muted: after a recovery the numbers continue where the ended process stopped. So the main
 * difficulty is that numbers and counters may depend on the elements only. Only content made for readers is
 * left out while muted.
 *
 * A model event carries the online model or, if the refit serves, the model of the refit, completed with what
 * only the learner knows (classes, samples learned). Figures have two origins: counters kept in e->kept, and
 * the health of the parts, which is read when stats are due.
 *
 * Everything published points into buffers of the engine and is valid during the call of the sink. Read
 * svi_publish, then the topics in order: score, alert, error, model, stats. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/engine_internal.h"
#include "learner/learner_held.h"
#include "wire/schema_map.h"

#define SAMPLE_BYTES 64 /* of a refused element are shown */

/* Of an alert that opens: features with their last values, and how many values. */
#define HISTORIES    3
#define HISTORY_ROWS 120

/* Sends an alert that opens, with the last values of the features that contribute most. Nothing of an alert
 * policy is off in an engine without a history: it has no rows then. The values are on this stack, so the
 * event drops them after the call. */
static void publish_open(struct svi_engine *e, struct svi_event *event) {
    struct svi_alert_event *a = &event->as.alert;
    struct svi_feature_history history[HISTORIES];
    double times[HISTORIES][HISTORY_ROWS], values[HISTORIES][HISTORY_ROWS];
    const int count = a->count < HISTORIES ? a->count : HISTORIES;
    const struct svi_history *h = &e->novelty->history;
    a->history = history;
    for (a->history_count = 0; a->history_count < count; a->history_count++) {
        const int i = a->history_count;
        const int rows = svi_history_column(h, a->top[i].column, HISTORY_ROWS, values[i], times[i]);
        /* A feature without rows ends the list: readers find the i-th history with the i-th feature. */
        if (rows == 0)
            break;
        history[i] = (struct svi_feature_history){times[i], values[i], rows};
    }
    e->sink(e->user, event);
    a->history_count = 0;
}

void svi_publish(struct svi_engine *e, struct svi_event *event) {
    /* Queued samples are older than this event, so theirs have to be published first. */
    svi_engine_settle(e);
    event->stream = e->s->stream;
    event->epoch = e->epoch;
    /* Where the sink numbers the alerts of all engines, a number of this one would be a second one. */
    const bool alert = event->topic == SVI_TOPIC_ALERT;
    const bool numbered = !alert || !(e->common->sink_numbers_alerts || event->as.alert.kept_only);
    event->seq = numbered ? e->seq[event->topic]++ : 0;
    /* Encoded even while muted, since a later process sends the last model to its subscribers. Without memory
     * late subscribers get the next one. */
    if (e->keeps_model && event->topic == SVI_TOPIC_MODEL &&
        svi_event_encode(event, &e->last_model) != SVS_OK)
        e->last_model.size = 0;
    if (alert && strcmp(event->as.alert.state, "open") == 0)
        publish_open(e, event);
    else
        e->sink(e->user, event);
}

/* Which scores a caller wants must not change the state, so neither number nor counter moves. */
static void publish_unnumbered(struct svi_engine *e, struct svi_event *event) {
    svi_engine_settle(e);
    event->stream = e->s->stream;
    event->epoch = e->epoch;
    event->seq = 0;
    e->sink(e->user, event);
}

/* The part of a score event that must be read at the step. Novelty may follow later, on another thread, and
 * svi_publish_score then completes the event. */
void svi_fill_score(struct svi_engine *e, const struct svi_message *m, const svs_step *step,
                    struct svi_score *score) {
    struct svi_event *event = &score->event;
    *event = (struct svi_event){.topic = SVI_TOPIC_SCORE, .ts = e->event_ts};
    event->as.score.id = m->id;
    event->as.score.y = m->y;
    event->as.score.scores = step->scores;
    /* Method none makes no prediction: the event is sent for its novelty. */
    event->as.score.rows = e->s->method == SVI_METHOD_NONE ? 0 : step->rows;
    event->as.score.proba = e->quality_stage.proba;
    event->as.score.proba_count = e->quality_stage.proba_count;
    event->as.score.class_count = step->rows > 1          ? step->rows
                                  : step->class_count < 2 ? step->class_count
                                                          : 2; /* a refit that serves may know fewer */
    event->as.score.version = step->version;
    event->as.score.bank = svi_engine_is_ensemble(e) && e->s->serve != SVI_SERVE_LINEAR;
    event->as.score.merged = e->refit->merges && e->refit->serves;
    event->as.score.members = svi_engine_bank_members(e, &e->scratch->members) ? &e->scratch->members : NULL;
    if (e->quality_stage.ranged) {
        svi_interval_around(e->quality_stage.ends, step->scores[0], step->leverage, score->interval);
        event->as.score.interval = score->interval;
    }
    event->as.score.mark = e->common->mark;
    event->as.score.x = m->x;
    event->as.score.d = m->d;
    event->as.score.gaps = m->gaps;
    score->predicted = step->predicted;
}

/* Completes a score event, adds it to the reply and sends it, as far as they are due. The predicted class is
 * kept as an index until here: indices do not change while samples wait, but the names may have moved in
 * memory. */
void svi_publish_score(struct svi_engine *e, struct svi_score *score,
                       const struct svi_alert_scores *novelty) {
    struct svi_event *event = &score->event;
    event->as.score.judged = novelty->judged;
    event->as.score.novelty = novelty->novelty;
    event->as.score.p = novelty->p;
    event->as.score.alarm = novelty->alarm;
    event->as.score.surprise = novelty->surprise;
    event->as.score.anomaly = novelty->anomaly;
    const bool classed = e->s->method != SVI_METHOD_NONE && e->s->task != SVS_REGRESS;
    event->as.score.classes = classed ? svi_learner_classes(e->learner) : NULL;
    if (e->s->method == SVI_METHOD_NONE)
        event->as.score.yhat = svs_none();
    else if (e->s->task == SVS_REGRESS)
        event->as.score.yhat = svs_real(event->as.score.scores[0]);
    else
        event->as.score.yhat = svs_learner_class(e->learner, score->predicted);
    if (score->reply)
        svi_reply_scores_event(score->reply, event);
    /* A reply may ask for the score of a sample whose score event is not due. */
    if (!score->published)
        return;
    event->as.score.predicted = classed ? score->predicted : -1;
    if (e->common->scores_unnumbered) {
        publish_unnumbered(e, event);
        return;
    }
    /* After the unnumbered way out, as this counter is part of the state. */
    e->kept[SVI_KEPT_PUBLISHED_SCORES]++;
    svi_publish(e, event);
}

/* Numbers an alert of novelty or, with a measure, of quality. An update or a close repeats the number of its
 * open. A verdict names an alert by this number, so the policy is given it as well. A novelty alert may join
 * an alert of a rule (engine_cases.c). False: the event is part of another alert and is not published. */
static bool alert_number(struct svi_engine *e, struct svi_alert_event *a) {
    struct svi_episodes *n = &e->episodes;
    if (!a->measure) {
        a->kind = "novelty";
        return svi_engine_case_novelty(e, a);
    }
    if (strcmp(a->state, "open") == 0)
        n->quality = ++n->count;
    a->alert = n->quality;
    return true;
}

void svi_publish_alert(struct svi_engine *e, const struct svi_alert_report *r, double ts) {
    struct svi_event event = {.topic = SVI_TOPIC_ALERT, .ts = ts};
    event.as.alert = r->event;
    if (alert_number(e, &event.as.alert))
        svi_publish(e, &event);
}

/* A verdict is kept among the events of alerts, and not published: nothing has happened to the stream. */
void svi_publish_verdict(struct svi_engine *e, const struct svi_given_verdict *v, double now) {
    char subject[SVI_SUBJECT], shown[4 * SVI_SUBJECT], by[4 * SVS_NAME_MAX + 1];
    char text[sizeof shown + sizeof by + 80];
    const char *of = svi_subject(e->s->stream, e->label, subject);
    struct svi_event event = {.topic = SVI_TOPIC_ALERT, .ts = now};
    /* Both names are from outside: a text for people must not carry their bytes as they are. */
    svi_escape(shown, sizeof shown, of, strlen(of));
    svi_escape(by, sizeof by, v->by, strlen(v->by));
    snprintf(text, sizeof text, "%s%salert %" PRId64 " %s%s%s%s", shown, shown[0] ? " " : "", v->alert,
             v->confirmed ? "confirmed" : "rejected", by[0] ? " by " : "", by,
             v->confirmed ? "" : ": nothing was wrong");
    event.as.alert = (struct svi_alert_event){.kind = "novelty",
                                              .alert = v->alert,
                                              .state = SVI_ALERT_VERDICT,
                                              .kept_only = true,
                                              .confirmed = v->confirmed,
                                              .by = v->by[0] ? v->by : NULL,
                                              .text = text};
    svi_publish(e, &event);
}

/* Remarks have a count by code but are not refusals: the input that they are about was accepted. */
void svi_publish_error(struct svi_engine *e, svs_code code, const char *reason, const void *bytes,
                       size_t length, double now) {
    struct svi_event event = {.topic = SVI_TOPIC_ERROR, .ts = now};
    e->kept[SVI_KEPT_REFUSED] += !svi_code_is_remark(code);
    event.as.error.code = code;
    event.as.error.reason = reason;
    event.as.error.count = ++e->refused[code];
    event.as.error.sample = bytes;
    event.as.error.sample_size = length < SAMPLE_BYTES ? length : SAMPLE_BYTES;
    svi_publish(e, &event);
}

void svi_engine_refuse(svi_engine *e, svs_code code, const char *reason, const void *bytes, size_t length,
                       double now) {
    bool known = code > SVS_OK && code < SVS_CODE_COUNT;
    e->out_of_memory_before += code == SVS_NO_MEMORY; /* the state of this engine is complete all the same */
    svi_publish_error(e, known ? code : SVS_INVALID, reason, bytes, length, now);
}

/* Called before a row is accepted, so that no model event fails later for lack of memory for names. Doubling
 * keeps the cost of a row constant when columns arrive one at a time. */
svs_code svi_publish_reserve(struct svi_engine *e, int d, svs_error *err) {
    if (d <= e->name_capacity)
        return SVS_OK;
    int capacity = 2 * e->name_capacity > d ? 2 * e->name_capacity : d;
    const char **names = svi_alloc_plain_array((size_t)capacity, sizeof *names);
    if (!names)
        return svi_fail_memory(err, "the names of more features");
    if (e->names)
        memcpy(names, e->names, (size_t)e->name_count * sizeof *names);
    svi_free(e->names);
    e->names = names;
    e->name_capacity = capacity;
    return SVS_OK;
}

/* The names of the first d columns, NULL when the stream has none, or not for all of them. Only new ones are
 * looked up: an accepted name neither moves nor changes until features are reassigned or pruned, which lowers
 * name_count. */
static const char *const *names_of(struct svi_engine *e, int d) {
    if (d < 1 || e->schema.shape.names_kept < d || d > e->name_capacity)
        return NULL;
    for (; e->name_count < d; e->name_count++)
        e->names[e->name_count] = svs_features_name(e->schema.shape.names, e->name_count);
    return e->names;
}

/* The key `schema` of a model: how raw rows become its features, if names alone do not say that. It includes
 * the means where they replace missing values, or would for some of the forms in which rows arrive. */
svs_code svi_engine_describe(struct svi_engine *e, svs_model *m, svs_error *err) {
    m->features = names_of(e, m->d);
    const struct svi_schema *s = &e->schema;
    const bool filled = e->kept[SVI_KEPT_FILLED_MISSING] > 0;
    const bool means = s->o.missing == SVI_MISSING_MEAN || s->o.missing == SVI_MISSING_AUTO;
    if (!m->features || !svi_schema_matters(s, filled))
        return SVS_OK;
    /* Most streams need no means, so their array is made when first needed. */
    if (means && !e->means && !(e->means = svi_alloc_array((size_t)e->s->max_features, sizeof *e->means)))
        return svi_fail_memory(err, "the means of the features");
    /* A feature that stands for a category, or that has no column now, has no mean to send. */
    for (int j = 0; means && j < m->d; j++)
        if (!s->columns || (!s->one_hot[j] && s->owner[j] >= 0))
            e->means[j] = svi_learner_mean(e->learner, j);
    e->columns_of_model.size = 0;
    if (svi_schema_encode(s, m->d, means ? e->means : NULL, e->s->zone, &e->columns_of_model) != SVS_OK)
        return svi_fail_memory(err, "the schema of a model");
    m->schema = e->columns_of_model.data;
    m->schema_size = e->columns_of_model.size;
    return SVS_OK;
}

/* Replaces *m by the model of the refit, but keeps what only the learner knows. */
static void take_refit(const struct svi_engine *e, svs_model *m) {
    const svs_value *classes = m->classes;
    const int64_t learned = m->learned;
    *m = e->refit->model;
    m->classes = classes;
    m->learned = learned;
    m->serves = e->refit->serves;
    m->elsewhere = false;
}

/* The order matters: take_refit overwrites all of *m, so what describes the present state is set after it. */
svs_code svi_engine_weights(svi_engine *e, svs_model *m, svs_error *err) {
    SVI_TRY(e->bank ? svi_engine_bank_model(e, m, err) : svs_learner_model(e->learner, m, err));
    if (e->refit->serves)
        take_refit(e, m);
    m->elsewhere = m->elsewhere || (e->stack && e->s->serve != SVI_SERVE_LINEAR);
    m->seen = e->kept[SVI_KEPT_SEEN];
    m->calibration = svi_quality_stage_law(&e->quality_stage, m);
    return SVS_OK;
}

static int engine_quality(struct svi_engine *e, struct svi_figure *out) {
    return svi_quality_stage_figures(&e->quality_stage, out);
}

int svi_engine_quality(struct svi_engine *e, const struct svi_figure **figures) {
    *figures = e->scratch->quality;
    return engine_quality(e, e->scratch->quality);
}

svs_code svi_engine_model(svi_engine *e, svs_model *m, const struct svi_figure **quality, int *quality_count,
                          svs_error *err) {
    SVI_TRY(svi_engine_weights(e, m, err));
    *quality_count = svi_engine_quality(e, quality);
    return svi_engine_describe(e, m, err);
}

/* The event as a request for the present model gets it, with the number of the last one sent. svi_publish
 * replaces that number where the event is published. */
svs_code svi_engine_model_event(svi_engine *e, svs_model *m, struct svi_event *event, svs_error *err) {
    uint64_t sent = e->seq[SVI_TOPIC_MODEL];
    *event = (struct svi_event){.topic = SVI_TOPIC_MODEL,
                                .stream = e->s->stream,
                                .epoch = e->epoch,
                                .seq = sent > 0 ? sent - 1 : 0,
                                .ts = e->event_ts};
    event->as.model.model = m;
    return svi_engine_model(e, m, &event->as.model.quality, &event->as.model.quality_count, err);
}

/* Publishes the bank with the `seq` of the model just sent. While muted the description is not made: the
 * number follows from that of the model. */
static void publish_bank(struct svi_engine *e) {
    struct svi_bank_description description;
    struct svi_event event;
    if (!e->common->muted && svi_engine_bank_event(e, &description, &event, NULL) == SVS_OK) {
        e->seq[SVI_TOPIC_BANK] = event.seq;
        svi_bank_weights_sent(&e->bank_weights, &description);
        svi_publish(e, &event);
    }
}

void svi_engine_publish_model(svi_engine *e, bool force) {
    svs_model m;
    svs_error err;
    struct svi_event event;
    svi_engine_settle(e);
    /* A refit that serves has its own version: what the learner learns meanwhile is no reason to publish it
     * again. */
    uint64_t version = e->refit->serves ? e->refit->model.version : svs_learner_version(e->learner);
    if (version == e->published_version && !force) /* subscribers have this model */
        return;
    svs_code code = svi_engine_model_event(e, &m, &event, &err);
    /* published_version stays, so the next due time tries again. */
    if (code != SVS_OK) {
        svi_publish_error(e, code, err.text, NULL, 0, e->event_ts);
        return;
    }
    e->published_version = version;
    e->kept[SVI_KEPT_PUBLISHED_MODELS]++;
    svi_publish(e, &event);
    /* After the model, as it takes that event's number. */
    if (e->bank)
        publish_bank(e);
}

/* A finished refit is published even if the online model continues to serve. */
void svi_publish_refit(struct svi_engine *e) {
    svs_model m;
    struct svi_event event;
    svs_error err;
    svi_engine_settle(e);
    /* The event of the online model is made first, for the fields that take_refit keeps. */
    if (!e->refit->serves && svi_engine_model_event(e, &m, &event, &err) == SVS_OK) {
        take_refit(e, &m);
        m.seen = e->kept[SVI_KEPT_SEEN];
        m.calibration = svi_quality_stage_law(&e->quality_stage, &m);
        m.features = names_of(e, m.d);
        if (svi_engine_describe(e, &m, &err) != SVS_OK)
            m.schema = NULL;
        e->kept[SVI_KEPT_PUBLISHED_MODELS]++;
        svi_publish(e, &event);
    }
    /* Last, because subscribers and last_model retain the latest model event: it must be the one that serves.
     */
    svi_engine_publish_model(e, true);
}

/* Kept counters are part of the state, whose order is not that of the published ones. */
int svi_kept_place(int kept) {
    static const int places[SVI_KEPT_COUNT] = {[SVI_KEPT_SEEN] = SVI_COUNTER_SEEN,
                                               [SVI_KEPT_LABELLED] = SVI_COUNTER_LABELLED,
                                               [SVI_KEPT_REFUSED] = SVI_COUNTER_REFUSED,
                                               [SVI_KEPT_DUPLICATES] = SVI_COUNTER_DUPLICATES,
                                               [SVI_KEPT_DROPPED_MISSING] = SVI_COUNTER_DROPPED_MISSING,
                                               [SVI_KEPT_CARRIED_MISSING] = SVI_COUNTER_CARRIED_MISSING,
                                               [SVI_KEPT_FILLED_MISSING] = SVI_COUNTER_FILLED_MISSING,
                                               [SVI_KEPT_CLIPPED] = SVI_COUNTER_CLIPPED,
                                               [SVI_KEPT_PUBLISHED_MODELS] = SVI_COUNTER_PUBLISHED_MODELS,
                                               [SVI_KEPT_PUBLISHED_SCORES] = SVI_COUNTER_PUBLISHED_SCORES};
    return places[kept];
}

/* Counters of the learner. They are read from the parts when due, so they are not kept twice. */
static void take_health(const struct svi_engine *e, union svi_amount *of) {
    svs_health h;
    svs_learner_health(e->learner, &h);
    of[SVI_COUNTER_LEARNED].count = h.learned;
    of[SVI_COUNTER_HELD].count = h.held;
    of[SVI_COUNTER_WAITING].count = h.waiting;
    of[SVI_COUNTER_LABELS_JOINED].count = h.labels_joined;
    of[SVI_COUNTER_LABELS_EXPIRED].count = h.labels_expired;
    of[SVI_COUNTER_LABELS_EVICTED].count = h.labels_evicted;
    of[SVI_COUNTER_FORGOTTEN].count = h.forgotten;
    of[SVI_COUNTER_REBUILDS].count = h.rebuilds;
    of[SVI_COUNTER_REBUILDS_UNPLANNED].count = h.alarms;
    of[SVI_COUNTER_WINDOW_READS].count = h.window_reads;
    of[SVI_COUNTER_RESIDUAL].number = h.residual;
    of[SVI_COUNTER_CONDITION].number = h.condition;
    of[SVI_COUNTER_D].count = svs_learner_dimension(e->learner);
    of[SVI_COUNTER_CLASSES].count = svs_learner_class_count(e->learner);
    of[SVI_COUNTER_MODEL_VERSION].count = (int64_t)svs_learner_version(e->learner);
}

/* Until a refit is done, its objective, gap and time are unknown: NAN, not 0. */
static void take_refits(const struct svi_engine *e, union svi_amount *of) {
    const struct svi_refit_policy *b = e->refit;
    of[SVI_COUNTER_REFITS].count = b->done;
    of[SVI_COUNTER_REFITS_FAILED].count = b->failed;
    of[SVI_COUNTER_REFITS_SKIPPED].count = b->skipped;
    of[SVI_COUNTER_REFITS_DISCARDED].count = b->overtaken;
    of[SVI_COUNTER_REFIT_AT].count = b->model.at;
    of[SVI_COUNTER_MERGED_MODELS].count = b->merged;
    of[SVI_COUNTER_REFIT_ITERATIONS].count = b->model.iterations;
    of[SVI_COUNTER_REFIT_OBJECTIVE].number = b->done ? b->model.objective : NAN;
    of[SVI_COUNTER_REFIT_GAP].number = b->done ? b->model.gap : NAN;
    of[SVI_COUNTER_REFIT_MILLISECONDS].number = b->done ? b->model.milliseconds : NAN;
    const struct svi_tree_waits trees = e->bank ? svi_bank_tree_waits(e->bank) : (struct svi_tree_waits){0};
    of[SVI_COUNTER_TREE_FITS].count = trees.fits;
    of[SVI_COUNTER_TREE_WAITS].count = trees.count;
    of[SVI_COUNTER_TREE_WAIT_SECONDS].number = trees.seconds;
    of[SVI_COUNTER_TREE_WAIT_LONGEST].number = trees.longest;
    svi_refit_policy_quality(b, &of[SVI_COUNTER_ACCURACY_ONLINE].number,
                             &of[SVI_COUNTER_ACCURACY_REFIT].number);
}

/* The level has one unit in all cases, a p: under a policy it moves, else it is the setting. */
static void take_novelty(const struct svi_engine *e, union svi_amount *of) {
    const struct svi_alert_stage *s = e->novelty;
    struct svi_detector_health h = {0};
    if (s->detector)
        svi_detector_health(s->detector, &h);
    of[SVI_COUNTER_ALERTS].count = s->alert.opened;
    of[SVI_COUNTER_ALERTS_SUPPRESSED].count = s->alert.suppressed;
    of[SVI_COUNTER_ALERT_OPEN].count = s->alert.open;
    of[SVI_COUNTER_ALERTS_TRUE].count = s->verdicts.marked_true;
    of[SVI_COUNTER_ALERTS_FALSE].count = s->verdicts.marked_false;
    of[SVI_COUNTER_ALERT_PRECISION].number = svi_verdicts_precision(&s->verdicts);
    of[SVI_COUNTER_ALERT_BUDGET].number = s->policy.o.a_day;
    of[SVI_COUNTER_ALERTS_PER_DAY].number = svi_alert_policy_alerts_a_day(&s->policy);
    of[SVI_COUNTER_ALERT_LEVEL].number = svi_alert_policy_level(&s->policy);
    of[SVI_COUNTER_SMALLEST_P_LEVEL].number = !s->on ? NAN
                                              : svi_alert_policy_is_on(&s->policy)
                                                  ? pow(10, -svi_alert_policy_level(&s->policy))
                                                  : e->s->alert_p;
    of[SVI_COUNTER_QUALITY_ALERTS].count = e->quality_stage.alarm.opened;
    of[SVI_COUNTER_QUALITY_ALERT_OPEN].count = e->quality_stage.alarm.published;
    of[SVI_COUNTER_RULE_ALERTS].count = e->rules->opened;
    of[SVI_COUNTER_RULE_ALERTS_OPEN].count = svi_rules_open(e->rules);
    of[SVI_COUNTER_NOVELTY_POINTS].count = h.points;
    of[SVI_COUNTER_NOVELTY_ADDED].count = h.joined;
    of[SVI_COUNTER_NOVELTY_REFUSED].count = s->refused;
    of[SVI_COUNTER_NOVELTY_HELD_OUT].count = h.held_out;
    of[SVI_COUNTER_NOVELTY_CALIBRATION].count = h.calibration;
    of[SVI_COUNTER_NOVELTY_REFRESHES].count = h.refreshes;
    of[SVI_COUNTER_NOVELTY_LEVEL].number = s->detector ? svi_detector_level(s->detector) : NAN;
}

/* Figures that are texts: which model serves, why the last refit failed, why novelty is off. */
static int put_words(const struct svi_engine *e, struct svi_figure *out) {
    const struct svi_refit_policy *b = e->refit;
    const char *const online = !svi_engine_is_ensemble(e)        ? "online"
                               : e->s->serve == SVI_SERVE_LINEAR ? "linear"
                                                                 : "bank";
    const char *const words[][2] = {{"serving", !b->serves  ? online
                                                : b->merges ? "merged"
                                                : b->loaded ? "loaded"
                                                            : "refit"},
                                    {"refit_error", b->reason},
                                    {"novelty_error", e->novelty->reason}};
    int filled = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i][1][0])
            out[filled++] =
                (struct svi_figure){.name = words[i][0], .type = SVI_TEXT, .as.text = words[i][1]};
    return filled;
}

int svi_engine_features(const svi_engine *e) {
    return e->schema.shape.d;
}

/* Queued samples are settled first: the counts must include each sample accepted before the call. */
void svi_engine_count(struct svi_engine *e, struct svi_counters *c) {
    svi_engine_settle(e);
    for (int i = 0; i < SVI_KEPT_COUNT; i++)
        c->of[svi_kept_place(i)].count = e->kept[i];
    memcpy(c->refused, e->refused, sizeof c->refused);
    take_health(e, c->of);
    take_refits(e, c->of);
    take_novelty(e, c->of);
}

int svi_engine_further_figures(struct svi_engine *e, struct svi_figure *out) {
    int filled = engine_quality(e, out);
    filled += svi_quality_figures_list(e->quality_stage.figures, e->quality_stage.metrics,
                                       svs_learner_class_count(e->learner), out + filled);
    return filled + put_words(e, out + filled);
}

/* The figures are the caller's: with keys they are sums over all engines, which one engine cannot make. */
void svi_engine_publish_stats(struct svi_engine *e, const struct svi_figure *figures, int count, double now) {
    struct svi_event event = {.topic = SVI_TOPIC_STATS, .ts = now};
    event.as.stats.figures = figures;
    event.as.stats.count = count;
    svi_engine_class_table(e, false, &event.as.stats.classes);
    if (event.as.stats.classes.count > SVI_STATS_CLASSES) /* a longer table is sent on request only */
        event.as.stats.classes.count = 0;
    svi_publish(e, &event);
}

uint64_t svi_engine_version(const svi_engine *e) {
    return svs_learner_version(e->learner);
}

int64_t svi_engine_errors(const svi_engine *e) {
    return e->kept[SVI_KEPT_REFUSED];
}

/* Of the notices only those that svi_publish_error counts as refused: remarks are not. */
int64_t svi_engine_notices(const svi_engine *e) {
    return e->refused[SVS_CLOCK_MOVED] + e->refused[SVS_CONFIG_CHANGED] + e->refused[SVS_STATE_LOADED];
}

const int64_t *svi_engine_refusals(const svi_engine *e) {
    return e->refused;
}
