/* Going back: the state of an older checkpoint replaces what the stream has learned since.
 *
 * The older state is a second engine. The members that hold learned state are exchanged between the two, so
 * nothing is allocated and nothing can fail; counters, sequence numbers, sources and the clock continue. The
 * caller frees the second engine, and with it the state that was left. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "config/settings_record.h"
#include "engine/engine_internal.h"
#include "learner/snapshot.h"

/* The members that are exchanged; a new member of svi_engine that holds learned state belongs here. */
#define MEMBER(name)                                                                                         \
    { offsetof(struct svi_engine, name), sizeof(((struct svi_engine *)0)->name) }
static const struct {
    size_t offset, size;
} goes_back[] = {
    MEMBER(learner),    MEMBER(refit), MEMBER(novelty),          MEMBER(quality_stage), MEMBER(schema),
    MEMBER(columns),    MEMBER(gaps),  MEMBER(carried),          MEMBER(names),         MEMBER(name_capacity),
    MEMBER(name_count), MEMBER(means), MEMBER(columns_of_model), MEMBER(bank),          MEMBER(host_scores),
    MEMBER(linear),     MEMBER(rules), MEMBER(rules_follow),     MEMBER(rules_names),   MEMBER(rules_d),
    MEMBER(outliers),   MEMBER(stack)};

static void exchange_bytes(void *one, void *other, size_t size) {
    uint8_t *a = one, *b = other;
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

svs_code svi_engine_check_back(const svi_engine *e, const svi_engine *then, svs_error *err) {
    if ((e->refit->state == SVI_REFIT_OFF) != (then->refit->state == SVI_REFIT_OFF))
        return svi_fail(err, SVS_UNAVAILABLE,
                        "refits were %s then and are %s now (settings refit and window): to go back, first "
                        "`svmstream ctl config` with refit as it was then",
                        then->refit->state == SVI_REFIT_OFF ? "off" : "on",
                        then->refit->state == SVI_REFIT_OFF ? "on" : "off");
    if (e->refit->merges != then->refit->merges)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "merge.from was %.100s then and is %.100s now: to go back, first `svmstream ctl config` "
            "with merge.from as it was then",
            then->s->merge_from, e->s->merge_from);
    return SVS_OK;
}

/* Closes the open alerts of both states: those of the older one have ended since in the stream. Numbers of
 * alerts and the end of the cooldown continue, because subscribers have seen them. */
static void end_alerts(struct svi_engine *e, struct svi_engine *then) {
    static const char why[] = "the stream went back to an older state";
    struct svi_alert *alert = &then->novelty->alert;
    struct svi_alarm *alarm = &then->quality_stage.alarm;
    svi_engine_end_novelty(e, why);
    svi_engine_end_drift(e, why);
    svi_engine_rules_forget(e);
    svi_rules_end(then->rules);
    svi_rules_drop_alerts(then->rules);
    then->rules->opened = e->rules->opened;
    then->rules->arrived = e->rules->arrived;
    alarm->open = alarm->published = alarm->worse = false;
    then->episodes.open = false;
    alarm->opened = e->quality_stage.alarm.opened;
    alert->open = false;
    alert->lasted = 0;
    alert->closed = fmax(alert->closed, e->novelty->alert.closed);
    alert->opened = e->novelty->alert.opened;
    alert->suppressed = e->novelty->alert.suppressed;
    then->novelty->judged = false;
}

void svi_engine_go_back(svi_engine *e, svi_engine *t, const char *reason, double now) {
    const int64_t seen = e->kept[SVI_KEPT_SEEN];
    svi_engine_settle(e);
    svi_engine_settle(t);
    svi_engine_capacity_changed(e);
    svi_engine_capacity_changed(t);
    if (t->time > e->time) /* the clock was moved back since: engine time must not run ahead */
        svi_engine_move_times(t, -INFINITY, e->time - t->time);
    end_alerts(e, t);
    /* Versions never repeat, since subscribers take a known version for a known model. */
    svi_learner_pass_version(t->learner, svs_learner_version(e->learner));
    svi_refit_policy_go_back(e->refit, e->learner, t->refit, t->learner, seen, e->time);
    for (size_t i = 0; i < sizeof goes_back / sizeof *goes_back; i++)
        exchange_bytes((char *)e + goes_back[i].offset, (char *)t + goes_back[i].offset, goes_back[i].size);
    /* The exchanged members still point to parts that stay with their engine. */
    if (e->scratch->row.row) {
        svi_shape_use_scratch(&e->schema.shape, &e->scratch->row);
        svi_shape_use_scratch(&t->schema.shape, &t->scratch->row);
    }
    e->schema.o.units = e->common->units;
    t->schema.o.units = t->common->units;
    if (e->queue)
        e->queue->stage = e->novelty;
    svi_settings_go_back(e->s, t->s);
    e->published_version = 0;
    svi_publish_error(e, SVS_STATE_LOADED, reason, NULL, 0, now);
    svi_engine_publish_model(e, true);
}
