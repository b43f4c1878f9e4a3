#include "engine/beside.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/engine_state.h"

#define HOLD                                                                                                 \
    0.005 /* of the window: so much better another must be to take over, so that it does not flap            \
           */

svs_code svi_beside_new(struct svi_beside *b, const struct svi_settings *s, svs_error *err) {
    *b = (struct svi_beside){
        .serve = s->serve, .max_features = (int)s->max_features, .max_classes = (int)s->max_classes};
    if (s->refit == 0 || s->window == 0 || s->task == SVS_REGRESS || s->method == SVI_METHOD_NONE)
        return SVS_OK;
    b->every = b->next = s->refit_every > 0 ? s->refit_every : s->window;
    b->seconds = s->refit_seconds;
    b->next_time = INFINITY;
    b->hit_room = SVI_BESIDE_WINDOW;
    b->hits = svi_alloc((size_t)b->hit_room);
    b->job = svi_refit_new(s, err);
    b->state = SVI_REFIT_IDLE;
    if (!b->job)
        return SVS_NO_MEMORY;
    return b->hits ? SVS_OK : svi_fail_memory(err, "the refit");
}

void svi_beside_configure(struct svi_beside *b, const struct svi_settings *s, int64_t seen, double time) {
    const int64_t every = s->refit_every > 0 ? s->refit_every : s->window;
    b->serve = s->serve;
    if (b->state == SVI_REFIT_OFF)
        return;
    if (every != b->every)
        b->next = (seen / every + 1) * every;
    if (s->refit_seconds != b->seconds)
        b->next_time = s->refit_seconds > 0 ? time + s->refit_seconds : INFINITY;
    b->every = every;
    b->seconds = s->refit_seconds;
}

void svi_beside_free(struct svi_beside *b) {
    svi_refit_free(&b->job);
    svi_free(b->hits);
    svi_free(b->W);
    svi_free(b->b);
    svi_free(b->scores);
    *b = (struct svi_beside){0};
}

/* ---- scores */

void svi_beside_score(struct svi_beside *b, const struct svi_message *m, svs_step *step) {
    if (!b->have)
        return;
    if (step->class_count != b->model.class_count) { /* a class has come that it does not know */
        b->have = b->serves = false;
        b->overtaken++;
        return;
    }
    svs_model_scores(&b->model, m->x, b->scores);
    b->predicted = svs_model_predict(&b->model, b->scores);
    if (step->label >= 0) {
        uint8_t now = (uint8_t)((step->predicted == step->label) | (b->predicted == step->label) << 1);
        uint8_t *slot = &b->hits[b->hit_at];
        if (b->hit_count == b->hit_room) {
            b->online -= *slot & 1;
            b->refit -= *slot >> 1;
        } else {
            b->hit_count++;
        }
        *slot = now;
        b->online += now & 1;
        b->refit += now >> 1;
        b->hit_at = b->hit_at + 1 == b->hit_room ? 0 : b->hit_at + 1;
    }
    if (!b->serves)
        return;
    step->scores = b->scores;
    step->rows = b->model.rows;
    step->predicted = b->predicted;
    step->version = b->model.version;
}

void svi_beside_quality(const struct svi_beside *b, double *online, double *refit) {
    *online = b->hit_count ? (double)b->online / (double)b->hit_count : NAN;
    *refit = b->hit_count ? (double)b->refit / (double)b->hit_count : NAN;
}

/* Who should serve? */
static bool refit_should_serve(const struct svi_beside *b) {
    if (!b->have || b->serve == SVI_SERVE_ONLINE)
        return false;
    if (b->serve == SVI_SERVE_REFIT)
        return true;
    if (b->hit_count < SVI_BESIDE_LEAST)
        return b->serves;
    double margin = HOLD * (double)b->hit_count + 1;
    return (double)b->refit > (double)b->online + (b->serves ? -margin : margin);
}

/* ---- the next refit */

static bool two_classes(const struct svi_engine *e, svs_error *err) {
    svs_health h;
    svs_learner_health(e->learner, &h);
    if (svs_learner_class_count(e->learner) >= 2 && h.held >= 2)
        return true;
    svi_fail(err, SVS_UNAVAILABLE, "there is nothing to refit yet: the window needs samples of two classes");
    return false;
}

static svs_code begin(struct svi_engine *e, svs_error *err) {
    struct svi_beside *b = &e->beside;
    if (!two_classes(e, err))
        return SVS_UNAVAILABLE;
    svs_code code = svi_snapshot_begin(&b->job->snapshot, e->learner, err);
    if (code != SVS_OK)
        return code;
    atomic_store(&b->job->cancel, false);
    b->job->begun = e->counters.of[SVI_COUNTER_SEEN].count;
    b->state = SVI_REFIT_COPYING;
    svi_snapshot_copy(&b->job->snapshot, e->learner, SVI_SNAPSHOT_ROWS);
    return SVS_OK;
}

svs_code svi_beside_start(struct svi_engine *e, svs_error *err) {
    struct svi_beside *b = &e->beside;
    if (b->state == SVI_REFIT_OFF)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "refits are off: they need refit other than none, a window, and task classify");
    if (b->state != SVI_REFIT_IDLE)
        return svi_fail(err, SVS_UNAVAILABLE, "a refit is running already");
    return begin(e, err);
}

