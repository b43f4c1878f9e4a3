#include "learner/snapshot.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_state.h"

static int stride_of(int d) {
    return (d + 7) / 8 * 8;
}

/* The content is of no use any more: the old room goes before the new one is taken. */
static svs_code make_room(struct svi_snapshot *s, int64_t n, int d, svs_error *err) {
    const int stride = stride_of(d);
    if (n * stride > s->room * s->stride || n > s->room || d > s->width) {
        svi_snapshot_clear(s);
        s->rows = svi_alloc_array((size_t)n, (size_t)stride * sizeof *s->rows);
        s->label = svi_alloc_array((size_t)n, sizeof *s->label);
        s->weight = svi_alloc_array((size_t)n, sizeof *s->weight);
        s->number = svi_alloc_array((size_t)n, sizeof *s->number);
        s->mean = svi_alloc_array((size_t)d, sizeof *s->mean);
        s->inverse = svi_alloc_array((size_t)d, sizeof *s->inverse);
        if (!s->rows || !s->label || !s->weight || !s->number || !s->mean || !s->inverse) {
            svi_snapshot_clear(s);
            return svi_fail_memory(err, "a snapshot of the window");
        }
        s->room = n;
        s->width = d;
    }
    s->stride = stride;
    s->d = d;
    return SVS_OK;
}

svs_code svi_snapshot_begin(struct svi_snapshot *s, svs_learner *l, svs_error *err) {
    svs_code code = make_room(s, l->window.live, l->d, err);
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

static void copy_slot(struct svi_snapshot *s, const svs_learner *l, int32_t slot) {
    const struct svi_slot *from = &l->window.slots[slot];
    double *to = s->rows + s->count * s->stride;
    if (!from->live)
        return;
    memcpy(to, svi_ring_row(&l->window, slot), (size_t)s->d * sizeof *to);
    memset(to + s->d, 0, (size_t)(s->stride - s->d) * sizeof *to);
    s->label[s->count] = from->label;
    s->number[s->count] = from->number;
    s->weight[s->count] = from->weight;
    if (l->o.forget < 1)
        s->weight[s->count] *= pow(l->o.forget, (double)(s->order - from->order));
    s->count++;
}

void svi_snapshot_copy(struct svi_snapshot *s, svs_learner *l, int64_t rows) {
    const int64_t oldest = l->window.pushed - l->window.count;
    if (s->next < oldest) /* dead slots have gone */
        s->next = oldest;
    const int64_t stop = s->end - s->next < rows ? s->end : s->next + rows;
    for (; s->next < stop; s->next++)
        copy_slot(s, l, svi_ring_at(&l->window, (int32_t)(s->next - oldest)));
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
    void *const all[] = {s->rows, s->label, s->weight, s->number, s->mean, s->inverse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    *s = (struct svi_snapshot){0};
}

double svi_snapshot_memory(double n, int d) {
    return n * (8.0 * stride_of(d) + 8 + 8 + 4) + 16.0 * d;
}

uint64_t svi_learner_take_version(svs_learner *l) {
    uint64_t mine = ++l->version;
    l->version++; /* the online model goes on under the next one */
    return mine;
}
