/* What comes in: every element goes the same way alone, however it was framed. */
#include "engine/engine.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "engine/engine_state.h"
#include "engine/keeper.h"
#include "engine/origin.h"
#include "wire/cursor.h"
#include "wire/decode.h"

#define VALUE_MAX 1e100 /* the largest feature the learner computes with */

void svi_engine_free(svi_engine **e) {
    if (!*e)
        return;
    svs_learner_free(&(*e)->learner);
    svi_metrics_free(&(*e)->metrics);
    svi_producers_free(&(*e)->producers);
    svi_beside_free(&(*e)->beside);
    svi_sentry_free(&(*e)->sentry);
    svi_shape_clear(&(*e)->shape);
    svi_free((*e)->carried);
    svi_free((*e)->names);
    svi_bytes_clear(&(*e)->last_model);
    svi_free(*e);
    *e = NULL;
}

static int64_t metrics_window(const struct svi_settings *s) {
    if (s->window < 1)
        return SVI_METRICS_WINDOW;
    return s->window < SVI_METRICS_LONG ? s->window : SVI_METRICS_LONG;
}

static svs_code new_carried(struct svi_engine *e, svs_error *err) {
    if (e->s.missing != SVI_MISSING_CARRY)
        return SVS_OK;
    e->carried = svi_alloc_array((size_t)e->s.max_features, sizeof *e->carried);
    if (!e->carried)
        return svi_fail_memory(err, "the last values of the features");
    for (int j = 0; j < e->s.max_features; j++)
        e->carried[j] = NAN;
    return SVS_OK;
}

static svs_code new_parts(struct svi_engine *e, svs_error *err) {
    svs_options o;
    svi_settings_learner(&e->s, &o);
    svs_code code = svi_shape_init(&e->shape, (int)e->s.max_features, e->s.features, err);
    if (code == SVS_OK)
        code = new_carried(e, err);
    if (code == SVS_OK)
        code = svi_publish_reserve(e, e->shape.d, err);
    if (code == SVS_OK)
        code = svi_beside_new(&e->beside, &e->s, err);
    if (code == SVS_OK)
        code = svi_sentry_new(&e->sentry, &e->s, err);
    if (code != SVS_OK)
        return code;
    e->learner = svs_learner_new(&o, e->shape.d, err);
    e->metrics = e->learner ? svi_metrics_new(o.task, metrics_window(&e->s), o.max_classes, err) : NULL;
    e->producers = e->metrics ? svi_producers_new(e->s.max_sources, err) : NULL;
    return e->producers ? SVS_OK : SVS_INVALID;
}

svi_engine *svi_engine_new(const struct svi_settings *s, uint64_t epoch, svi_sink *sink, void *user,
                           svs_error *err) {
    struct svi_engine *e = svi_alloc(sizeof *e);
    if (!e) {
        svi_fail_memory(err, "the engine");
        return NULL;
    }
    openblas_set_num_threads((int)s->threads); /* another number gives other bits */
    e->s = *s;
    e->epoch = epoch;
    e->sink = sink;
    e->user = user;
    e->stream_length = strlen(s->stream);
    e->time = -DBL_MAX;
    e->started = e->rate_since = e->counters.of[SVI_COUNTER_RATE].number = NAN;
    e->next_publish = s->publish_every > 0 ? s->publish_every : -1;
    e->next_score = s->scores > 0 ? s->scores : -1;
    if (new_parts(e, err) == SVS_OK)
        e->published_version = svs_learner_version(e->learner);
    else
        svi_engine_free(&e);
    return e;
}

double svi_engine_memory(const struct svi_settings *s, int d, int classes) {
    svs_options o;
    svi_settings_learner(s, &o);
    double column =
        sizeof(double) + sizeof(uint32_t) + (s->missing == SVI_MISSING_CARRY ? sizeof(double) : 0);
    double name = 2 * sizeof(char *) + SVS_NAME_MAX; /* in the registry, and as models point to it */
    const double state = sizeof(struct svi_engine) + svs_learner_memory(&o, d, classes) +
                         svi_metrics_memory(o.task, metrics_window(s), o.max_classes) +
                         svi_producers_memory(s->max_sources) + svi_sentry_memory(s, d) +
                         (double)s->max_features * column + d * name;
    const double kept = s->state_dir[0] ? svi_keeper_memory(s, state) : 0;
    return state + kept + svi_refit_memory(s, d, classes);
}