void svi_beside_restart(struct svi_engine *e) {
    struct svi_beside *b = &e->beside;
    svs_error err;
    if (b->state != SVI_REFIT_LOST || (!b->stale && begin(e, &err) == SVS_OK))
        return;
    b->job->begun = e->counters.of[SVI_COUNTER_SEEN].count;
    b->job->snapshot.count = 0;
    b->state = SVI_REFIT_READY;
}

static bool due(struct svi_beside *b, int64_t seen, double time) {
    bool now = false;
    if (b->seconds > 0 && isinf(b->next_time))
        b->next_time = time + b->seconds;
    if (seen >= b->next) {
        b->next += b->every;
        now = true;
    }
    if (time >= b->next_time) {
        b->next_time = time + b->seconds;
        now = true;
    }
    return now;
}

bool svi_beside_step(struct svi_engine *e) {
    struct svi_beside *b = &e->beside;
    svs_error err;
    if (b->state == SVI_REFIT_OFF)
        return false;
    if (due(b, e->counters.of[SVI_COUNTER_SEEN].count, e->time) && svi_beside_start(e, &err) != SVS_OK)
        b->skipped++;
    if (b->state == SVI_REFIT_COPYING && !b->job->snapshot.active)
        b->state = SVI_REFIT_READY;
    bool serves = refit_should_serve(b), changed = serves != b->serves;
    b->serves = serves;
    return changed;
}

void svi_beside_reset(struct svi_beside *b) {
    b->stale = b->state > SVI_REFIT_IDLE;
    if (b->stale)
        atomic_store(&b->job->cancel, true);
    else if (b->state == SVI_REFIT_IDLE)
        svi_refit_forget(b->job);
    b->have = b->serves = false;
    b->hit_count = b->hit_at = b->online = b->refit = 0;
}

/* ---- hand-over */

struct svi_refit *svi_engine_refit_take(svi_engine *e) {
    struct svi_beside *b = &e->beside;
    if (b->state != SVI_REFIT_READY)
        return NULL;
    b->state = SVI_REFIT_AWAY;
    return b->job;
}

svs_code svi_beside_reserve(struct svi_beside *b, int rows, int d, svs_error *err) {
    const int64_t weights = (int64_t)rows * d;
    if (weights <= b->weights && rows <= b->room)
        return SVS_OK;
    double *W = svi_alloc_array((size_t)weights, sizeof *W), *c = svi_alloc_array((size_t)rows, sizeof *c);
    double *scores = svi_alloc_array((size_t)rows, sizeof *scores);
    if (!W || !c || !scores) {
        svi_free(W);
        svi_free(c);
        svi_free(scores);
        return svi_fail_memory(err, "a refit's model");
    }
    svi_free(b->W);
    svi_free(b->b);
    svi_free(b->scores);
    b->W = W;
    b->b = c;
    b->scores = scores;
    b->weights = weights;
    b->room = rows;
    return SVS_OK;
}

static svs_code adopt(struct svi_engine *e, svs_error *err) {
    struct svi_beside *b = &e->beside;
    const struct svi_refit *r = b->job;
    const int64_t weights = (int64_t)r->rows * r->d;
    svs_code code = svi_beside_reserve(b, r->rows, r->d, err);
    if (code != SVS_OK)
        return code;
    memcpy(b->W, r->W, (size_t)weights * sizeof *b->W);
    memcpy(b->b, r->b, (size_t)r->rows * sizeof *b->b);
    b->model = (svs_model){.version = svi_learner_take_version(e->learner),
                           .method = svs_solver_name(r->method),
                           .task = SVS_CLASSIFY,
                           .d = r->d,
                           .rows = r->rows,
                           .class_count = r->class_count,
                           .W = b->W,
                           .b = b->b,
                           .C = e->s.C,
                           .window = e->s.window,
                           .refit = true,
                           .objective = r->objective,
                           .gap = r->gap,
                           .iterations = r->iterations,
                           .milliseconds = r->milliseconds,
                           .at = e->counters.of[SVI_COUNTER_SEEN].count};
    b->have = true;
    b->done++;
    return SVS_OK;
}

void svi_engine_refit_give(svi_engine *e) {
    struct svi_beside *b = &e->beside;
    svs_error err = b->job->error;
    const bool other = err.code == SVS_OK && (b->job->class_count != svs_learner_class_count(e->learner) ||
                                              b->job->d > e->shape.d); /* of samples that are lost */
    const bool overtaken = b->stale || other;
    b->state = SVI_REFIT_IDLE;
    if (b->stale)
        svi_refit_forget(b->job);
    b->stale = false;
    if (overtaken) {
        b->overtaken++;
        return;
    }
    if (err.code == SVS_OK) {
        err.code = adopt(e, &err);
        e->starved = e->starved || err.code == SVS_NO_MEMORY;
    }
    if (err.code != SVS_OK) { /* one class in the window is no failure: there is nothing to do */
        b->failed += err.code != SVS_ONE_CLASS;
        b->skipped += err.code == SVS_ONE_CLASS;
        memcpy(b->reason, err.text, sizeof b->reason);
        return;
    }
    b->serves = refit_should_serve(b);
    svi_publish_refit(e);
}
