/* Other options for a learner that is at work (svs_learner_configure).
 *
 * A second learner is made with the new options, given the features and classes, and given the samples
 * held, by the same svs_learner_step that learned them first; then the two change places. So the model is
 * that of a new learner by construction, and a failure, of memory say, leaves the old one untouched. Samples
 * that wait are copied last, with the scores that they were given.
 *
 * Numbers of samples (ring.h) are never given twice: those of the window go on after the old ones, those that
 * wait keep theirs. Without a window there are no samples to give, but the sums: C and scale are in the ridge
 * alone, which is no part of them.
 *
 * Read svi_learner_prepare first. */
#include "learner/learner_configure.h"

#include <string.h>

#include "base/fail.h"
#include "learner/learner_held.h"
#include "learner/learner_internal.h"
#include "learner/learner_prior.h"

static bool configure_same_weights(const svs_options *a, const svs_options *b) {
    bool same = a->class_rule == b->class_rule;
    if (same && a->class_rule == SVS_CLASSES_GIVEN)
        same = a->class_weight_count == b->class_weight_count;
    for (int i = 0; same && a->class_rule == SVS_CLASSES_GIVEN && i < a->class_weight_count; i++)
        same = svs_value_equal(a->class_weight[i].label, b->class_weight[i].label) &&
               a->class_weight[i].weight == b->class_weight[i].weight;
    return same;
}

/* Without a window there are no rows to learn again. May the change be made from the sums? It may if only C
 * and scale differ, which are in the ridge alone. */
static bool configure_by_sums(const svs_options *a, const svs_options *b) {
    return a->window == 0 && b->window == 0 && a->rule == b->rule && a->forget == b->forget &&
           (a->labels_ttl > 0) == (b->labels_ttl > 0) && a->labels_max == b->labels_max &&
           configure_same_weights(a, b);
}

svs_code svs_learner_configurable(const svs_learner *l, const svs_options *o, svs_error *err) {
    const svs_options *now = &l->o;
    SVI_TRY(svi_learner_check_options(o, l->declared, err));
    if (o->task != now->task || o->max_features != now->max_features || o->max_classes != now->max_classes ||
        o->isa != now->isa)
        return svi_fail(
            err, SVS_SETTING,
            "task, max.features, max.classes and the instruction set are fixed when a learner is made");
    if (now->window == 0 && l->arrivals > 0 && !configure_by_sums(now, o))
        return svi_fail(err, SVS_UNAVAILABLE,
                        "window 0 holds no samples, so only C and scale can change: reset first (it drops "
                        "what was learned) to change the others");
    return SVS_OK;
}

/* ---- the second learner */

/* What a learner knows before its first sample. */
static svs_code configure_announce(svs_learner *fresh, const svs_learner *l, svs_error *err) {
    svs_code code = SVS_OK;
    for (int j = 0; j < l->scaler.max_d && l->scaler.unscaled_count > 0; j++)
        if (svi_scaler_unscaled(&l->scaler, j))
            svs_learner_unscaled(fresh, j);
    for (int k = 0; k < l->class_count && code == SVS_OK; k++) {
        code = svi_class_reserve(fresh, l->classes[k], err);
        if (code == SVS_OK)
            svi_class_add(fresh, l->classes[k]);
    }
    /* The classes stay; all else is as in a new learner. Numbers of samples continue those of the old
     * learner, so that no number is given twice. */
    svs_learner_reset(fresh);
    fresh->window.pushed = l->window.pushed;
    fresh->waiting.pushed = l->waiting.pushed;
    return code;
}

/* The rows held, oldest first, by the same call that learned them. Labels and weights are what they were;
 * what depends on the options (class factors, FALSVM's decisions) is decided again. */
static svs_code configure_relearn(svs_learner *fresh, const svs_learner *l, svi_learner_watch *watch,
                                  void *user, svs_error *err) {
    svs_step step;
    for (int32_t i = 0, at; (at = svi_ring_next(&l->window, &i)) >= 0;) {
        const struct svi_slot s = svi_ring_slot(&l->window, at);
        const svs_sample sample = {.x = svi_ring_row(&l->window, at),
                                   .d = l->declared,
                                   .id = s.id,
                                   .y = l->o.task == SVS_REGRESS ? svs_real(s.target) : l->classes[s.label],
                                   .weight = s.weight};
        svs_error why = {0};
        svs_code code = svs_learner_step(fresh, &sample, s.time, &step, &why);
        if (code != SVS_OK)
            return svi_fail(err, code, "the model cannot be rebuilt from the samples held: %.180s", why.text);
        if (watch)
            watch(user, fresh, &sample, s.time, &step);
    }
    return SVS_OK;
}

/* Samples that wait, oldest first: where the new options let fewer wait, the oldest are left out. Their
 * scores are copied, for they were given under the model of then. */
