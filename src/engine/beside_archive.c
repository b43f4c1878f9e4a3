/* What is kept of the last refit beside the online model. */
#include <math.h>

#include "engine/beside.h"

#define MOST (INT64_MAX / 4) /* of what is counted */

/* Running or not: who has the job is of no matter to what comes later. */
static void archive_state(struct svi_archive *a, struct svi_beside *b) {
    bool running = b->state > SVI_REFIT_IDLE;
    svi_archive_bool(a, "running", &running);
    svi_archive_bool(a, "stale", &b->stale);
    svi_archive_int64(a, "next", &b->next, 0, MOST);
    svi_archive_double(a, "next time", &b->next_time);
    svi_archive_check(a, !isnan(b->next_time), "a time is none");
    svi_archive_check(a, running || !b->stale, "a refit that does not run is stale");
    if (svi_archive_loading(a) && svi_archive_ok(a))
        b->state = running ? SVI_REFIT_LOST : SVI_REFIT_IDLE;
}

static void archive_counts(struct svi_archive *a, struct svi_beside *b) {
    svi_archive_int64(a, "done", &b->done, 0, MOST);
    svi_archive_int64(a, "failed", &b->failed, 0, MOST);
    svi_archive_int64(a, "skipped", &b->skipped, 0, MOST);
    svi_archive_int64(a, "overtaken", &b->overtaken, 0, MOST);
    svi_archive_text(a, "reason", b->reason, sizeof b->reason);
}

/* The oldest first: where the ring begins is of no matter. */
static void archive_hits(struct svi_archive *a, struct svi_beside *b) {
    uint8_t hits[SVI_BESIDE_WINDOW];
    for (int64_t i = 0; i < b->hit_count && !svi_archive_loading(a); i++)
        hits[i] = b->hits[(b->hit_at - b->hit_count + i + b->hit_room) % b->hit_room];
    svi_archive_int64(a, "hit count", &b->hit_count, 0, b->hit_room);
    if (!svi_archive_ok(a))
        return;
    svi_archive_bytes(a, "hits", hits, b->hit_count);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    b->online = b->refit = 0;
    for (int64_t i = 0; i < b->hit_count && svi_archive_check(a, hits[i] <= 3, "a hit is none"); i++) {
        b->hits[i] = hits[i];
        b->online += hits[i] & 1;
        b->refit += hits[i] >> 1;
    }
    b->hit_at = b->hit_count % b->hit_room;
}

/* Told with the stats for as long as no other refit comes, whether or not it is still of use. */
static void archive_figures(struct svi_archive *a, struct svi_beside *b) {
    svs_model *m = &b->model;
    int method = m->method ? (int)svs_solver_find(m->method) : SVS_SOLVER_COUNT;
    svi_archive_int(a, "method", &method, 0, SVS_SOLVER_COUNT);
    svi_archive_uint64(a, "version", &m->version);
    svi_archive_double(a, "C", &m->C);
    svi_archive_int64(a, "window", &m->window, 0, MOST);
    svi_archive_double(a, "objective", &m->objective);
    svi_archive_double(a, "gap", &m->gap);
    svi_archive_int64(a, "iterations", &m->iterations, 0, MOST);
    svi_archive_int64(a, "at", &m->at, 0, MOST);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    m->method = method < SVS_SOLVER_COUNT ? svs_solver_name((svs_solver)method) : NULL;
    m->task = SVS_CLASSIFY;
    m->refit = method < SVS_SOLVER_COUNT;
}

static void archive_model(struct svi_archive *a, struct svi_beside *b) {
    svs_model *m = &b->model;
    svi_archive_int(a, "d", &m->d, 1, b->max_features);
    svi_archive_int(a, "class count", &m->class_count, 2, b->max_classes);
    if (!svi_archive_ok(a))
        return;
    m->rows = m->class_count < 3 ? 1 : m->class_count;
    const int64_t weights = (int64_t)m->rows * m->d;
    if (!svi_archive_check(a, weights <= svi_archive_left(a) / 8, "a model's weights are cut off") ||
        (svi_archive_loading(a) && svi_beside_reserve(b, m->rows, m->d, a->err) != SVS_OK))
        return;
    svi_archive_doubles(a, "W", b->W, weights);
    svi_archive_doubles(a, "b", b->b, m->rows);
    m->W = b->W;
    m->b = b->b;
}

void svi_beside_archive(struct svi_archive *a, struct svi_beside *b) {
    bool off = b->state == SVI_REFIT_OFF;
    svi_archive_bool(a, "off", &off);
    if (!svi_archive_check(a, off == (b->state == SVI_REFIT_OFF), "the setting refit was another") || off)
        return;
    archive_state(a, b);
    archive_counts(a, b);
    archive_hits(a, b);
    archive_figures(a, b);
    svi_archive_bool(a, "have", &b->have);
    svi_archive_bool(a, "serves", &b->serves);
    if (svi_archive_check(a, b->have || !b->serves, "a refit serves that is none") && b->have)
        archive_model(a, b);
}

void svi_beside_tallies_archive(struct svi_archive *a, struct svi_beside *b) {
    if (b->state == SVI_REFIT_OFF)
        return;
    svi_archive_int64(a, "refit begun", &b->job->begun, 0, MOST);
    svi_archive_double(a, "refit milliseconds", &b->model.milliseconds);
}
