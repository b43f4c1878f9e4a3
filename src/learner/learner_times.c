#include "learner/learner_times.h"

#include <math.h>

#include "learner/learner_internal.h"

static void ring_move_times(struct svi_ring *r, double from, double step) {
    double latest = INFINITY;
    for (int32_t i = r->count - 1; i >= 0; i--) {
        struct svi_slot *s = &r->slots[svi_ring_at(r, i)];
        if (!s->live) /* whose time is not kept */
            continue;
        s->time = latest = fmin(s->time > from ? s->time + step : s->time, latest);
    }
}

void svi_learner_move_times(svs_learner *l, double from, double step) {
    ring_move_times(&l->window, from, step);
    ring_move_times(&l->waiting, from, step);
}
