/* Moves of the arrival clock: all held times that were read from it have to move along, or windows and
 * cooldowns would last too long or end at once. Time stamps of producers stay. */
#include <math.h>

#include "base/arrival_clock.h"
#include "engine/engine_internal.h"
#include "learner/learner_times.h"

/* A new stage that holds times needs a line here. */
void svi_engine_move_times(struct svi_engine *e, double from, double step) {
    if (e->time > from)
        e->time += step;
    svi_learner_move_times(e->learner, from, step);
    if (e->bank)
        svi_bank_move_times(e->bank, from, step);
    svi_refit_policy_move_times(e->refit, from, step);
    svi_alert_stage_move_times(e->novelty, from, step);
    svi_alarm_move_times(&e->quality_stage.alarm, from, step);
    svi_rules_move_times(e->rules, from, step);
}

double svi_engine_arrived(const struct svi_engine *e) {
    return fmax(e->by_arrival ? e->time : -INFINITY, svi_rules_arrived(e->rules));
}

bool svi_engine_ahead(const svi_engine *e, double now, double *step) {
    const double ahead = svi_engine_arrived(e) - now;
    *step = ahead > SVI_CLOCK_TOLERANCE ? -ahead : 0;
    return *step < 0 || (!e->by_arrival && e->time - now > e->s->ts_ahead);
}

void svi_engine_move_clock(struct svi_engine *e, double step, double now) {
    /* The rules hold arrivals whatever time the engine follows. The engine's own times are arrivals only if
     * its samples have no time stamps. */
    svi_rules_move_arrival(e->rules, step);
    if (e->by_arrival) {
        if (e->event_ts == e->time)
            e->event_ts += step;
        svi_engine_move_times(e, -INFINITY, step);
    }
    /* Time stamps of producers hold whatever this clock shows, unless they lie further ahead than ts.ahead
     * allows: then every later sample would be refused. */
    if (e->time > now + e->s->ts_ahead)
        svi_engine_move_times(e, now, now - e->time);
}
