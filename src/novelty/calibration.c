#include "novelty/calibration.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "novelty/archive.h"

#define REFIT 20 /* the tail is fitted anew when one in so many of the scores is new */

svs_code svi_calibration_init(struct svi_calibration *c, int room, svs_error *err) {
    assert(room >= 1);
    *c = (struct svi_calibration){.room = room, .stale = -1};
    c->scores = svi_alloc_array((size_t)room, sizeof *c->scores);
    c->sorted = svi_alloc_array((size_t)room, sizeof *c->sorted);
    if (c->scores && c->sorted)
        return SVS_OK;
    svi_calibration_clear(c);
    return svi_fail_memory(err, "the calibration scores");
}

void svi_calibration_clear(struct svi_calibration *c) {
    svi_free(c->scores);
    svi_free(c->sorted);
    *c = (struct svi_calibration){0};
}

void svi_calibration_empty(struct svi_calibration *c) {
    c->count = c->at = 0;
    c->stale = -1;
}

/* How many of the sorted scores are below `score`. Halving without a branch to guess: the answer is random.
 */
static int below(const struct svi_calibration *c, double score) {
    const double *from = c->sorted;
    int left = c->count;
    if (left == 0)
        return 0;
    while (left > 1) {
        const int half = left / 2;
        from += (size_t)half & -(size_t)(from[half - 1] < score);
        left -= half;
    }
    return (int)(from - c->sorted) + (*from < score);
}

double svi_calibration_p(const struct svi_calibration *c, double score) {
    assert(!isnan(score));
    return (1.0 + (c->count - below(c, score))) / (1.0 + c->count);
}

double svi_calibration_level(const struct svi_calibration *c, double p) {
    const double may = floor(p * (1.0 + c->count) * (1 + 1e-12)) - 1; /* so many scores may be as high */
    if (may < 0)
        return INFINITY;
    return may >= c->count ? -INFINITY : c->sorted[c->count - 1 - (int)may];
}

double svi_calibration_tail(struct svi_calibration *c, double score) {
    const double p = svi_calibration_p(c, score);
    if (c->count == 0 || score <= c->sorted[c->count - 1])
        return p;
    if (c->stale < 0 || (int64_t)c->stale * REFIT >= c->count) {
        svi_tail_fit(&c->tail, c->sorted, c->count);
        c->stale = 0;
    }
    return fmin(p, svi_tail_p(&c->tail, score));
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void svi_calibration_replace(struct svi_calibration *c, const double *scores) {
    const size_t n = (size_t)c->count;
    for (size_t i = 0; i < n; i++)
        assert(!isnan(scores[i]));
    memcpy(c->scores, scores, n * sizeof *scores);
    memcpy(c->sorted, scores, n * sizeof *scores);
    qsort(c->sorted, n, sizeof *c->sorted, ascending);
    c->stale = -1;
}

/* The sorted scores between the place that becomes free and the one that is needed move by one. */
static void swap_in(struct svi_calibration *c, double old, double score) {
    int from = below(c, old), to = below(c, score);
    double *s = c->sorted;
    if (to > from) {
        to--;
        memmove(s + from, s + from + 1, (size_t)(to - from) * sizeof *s);
    } else {
        memmove(s + to + 1, s + to, (size_t)(from - to) * sizeof *s);
    }
    s[to] = score;
}

static void insert(struct svi_calibration *c, double score) {
    const int to = below(c, score);
    memmove(c->sorted + to + 1, c->sorted + to, (size_t)(c->count - to) * sizeof *c->sorted);
    c->sorted[to] = score;
    c->count++;
}

int svi_calibration_add(struct svi_calibration *c, double score) {
    const int place = c->at;
    assert(!isnan(score));
    if (c->count == c->room)
        swap_in(c, c->scores[place], score);
    else
        insert(c, score);
    c->scores[place] = score;
    c->at = place + 1 == c->room ? 0 : place + 1;
    c->stale += c->stale >= 0 && c->stale < c->room;
    return place;
}

/* Where a score stands in the ring matters: renewals draw rows by their place. */
void svi_calibration_archive(struct svi_archive *a, struct svi_calibration *c) {
    svi_archive_int(a, "calibration count", &c->count, 0, c->room);
    svi_archive_int(a, "calibration next", &c->at, 0, c->room - 1);
    svi_archive_check(a, c->count == c->room || c->at == c->count, "a ring has a hole");
    svi_archive_doubles(a, "scores", c->scores, svi_archive_ok(a) ? c->count : 0);
    for (int i = 0; svi_archive_ok(a) && i < c->count; i++)
        svi_archive_check(a, !isnan(c->scores[i]), "a score is no number");
    svi_archive_int(a, "tail stale", &c->stale, -1, c->room);
    if (!svi_archive_ok(a))
        return;
    if (c->stale >= 0)
        svi_tail_archive(a, &c->tail);
    if (!svi_archive_loading(a))
        return;
    memcpy(c->sorted, c->scores, (size_t)c->count * sizeof *c->sorted);
    qsort(c->sorted, (size_t)c->count, sizeof *c->sorted, ascending);
}
