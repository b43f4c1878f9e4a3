/* The refit policy: a batch solution of the window that runs in the background, next to the online
 * model.
 * A refit falls due by samples or by engine time. Its snapshot of the window is copied a few rows a
 * sample (COPYING, then READY). A worker solves it (AWAY). Its result takes effect when it is given
 * back, after whichever sample that is. That moment is the one thing here that is not a function of
 * the samples, so it is recorded. From then on both models score each sample. The better one
 * serves, judged by the last SVI_REFIT_POLICY_WINDOW labelled samples that both scored. A margin
 * keeps the choice from flapping.
 * With merge.from the models of a merger take the place of the refit (`merges`). There is no job,
 * and nothing falls due. Each model that svi_refit_policy_merge takes is compared and served as a
 * refit would be.
 * Invariants: While the state is AWAY the job belongs to a worker, and only its atomic `cancel` and
 * the renewed flags are touched. A running refit that is reset still ends in svi_refit_policy_give,
 * so that its end is recorded like any other. The policy knows the learner and nothing of the
 * engine: calls return what has changed, and the engine publishes it. */
#include "refit/refit_policy.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/ring.h"

/* Share of the compared samples by which the other model must be better to take over. */
#define HOLD 0.005

#define LOADED "loaded" /* method of a model that was loaded, */
#define MERGED "merged" /* and of one that a merger made */

svs_code svi_refit_policy_new(struct svi_refit_policy *p, const struct svi_settings *s, svs_error *err) {
    *p = (struct svi_refit_policy){.serve = s->serve,
                                   .max_features = (int)s->max_features,
                                   .max_classes = (int)s->max_classes,
                                   .C = s->C,
                                   .window = s->window};
    const bool merges = svi_settings_merges(s) && !svi_settings_keyed(s);
    /* A policy without refits stays OFF, and calls on it do nothing. */
    if ((!merges && (!svi_settings_refits(s) || s->window == 0 || s->task == SVS_REGRESS)) ||
        s->method == SVI_METHOD_NONE || s->method == SVI_METHOD_AUTO)
        return SVS_OK;
    p->merges = merges;
    p->values = s->task == SVS_REGRESS;
    p->next = SVI_COUNT_MAX; /* with merged models nothing falls due */
    p->next_time = INFINITY;
    p->hit_capacity = SVI_REFIT_POLICY_WINDOW;
    p->hits = svi_alloc((size_t)p->hit_capacity);
    p->state = SVI_REFIT_IDLE;
    if (!merges) {
        p->how = svi_refit_how_of(s);
        /* By default one refit a window of samples. */
        p->every = p->next = s->refit_every > 0 ? s->refit_every : s->window;
        p->seconds = s->refit_seconds;
        p->job = svi_refit_new(s, err);
    }
    if (!merges && !p->job)
        return SVS_NO_MEMORY;
    return p->hits ? SVS_OK : svi_fail_memory(err, "the refit");
}

void svi_refit_policy_configure(struct svi_refit_policy *p, const struct svi_settings *s, int64_t seen,
                                double time) {
    const int64_t every = s->refit_every > 0 ? s->refit_every : s->window;
    if (p->state == SVI_REFIT_OFF)
        return;
    p->serve = s->serve;
    if (p->merges) /* nothing falls due */
        return;
    /* Due at multiples of `every`, so that the moment does not depend on when the setting was changed. */
    if (every != p->every)
        p->next = (seen / every + 1) * every;
    if (s->refit_seconds != p->seconds)
        p->next_time = s->refit_seconds > 0 ? time + s->refit_seconds : INFINITY;
    p->every = every;
    p->seconds = s->refit_seconds;
    p->how = svi_refit_how_of(s);
}

bool svi_refit_policy_left(struct svi_refit_policy *p, const struct svi_refit *job) {
    if (!p->left || p->left != job)
        return false;
    svi_refit_free(&p->left);
    return true;
}

static void refit_policy_count_on(struct svi_refit_policy *fresh, const struct svi_refit_policy *p) {
    fresh->done = p->done;
    fresh->failed = p->failed;
    fresh->skipped = p->skipped;
    fresh->overtaken = p->overtaken;
    fresh->merged = p->merged;
    memcpy(fresh->reason, p->reason, sizeof fresh->reason);
}

