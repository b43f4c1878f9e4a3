/* The detector as it is kept. */
#include <math.h>
#include <stdio.h>

#include "novelty/archive.h"
#include "novelty/detector_state.h"

#define MOST (INT64_MAX / 8) /* of what is counted */

static void archive_counts(struct svi_archive *a, struct svi_detector *d) {
    svi_archive_int64(a, "seen", &d->seen, 0, MOST);
    svi_archive_int64(a, "learned", &d->learned, 0, MOST);
    svi_archive_int64(a, "joined", &d->joined, 0, MOST);
    svi_archive_int64(a, "left", &d->left, 0, MOST);
    svi_archive_int64(a, "renewals", &d->renewals, 0, MOST);
    svi_archive_int64(a, "held out", &d->held_out, 0, MOST);
    svi_archive_int64(a, "next renewal", &d->next_renewal, 1, 2 * MOST);
    svi_archive_int64(a, "next check", &d->next_check, 1, 2 * MOST);
    svi_archive_int64(a, "last join", &d->last_join, INT64_MIN / 2, MOST);
    svi_archive_uint64(a, "random", &d->random.state);
    svi_archive_int(a, "points", &d->points, 0, d->o.model.max);
    svi_archive_bool(a, "ready", &d->ready);
    svi_archive_check(a,
                      d->learned <= d->seen && d->last_join <= d->learned && d->joined - d->left == d->points,
                      "the numbers of samples contradict each other");
    svi_archive_check(a,
                      d->next_renewal > d->seen && d->next_check > d->seen &&
                          d->next_check - d->seen <= d->o.calibration,
                      "a renewal is overdue");
}

static void archive_points(struct svi_archive *a, struct svi_detector *d) {
    svi_archive_finite(a, "raw", d->raw, (int64_t)d->points * d->o.d);
    svi_archive_int64s(a, "born", d->born, d->points, 0, d->learned);
    svi_archive_int64s(a, "used", d->used, d->points, 0, d->learned);
}

static void archive_calibration(struct svi_archive *a, struct svi_detector *d) {
    svi_calibration_archive(a, &d->calibration);
    if (svi_archive_ok(a))
        svi_archive_finite(a, "rows", d->rows, (int64_t)d->calibration.count * d->o.d);
}

/* The run of suspicious samples: without a model nothing is suspicious. */
static void archive_run(struct svi_archive *a, struct svi_detector *d) {
    svi_archive_int64(a, "run", &d->run, 0, MOST);
    svi_archive_bool(a, "run novel", &d->run_novel);
    svi_archive_int(a, "held count", &d->held_count, 0, d->o.confirm);
    if (svi_archive_check(a, d->ready || (d->run == 0 && !d->run_novel && d->held_count == 0),
                          "there is a run without a model"))
        svi_archive_finite(a, "held", d->held, (int64_t)d->held_count * d->o.d);
}

static void archive_candidate(struct svi_archive *a, struct svi_detector *d) {
    svi_archive_int64(a, "candidates", &d->candidates, 0, d->o.model.m);
    if (!svi_archive_ok(a) || d->candidates == 0)
        return;
    svi_archive_double(a, "candidate membership", &d->candidate_membership);
    svi_archive_check(a, !isnan(d->candidate_membership), "a membership is no number");
    svi_archive_finite(a, "candidate", d->candidate, d->o.d);
}

/* The flags' places follow from how many there were. */
static void archive_change(struct svi_archive *a, struct svi_detector *d) {
    svi_archive_int64(a, "novel count", &d->novel_count, 0, d->novel_room > 0 ? MOST : 0);
    if (!svi_archive_ok(a))
        return;
    const int64_t filled = d->novel_count < d->novel_room ? d->novel_count : d->novel_room;
    svi_archive_bytes(a, "novel", d->novel, filled);
    d->novel_sum = 0;
    for (int64_t i = 0; i < filled; i++) {
        svi_archive_check(a, d->novel[i] <= 1, "a flag is neither 0 nor 1");
        d->novel_sum += d->novel[i];
    }
}

static void archive_coordinates(struct svi_archive *a, struct svi_coordinates *c) {
    if (!c->center)
        return;
    svi_archive_finite(a, "center", c->center, c->d);
    svi_archive_finite(a, "inverse", c->inverse, c->d);
    for (int j = 0; j < c->d; j++)
        svi_archive_check(a, c->inverse[j] > 0, "the scale of a feature is not above 0");
}

static void archive_member(struct svi_archive *a, struct svi_detector *d, int g) {
    svs_novelty_member *m = &d->view.member[g];
    char name[32], key[64];
    snprintf(name, sizeof name, "member %d", g + 1);
    snprintf(key, sizeof key, "%s gamma", name);
    svi_archive_double(a, key, &m->gamma);
    snprintf(key, sizeof key, "%s share", name);
    svi_archive_double(a, key, &m->share);
    svi_archive_check(a, m->gamma >= 0 && m->share >= 0 && m->share <= 2, "a member is out of range");
    svi_hull_archive(a, &d->hull[g], name, d->points);
}

static void archive_model(struct svi_archive *a, struct svi_detector *d) {
    archive_coordinates(a, &d->coordinates);
    for (int g = 0; g < d->members && svi_archive_ok(a); g++)
        archive_member(a, d, g);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    svi_detector_place(d);
    svi_detector_show(d);
}

void svi_detector_archive(struct svi_archive *a, svi_detector *d) {
    static void (*const parts[])(struct svi_archive *, struct svi_detector *) = {
        archive_counts, archive_points, archive_calibration, archive_run, archive_candidate, archive_change};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && svi_archive_ok(a); i++)
        parts[i](a, d);
    if (svi_archive_ok(a) && d->ready)
        archive_model(a, d);
}
