/* The robust scale of each column, from a few sampled values.
 *
 * Rows are compared with `center` and `bound`, which are computed from the samples: for each column once in
 * TURN samples, a few columns with each sample, so that no row pays for all of them. A row beyond a bound is
 * examined further: the columns in question are measured by the present samples. That changes no state, since
 * the row may still be refused.
 *
 * The deviation used for the bound rises at once but falls by at most three tenths each time it is computed:
 * a column at rest for an hour keeps the scale of its work. It is at least RELATIVE times the center, so that
 * the rounding of a constant column does not become its scale. A column with fewer than OUTER samples that
 * differ from its median (one-hot words, a rare event) has no deviation; its bound is NO_SCALE, beyond any
 * measured quantity.
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
#define EVERY_AT_FIRST (SVI_OUTLIER_BEGIN / SAMPLES) /* rows for each of the first SAMPLES samples */
#define EVERY          32                            /* rows for each later one */
#define TURN           64   /* samples in which the bounds of all columns are computed once */
#define OUTER          8    /* number of outermost samples that determine a scale; one less may be errors */
#define FALL           0.7  /* smallest ratio of a deviation to the one before */
#define RELATIVE       1e-3 /* smallest deviation, in units of the center */
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

/* ---- sampled rows: one of each block, drawn at random so that no period of the stream is always hit */

static int64_t outliers_number(int64_t row) {
    return row < SVI_OUTLIER_BEGIN ? row / EVERY_AT_FIRST : SAMPLES + (row - SVI_OUTLIER_BEGIN) / EVERY;
}

/* The row (from 1) of sample `number` (from 0): a row of its block, drawn by a hash of the number. The draw
 * depends on nothing else, so a restored state samples the same rows. */
static int64_t outliers_row(int64_t number) {
    struct svi_random random = {(uint64_t)number};
    const uint64_t draw = svi_random_next(&random);
    if (number < SAMPLES)
        return 1 + EVERY_AT_FIRST * number + (int64_t)(draw % EVERY_AT_FIRST);
    return 1 + SVI_OUTLIER_BEGIN + EVERY * (number - SAMPLES) + (int64_t)(draw % EVERY);
}

/* Sets `next`: the row of this block if it is still ahead, else that of the next block. */
static void outliers_wait(struct svi_outliers *o) {
    const int64_t number = outliers_number(o->rows), row = outliers_row(number);
    o->next = row > o->rows ? row : outliers_row(number + 1);
}

/* Are the first SAMPLES samples complete? Before that all bounds are infinite. */
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

/* Shell sort with gaps 7 and 1. */
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

/* Measures a column by its samples. The deviation is the distance from the median within which SAMPLES -
 * OUTER + 1 of the values lie. If it is smaller than the one counted so far, that one counts, times `fall`; a
 * deviation of 0 says nothing and leaves the old one. */
static struct outliers_scale outliers_measure(const struct svi_outliers *o, int column, double fall) {
    double v[SAMPLES];
    int low = 0, high = SAMPLES - 1;
    memcpy(v, o->sample + (size_t)column * SAMPLES, sizeof v);
    outliers_sort(v);
    struct outliers_scale s = {.center = v[(SAMPLES - 1) / 2]};
    for (int i = 1; i < OUTER; i++) { /* drop OUTER - 1 values, each time the one further from the median */
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

/* Stores what outliers_measure finds, with the fall that is due. */
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
        /* The stored bound may be TURN samples old; the present one decides. */
        const struct outliers_scale s = outliers_measure(o, j, 1);
        if (fabs(x[j] - s.center) <= s.bound)
            continue;
        if (count++ == 0) {
            memcpy(o->clipped, x, (size_t)d * sizeof *x);
            *first = (struct svi_outlier){j, s.center, s.counted, s.bound};
        }
        const double deviation = s.now > 0 ? s.now : s.counted;
        o->clipped[j] = s.center + (x[j] > s.center ? deviation : -deviation);
    }
    return count > 0 ? o->clipped : NULL;
}

static double outliers_first_bound(const struct svi_outliers *o) {
    return outliers_begun(o) ? outliers_bound(0, 0) : INFINITY;
}

/* Adds columns; their samples so far are 0. */
static void outliers_widen(struct svi_outliers *o, int d) {
    for (int j = o->d; j < d; j++)
        o->bound[j] = outliers_first_bound(o);
    o->d = d;
}

/* Stores a row in the ring of samples and computes the bounds that are due: all when the ring is first full,
 * then every TURN-th column in turn. */
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

/* ---- columns that are reassigned or removed */

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
        /* Checked before the allocation, so that a damaged number cannot ask for gigabytes. */
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