/* The figures of the last refit stay in the stats, without its weights: it no longer serves. */
static void refit_policy_report_on(struct svi_refit_policy *fresh, const struct svi_refit_policy *p) {
    refit_policy_count_on(fresh, p);
    fresh->overtaken += p->state > SVI_REFIT_IDLE;
    fresh->model = p->model;
    fresh->model.W = fresh->model.b = NULL;
    fresh->job->begun = p->job->begun;
}

void svi_refit_policy_replace(struct svi_refit_policy *p, struct svi_refit_policy *fresh,
                              svs_learner *learner, int64_t seen, double time) {
    svs_error err;
    if (p->merges && fresh->merges) { /* a merged model does not depend on the settings of this stream */
        p->serve = fresh->serve;
        p->C = fresh->C;
        p->window = fresh->window;
        svi_refit_policy_free(fresh);
        return;
    }
    /* Of merged models nothing is taken over, and there is no job. */
    const bool on = fresh->job != NULL, was = p->job != NULL;
    const bool again = on && was && (p->have || p->state > SVI_REFIT_IDLE);
    if (on && was)
        refit_policy_report_on(fresh, p);
    if (on) {
        /* As after a change of settings: the next multiple of `every`, or a full interval of time. */
        fresh->next = (seen / fresh->every + 1) * fresh->every;
        fresh->next_time = fresh->seconds > 0 ? time + fresh->seconds : INFINITY;
    }
    /* Ownership of what workers may still have moves to the new policy. */
    fresh->left = p->left;
    /* A job that is away belongs to the worker with its snapshot, which is complete; any other may still
     * be registered with the learner. */
    if (was && p->state != SVI_REFIT_AWAY && p->job->snapshot.active)
        svi_snapshot_drop(&p->job->snapshot, learner);
    /* This overwrites p->left, which is NULL then: a worker returns one job before it takes the next. */
    if (p->state == SVI_REFIT_AWAY) {
        atomic_store(&p->job->cancel, true);
        fresh->left = p->job;
        p->job = NULL;
    }
    p->left = NULL;
    svi_refit_policy_free(p);
    *p = *fresh;
    *fresh = (struct svi_refit_policy){0};
    /* After *p is complete: starting uses the new problem. */
    if (again && svi_refit_policy_start_now(p, learner, seen, &err) != SVS_OK)
        p->skipped++;
}

void svi_refit_policy_move_times(struct svi_refit_policy *p, double from, double step) {
    if (p->next_time > from)
        p->next_time += step; /* INFINITY stays INFINITY */
}

void svi_refit_policy_free(struct svi_refit_policy *p) {
    svi_refit_free(&p->job);
    svi_refit_free(&p->left);
    svi_free(p->hits);
    svi_free(p->W);
    *p = (struct svi_refit_policy){0};
}

/* ---- scores */

/* Which of the two models was right: bit 0 the online model, bit 1 the refit. Of values, which was at least
 * as close. */
static inline uint8_t refit_policy_hits(const struct svi_refit_policy *p, const svs_step *step) {
    if (!p->values)
        return (uint8_t)((step->predicted == step->label) | (p->predicted == step->label) << 1);
    const double online = fabs(step->scores[0] - step->target), merged = fabs(p->scores[0] - step->target);
    return (uint8_t)((online <= merged) | (merged <= online) << 1);
}

void svi_refit_policy_score(struct svi_refit_policy *p, const struct svi_message *m, svs_step *step) {
    /* No refit yet: the online model's step stays as it is. */
    if (!p->have)
        return;
    if (step->class_count != p->model.class_count) { /* a class was added that the refit does not know */
        p->have = p->serves = p->loaded = false;
        p->overtaken++;
        return;
    }
    svs_model_scores(&p->model, m->x, p->scores);
    p->predicted = svs_model_predict(&p->model, p->scores);
    if (step->label >= 0 || (p->values && !isnan(step->target))) {
        /* Slide the window by one: subtract the bits that are overwritten, add the new ones. */
        uint8_t now = refit_policy_hits(p, step);
        uint8_t *slot = &p->hits[p->hit_at];
        if (p->hit_count == p->hit_capacity) {
            p->online -= *slot & 1;
            p->refit -= *slot >> 1;
        } else {
            p->hit_count++;
        }
        *slot = now;
        p->online += now & 1;
        p->refit += now >> 1;
        p->hit_at = p->hit_at + 1 == p->hit_capacity ? 0 : p->hit_at + 1;
    }
    if (!p->serves)
        return;
    /* Last, because the comparison above needs the online model's prediction. */
    step->scores = p->scores;
    step->rows = p->model.rows;
    step->predicted = p->predicted;
    step->version = p->model.version;
}

