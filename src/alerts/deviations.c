#include "alerts/deviations.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/arrays.h"
#include "base/wide.h"

#define HALF       (SVI_CONTEXT_BINS / 2)
#define VISITS     90          /* rows that a bin remembers */
#define MAX_SQUARE 25          /* squared deviations that a residual counts as at most ... */
#define EARLY      (1.0f / 64) /* ... once its share in the overall mean is down to this */

/* ---- what it consists of */

/* Bins get places in the order of their first row, so that memory grows with the times of day that occur.
 * Place 0 is that of all bins without a row; its sums stay 0. */
enum { PARTS, COLUMNS, PLACES, DIMS };

static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_deviations, square, "squares", SVI_AXIS(PLACES), SVI_AXIS(PARTS), SVI_AXIS(COLUMNS)),
    SVI_ARRAY(struct svi_deviations, overall, "overall", SVI_AXIS(PARTS), SVI_AXIS(COLUMNS)),
    SVI_ARRAY(struct svi_deviations, now, "now", SVI_AXIS(PARTS), SVI_AXIS(COLUMNS)),
};
static const struct svi_arrays deviations_arrays = SVI_ARRAYS(arrays, "the deviations of the sensors");

struct deviations_dims {
    int32_t of[DIMS];
};

static struct deviations_dims deviations_dims(const struct svi_deviations *v, int capacity) {
    return (struct deviations_dims){{v->parts, v->columns, 1 + capacity}};
}

svs_code svi_deviations_init(struct svi_deviations *v, int parts, int columns, int capacity, svs_error *err) {
    *v = (struct svi_deviations){
        .parts = parts, .columns = columns, .series = parts * columns, .capacity = capacity, .bin = -1};
    const struct deviations_dims dims = deviations_dims(v, capacity);
    return svi_arrays_alloc(&deviations_arrays, v, dims.of, err);
}

void svi_deviations_clear(struct svi_deviations *v) {
    svi_arrays_free(&deviations_arrays, v);
}

static svs_code deviations_resize(struct svi_deviations *v, int capacity, svs_error *err) {
    const struct deviations_dims from = deviations_dims(v, v->capacity), to = deviations_dims(v, capacity);
    const svs_code code = svi_arrays_resize(&deviations_arrays, v, from.of, to.of, err);
    v->capacity = code == SVS_OK ? capacity : v->capacity;
    return code;
}

bool svi_deviations_are_full(const struct svi_deviations *v) {
    return v->bins >= v->capacity && v->capacity < SVI_CONTEXT_BINS;
}

svs_code svi_deviations_reserve(struct svi_deviations *v, svs_error *err) {
    return svi_deviations_are_full(v) ? deviations_resize(v, (v->bins + 2) / 2 * 2, err) : SVS_OK;
}

static float *deviations_squares(const struct svi_deviations *v, int bin) {
    return v->square + (size_t)v->place[bin] * (size_t)v->series;
}

/* ---- one row */

void svi_deviations_turn_to(struct svi_deviations *v, int bin) {
    /* The neighbours of a bin are cyclic within its half: the last bin of working days is next to their
     * first. All sums are weighted alike, so the quotient is a mean over rows: SVI_DEVIATION_STEADY rows of
     * all times, all of this bin, half of both neighbours. */
    const int first = bin / HALF * HALF, n = v->series;
    const int before = first + (bin - first + HALF - 1) % HALF, after = first + (bin - first + 1) % HALF;
    const float *b = deviations_squares(v, before), *at = deviations_squares(v, bin),
                *a = deviations_squares(v, after);
    const float rows = SVI_DEVIATION_STEADY + v->visits[bin] + (v->visits[before] + v->visits[after]) / 2;
    for (int j = 0; j < n; j++) {
        const float square = (SVI_DEVIATION_STEADY * v->overall[j] + at[j] + (b[j] + a[j]) / 2) / rows;
        /* A series without a residual so far has deviation 1, the unit of residuals. */
        v->now[j] = v->overall[j] > 0 ? fmaxf(SVI_DEVIATION_MIN, sqrtf(square)) : 1;
    }
    v->bin = bin;
}

/* A series that starts late begins as if it had always had deviation 1. From nothing, its deviation would
 * take thousands of rows to grow, and its signals of that time would exceed all later ones. */
static void deviations_begin(struct svi_deviations *v, int j) {
    v->overall[j] = v->now[j] = 1;
    for (int b = 0; b < SVI_CONTEXT_BINS; b++)
        if (v->place[b] > 0)
            deviations_squares(v, b)[j] = v->visits[b];
}

