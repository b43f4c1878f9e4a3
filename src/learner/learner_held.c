#include "learner/learner_held.h"

#include "learner/learner_internal.h"

void svi_learner_span(const svs_learner *l, struct svi_learner_span *out) {
    *out = (struct svi_learner_span){.window = l->window.pushed,
                                     .window_oldest = svi_ring_oldest(&l->window),
                                     .waiting = l->waiting.pushed,
                                     .waiting_oldest = svi_ring_oldest(&l->waiting)};
}

const double *svi_learner_newest(const svs_learner *l) {
    for (int32_t i = l->window.count - 1; l->window.live && i >= 0; i--) {
        const int32_t slot = svi_ring_at(&l->window, i);
        if (l->window.slots[slot].live)
            return svi_ring_row(&l->window, slot);
    }
    return NULL;
}