const double *svi_refit_policy_peek(struct svi_refit_policy *p, const double *x, const svs_step *step) {
    if (!p->have || step->class_count != p->model.class_count)
        return NULL;
    svs_model_scores(&p->model, x, p->scores);
    return p->scores;
}

void svi_refit_policy_quality(const struct svi_refit_policy *p, double *online, double *refit) {
    *online = p->hit_count ? (double)p->online / (double)p->hit_count : NAN;
    *refit = p->hit_count ? (double)p->refit / (double)p->hit_count : NAN;
}

/* Which model should serve, by setting and comparison. Too few samples: no change. */
static bool refit_should_serve(const struct svi_refit_policy *p) {
    if (!p->have || p->serve == SVI_SERVE_ONLINE)
        return false;
    if (p->serve == SVI_SERVE_REFIT || p->serve == SVI_SERVE_MERGED)
        return true;
    if (p->hit_count < SVI_REFIT_POLICY_MIN_SAMPLES)
        return p->serves;
    /* Hysteresis: the other model must lead by more than HOLD of the samples and one sample. */
    double margin = HOLD * (double)p->hit_count + 1;
    return (double)p->refit > (double)p->online + (p->serves ? -margin : margin);
}

/* ---- the next refit */

static svs_code refit_policy_begin(struct svi_refit_policy *p, svs_learner *learner, int64_t seen,
                                   svs_error *err) {
    svs_health h;
    svs_learner_health(learner, &h);
    if (svs_learner_class_count(learner) < 2 || h.held < 2)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "there is nothing to refit yet: the window needs samples of two classes");
    SVI_TRY(svi_snapshot_begin(&p->job->snapshot, learner, err));
    if (p->job->how.solver != p->how.solver || p->job->how.p != p->how.p)
        svi_refit_forget(p->job); /* what was kept belongs to another problem */
    p->job->how = p->how;
    atomic_store(&p->job->cancel, false);
    p->job->C = p->C;         /* may have changed by going back to an older state */
    svi_refit_settle(p->job); /* the new snapshot is taken after them */
    p->job->begun = seen;
    p->state = SVI_REFIT_COPYING;
    /* The learner copies the rest, some rows a sample. */
    svi_snapshot_copy(&p->job->snapshot, learner, SVI_SNAPSHOT_ROWS);
    return SVS_OK;
}

static svs_code refit_policy_start(struct svi_refit_policy *p, svs_learner *learner, int64_t seen,
                                   svs_error *err) {
    if (p->merges)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "no refit runs while merge.from is set: the merged model takes its place");
    if (p->state == SVI_REFIT_OFF)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "refits are off: they need refit other than none, a window, and task classify");
    if (p->state != SVI_REFIT_IDLE)
        return svi_fail(err, SVS_UNAVAILABLE, "a refit is running already");
    return refit_policy_begin(p, learner, seen, err);
}

svs_code svi_refit_policy_start_now(struct svi_refit_policy *p, svs_learner *learner, int64_t seen,
                                    svs_error *err) {
    SVI_TRY(refit_policy_start(p, learner, seen, err));
    if (p->job->snapshot.active) /* perhaps no further sample arrives that would copy the rest */
        svi_snapshot_copy(&p->job->snapshot, learner, INT64_MAX);
    p->state = SVI_REFIT_READY;
    return SVS_OK;
}

void svi_refit_policy_restart(struct svi_refit_policy *p, svs_learner *learner, int64_t seen) {
    svs_error err;
    if (p->state != SVI_REFIT_LOST || (!p->stale && refit_policy_begin(p, learner, seen, &err) == SVS_OK))
        return;
    /* Nothing to refit, or stale: an empty snapshot makes the run fail at once, and its end is recorded. */
    p->job->begun = seen;
    p->job->snapshot.count = 0;
    p->state = SVI_REFIT_READY;
}

/* Whether a refit is due, by samples or by time; the next due times are set whether or not one then
 * starts. */
