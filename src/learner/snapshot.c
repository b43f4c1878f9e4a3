/* A copy of the window's rows for a solver on another thread, made a few rows a step while the stream
 * continues. A row that is about to leave makes the copy complete at once (slide_release): the snapshot is the
 * window at its begin, whatever happened since. */
#include "learner/snapshot.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/fail.h"
#include "learner/learner_internal.h"

enum { ROWS, STRIDE, FEATURES };
static const struct svi_array snapshot_table[] = {
#define OWNER struct svi_snapshot
    SVI_ARRAY(OWNER, rows, NULL, SVI_AXIS(ROWS), SVI_AXIS(STRIDE)),
    SVI_ARRAY(OWNER, label, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, weight, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, number, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, mean, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(OWNER, inverse, NULL, SVI_AXIS(FEATURES)),
#undef OWNER
};
static const struct svi_arrays snapshot_arrays =
    SVI_ARRAYS_ALIGNED(snapshot_table, "a snapshot of the window");

static void snapshot_dims(int64_t n, int d, int32_t *dims) {
    dims[ROWS] = (int32_t)n;
    dims[STRIDE] = svi_round_up(d, 8);
    dims[FEATURES] = d;
}

/* The old arrays go before the new ones are taken. */
svs_code svi_snapshot_reserve(struct svi_snapshot *s, int64_t n, int d, svs_error *err) {
    const int stride = svi_round_up(d, 8);
    const int64_t values = (int64_t)s->capacity[ROWS] * s->capacity[STRIDE];
    if (n * stride > values || n > s->capacity[ROWS] || d > s->capacity[FEATURES]) {
        svi_snapshot_clear(s);
        int32_t dims[sizeof s->capacity / sizeof *s->capacity];
        snapshot_dims(n, d, dims);
        if (svi_arrays_alloc(&snapshot_arrays, s, dims, err) != SVS_OK)
            return SVS_NO_MEMORY;
        memcpy(s->capacity, dims, sizeof dims);
    }
    s->stride = stride;
    s->d = d;
    return SVS_OK;
}

svs_code svi_snapshot_begin(struct svi_snapshot *s, svs_learner *l, svs_error *err) {
    SVI_TRY(svi_snapshot_reserve(s, l->window.live, l->d, err));
    const bool scaled = l->o.scale == SVS_SCALE_STANDARD;
    s->class_count = l->class_count;
    s->end = l->window.pushed;
    s->next = l->window.pushed - l->window.count;
    s->order = l->order;
    s->count = 0;
    /* The scaler of the begin, as rows are copied raw: the solver standardises all of them alike. */
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
    /* Dead slots at the front may have been popped since: numbers say where the copy stands, slots move. */
    if (s->next < oldest) /* dead slots were removed */
        s->next = oldest;
    const int64_t stop = s->end - s->next < rows ? s->end : s->next + rows;
    for (; s->next < stop; s->next++) {
        const int32_t slot = svi_ring_at(&l->window, (int32_t)(s->next - oldest));
        double *to = s->rows + s->count * s->stride;
        if (!svi_ring_live(&l->window, slot))
            continue;
        svi_array_copy(to, svi_ring_row(&l->window, slot), (size_t)s->d * sizeof *to);
        for (int64_t j = s->d; j < s->stride; j++)
            to[j] = 0;
        s->label[s->count] = svi_ring_label(&l->window, slot);
        s->number[s->count] = svi_ring_number(&l->window, slot);
        s->weight[s->count] = svi_ring_weight(&l->window, slot);
        /* Weights as of the begin of the snapshot, however late the row is copied. */
        if (l->o.forget < 1)
            s->weight[s->count] *= pow(l->o.forget, (double)(s->order - svi_ring_order(&l->window, slot)));
        s->count++;
    }
    /* Not whole yet; else the learner need not know it any more. */
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
    svi_arrays_free(&snapshot_arrays, s);
    *s = (struct svi_snapshot){0};
}

double svi_snapshot_memory(int64_t n, int d) {
    int32_t dims[3];
    snapshot_dims(n, d, dims);
    return (double)svi_arrays_bytes(&snapshot_arrays, dims);
}

/* Two numbers are used up: one for a model that was made elsewhere (a refit), and the next for the online
 * model, so that versions never repeat. */
uint64_t svi_learner_take_version(svs_learner *l) {
    uint64_t mine = ++l->version;
    l->version++; /* the online model continues under the next one */
    return mine;
}

void svi_learner_pass_version(svs_learner *l, uint64_t version) {
    l->version = (l->version > version ? l->version : version) + 1;
}
