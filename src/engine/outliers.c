/* The robust scale of each column, from a few sampled values.
 *
 * Rows are compared with `center` and `bound`, which are made from the samples: those of a column once in
 * TURN samples, and with each sample those of some columns, so that no row pays for all. A row beyond them is
 * looked at closely: its far columns are measured by the samples of now. That changes nothing, for the row
 * may be refused.
 *
 * The deviation that counts for the bound rises at once and falls by three tenths each time it is made again:
 * a column that rests for an hour keeps the scale of its work. It is at least a thousandth of the center, so
 * that rounding in a column that does not change is no scale. A column with fewer than eight samples that
 * differ from its median (one-hot words, a rare event) has no deviation: it is bounded where numbers are none
 * that anybody measures, at NO_SCALE.
 *
 * Read outliers_measure, svi_outliers_clip and svi_outliers_note. */
#include "engine/outliers.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/random.h"

#define SAMPLES        SVI_OUTLIER_SAMPLES
#define EVERY_AT_FIRST (SVI_OUTLIER_BEGIN / SAMPLES) /* rows */
#define EVERY          32
#define TURN           64   /* samples in which the bounds of all columns are made again */
#define OUTER          8    /* samples that may be errors, and one more */
#define FALL           0.7  /* of a deviation */
#define RELATIVE       1e-3 /* least deviation, in units of the center */
#define NO_SCALE       1e20 /* bound without a deviation, in units of the center or of 1 */
#define MIN_CAPACITY   8    /* columns */
#define MAX_COLUMNS    1000000

enum { COLUMNS };
static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_outliers, sample, "samples", SVI_AXIS(COLUMNS), SVI_AXIS_LENGTH(SAMPLES)),
    SVI_ARRAY(struct svi_outliers, center, "centers", SVI_AXIS(COLUMNS)),
    SVI_ARRAY(struct svi_outliers, deviation, "deviations", SVI_AXIS(COLUMNS)),
    SVI_ARRAY(struct svi_outliers, bound, NULL, SVI_AXIS(COLUMNS)),
    SVI_ARRAY(struct svi_outliers, clipped, NULL, SVI_AXIS(COLUMNS)),
};
static const struct svi_arrays outliers_arrays = SVI_ARRAYS(arrays, "the scales of the columns");

/* ---- which rows are sampled: one of each block, drawn so that no period in the stream meets it */

static int64_t outliers_number(int64_t row) {
    return row < SVI_OUTLIER_BEGIN ? row / EVERY_AT_FIRST : SAMPLES + (row - SVI_OUTLIER_BEGIN) / EVERY;
}

/* From 1. */
static int64_t outliers_row(int64_t number) {
    struct svi_random random = {(uint64_t)number};
    const uint64_t draw = svi_random_next(&random);
    if (number < SAMPLES)
        return 1 + EVERY_AT_FIRST * number + (int64_t)(draw % EVERY_AT_FIRST);
    return 1 + SVI_OUTLIER_BEGIN + EVERY * (number - SAMPLES) + (int64_t)(draw % EVERY);
}

/* After which row the next sample is taken. */
static void outliers_wait(struct svi_outliers *o) {
    const int64_t number = outliers_number(o->rows), row = outliers_row(number);
    o->next = row > o->rows ? row : outliers_row(number + 1);
}

/* Are there samples enough? */
static bool outliers_begun(const struct svi_outliers *o) {
    return o->next > SVI_OUTLIER_BEGIN;
}

/* ---- life */

bool svi_outliers_wanted(const struct svi_settings *s) {
    return !svi_settings_keyed(s) && (s->outlier == SVI_OUTLIER_REFUSE ||
                                      (s->outlier == SVI_OUTLIER_CLIP && s->method != SVI_METHOD_NONE));
}