static bool refit_policy_due(struct svi_refit_policy *p, int64_t seen, double time) {
    bool now = false;
    /* The first call starts the clock: engine time is unknown before. */
    if (p->seconds > 0 && isinf(p->next_time))
        p->next_time = time + p->seconds;
    if (seen >= p->next) {
        p->next += p->every;
        now = true;
    }
    if (time >= p->next_time) {
        p->next_time = time + p->seconds;
        now = true;
    }
    return now;
}

bool svi_refit_policy_step(struct svi_refit_policy *p, svs_learner *learner, int64_t seen, double time) {
    svs_error err;
    if (p->state == SVI_REFIT_OFF)
        return false;
    /* A loaded model that must serve would be replaced by the next refit: none starts by itself. */
    const bool pauses = p->loaded && p->serves && p->serve == SVI_SERVE_REFIT;
    if (refit_policy_due(p, seen, time) && !pauses && refit_policy_start(p, learner, seen, &err) != SVS_OK)
        p->skipped++;
    if (p->state == SVI_REFIT_COPYING && !p->job->snapshot.active)
        p->state = SVI_REFIT_READY;
    const bool serves = refit_should_serve(p), changed = serves != p->serves;
    p->serves = serves;
    return changed;
}

void svi_refit_policy_reset(struct svi_refit_policy *p) {
    if (p->state == SVI_REFIT_OFF)
        return;
    /* A running refit is cancelled and marked; its end still arrives, and is recorded. */
    p->stale = p->state > SVI_REFIT_IDLE;
    if (p->stale)
        atomic_store(&p->job->cancel, true);
    else if (p->state == SVI_REFIT_IDLE && p->job)
        svi_refit_forget(p->job);
    p->have = p->serves = p->loaded = false;
    p->hit_count = p->hit_at = p->online = p->refit = 0;
}

/* The snapshot is of a learner that is about to be freed: it is dropped, and the refit ends as a failure. */
static void refit_policy_abandon(struct svi_refit_policy *p, svs_learner *learner) {
    if (p->state != SVI_REFIT_COPYING)
        return;
    if (p->job->snapshot.active)
        svi_snapshot_drop(&p->job->snapshot, learner);
    p->job->snapshot.count = 0; /* it fails when it runs, so that its end is recorded like any other */
    p->state = SVI_REFIT_READY;
}

void svi_refit_policy_go_back(struct svi_refit_policy *p, svs_learner *learner, struct svi_refit_policy *then,
                              svs_learner *learner_then, int64_t seen, double time) {
    then->left = p->left; /* a worker still has it */
    p->left = NULL;
    if (p->state == SVI_REFIT_OFF || then->state == SVI_REFIT_OFF)
        return;
    refit_policy_abandon(p, learner);
    refit_policy_abandon(then, learner_then);
    svi_refit_policy_reset(p);
    struct svi_refit *job = p->job; /* a worker may have it: it must stay with the stream */
    p->job = then->job;
    then->job = job;
    /* The running job, with its state, goes to the policy that will serve; the other gets the idle one. */
    then->state = p->state;
    then->stale = p->stale;
    p->state = SVI_REFIT_IDLE;
    refit_policy_count_on(then, p);
    if (!then->merges) {
        then->next = (seen / then->every + 1) * then->every;
        then->next_time = then->seconds > 0 ? time + then->seconds : INFINITY;
    }
    /* Its weights serve again, under a version of their own. */
    if (then->have)
        then->model.version = svi_learner_take_version(learner_then);
}

bool svi_refit_policy_renew(struct svi_refit_policy *p, svs_learner *learner, int feature) {
    bool changed = false;
    if (p->state == SVI_REFIT_OFF || feature < 0 || feature >= p->max_features)
        return false;
    /* The model in use at once; a weight that was 0 changes nothing and needs no new version. */
    for (int k = 0; p->have && feature < p->model.d && k < p->model.rows; k++) {
        double *w = &p->W[(int64_t)k * p->model.d + feature];
        changed |= *w != 0;
        *w = 0;
    }
    if (changed)
        p->model.version = svi_learner_take_version(learner);
    if (!p->job) /* the next merged model may have a weight for what the feature means now */
        return changed;
    /* Flags, not weights: a worker may be writing the result. They are applied when the job is back. */
    p->job->renewed.flags[feature] = p->job->renewed.any = true;
    if (p->state == SVI_REFIT_IDLE)
        svi_refit_settle(p->job);
    return changed;
}

