#include "alerts/steps.h"

#include <math.h>
#include <stdbool.h>

#include "base/arrays.h"
#include "base/wide.h"

#define MEAN_SHARE   0.02  /* weight of a row in the mean */
#define SQUARE_SHARE 0.005 /* weight of a row in the mean square */
#define MAX_SQUARE   25.0  /* squared deviations that a distance counts as at most */
#define RANGE_SHARE  0.01  /* smallest deviation, as a part of the range */
#define WARM         32    /* rows in which nothing is limited */
#define TINY         1e-12 /* smallest deviation as a part of the values */
#define LARGEST      1e6f
#define HUGE_VALUE   1e140 /* largest value; the square of a gap is finite */

enum { SENSORS, DIMS };

#define OWNER     struct svi_steps
#define OF_SENSOR SVI_AXIS(SENSORS)

static const struct svi_array arrays[] = {
    SVI_ARRAY(OWNER, seen, "seen", OF_SENSOR),
    SVI_ARRAY(OWNER, mean, "mean", OF_SENSOR),
    SVI_ARRAY(OWNER, square, "square", OF_SENSOR),
    SVI_ARRAY_WITH(OWNER, low, "low", SVI_ARRAY_KNOWN, NAN, OF_SENSOR),
    SVI_ARRAY_WITH(OWNER, high, "high", SVI_ARRAY_KNOWN, NAN, OF_SENSOR),
    SVI_ARRAY(OWNER, recent, "recent", SVI_AXIS_LENGTH(SVI_STEPS_OF), OF_SENSOR),
    SVI_ARRAY(OWNER, distance, NULL, OF_SENSOR),
};
static const struct svi_arrays steps_arrays = SVI_ARRAYS(arrays, "the steps of the sensors");

svs_code svi_steps_init(struct svi_steps *s, int d, svs_error *err) {
    const int32_t dims[DIMS] = {d};
    *s = (struct svi_steps){.d = d};
    return svi_arrays_alloc(&steps_arrays, s, dims, err);
}

void svi_steps_clear(struct svi_steps *s) {
    svi_arrays_free(&steps_arrays, s);
}

/* The distance of each value, then the mean, the deviation and the range with it. A missing value changes
 * nothing and has distance 0. */
SVI_WIDE
static void steps_learn(struct svi_steps *s, const double *restrict x, float *restrict now, double keep) {
    double *restrict mean = s->mean, *restrict square = s->square, *restrict low = s->low,
                     *restrict high = s->high, *restrict seen = s->seen;
    for (int j = 0; j < s->d; j++) {
        const double v = x[j] > HUGE_VALUE ? HUGE_VALUE : x[j] < -HUGE_VALUE ? -HUGE_VALUE : x[j];
        const bool begins = !(low[j] == low[j]), known = v == v, warm = seen[j] >= WARM;
        /* In its first rows the shares of a sensor are those of a plain mean. */
        const double first = 1 / (seen[j] + 1);
        const double to_mean = first > MEAN_SHARE ? first : MEAN_SHARE;
        const double to_square = first > SQUARE_SHARE ? first : SQUARE_SHARE;
        const double m = begins ? v : mean[j], gap = known ? v - m : 0, range = high[j] - low[j];
        const double least = RANGE_SHARE * (range == range ? range : 0), floor = least * least;
        const double one = square[j] > floor ? square[j] : floor, tiny = TINY * m;
        const double z = sqrt(gap * gap / (one > tiny * tiny ? one : INFINITY));
        now[j] = begins || !known ? 0 : z < (double)LARGEST ? (float)z : LARGEST;
        const double most = MAX_SQUARE * one, counted = warm && gap * gap > most ? most : gap * gap;
        mean[j] = known ? m + to_mean * gap : mean[j];
        square[j] = known ? square[j] + to_square * ((begins ? 0 : counted) - square[j]) : square[j];
        /* The range fades towards the mean, and takes in the value at once. */
        const double lower = begins ? v : mean[j] + keep * (low[j] - mean[j]);
        const double upper = begins ? v : mean[j] + keep * (high[j] - mean[j]);
        seen[j] = known ? seen[j] + 1 : seen[j];
        low[j] = !known ? low[j] : v < lower ? v : lower;
        high[j] = !known ? high[j] : v > upper ? v : upper;
    }
}

static inline float steps_min(float a, float b) {
    return a < b ? a : b;
}

static inline float steps_max(float a, float b) {
    return a > b ? a : b;
}

/* The third largest of five, by comparisons alone. */
SVI_WIDE
static void steps_third(const struct svi_steps *s) {
    const size_t d = (size_t)s->d;
    const float *restrict a = s->recent, *restrict b = a + d, *restrict c = b + d, *restrict e = c + d,
                          *restrict f = e + d;
    float *restrict out = s->distance;
    for (size_t j = 0; j < d; j++) {
        const float low = steps_max(steps_min(a[j], b[j]), steps_min(c[j], e[j]));
        const float high = steps_min(steps_max(a[j], b[j]), steps_max(c[j], e[j]));
        /* The median of four lies between low and high, so that of five is the middle one of these three. */
        const float least = steps_min(low, high), most = steps_max(low, high);
        out[j] = steps_max(least, steps_min(most, f[j]));
    }
}

void svi_steps_row(struct svi_steps *s, const double *x, double memory) {
    steps_learn(s, x, s->recent + (size_t)(s->rows % SVI_STEPS_OF) * (size_t)s->d, 1 - 1 / memory);
    s->rows++;
    steps_third(s);
}

static float *steps_place(const struct svi_steps *s, int64_t row, int j) {
    return &s->recent[(size_t)(row % SVI_STEPS_OF) * (size_t)s->d + (size_t)j];
}

struct svi_steps_column svi_steps_column(const struct svi_steps *s, int j) {
    return (struct svi_steps_column){s->seen[j], s->mean[j], s->square[j], s->low[j], s->high[j]};
}

void svi_steps_restore(struct svi_steps *s, int j, const struct svi_steps_column *c) {
    s->seen[j] = c->seen;
    s->mean[j] = c->mean;
    s->square[j] = c->square;
    s->low[j] = c->low;
    s->high[j] = c->high;
    *steps_place(s, s->rows - 1, j) = 0; /* as a missing value leaves it */
}

void svi_steps_normal(const struct svi_steps *s, int j, double x, double *mean, double *deviation) {
    const double least = RANGE_SHARE * (s->high[j] - s->low[j]);
    /* m' = m + share (x - m) gives the mean before the row. */
    *mean = (s->mean[j] - MEAN_SHARE * x) / (1 - MEAN_SHARE);
    *deviation = fmax(sqrt(s->square[j]), least);
}

void svi_steps_forget(struct svi_steps *s, int column) {
    const int32_t dims[DIMS] = {s->d};
    svi_arrays_forget(&steps_arrays, s, dims, SENSORS, column);
}

void svi_steps_widen(struct svi_steps *to, const struct svi_steps *from) {
    const int32_t wide[DIMS] = {to->d}, narrow[DIMS] = {from->d};
    svi_arrays_copy(&steps_arrays, to, wide, from, narrow);
    to->rows = from->rows;
}

void svi_steps_archive(struct svi_archive *a, struct svi_steps *s) {
    const int32_t dims[DIMS] = {s->d};
    svi_archive_int64(a, "steps", &s->rows, 0, SVI_COUNT_MAX);
    svi_arrays_archive(a, &steps_arrays, s, dims, dims);
}

double svi_steps_memory(int d) {
    const int32_t dims[DIMS] = {d};
    return (double)svi_arrays_bytes(&steps_arrays, dims);
}