struct svi_outliers *svi_outliers_new(svs_error *err) {
    struct svi_outliers *o = svi_alloc_plain(sizeof *o);
    if (!o) {
        svi_fail_memory(err, "the scales of the columns");
        return NULL;
    }
    o->quads = svi_quads_get();
    outliers_wait(o);
    return o;
}

void svi_outliers_free(struct svi_outliers **o) {
    if (*o)
        svi_arrays_free(&outliers_arrays, *o);
    svi_free(*o);
    *o = NULL;
}

void svi_outliers_reset(struct svi_outliers *o) {
    for (int j = 0; j < o->d; j++)
        svi_outliers_renew(o, j);
    o->d = 0;
    o->rows = 0;
    outliers_wait(o);
}

static int outliers_capacity(int d) {
    int capacity = MIN_CAPACITY;
    while (capacity < d)
        capacity *= 2;
    return capacity;
}

svs_code svi_outliers_reserve(struct svi_outliers *o, int d, svs_error *err) {
    const int32_t from = o->capacity, to = outliers_capacity(d);
    if (d <= o->capacity)
        return SVS_OK;
    const svs_code code = svi_arrays_resize(&outliers_arrays, o, &from, &to, err);
    o->capacity = code == SVS_OK ? to : from;
    return code;
}

/* ---- one column */

struct outliers_scale {
    double center, now, counted; /* deviation by the samples, and what counts for the bound */
    double bound;
};

static double outliers_bound(double center, double deviation) {
    const double size = fabs(center);
    if (deviation > 0)
        return SVI_OUTLIER_DEVIATIONS * fmax(deviation, RELATIVE * size);
    return NO_SCALE * fmax(size, 1);
}

/* By insertion, first of every seventh one. */
static void outliers_sort(double *v) {
    for (int gap = 7; gap >= 1; gap -= 6)
        for (int i = gap; i < SAMPLES; i++) {
            const double one = v[i];
            int at = i;
            for (; at >= gap && v[at - gap] > one; at -= gap)
                v[at] = v[at - gap];
            v[at] = one;
        }
}

/* `fall`: what becomes of the deviation that counted so far, if that of now is smaller. */
static struct outliers_scale outliers_measure(const struct svi_outliers *o, int column, double fall) {
    double v[SAMPLES];
    int low = 0, high = SAMPLES - 1;
    memcpy(v, o->sample + (size_t)column * SAMPLES, sizeof v);
    outliers_sort(v);
    struct outliers_scale s = {.center = v[(SAMPLES - 1) / 2]};
    for (int i = 1; i < OUTER; i++) { /* the outermost ones leave */
        if (s.center - v[low] > v[high] - s.center)
            low++;
        else
            high--;
    }
    s.now = fmax(s.center - v[low], v[high] - s.center);
    s.counted = s.now > 0 ? fmax(s.now, fall * o->deviation[column]) : o->deviation[column];
    s.bound = outliers_bound(s.center, s.counted);
    return s;
}

static void outliers_settle(struct svi_outliers *o, int column) {
    const struct outliers_scale s = outliers_measure(o, column, FALL);
    o->center[column] = s.center;
    o->deviation[column] = s.counted;
    o->bound[column] = s.bound;
}

/* ---- a row */

double *svi_outliers_clip(struct svi_outliers *o, const double *x, int d, struct svi_outlier *first) {
    const int columns = d < o->d ? d : o->d;
    int count = 0;
    for (int j = 0; j < columns; j++) {
        if (!(fabs(x[j] - o->center[j]) > o->bound[j]) || fabs(x[j]) > SVI_VALUE_MAX)
            continue;
        const struct outliers_scale s = outliers_measure(o, j, 1);
        if (fabs(x[j] - s.center) <= s.bound)
            continue;
        if (count++ == 0) {
            memcpy(o->clipped, x, (size_t)d * sizeof *x);
            *first = (struct svi_outlier){j, s.center, s.counted, s.bound};
        }
        const double usual = s.now > 0 ? s.now : s.counted;
        o->clipped[j] = s.center + (x[j] > s.center ? usual : -usual);
    }
    return count > 0 ? o->clipped : NULL;
}