/* ---- hand-over */

struct svi_refit *svi_refit_policy_take(struct svi_refit_policy *p) {
    if (p->state != SVI_REFIT_READY)
        return NULL;
    p->state = SVI_REFIT_AWAY;
    return p->job;
}

svs_code svi_refit_policy_reserve(struct svi_refit_policy *p, int rows, int d, svs_error *err) {
    const int64_t weights = (int64_t)rows * d;
    if (weights <= p->weights && rows <= p->capacity)
        return SVS_OK;
    /* One block: W, then b and scores. */
    double *W = svi_alloc_array((size_t)(weights + 2 * rows), sizeof *W);
    if (!W)
        return svi_fail_memory(err, "a refit's model");
    svi_free(p->W);
    p->W = W;
    p->b = W + weights;
    p->scores = p->b + rows;
    p->weights = weights;
    p->capacity = rows;
    return SVS_OK;
}

/* Installs *m as the refit's model; its weights are copied. */
static svs_code refit_policy_put(struct svi_refit_policy *p, svs_learner *learner, const svs_model *m,
                                 int64_t seen, svs_error *err) {
    SVI_TRY(svi_refit_policy_reserve(p, m->rows, m->d, err));
    memcpy(p->W, m->W, (size_t)m->rows * (size_t)m->d * sizeof *p->W);
    memcpy(p->b, m->b, (size_t)m->rows * sizeof *p->b);
    p->model = *m;
    /* Versions come from the learner: online models and refits share one sequence. */
    p->model.version = svi_learner_take_version(learner);
    p->model.task = p->values ? SVS_REGRESS : SVS_CLASSIFY;
    p->model.W = p->W;
    p->model.b = p->b;
    p->model.refit = true;
    p->model.at = seen;
    p->have = true;
    p->loaded = false;
    return SVS_OK;
}

static svs_code refit_policy_adopt(struct svi_refit_policy *p, svs_learner *learner, int64_t seen,
                                   svs_error *err) {
    /* Weights stay in the job too: the next refit starts from them. */
    const struct svi_refit_result *r = &p->job->result;
    const svs_model m = {.method = svs_solver_name(r->method),
                         .d = r->d,
                         .rows = r->rows,
                         .class_count = r->class_count,
                         .W = r->W,
                         .b = r->b,
                         .C = p->C,
                         .window = p->window,
                         .objective = r->objective,
                         .gap = r->gap,
                         .iterations = r->iterations,
                         .milliseconds = r->milliseconds};
    svs_code code = refit_policy_put(p, learner, &m, seen, err);
    p->done += code == SVS_OK;
    return code;
}

/* Puts a model that was made elsewhere in the place of the refit, with only what is known of it: it has no
 * solution's figures. */
static svs_code refit_policy_put_foreign(struct svi_refit_policy *p, svs_learner *learner, const svs_model *m,
                                         const char *method, int64_t seen, svs_error *err) {
    const svs_model given = {.method = method,
                             .d = m->d,
                             .rows = m->rows,
                             .class_count = m->class_count,
                             .W = m->W,
                             .b = m->b,
                             .C = m->C,
                             .window = m->window};
    return refit_policy_put(p, learner, &given, seen, err);
}

svs_code svi_refit_policy_load(struct svi_refit_policy *p, svs_learner *learner, const svs_model *m,
                               int64_t seen, svs_error *err) {
    if (p->merges)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "the next model of merge.from would replace the loaded one: set merge.from none first");
    if (p->state == SVI_REFIT_OFF)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "a model takes the place of the refit, and refits are off: they need refit other than "
            "none, a window, and task classify");
    SVI_TRY(refit_policy_put_foreign(p, learner, m, LOADED, seen, err));
    svi_refit_policy_reset(p);
    /* After the reset, which clears them. */
    p->have = p->loaded = true;
    p->serves = refit_should_serve(p);
    return SVS_OK;
}

svs_code svi_refit_policy_merge(struct svi_refit_policy *p, svs_learner *learner, const svs_model *m,
                                const struct svi_merged_from *from, int64_t seen, svs_error *err) {
    /* The comparison continues: as with refits, the newer model stands for the same way of learning. */
    SVI_TRY(refit_policy_put_foreign(p, learner, m, MERGED, seen, err));
    p->from = *from;
    p->merged++;
    p->serves = refit_should_serve(p);
    return SVS_OK;
}