/* ---- what a message must meet before the learner sees it; nothing here changes anything but x and err */

static svs_code check_origin(const struct svi_engine *e, const struct svi_message *m, double now,
                             svs_error *err) {
    char shown[80];
    if (m->stream.kind == SVS_STR &&
        (m->stream.length != e->stream_length || memcmp(m->stream.as.s, e->s.stream, e->stream_length) != 0))
        return svi_fail(err, SVS_OTHER_STREAM, "the sample is for stream '%s', this process serves '%s'",
                        svi_escape(shown, sizeof shown, m->stream.as.s, m->stream.length), e->s.stream);
    if (m->ts > now + e->s.ts_ahead)
        return svi_fail(err, SVS_TS_AHEAD,
                        "ts %.3f lies %.3f s ahead of the clock, ts.ahead allows %g: is it in seconds?",
                        m->ts, m->ts - now, e->s.ts_ahead);
    return SVS_OK;
}

static svs_code check_label(const struct svi_engine *e, svs_value y, svs_error *err) {
    char shown[80];
    bool regress = e->s.task == SVS_REGRESS;
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

static svs_code refuse_missing(const struct svi_engine *e, int column, svs_error *err) {
    char shown[80];
    const char *name = svs_features_name(e->shape.names, column);
    const char *why =
        e->carried ? "has no earlier value to carry over" : "is missing, which the setting missing refuses";
    if (name)
        return svi_fail(err, SVS_MISSING_VALUE, "feature %d ('%s') %s", column,
                        svi_escape(shown, sizeof shown, name, strlen(name)), why);
    return svi_fail(err, SVS_MISSING_VALUE, "feature %d %s", column, why);
}

/* Puts the last accepted values in the place of missing ones, or refuses. */
static svs_code fill_missing(struct svi_engine *e, const struct svi_message *m, svs_error *err) {
    for (int j = 0; j < m->d; j++) {
        if (!isnan(m->x[j]))
            continue;
        if (!e->carried || isnan(e->carried[j]))
            return refuse_missing(e, j, err);
        m->x[j] = e->carried[j];
    }
    e->counters.of[SVI_COUNTER_CARRIED_MISSING].count += m->missing;
    return SVS_OK;
}

static bool class_is_known(const struct svi_engine *e, svs_value y) {
    for (int k = 0; k < svs_learner_class_count(e->learner); k++)
        if (svs_value_equal(svs_learner_class(e->learner, k), y))
            return true;
    return false;
}

/* Would the learner refuse a sample that brings new columns? It must be known before they are made, so that a
 * refused sample leaves none behind. */
static svs_code check_before_growth(const struct svi_engine *e, const struct svi_message *m, svs_error *err) {
    for (int j = 0; j < m->d; j++)
        if (!(fabs(m->x[j]) <= VALUE_MAX))
            return svi_fail(err, SVS_TOO_LARGE,
                            "feature %d is %g; values beyond 1e100 cannot be computed with", j, m->x[j]);
    bool full = svs_learner_class_count(e->learner) >= e->s.max_classes;
    if (e->s.task == SVS_CLASSIFY && m->y.kind != SVS_NONE && full && !class_is_known(e, m->y))
        return svi_fail(err, SVS_LIMIT, "y is one class more than max.classes (%d)", (int)e->s.max_classes);
    return SVS_OK;
}

/* The learner's columns come last: once it has them, the shape has to follow. */
static svs_code make_room(struct svi_engine *e, const struct svi_message *m, bool grows, svs_error *err) {
    svs_code code = grows ? check_before_growth(e, m, err) : SVS_OK;
    if (code == SVS_OK)
        code = svi_sentry_reserve(&e->sentry, m, err);
    if (code == SVS_OK)
        code = svi_publish_reserve(e, m->d, err);
    return code == SVS_OK && grows ? svs_learner_grow(e->learner, m->d, err) : code;
}

/* ---- one message */

static void judge(struct svi_engine *e, const svs_step *step) {
    if (e->s.task == SVS_REGRESS) {
        if (isnan(step->target))
            return;
        svi_metrics_value(e->metrics, step->target, step->scores[0]);
    } else {
        if (step->label < 0)
            return;
        svi_metrics_class(e->metrics, step->label, step->predicted, step->scores, step->rows,
                          step->class_count);
    }
    e->counters.of[SVI_COUNTER_LABELLED].count++;
}

static void publish_due(struct svi_engine *e, int64_t seen) {
    bool due = e->s.publish_seconds > 0 && e->time - e->published_time >= e->s.publish_seconds;
    if (seen == e->next_publish) {
        e->next_publish += e->s.publish_every;
        due = true;
    }
    if (due)
        svi_engine_publish_model(e, false);
}

static void accept(struct svi_engine *e, const struct svi_message *m, const svs_step *step, double now) {
    int64_t seen = ++e->counters.of[SVI_COUNTER_SEEN].count;
    e->event_ts = isnan(m->ts) ? now : m->ts;
    if (seen == 1)
        e->published_time = e->time;
    if (e->carried)
        memcpy(e->carried, m->x, (size_t)m->d * sizeof *m->x);
    judge(e, step);
    const enum svi_alert_change change = svi_sentry_judge(&e->sentry, m, e->time);
    if (seen == e->next_score) {
        e->next_score += e->s.scores;
        svi_publish_score(e, m, step);
    }
    svi_sentry_tell(e, m, change);
    svi_sentry_learn(&e->sentry, m);
    if (svi_beside_step(e))
        svi_engine_publish_model(e, true);
    publish_due(e, seen);
}

static svs_code learn(struct svi_engine *e, const struct svi_message *m, double now, svs_error *err) {
    if (!m->has_x)
        return svi_fail(err, SVS_MISSING_X, "the sample has no x");
    svs_code code = svi_shape_fits(&e->shape, m, err);
    if (code == SVS_OK && m->missing > 0 && e->s.missing == SVI_MISSING_DROP) {
        e->counters.of[SVI_COUNTER_DROPPED_MISSING].count++;
        svi_shape_restore(&e->shape);
        svi_sentry_gap(&e->sentry);
        return SVS_OK;
    }
    if (code == SVS_OK && m->missing > 0)
        code = fill_missing(e, m, err);
    if (code == SVS_OK)
        code = check_label(e, m->y, err);
    bool grows = m->d > svs_learner_dimension(e->learner);
    if (code == SVS_OK)
        code = make_room(e, m, grows, err);
    if (code != SVS_OK)
        return code;
    svs_step step;
    svs_sample sample = {.x = m->x, .d = m->d, .id = m->id, .y = m->y, .weight = m->weight};
    if (e->s.method == SVI_METHOD_NONE) /* nothing to learn, nothing to wait for */
        sample.id = sample.y = svs_none();
    double time = fmax(e->time, isnan(m->ts) ? now : m->ts);
    code = svs_learner_step(e->learner, &sample, time, &step, err);
    if (code == SVS_OK || grows)
        svi_shape_commit(&e->shape, m); /* new columns stay even if memory ran out behind them */
    if (code != SVS_OK)
        return code;
    e->time = time;
    svi_beside_score(&e->beside, m, &step);
    accept(e, m, &step, now);
    return SVS_OK;
}

/* Is it said of which sample a command speaks, and could there be such a one? */
static svs_code check_command(const struct svi_engine *e, const char *op, svs_value id, svs_error *err) {
    if (id.kind == SVS_NONE)
        return svi_fail(err, SVS_BAD_ID, "%s needs the id of the sample", op);
    if (e->s.method == SVI_METHOD_NONE)
        return svi_fail(err, SVS_UNKNOWN_ID, "method none keeps no samples: send y with x, or choose alsvm");
    return SVS_OK;
}

static svs_code label(struct svi_engine *e, svs_value id, svs_value y, svs_error *err) {
    svs_step step;
    svs_code code = check_command(e, "label", id, err);
    if (code == SVS_OK && y.kind == SVS_NONE)
        return svi_fail(err, SVS_BAD_LABEL, "label needs a y");
    if (code == SVS_OK)
        code = check_label(e, y, err);
    if (code == SVS_OK)
        code = svs_learner_label(e->learner, id, y, e->time, &step, err);
    if (code == SVS_OK)
        judge(e, &step);
    return code;
}

static svs_code forget(struct svi_engine *e, svs_value id, int *count, svs_error *err) {
    svs_code code = check_command(e, "forget", id, err);
    return code == SVS_OK ? svs_learner_forget(e->learner, id, e->time, count, err) : code;
}

/* A command is no sample: it has a time only if it says so. */
static svs_code obey(struct svi_engine *e, const struct svi_message *m, svs_error *err) {
    if (m->ts > e->time)
        e->time = m->ts;
    return m->op == SVI_LABEL ? label(e, m->id, m->y, err) : forget(e, m->id, NULL, err);
}

static svs_code take(struct svi_engine *e, const struct svi_message *m, double now, svs_error *err) {
    svs_code code = check_origin(e, m, now, err);
    if (code != SVS_OK)
        return code;
    return m->op == SVI_LEARN ? learn(e, m, now, err) : obey(e, m, err);
}

static void undo(struct svi_engine *e, svs_code code, const svs_error *err, const void *bytes, size_t length,
                 double now) {
    svi_shape_restore(&e->shape);
    svi_publish_error(e, code, err->text, bytes, length, now);
}

svs_code svi_engine_message(svi_engine *e, const struct svi_message *m, const void *bytes, size_t length,
                            double now, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    svs_code code = take(e, m, now, err);
    if (code != SVS_OK)
        undo(e, code, err, bytes, length, now);
    return code;
}

struct svi_shape *svi_engine_shape(svi_engine *e) {
    return &e->shape;
}

/* ---- one frame */

static void refuse(struct svi_engine *e, svs_code code, const svs_error *err, const void *bytes,
                   size_t length, double now, struct svi_receipt *r) {
    undo(e, code, err, bytes, length, now);
    r->refused++;
    r->error = *err;
    r->error.code = code;
}

static void take_element(struct svi_engine *e, struct svi_frame *f, bool duplicate, double now,
                         struct svi_receipt *r) {
    struct svi_message m;
    svs_error err;
    err.text[0] = '\0';
    svs_code code = svi_frame_next(f, &e->shape, &m, &err);
    if (duplicate) {
        svi_shape_restore(&e->shape);
        e->counters.of[SVI_COUNTER_DUPLICATES].count++;
        r->duplicates++;
        return;
    }
    if (code == SVS_OK)
        code = take(e, &m, now, &err);
    if (code == SVS_OK)
        r->accepted++;
    else
        refuse(e, code, &err, f->element, f->element_size, now, r);
}

/* Where a source goes on behind a loss its first message there tells; a message that comes later and does not
 * follow was refused when it came, and is again. */
static bool may_jump(const struct svi_engine *e, const struct svi_producer *p, int64_t first) {
    return e->gaps_allowed && first <= SVI_NEXT_MAX / 2 && (p ? p->losses : 0) < e->losses;
}

/* Holds the frame's number against the table. *skip: its first elements that were taken before. */
static svs_code enter(struct svi_engine *e, const struct svi_frame *f, struct svi_receipt *r,
                      struct svi_producer **producer, int64_t *skip, svs_error *err) {
    struct svi_origin o;
    svi_origin_read(f, &o);
    if (o.src.type == SVI_NIL && o.n.type == SVI_NIL)
        return SVS_OK;
    if (o.src.type == SVI_NIL || o.n.type == SVI_NIL)
        return svi_fail(err, SVS_NO_SOURCE, "the sample has %s: acknowledged input needs both",
                        o.n.type == SVI_NIL ? "src but no n" : "n but no src");
    if (svi_origin_name(&o, err) != SVS_OK || svi_origin_number(&o, &r->first, err) != SVS_OK)
        return SVS_NO_SOURCE;
    const char *name = (const char *)o.src.body;
    memcpy(r->src, name, o.src.length);
    r->src[o.src.length] = '\0';
    *producer = svi_producers_find(e->producers, name, o.src.length);
    int64_t next = *producer ? (*producer)->next : 0;
    r->n = next - 1;
    if (r->first > next && !may_jump(e, *producer, r->first))
        return svi_fail(err, SVS_GAP, "n is %lld, but %lld comes next: send again from there",
                        (long long)r->first, (long long)next);
    if (!*producer && !(*producer = svi_producers_add(e->producers, name, o.src.length, err)))
        return err->code;
    if (r->first > next)
        (*producer)->next = next = r->first;
    if (r->first + f->left > next) /* not all of it was taken before */
        (*producer)->losses = e->losses;
    *skip = next - r->first < f->left ? next - r->first : f->left;
    return SVS_OK;
}

svs_code svi_engine_frame(svi_engine *e, const void *bytes, size_t length, double now, bool sourced,
                          struct svi_receipt *r) {
    struct svi_receipt scratch;
    struct svi_frame f;
    struct svi_producer *producer = NULL;
    int64_t skip = 0;
    svs_error err;
    err.text[0] = '\0';
    r = r ? r : &scratch;
    r->accepted = r->refused = r->duplicates = 0;
    r->error.code = SVS_OK;
    r->error.text[0] = r->src[0] = '\0';
    r->n = r->first = -1;
    svs_code code = svi_frame_open(&f, bytes, length, &err);
    if (code == SVS_OK && sourced && f.left > 0)
        code = enter(e, &f, r, &producer, &skip, &err);
    int64_t count = code == SVS_OK ? f.left : 0;
    for (int64_t i = 0; i < count; i++)
        take_element(e, &f, i < skip, now, r);
    if (code != SVS_OK)
        refuse(e, code, &err, bytes, length, now, r);
    if (producer && code == SVS_OK && r->first + count > producer->next)
        svi_producer_take(producer, r->first + count, e->era);
    r->n = producer ? producer->next - 1 : r->n;
    r->seq = e->counters.of[SVI_COUNTER_SEEN].count - 1;
    return code;
}

int64_t svi_engine_source_durable(const svi_engine *e, const char *src) {
    const struct svi_producer *p = svi_producers_find(e->producers, src, strlen(src));
    return p ? svi_producer_durable(p, e->era_kept) : -1;
}

int64_t svi_engine_source_next(const svi_engine *e, const char *src) {
    const struct svi_producer *p = svi_producers_find(e->producers, src, strlen(src));
    return p ? p->next : 0;
}

/* ---- commands from outside the stream */

svs_code svi_engine_forget(svi_engine *e, svs_value id, double now, int *count, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    svs_code code = forget(e, id, count, err);
    if (code != SVS_OK)
        svi_publish_error(e, code, err->text, NULL, 0, now);
    return code;
}

svs_code svi_engine_label(svi_engine *e, svs_value id, svs_value y, double now, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    svs_code code = label(e, id, y, err);
    if (code != SVS_OK)
        svi_publish_error(e, code, err->text, NULL, 0, now);
    return code;
}

void svi_engine_reset(svi_engine *e) {
    svs_learner_reset(e->learner);
    svi_metrics_reset(e->metrics);
    svi_beside_reset(&e->beside);
    svi_sentry_end(e, "the stream was reset");
    svi_sentry_reset(&e->sentry);
}

svs_code svi_engine_refit(svi_engine *e, svs_error *err) {
    svs_code code = svi_beside_start(e, err);
    if (code != SVS_OK)
        return code;
    if (e->beside.job->snapshot.active) /* perhaps no sample comes that would copy a little more */
        svi_snapshot_copy(&e->beside.job->snapshot, e->learner, INT64_MAX);
    e->beside.state = SVI_REFIT_READY;
    return SVS_OK;
}