static double outliers_first_bound(const struct svi_outliers *o) {
    return outliers_begun(o) ? outliers_bound(0, 0) : INFINITY;
}

/* Columns that are new, and 0 in all samples so far. */
static void outliers_widen(struct svi_outliers *o, int d) {
    for (int j = o->d; j < d; j++)
        o->bound[j] = outliers_first_bound(o);
    o->d = d;
}

static void outliers_sample(struct svi_outliers *o, const double *x, int d) {
    const int64_t number = outliers_number(o->rows - 1);
    double *sample = o->sample + number % SAMPLES;
    for (int j = 0; j < d; j++)
        sample[(size_t)j * SAMPLES] = x[j];
    for (int j = d; j < o->d; j++)
        sample[(size_t)j * SAMPLES] = 0;
    if (number < SAMPLES - 1)
        return;
    const bool first = number == SAMPLES - 1;
    for (int j = first ? 0 : (int)(number % TURN); j < o->d; j += first ? 1 : TURN)
        outliers_settle(o, j);
}

void svi_outliers_due(struct svi_outliers *o, const double *x, int d) {
    if (d > o->d)
        outliers_widen(o, d);
    if (o->rows < o->next)
        return;
    outliers_sample(o, x, d);
    outliers_wait(o);
}

/* ---- columns that come and go */

void svi_outliers_renew(struct svi_outliers *o, int feature) {
    const int32_t capacity = o->capacity;
    if (feature >= o->d)
        return;
    svi_arrays_forget(&outliers_arrays, o, &capacity, COLUMNS, feature);
    o->bound[feature] = outliers_first_bound(o);
}

void svi_outliers_prune(struct svi_outliers *o, const bool *keep) {
    const int before = o->d;
    int kept = 0;
    for (int j = 0; j < before; j++) {
        if (!keep[j])
            continue;
        memmove(o->sample + (size_t)kept * SAMPLES, o->sample + (size_t)j * SAMPLES,
                SAMPLES * sizeof *o->sample);
        o->center[kept] = o->center[j];
        o->deviation[kept] = o->deviation[j];
        o->bound[kept++] = o->bound[j];
    }
    for (int j = kept; j < before; j++)
        svi_outliers_renew(o, j);
    o->d = kept;
}

/* ---- archive */

void svi_outliers_archive(struct svi_archive *a, struct svi_outliers *o) {
    int columns = o->d;
    svi_archive_int64(a, "rows", &o->rows, 0, SVI_COUNT_MAX);
    svi_archive_int(a, "columns", &columns, 0, MAX_COLUMNS);
    if (!svi_archive_ok(a))
        return;
    if (svi_archive_loading(a)) {
        const int64_t values = (int64_t)columns * (SAMPLES + 2);
        if (!svi_archive_check(a, values <= svi_archive_left(a) / (int64_t)sizeof(double),
                               "the scales of the columns are truncated") ||
            svi_outliers_reserve(o, columns, a->err) != SVS_OK)
            return;
        o->d = columns;
        outliers_wait(o);
    }
    const int32_t capacity = o->capacity, used = o->d;
    svi_arrays_archive(a, &outliers_arrays, o, &capacity, &used);
    bool positive = true;
    for (int j = 0; svi_archive_loading(a) && svi_archive_ok(a) && j < o->d; j++) {
        positive &= o->deviation[j] >= 0;
        o->bound[j] = outliers_begun(o) ? outliers_bound(o->center[j], o->deviation[j]) : INFINITY;
    }
    svi_archive_check(a, positive, "a deviation is negative");
}

double svi_outliers_memory(int d) {
    const int32_t capacity = outliers_capacity(d);
    return (double)sizeof(struct svi_outliers) + (double)svi_arrays_bytes(&outliers_arrays, &capacity);
}