enum svi_refit_outcome svi_refit_policy_give(struct svi_refit_policy *p, svs_learner *learner, int d,
                                             int64_t seen) {
    svs_error err = p->job->error;
    /* A class was added while it ran, or the stream has fewer features: its model does not fit. */
    const bool of_lost_samples =
        err.code == SVS_OK &&
        (p->job->result.class_count != svs_learner_class_count(learner) || p->job->result.d > d);
    const bool overtaken = p->stale || of_lost_samples;
    /* The job is ours again: features renewed while it was away must not return with its result. */
    p->state = SVI_REFIT_IDLE;
    svi_refit_settle(p->job);
    if (p->stale)
        svi_refit_forget(p->job);
    p->stale = false;
    p->overtaken += overtaken;
    if (overtaken)
        return SVI_REFIT_UNCHANGED;
    const bool solved = err.code == SVS_OK;
    if (solved)
        err.code = refit_policy_adopt(p, learner, seen, &err);
    if (err.code == SVS_OK) {
        p->serves = refit_should_serve(p);
        return SVI_REFIT_ADOPTED;
    }
    p->failed +=
        err.code != SVS_ONE_CLASS; /* one class in the window is not a failure: there was nothing to do */
    p->skipped += err.code == SVS_ONE_CLASS;
    memcpy(p->reason, err.text, sizeof p->reason);
    return solved && err.code == SVS_NO_MEMORY ? SVI_REFIT_OUT_OF_MEMORY : SVI_REFIT_UNCHANGED;
}

svs_code svi_refit_policy_repeat(struct svi_refit_policy *p, svs_learner *learner, const void *record,
                                 size_t size, svs_error *err) {
    if (!p->job)
        return svi_fail(err, SVS_DAMAGED, "the journal has a refit, but these settings allow no refits");
    /* The record replaces the solution: a copy under way is of no use. */
    if (p->job->snapshot.active)
        svi_snapshot_drop(&p->job->snapshot, learner);
    return svi_refit_unpack(p->job, record, size, p->max_features, p->max_classes, err);
}

void svi_refit_policy_as_loaded(struct svi_refit_policy *p, svs_learner *learner, int64_t seen) {
    if (!p->job)
        return;
    if (p->job->snapshot.active)
        svi_snapshot_drop(&p->job->snapshot, learner);
    svi_refit_forget(p->job);
    if (p->state > SVI_REFIT_IDLE)
        p->state = SVI_REFIT_LOST;
    svi_refit_policy_restart(p, learner, seen);
}

/* ---- archive */

/* State and due times. Saved is only whether a refit runs: which thread has it does not matter later. */
static void archive_state(struct svi_archive *a, struct svi_refit_policy *p) {
    bool running = p->state > SVI_REFIT_IDLE;
    svi_archive_bool(a, "running", &running);
    svi_archive_bool(a, "stale", &p->stale);
    svi_archive_int64(a, "next", &p->next, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "next time", &p->next_time);
    svi_archive_check(a, !isnan(p->next_time), "a time is not valid");
    svi_archive_check(a, running || !p->stale, "a refit that does not run is stale");
    if (svi_archive_loading(a) && svi_archive_ok(a))
        p->state = running ? SVI_REFIT_LOST : SVI_REFIT_IDLE;
}

/* The ring, oldest first: the bytes do not depend on where it begins. The sums follow from it. */
static void archive_hits(struct svi_archive *a, struct svi_refit_policy *p) {
    uint8_t hits[SVI_REFIT_POLICY_WINDOW];
    for (int64_t i = 0; i < p->hit_count && !svi_archive_loading(a); i++)
        hits[i] = p->hits[(p->hit_at - p->hit_count + i + p->hit_capacity) % p->hit_capacity];
    svi_archive_int64(a, "hit count", &p->hit_count, 0, p->hit_capacity);
    if (!svi_archive_ok(a))
        return;
    svi_archive_bytes(a, "hits", hits, p->hit_count);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    p->online = p->refit = 0;
    for (int64_t i = 0; i < p->hit_count && svi_archive_check(a, hits[i] <= 3, "a hit is not valid"); i++) {
        p->hits[i] = hits[i];
        p->online += hits[i] & 1;
        p->refit += hits[i] >> 1;
    }
    p->hit_at = p->hit_count % p->hit_capacity;
}

