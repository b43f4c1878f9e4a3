#include "learner/learner_times.h"

#include <math.h>

#include "learner/learner_internal.h"

static void ring_move_times(struct svi_ring *r, double from, double step) {
    double latest = INFINITY;
    for (int32_t i = r->count - 1; i >= 0; i--) {
        const int32_t slot = svi_ring_at(r, i);
        double *time = svi_ring_time(r, slot);
        if (!svi_ring_live(r, slot)) /* whose time is not kept */
            continue;
        *time = latest = fmin(*time > from ? *time + step : *time, latest);
    }
}

void svi_learner_move_times(svs_learner *l, double from, double step) {
    ring_move_times(&l->window, from, step);
    ring_move_times(&l->waiting, from, step);
}
