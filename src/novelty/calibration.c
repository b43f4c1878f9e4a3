/* Two parts. The tail: a mean of generalised Pareto laws, each with its slope b, total S(b) and weight,
 * fitted to the highest tenth of the scores (tail.h has the formulas). The calibration: scores in a ring, in
 * order of arrival, and the same scores sorted.
 *
 * Invariant: `sorted` holds exactly the ring's scores at any time. A p-value counts by binary search. The
 * tail is fitted lazily, by the first score above all others after a twentieth of the scores was replaced, so
 * that a stream without such scores never pays for it. */
#include "novelty/calibration.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "novelty/tail.h"

#define REFIT        20   /* the tail is fitted again when one in REFIT of the scores is new */
#define SHARE        10   /* one score in SHARE is above the threshold */
#define MIN_EXCESSES 20   /* excesses for a fit */
#define MAX_EXCESSES 1000 /* more would cost time and gain little */
#define SAFETY       3    /* factor on the estimate (calibration.h, THE TAIL) */
#define EARLY        30   /* scores that an early tail needs */

/* ---- the tail */

static const struct svi_tail_form tail_form = {.parts = SVI_TAIL_PARTS, .denominator = SVI_TAIL_PARTS};

static struct svi_tail_law tail_law(struct svi_tail *t) {
    return (struct svi_tail_law){t->slope, t->total, t->weight};
}

/* Fits the tail to the highest `count` < n of the scores; the threshold is the score below them. */
static void tail_fit(struct svi_tail *t, const double *sorted, int n, int count) {
    const double *top = sorted + (n - count);
    double sum = 0;
    *t = (struct svi_tail){0};
    t->threshold = top[-1];
    for (int k = 0; k < count; k++)
        sum += top[k] - t->threshold;
    const double mean = sum / count;
    /* All equal, or one infinite: there is no scale, and no fit. */
    if (!(mean >= 1e-300 && sum < INFINITY))
        return;
    t->count = count;
    /* The conformal share: as a p-value counts the score itself. */
    t->share = (1.0 + count) / (1.0 + n);
    /* b = xi / (1 - xi) / mean: the slope with which shape xi has the mean excess seen (tail.h). */
    for (int i = 0; i < SVI_TAIL_PARTS; i++) {
        const double shape = svi_tail_shape(&tail_form, i);
        t->slope[i] = shape / (1 - shape) / mean;
    }
    const struct svi_tail_law law = tail_law(t);
    const struct svi_tail_seen seen = {top, count, t->threshold, mean};
    svi_tail_fit(&tail_form, &law, &seen);
}

/* P(score above threshold) P(Y > y), tripled; 1 without a fit. */
static double tail_p(struct svi_tail *t, double score) {
    const struct svi_tail_law law = tail_law(t);
    if (t->count == 0)
        return 1;
    return fmin(1, SAFETY * t->share * svi_tail_beyond(&tail_form, &law, t->count, score - t->threshold));
}

/* ---- the scores */

enum { SCORES, DIMS };

static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_calibration, scores, NULL, SVI_AXIS(SCORES)),
    SVI_ARRAY(struct svi_calibration, sorted, NULL, SVI_AXIS(SCORES)),
};
static const struct svi_arrays calibration_arrays = SVI_ARRAYS(arrays, "the calibration scores");

svs_code svi_calibration_reserve(struct svi_calibration *c, int count, svs_error *err) {
    const int32_t from[DIMS] = {c->capacity},
                  to[DIMS] = {count < c->ring.window ? count : (int)c->ring.window};
    if (to[SCORES] <= c->capacity)
        return SVS_OK;
    svs_code code = svi_arrays_resize(&calibration_arrays, c, from, to, err);
    c->capacity = code == SVS_OK ? to[SCORES] : c->capacity;
    return code;
}

svs_code svi_calibration_init(struct svi_calibration *c, int capacity, int count, svs_error *err) {
    assert(capacity >= 1);
    *c = (struct svi_calibration){.ring.window = capacity, .stale = -1};
    return svi_calibration_reserve(c, count, err);
}

double svi_calibration_memory(int capacity) {
    const int32_t dims[DIMS] = {capacity};
    return (double)svi_arrays_bytes(&calibration_arrays, dims);
}

void svi_calibration_clear(struct svi_calibration *c) {
    svi_arrays_free(&calibration_arrays, c);
    *c = (struct svi_calibration){0};
}

void svi_calibration_empty(struct svi_calibration *c) {
    svi_stat_ring_reset(&c->ring);
    c->stale = -1;
}

/* The number of scores below `score`, by bisection. Branch-free: comparisons are unpredictable. */
static int calibration_below(const struct svi_calibration *c, double score) {
    const double *from = c->sorted;
    int left = (int)c->ring.filled;
    if (left == 0)
        return 0;
    while (left > 1) {
        const int half = left / 2;
        from += (size_t)half & -(size_t)(from[half - 1] < score);
        left -= half;
    }
    return (int)(from - c->sorted) + (*from < score);
}

/* Scores equal to this one count as at least as high, so ties make p larger, never too small. */
double svi_calibration_p(const struct svi_calibration *c, double score) {
    assert(!isnan(score));
    return (1.0 + (c->ring.filled - calibration_below(c, score))) / (1.0 + c->ring.filled);
}

int svi_calibration_above(const struct svi_calibration *c, double score, int level) {
    if (level == 0 || c->sorted[c->ring.filled - level] > score) /* no ties: the common case */
        return level;
    return (int)c->ring.filled - calibration_below(c, nextafter(score, INFINITY));
}