/* Figures of the last refit, which the stats report until the next one, whether or not it is still in use. */
static void archive_figures(struct svi_archive *a, struct svi_refit_policy *p) {
    svs_model *m = &p->model;
    /* Saved by number; SVS_SOLVER_COUNT stands for none, or for a loaded model. */
    int method = m->method ? (int)svs_solver_find(m->method) : SVS_SOLVER_COUNT;
    svi_archive_int(a, "method", &method, 0, SVS_SOLVER_COUNT);
    svi_archive_uint64(a, "version", &m->version);
    svi_archive_double(a, "C", &m->C);
    svi_archive_int64(a, "window", &m->window, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "objective", &m->objective);
    svi_archive_double(a, "gap", &m->gap);
    svi_archive_int64(a, "iterations", &m->iterations, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "at", &m->at, 0, SVI_COUNT_MAX);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    m->method = method < SVS_SOLVER_COUNT ? svs_solver_name((svs_solver)method) : NULL;
    m->task = p->values ? SVS_REGRESS : SVS_CLASSIFY;
    m->refit = method < SVS_SOLVER_COUNT;
}

static void archive_refit_model(struct svi_archive *a, struct svi_refit_policy *p) {
    svs_model *m = &p->model;
    svi_archive_int(a, "d", &m->d, 1, p->max_features);
    svi_archive_int(a, "class count", &m->class_count, p->values ? 0 : 2, p->values ? 0 : p->max_classes);
    if (!svi_archive_ok(a))
        return;
    /* Rows follow from the classes, and the weights must be in the bytes before memory is allocated. */
    m->rows = svi_rows_of(m->class_count);
    const int64_t weights = (int64_t)m->rows * m->d;
    if (!svi_archive_check(a, weights <= svi_archive_left(a) / 8, "a model's weights are truncated") ||
        (svi_archive_loading(a) && svi_refit_policy_reserve(p, m->rows, m->d, a->err) != SVS_OK))
        return;
    svi_archive_doubles(a, "W", p->W, weights);
    svi_archive_doubles(a, "b", p->b, m->rows);
    m->W = p->W;
    m->b = p->b;
}

void svi_refit_policy_archive(struct svi_archive *a, struct svi_refit_policy *p) {
    bool off = p->state == SVI_REFIT_OFF, merges = p->merges;
    /* A state with refits cannot be loaded without them, nor the other way round. */
    svi_archive_bool(a, "off", &off);
    svi_archive_bool(a, "merges", &merges);
    if (!svi_archive_check(a, off == (p->state == SVI_REFIT_OFF), "the setting refit was different") ||
        !svi_archive_check(a, merges == p->merges, "the setting merge.from was different") || off)
        return;
    archive_state(a, p);
    svi_archive_int64(a, "done", &p->done, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "failed", &p->failed, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "skipped", &p->skipped, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "overtaken", &p->overtaken, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "merged", &p->merged, 0, SVI_COUNT_MAX);
    svi_archive_uint64(a, "merger's epoch", &p->from.epoch);
    svi_archive_uint64(a, "merger's version", &p->from.version);
    svi_archive_text(a, "reason", p->reason, sizeof p->reason);
    archive_hits(a, p);
    archive_figures(a, p);
    svi_archive_bool(a, "have", &p->have);
    svi_archive_bool(a, "serves", &p->serves);
    if (svi_archive_check(a, p->have || !p->serves, "a refit serves, but is missing") && p->have)
        archive_refit_model(a, p);
    svi_archive_bool(a, LOADED, &p->loaded);
    svi_archive_check(a, p->have || !p->loaded, "a model was given, but is missing");
    /* A model from elsewhere has no solver as its method. */
    if (svi_archive_loading(a) && svi_archive_ok(a) && (p->loaded || (p->merges && p->have))) {
        p->model.method = p->loaded ? LOADED : MERGED;
        p->model.refit = true;
    }
}

void svi_refit_policy_tallies_archive(struct svi_archive *a, struct svi_refit_policy *p) {
    if (!p->job)
        return;
    /* Not part of the state that a replay must reproduce, hence apart. */
    svi_archive_int64(a, "refit begun", &p->job->begun, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "refit milliseconds", &p->model.milliseconds);
}