static svs_code configure_keep_waiting(svs_learner *fresh, const svs_learner *l, svs_error *err) {
    bool widened;
    svi_claim(fresh);
    int32_t most = fresh->waiting.max == 0 ? 0 : fresh->o.labels_max, left = l->waiting.live;
    for (int32_t i = 0, at; (at = svi_ring_next(&l->waiting, &i)) >= 0;) {
        struct svi_slot from = svi_ring_slot(&l->waiting, at);
        const double *row = svi_ring_row(&l->waiting, at);
        /* `left` counts down: the last `most` of them stay. */
        if (left-- > most)
            continue;
        svs_code code = svi_learner_features_wake(fresh, row, &widened, err);
        if (code == SVS_OK)
            code = svi_ring_reserve(&fresh->waiting, &from, err);
        if (code != SVS_OK)
            return code;
        const int64_t number = from.number;
        const int32_t slot = svi_ring_push(&fresh->waiting, &from);
        double *copy = svi_ring_row(&fresh->waiting, slot);
        memset(copy, 0, (size_t)fresh->waiting.stride * sizeof *copy);
        memcpy(copy, row, (size_t)l->d * sizeof *copy);
        memcpy(copy + fresh->feature_capacity, row + l->feature_capacity,
               (size_t)svi_rows_of(from.class_count) * sizeof *copy);
        svi_ring_set_number(&fresh->waiting, slot, number);
    }
    fresh->waiting.pushed = l->waiting.pushed;
    return SVS_OK;
}

/* Counters go on from those of the old learner; residual and condition describe the new P. */
static void configure_count(svs_learner *fresh, const svs_learner *l) {
    const svs_health made = fresh->health;
    fresh->health = l->health;
    fresh->health.labels_evicted += l->waiting.live - fresh->waiting.live;
    fresh->health.rebuilds += made.rebuilds;
    fresh->health.alarms += made.alarms;
    fresh->health.window_reads += made.window_reads;
    fresh->health.residual = made.residual;
    fresh->health.condition = made.condition;
    fresh->version = l->version + 1;
}

void svi_learner_set_labels_ttl(svs_learner *l, double seconds) {
    l->o.labels_ttl = seconds;
}

/* ---- without a window */

/* nu = 1 / (2 C) is a factor of the whole ridge, so the faded ridge of each coordinate scales with it. P and
 * w are then solved from the sums, which know nothing of C or scale. */
static void configure_ridge(svs_learner *l, const svs_options *o) {
    const double nu = 1 / (2 * o->C), factor = nu / l->nu;
    svi_claim(l);
    for (int j = 0; l->ridge && j <= l->d; j++)
        l->ridge[j] *= factor;
    l->nu = nu;
    l->o.C = o->C;
    l->o.scale = o->scale;
    l->o.labels_ttl = o->labels_ttl;
    svi_solve_sums(l);
    l->version++;
}

/* ---- both halves */

/* All that can fail, on a second learner; svi_learner_take then has no way to fail. What the first one
 * learns in between would be missing in the second. */
svs_code svi_learner_prepare(const svs_learner *l, const svs_options *o, svi_learner_watch *watch, void *user,
                             svs_learner **fresh, svs_error *err) {
    *fresh = NULL;
    svs_code code = svs_learner_configurable(l, o, err);
    if (code != SVS_OK || (l->o.window == 0 && l->arrivals > 0))
        return code;
    /* Where the old learner shares a scratch the new one works in the same: the old one is out meanwhile. */
    if (!(*fresh = svi_learner_new(o, l->declared, l->shared ? l->work : NULL, err)))
        return err->code;
    /* Its store must not lie behind the learner: the two structures change places, and the block of the new
     * one is freed. */
    code = svi_learner_store_apart(*fresh, err);
    if (code == SVS_OK)
        code = svi_prior_lend(*fresh, l, err);
    if (code == SVS_OK)
        code = configure_announce(*fresh, l, err);
    if (code == SVS_OK)
        code = configure_relearn(*fresh, l, watch, user, err);
    if (code == SVS_OK)
        code = configure_keep_waiting(*fresh, l, err);
    if (code != SVS_OK)
        svs_learner_free(fresh);
    return code;
}

void svi_learner_take(svs_learner *l, const svs_options *o, svs_learner **fresh) {
    if (!*fresh) {
        configure_ridge(l, o);
        return;
    }
    /* What the snapshot has still to copy is in the rings of the old learner, which go. */
    if (l->snapshot) /* of the window of before: whole, as its owner began it */
        svi_snapshot_copy(l->snapshot, l, INT64_MAX);
    configure_count(*fresh, l);
    /* Both leave their scratch before the structures change places: a scratch knows its owner by address. */
    svi_learner_count_held(l, -1);
    svi_learner_release_scratch(l);
    svi_learner_release_scratch(*fresh);
    const svs_learner old = *l;
    *l = **fresh;
    **fresh = old;
    svi_prior_return(l, &old);
    svi_learner_count_held(l, 1);
    if (!l->shared) /* each in its own */
        l->work->owner = l;
    if (!(*fresh)->shared)
        (*fresh)->work->owner = *fresh;
    svs_learner_free(fresh);
}

svs_code svs_learner_configure(svs_learner *l, const svs_options *o, svs_error *err) {
    svs_error local;
    svs_learner *fresh;
    SVI_TRY(svi_learner_prepare(l, o, NULL, NULL, &fresh, err ? err : &local));
    svi_learner_take(l, o, &fresh);
    return SVS_OK;
}