double svi_calibration_level(const struct svi_calibration *c, double p) {
    const double may =
        floor(p * (1.0 + c->ring.filled) * (1 + 1e-12)) -
        1; /* scores that may be at least as high; the factor allows for rounding of p (1 + n) */
    if (may < 0)
        return INFINITY;
    return may >= c->ring.filled ? -INFINITY : c->sorted[c->ring.filled - 1 - (int)may];
}

double svi_calibration_tail(struct svi_calibration *c, double score) {
    const double p = svi_calibration_p(c, score);
    if (c->ring.filled == 0 || score <= c->sorted[c->ring.filled - 1])
        return p;
    /* Only a score above all others needs the tail, so this is where it is fitted. */
    const int n = (int)c->ring.filled;
    if (c->stale < 0 || (int64_t)c->stale * REFIT >= n) {
        const int count = n / SHARE < MAX_EXCESSES ? n / SHARE : MAX_EXCESSES;
        c->tail = (struct svi_tail){0};
        if (count >= MIN_EXCESSES)
            tail_fit(&c->tail, c->sorted, n, count);
        c->stale = 0;
    }
    return fmin(p, tail_p(&c->tail, score));
}

double svi_calibration_tail_early(struct svi_calibration *c, double score) {
    const double p = svi_calibration_p(c, score);
    const int n = (int)c->ring.filled;
    struct svi_tail t;
    if (n >= SVI_TAIL_MIN_SCORES)
        return svi_calibration_tail(c, score);
    if (n < EARLY || score <= c->sorted[n - 1])
        return p;
    tail_fit(&t, c->sorted, n, n / 2 < MIN_EXCESSES ? n / 2 : MIN_EXCESSES);
    return fmin(p, tail_p(&t, score));
}

static int calibration_ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void calibration_sort(struct svi_calibration *c) {
    if (c->ring.filled == 0)
        return;
    memcpy(c->sorted, c->scores, (size_t)c->ring.filled * sizeof *c->sorted);
    qsort(c->sorted, (size_t)c->ring.filled, sizeof *c->sorted, calibration_ascending);
}

/* The tail belongs to the former scores and is fitted again. */
void svi_calibration_replace(struct svi_calibration *c, const double *scores) {
    for (int i = 0; i < c->ring.filled; i++) {
        assert(!isnan(scores[i]));
        c->scores[i] = scores[i];
    }
    c->stale = -1;
    calibration_sort(c);
}

/* Replaces one sorted score: those between the free place and the needed one move by one. `to` counts the old
 * score too, so it is one less if that lies below it. */
static void calibration_replace_one(struct svi_calibration *c, double old, double score) {
    int from = calibration_below(c, old), to = calibration_below(c, score);
    double *s = c->sorted;
    if (to > from) {
        to--;
        memmove(s + from, s + from + 1, (size_t)(to - from) * sizeof *s);
    } else {
        memmove(s + to + 1, s + to, (size_t)(from - to) * sizeof *s);
    }
    s[to] = score;
}

/* The sorted array is changed first, while the ring still holds the score that leaves. */
int svi_calibration_add(struct svi_calibration *c, double score) {
    const int place = (int)c->ring.slot;
    assert(!isnan(score));
    if (svi_stat_ring_full(&c->ring)) {
        calibration_replace_one(c, c->scores[place], score);
    } else {
        const int to = calibration_below(c, score);
        memmove(c->sorted + to + 1, c->sorted + to, (size_t)(c->ring.filled - to) * sizeof *c->sorted);
        c->sorted[to] = score;
    }
    c->scores[place] = score;
    (void)svi_stat_ring_advance(&c->ring);
    c->stale += c->stale >= 0 && c->stale < c->ring.window;
    return place;
}

/* ---- archive */

static void tail_archive(struct svi_archive *a, struct svi_tail *t) {
    svi_archive_int(a, "tail count", &t->count, 0, INT32_MAX);
    svi_archive_double(a, "tail threshold", &t->threshold);
    svi_archive_double(a, "tail share", &t->share);
    svi_archive_doubles(a, "tail slope", t->slope, SVI_TAIL_PARTS);
    svi_archive_doubles(a, "tail total", t->total, SVI_TAIL_PARTS);
    svi_archive_doubles(a, "tail weight", t->weight, SVI_TAIL_PARTS);
    for (int i = 0; i < SVI_TAIL_PARTS; i++)
        svi_archive_check(a, t->weight[i] >= 0 && t->share >= 0, "a probability is negative");
}

/* Places in the ring are kept: refreshes draw rows by place. `sorted` is rebuilt. */
void svi_calibration_archive(struct svi_archive *a, struct svi_calibration *c) {
    /* Capacity follows from the number of scores, which is read with the ring. */
    const bool holds = svi_stat_ring_archive_as(a, "calibration count", "calibration next", &c->ring);
    if (svi_archive_loading(a) && holds && svi_calibration_reserve(c, (int)c->ring.filled, a->err) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the calibration scores");
    svi_archive_doubles(a, "scores", c->scores, svi_archive_ok(a) ? c->ring.filled : 0);
    for (int i = 0; svi_archive_ok(a) && i < c->ring.filled; i++)
        svi_archive_check(a, !isnan(c->scores[i]), "a score is not a number");
    svi_archive_int(a, "tail stale", &c->stale, -1, (int)c->ring.window);
    if (!svi_archive_ok(a))
        return;
    if (c->stale >= 0)
        tail_archive(a, &c->tail);
    if (svi_archive_loading(a))
        calibration_sort(c);
}