/* Adds squared residuals to a bin (`sum`) and to the overall mean. A square is limited to MAX_SQUARE times
 * the larger of the present and the overall one, so that one gross error does not blind the sensor. In the
 * first rows there is nothing to limit by. */
SVI_WIDE
static void deviations_add(float *restrict sum, float *restrict overall, const float *restrict now,
                           const float *restrict residual, float keep, float share, int n) {
    const bool early = share > EARLY;
    for (int j = 0; j < n; j++) {
        const float square = residual[j] * residual[j], a = MAX_SQUARE * now[j] * now[j],
                    b = MAX_SQUARE * overall[j];
        const float limit = early ? INFINITY : a > b ? a : b;
        const float counted = square < limit ? square : limit;
        sum[j] = sum[j] * keep + counted;
        overall[j] += share * (counted - overall[j]);
    }
}

void svi_deviations_learn(struct svi_deviations *v, int bin, const float *residual, float share) {
    /* A plain mean over the first VISITS rows of the bin, then one that fades. The place is given before the
     * sums are touched; svi_deviations_reserve has made space for it. */
    const float keep = v->visits[bin] >= VISITS ? 1 - 1.0f / VISITS : 1;
    if (v->place[bin] == 0)
        v->place[bin] = (uint8_t)++v->bins;
    for (int j = 0; j < v->series && share <= EARLY; j++)
        if (v->overall[j] == 0 && residual[j] != 0)
            deviations_begin(v, j);
    v->visits[bin] = v->visits[bin] * keep + 1;
    deviations_add(deviations_squares(v, bin), v->overall, v->now, residual, keep, share, v->series);
}

/* ---- columns and archive */

void svi_deviations_forget(struct svi_deviations *v, int column) {
    const struct deviations_dims dims = deviations_dims(v, v->capacity);
    /* `now` divides residuals, so it must not stay 0. */
    svi_arrays_forget(&deviations_arrays, v, dims.of, COLUMNS, column);
    for (int j = column; j < v->series; j += v->columns)
        v->now[j] = 1;
}

svs_code svi_deviations_widen(struct svi_deviations *to, const struct svi_deviations *from, svs_error *err) {
    if (to->capacity < from->capacity && deviations_resize(to, from->capacity, err) != SVS_OK)
        return SVS_NO_MEMORY;
    const struct deviations_dims wide = deviations_dims(to, to->capacity),
                                 narrow = deviations_dims(from, from->capacity);
    svi_arrays_copy(&deviations_arrays, to, wide.of, from, narrow.of);
    /* New columns are 0 after the copy; as divisors they are 1 until they have a residual. */
    for (int j = 0; j < to->series; j++)
        to->now[j] = to->now[j] > 0 ? to->now[j] : 1;
    memcpy(to->visits, from->visits, sizeof to->visits);
    memcpy(to->place, from->place, sizeof to->place);
    to->bins = from->bins;
    to->bin = from->bin;
    return SVS_OK;
}

/* Checks a loaded archive: places count from 1, each is given once, exactly to the bins that had rows. */
static bool deviations_are_placed(const struct svi_deviations *v) {
    bool given[SVI_CONTEXT_BINS + 1] = {false}, good = true;
    int bins = 0;
    for (int b = 0; b < SVI_CONTEXT_BINS; b++) {
        const int place = v->place[b];
        good = good && place <= v->bins && !(place > 0 && given[place]) && (v->visits[b] > 0) == (place > 0);
        bins += place > 0;
        given[good ? place : 0] = true;
    }
    return good && bins == v->bins;
}

void svi_deviations_archive(struct svi_archive *a, struct svi_deviations *v) {
    svi_archive_floats(a, "visits", v->visits, SVI_CONTEXT_BINS);
    svi_archive_bytes(a, "places", v->place, SVI_CONTEXT_BINS);
    svi_archive_int(a, "bins", &v->bins, 0, SVI_CONTEXT_BINS);
    svi_archive_int(a, "bin", &v->bin, -1, SVI_CONTEXT_BINS - 1);
    if (!svi_archive_check(a, deviations_are_placed(v), "times of day contradict each other") ||
        (v->bins > v->capacity && deviations_resize(v, v->bins, a->err) != SVS_OK))
        return;
    const struct deviations_dims dims = deviations_dims(v, v->capacity), used = deviations_dims(v, v->bins);
    svi_arrays_archive(a, &deviations_arrays, v, dims.of, used.of);
}

double svi_deviations_memory(int parts, int columns, int capacity) {
    const struct svi_deviations v = {.parts = parts, .columns = columns};
    const struct deviations_dims dims = deviations_dims(&v, capacity);
    return (double)svi_arrays_bytes(&deviations_arrays, dims.of);
}
