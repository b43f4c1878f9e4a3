#include "learner/learner_fetch.h"

#include "base/fetch.h"
#include "learner/learner_internal.h"

void svi_learner_fetch(const svs_learner *l) {
    svi_fetch(l, sizeof *l);
}

/* The row that leaves and the one that is written, with their columns; means, scales, the packed model. */
void svi_learner_fetch_parts(const svs_learner *l) {
    const struct svi_ring *r = &l->window;
    if (l->classes)
        svi_fetch(l->classes, (size_t)svi_learner_store_bytes(l));
    if (!r->rows || r->capacity == 0)
        return;
    const int32_t next = (r->first + r->count) % r->capacity;
    svi_fetch(svi_ring_row(r, r->first), (size_t)r->stride * sizeof(double));
    svi_fetch(svi_ring_row(r, next), (size_t)r->stride * sizeof(double));
    svi_fetch(r->columns + (size_t)r->capacity * r->at[SVI_RING_TIME] + sizeof(double) * (size_t)next, 1);
    svi_fetch(r->columns + (size_t)r->capacity * r->at[SVI_RING_STATE] + next, 1);
}
