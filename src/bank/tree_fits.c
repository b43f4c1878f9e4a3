#include "bank/tree_fits.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/worker.h"

static void fits_run(void *job) {
    struct svi_tree_fits *f = job;
    if (f->delay > 0)
        usleep((useconds_t)f->delay);
    f->error.code = SVS_OK;
    svi_boost_fit(&f->o, &f->r, &f->scratch, &f->out, &f->error);
}

/* At normal priority: the stream waits for a fit that is late. */
static const struct svi_worker_task fits_task = {"boosted trees", fits_run, NULL, true};

void svi_tree_fits_clear(struct svi_tree_fits *f) {
    svi_worker_free(&f->worker);
    svi_boost_scratch_clear(&f->scratch);
    svi_forest_clear(&f->out);
    svi_free(f->live);
    *f = (struct svi_tree_fits){0};
}

static svs_code fits_reserve(struct svi_tree_fits *f, int64_t capacity, svs_error *err) {
    if (capacity <= f->live_capacity)
        return SVS_OK;
    uint8_t *live = svi_alloc_array((size_t)capacity, sizeof *live);
    if (!live)
        return svi_fail_memory(err, "a fit of boosted trees");
    svi_free(f->live);
    f->live = live;
    f->live_capacity = capacity;
    return SVS_OK;
}

svs_code svi_tree_fits_begin(struct svi_tree_fits *f, const struct svi_boost_options *o,
                             const struct svi_tree_rows *ring, int64_t rows, bool threads, svs_error *err) {
    const int64_t held = ring->pushed - ring->oldest, count = held < rows ? held : rows;
    SVI_TRY(fits_reserve(f, ring->capacity, err));
    memcpy(f->live, ring->live, (size_t)ring->capacity);
    f->o = *o;
    f->from = ring->pushed - count;
    f->r = (struct svi_boost_rows){.x = ring->x,
                                   .d = ring->d,
                                   .stride = ring->stride,
                                   .first = f->from % ring->capacity,
                                   .count = count,
                                   .capacity = ring->capacity,
                                   .label = ring->label,
                                   .target = ring->target,
                                   .weight = ring->weight,
                                   .live = f->live};
    if (threads && !f->worker)
        f->worker = svi_worker_new(&fits_task, NULL); /* NULL: no thread; the fit runs here */
    f->ready = true;
    f->running = threads && f->worker;
    if (f->running)
        svi_worker_submit(f->worker, f);
    else
        fits_run(f);
    return SVS_OK;
}

void svi_tree_fits_settle(struct svi_tree_fits *f) {
    if (!f->running)
        return;
    if (!svi_worker_collect(f->worker)) {
        const double from = svi_monotonic();
        svi_worker_wait(f->worker);
        const double waited = svi_monotonic() - from;
        f->waits.count++;
        f->waits.seconds += waited;
        f->waits.longest = waited > f->waits.longest ? waited : f->waits.longest;
    }
    f->running = false;
}

bool svi_tree_fits_reads_next(const struct svi_tree_fits *f, const struct svi_tree_rows *ring) {
    return f->running && ring->pushed - ring->capacity >= f->from;
}

svs_code svi_tree_fits_take(struct svi_tree_fits *f, struct svi_forest *to, svs_error *err) {
    if (!f->ready)
        return SVS_OK;
    svi_tree_fits_settle(f);
    f->ready = false;
    f->waits.fits++;
    if (f->error.code != SVS_OK) {
        if (err)
            *err = f->error;
        return f->error.code;
    }
    svi_forest_clear(to);
    *to = f->out;
    f->out = (struct svi_forest){0};
    return SVS_OK;
}

void svi_tree_fits_abandon(struct svi_tree_fits *f) {
    svi_tree_fits_settle(f);
    svi_forest_clear(&f->out);
    f->ready = false;
    f->error.code = SVS_OK;
}
