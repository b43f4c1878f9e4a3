#include "learner/snapshot.h"

#include <math.h>
#include <string.h>

#include "learner/learner_internal.h"

/* The content is of no use any more: the old room goes before the new one is taken. */
static svs_code snapshot_make_room(struct svi_snapshot *s, int64_t n, int d, svs_error *err) {
    const int stride = svi_round_up(d, 8);
    if (n * stride > s->room * s->stride || n > s->room || d > s->width) {
        svi_snapshot_clear(s);
        s->rows = svi_pool_take(&s->pool, (size_t)n, (size_t)stride * sizeof *s->rows);
        s->label = svi_pool_take(&s->pool, (size_t)n, sizeof *s->label);
        s->weight = svi_pool_doubles(&s->pool, (size_t)n);
        s->number = svi_pool_take(&s->pool, (size_t)n, sizeof *s->number);
        SVI_POOL_DOUBLES(&s->pool, (size_t)d, &s->mean, &s->inverse);
        svs_code code = svi_pool_code(&s->pool, "a snapshot of the window", err);
        if (code != SVS_OK) {
            svi_snapshot_clear(s);
            return code;
        }
        s->room = n;
        s->width = d;
    }
    s->stride = stride;
    s->d = d;
    return SVS_OK;
}

svs_code svi_snapshot_begin(struct svi_snapshot *s, svs_learner *l, svs_error *err) {
    svs_code code = snapshot_make_room(s, l->window.live, l->d, err);
    if (code != SVS_OK)
        return code;
    const bool scaled = l->o.scale == SVS_SCALE_STANDARD;
    s->class_count = l->class_count;
    s->end = l->window.pushed;
    s->next = l->window.pushed - l->window.count;
    s->order = l->order;
    s->count = 0;
    for (int j = 0; j < l->d; j++) {
        s->mean[j] = scaled ? l->scaler.mean[j] : 0;
        s->inverse[j] = scaled ? l->scaler.inverse[j] : 1;
    }
    s->active = true;
    l->snapshot = s;
    return SVS_OK;
}

void svi_snapshot_copy(struct svi_snapshot *s, svs_learner *l, int64_t rows) {
    const int64_t oldest = l->window.pushed - l->window.count;
    if (s->next < oldest) /* dead slots have gone */
        s->next = oldest;
    const int64_t stop = s->end - s->next < rows ? s->end : s->next + rows;
    for (; s->next < stop; s->next++) {
        const int32_t slot = svi_ring_at(&l->window, (int32_t)(s->next - oldest));
        double *to = s->rows + s->count * s->stride;
        if (!svi_ring_live(&l->window, slot))
            continue;
        memcpy(to, svi_ring_row(&l->window, slot), (size_t)s->d * sizeof *to);
        memset(to + s->d, 0, (size_t)(s->stride - s->d) * sizeof *to);
        s->label[s->count] = svi_ring_label(&l->window, slot);
        s->number[s->count] = svi_ring_number(&l->window, slot);
        s->weight[s->count] = svi_ring_weight(&l->window, slot);
        if (l->o.forget < 1)
            s->weight[s->count] *= pow(l->o.forget, (double)(s->order - svi_ring_order(&l->window, slot)));
        s->count++;
    }
    if (s->next < s->end)
        return;
    s->active = false;
    l->snapshot = NULL;
}

void svi_snapshot_drop(struct svi_snapshot *s, svs_learner *l) {
    s->active = false;
    s->count = 0;
    l->snapshot = NULL;
}

void svi_snapshot_clear(struct svi_snapshot *s) {
    svi_pool_free(&s->pool);
    *s = (struct svi_snapshot){0};
}

double svi_snapshot_memory(double n, int d) {
    return n * (8.0 * svi_round_up(d, 8) + 8 + 8 + 4) + 16.0 * d;
}

uint64_t svi_learner_take_version(svs_learner *l) {
    uint64_t mine = ++l->version;
    l->version++; /* the online model goes on under the next one */
    return mine;
}

void svi_learner_pass_version(svs_learner *l, uint64_t version) {
    l->version = (l->version > version ? l->version : version) + 1;
}
