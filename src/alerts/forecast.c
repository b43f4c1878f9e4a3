/* Forecasts of sensors from a matrix of moments (equations in forecast.h).
 *
 * Parts, in the order in which a row passes them: its residuals, from the coefficients and the inverse of the
 * last solution; learning, a fading sum of products; and, at a few rows, the solution of the equations; then
 * columns and the archive.
 *
 * z = (k regressors, d sensors) is the row in scales. It is filled by the residuals, replaced sensor by
 * sensor in learning, and its products go into three parts of S: regressors (S_cc), cross (S_cx), sensors
 * (S_xx).
 *
 * Invariant: sums have one order on every machine. Loops run along rows of the matrices, so that compilers
 * can process several columns at once without changing the order of any sum. */
#include "alerts/forecast.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/wide.h"
#include "alerts/context.h"

#define FIRST      32    /* rows before the first solution */
#define SELDOM     256   /* most rows between two solutions, once for each SELDOM unknowns begun */
#define RIDGE      4.0   /* ridge on coefficients of regressors, in rows; regressors are 1 at most */
#define SHARE      0.4   /* ridge on those of sensors, in rows of their own mean square */
#define CLIP       1e6   /* scales: values farther from their level are not learned */
#define HUGE_VALUE 1e150 /* its square is finite */
#define TINY       1e-9 /* a ridge that only keeps the matrix positive, as a part of the weight of all rows */

#define SIDE_MAX (SVI_CONTEXT_MAX + SVI_FORECAST_OTHERS) /* most unknowns that are solved for at once */

/* ---- what it consists of */

/* OTHERS: sensors that are forecast from each other: all d, or 0 if there is only one or there are
 * too many. */
enum { REGRESSORS, SENSORS, OTHERS, DIMS };

static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_forecast, level, "level", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, scale, "scale", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, known, "known", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, mean, "mean", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, square, "square", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, regressors, "among regressors", SVI_AXIS_TRIANGLE(REGRESSORS)),
    SVI_ARRAY(struct svi_forecast, sensors, "among sensors", SVI_AXIS_TRIANGLE(OTHERS)),
    SVI_ARRAY(struct svi_forecast, cross, "cross", SVI_AXIS(REGRESSORS), SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, coefficients, "coefficients", SVI_AXIS(REGRESSORS), SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, inverse, "inverse", SVI_AXIS_SUM(REGRESSORS, OTHERS), SVI_AXIS(OTHERS)),
    SVI_ARRAY(struct svi_forecast, z, NULL, SVI_AXIS_SUM(REGRESSORS, SENSORS)),
    SVI_ARRAY(struct svi_forecast, out, NULL, SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, expected, NULL, SVI_AXIS(SENSORS)),
};
static const struct svi_arrays forecast_arrays = SVI_ARRAYS(arrays, "the forecasts of the sensors");

struct forecast_dims {
    int32_t of[DIMS];
};

static struct forecast_dims forecast_dims(int k, int d) {
    return (struct forecast_dims){{k, d, d > 1 && d <= SVI_FORECAST_OTHERS ? d : 0}};
}

svs_code svi_forecast_init(struct svi_forecast *f, int k, int d, double memory, svs_error *err) {
    const struct forecast_dims dims = forecast_dims(k, d);
    *f =
        (struct svi_forecast){.k = k, .d = d, .others = dims.of[OTHERS] > 0, .memory = memory, .next = FIRST};
    return svi_arrays_alloc(&forecast_arrays, f, dims.of, err);
}

svs_code svi_forecast_grow(struct svi_forecast *f, int k, svs_error *err) {
    const struct forecast_dims from = forecast_dims(f->k, f->d), to = forecast_dims(k, f->d);
    const svs_code code = svi_arrays_resize(&forecast_arrays, f, from.of, to.of, err);
    f->k = code == SVS_OK ? k : f->k;
    return code;
}

void svi_forecast_clear(struct svi_forecast *f) {
    svi_arrays_free(&forecast_arrays, f);
}

/* ---- residuals */

typedef double four __attribute__((vector_size(32), aligned(8), may_alias));

/* out = sum_i v_i row_i over `count` rows of n numbers, `stride` apart. Each sum is in the order of i, in the
 * blocks of eight columns as in the rest, so the width of vectors changes no bit. */
SVI_WIDE
static void forecast_add_rows(double *restrict out, const double *restrict row, size_t stride,
                              const double *restrict v, int count, int n) {
    int j = 0;
    for (; j + 8 <= n; j += 8) {
        const double *at = row + j;
        four a = {0}, b = {0};
        for (int i = 0; i < count; i++, at += stride) {
            a += v[i] * *(const four *)at;
            b += v[i] * *(const four *)(at + 4);
        }
        *(four *)(out + j) = a;
        *(four *)(out + j + 4) = b;
    }
    for (; j < n; j++) {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += v[i] * row[(size_t)i * stride + (size_t)j];
        out[j] = sum;
    }
}

/* Residuals after all other sensors: (P z)_j / P_jj, by (2). On entry by_others holds the residuals by
 * context as limited in z; what the limit took away is added again, because z_j itself must not limit the
 * residual of j. */
SVI_WIDE
static void forecast_by_others(struct svi_forecast *f, const double *restrict by_context,
                               double *restrict by_others) {
    const size_t k = (size_t)f->k, d = (size_t)f->d;
    const double *restrict out = f->out, *restrict diagonal = f->inverse + k * d;
    forecast_add_rows(f->out, f->inverse, d, f->z, (int)(k + d), (int)d); /* P z, as P is symmetric */
    for (size_t j = 0; j < d; j++) {
        const double left = by_context[j] - by_others[j]; /* the part that is not in z */
        by_others[j] = out[j] / diagonal[j * (d + 1)] + left;
    }
}

/* Residuals after the regressors, whose forecast is in f->out, and the row z. A residual is unlimited in
 * by_context, and limited in by_others and z, so that one failed sensor spoils no forecast of another. A
 * missing value, or a sensor without a scale, is NaN in both and its forecast in z. */
SVI_WIDE
static void forecast_by_context(struct svi_forecast *f, const double *restrict x,
                                const float *restrict deviation, double *restrict by_context,
                                double *restrict by_others) {
    const double *restrict level = f->level, *restrict scale = f->scale, *restrict out = f->out;
    double *restrict z = f->z + f->k, *restrict expected = f->expected;
    for (int j = 0; j < f->d; j++) {
        const double limit = deviation ? SVI_FORECAST_CLIP * (double)deviation[j] : INFINITY;
        double value = (x[j] - level[j]) / (scale[j] > 0 ? scale[j] : NAN);
        value = value > SVI_FORECAST_MAX    ? SVI_FORECAST_MAX
                : value < -SVI_FORECAST_MAX ? -SVI_FORECAST_MAX
                                            : value;
        const double residual = value - out[j];
        const double counted = residual > limit ? limit : residual < -limit ? -limit : residual;
        by_context[j] = residual;
        by_others[j] = counted;
        expected[j] = out[j];
        z[j] = out[j] + (counted == counted ? counted : 0);
    }
}

void svi_forecast_residuals(struct svi_forecast *f, const double *c, const double *x, const float *deviation,
                            double *by_context, double *by_others) {
    memcpy(f->z, c, (size_t)f->k * sizeof *c);
    forecast_add_rows(f->out, f->coefficients, (size_t)f->d, c, f->k, f->d); /* the forecast by context */
    forecast_by_context(f, x, deviation, by_context, by_others);
    if (f->solved)
        forecast_by_others(f, by_context, by_others);
    for (int j = 0; j < f->d && !f->solved; j++)
        by_others[j] = NAN;
}

/* Row j of P z is a sum over all coordinates; the largest term of another sensor is what the forecast rests
 * on. */
int svi_forecast_owes(const struct svi_forecast *f, int j) {
    int largest = -1;
    double size = 0;
    if (!f->solved)
        return -1;
    const double *row = f->inverse + (size_t)(f->k + j) * (size_t)f->d, *z = f->z + f->k;
    for (int i = 0; i < f->d; i++)
        if (i != j && fabs(row[i] * z[i]) > size) {
            size = fabs(row[i] * z[i]);
            largest = i;
        }
    return largest;
}

/* ---- learning */

/* Finds the level and scale of sensors that have none. The level is the first value: rows in which the sensor
 * rested there were learned as 0, which stays correct. The scale is the deviation of FIRST values, counted
 * from when it first moves: a sensor at rest has no scale, and a start at rest must not make one tiny. */
static void forecast_start(struct svi_forecast *f, const double *x) {
    for (int j = 0; j < f->d; j++) {
        if (f->scale[j] > 0 || isnan(x[j]))
            continue;
        const double v = fmax(-HUGE_VALUE, fmin(x[j], HUGE_VALUE));
        if (f->known[j] == 0)
            f->level[j] = f->mean[j] = v;
        /* Welford's update: mean and squares without a difference of large sums. */
        const double n = ++f->known[j], gap = v - f->mean[j];
        f->mean[j] += gap / n;
        f->square[j] += gap * (v - f->mean[j]);
        const double deviation = sqrt(f->square[j] / n);
        if (deviation <= 1e-12 * fabs(f->level[j])) { /* still at rest, up to rounding */
            f->known[j] = 1;
            f->square[j] = 0;
        } else if (n >= FIRST) {
            f->scale[j] = deviation;
        }
    }
}

/* Replaces the n x n symmetric positive matrix `a` by its inverse, by n exchange steps (Gauss-Jordan).
 * Positive matrices need no pivoting. False: not positive enough; `a` is then garbage. */
SVI_WIDE
static bool forecast_invert(double *restrict a, size_t n) {
    for (size_t p = 0; p < n; p++) {
        double *restrict pivot = a + p * n;
        const double inverse = 1 / pivot[p];
        if (!(pivot[p] > 0 && inverse > 0 && inverse < INFINITY))
            return false;
        /* Exchange step p: the unit column replaces column p while it is eliminated, so no second matrix is
         * needed. Rows with a 0 there do not change. */
        pivot[p] = 1;
        for (size_t j = 0; j < n; j++)
            pivot[j] *= inverse;
        for (size_t i = 0; i < n; i++) {
            double *restrict row = a + i * n;
            const double v = row[p];
            if (i == p || v == 0)
                continue;
            row[p] = 0;
            for (size_t j = 0; j < n; j++)
                row[j] -= v * pivot[j];
        }
    }
    /* Positive pivots with a bad inverse: rounding has destroyed it, and the last solution is
     * kept instead. */
    for (size_t i = 0; i < n; i++)
        if (!(a[i * n + i] > 0 && a[i * n + i] < INFINITY))
            return false;
    return true;
}

/* Row i of a lower triangle. */
static double *triangle_row(double *triangle, size_t i) {
    return triangle + i * (i + 1) / 2;
}

/* Solves (S_cc + ridge) T = S_cx, (1), for all sensors at once. The constant has almost no ridge: it is the
 * mean level, which must not be pulled to 0. If the matrix is not positive, the last T stays. */
static void forecast_solve_context(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d;
    double a[SVI_CONTEXT_MAX * SVI_CONTEXT_MAX];
    for (size_t i = 0; i < k; i++) {
        for (size_t l = 0; l <= i; l++)
            a[i * k + l] = a[l * k + i] = triangle_row(f->regressors, i)[l];
        a[i * k + i] += i == 0 ? TINY * a[0] : RIDGE;
    }
    if (!forecast_invert(a, k))
        return;
    for (size_t i = 0; i < k; i++)
        forecast_add_rows(f->coefficients + i * d, f->cross, d, a + i * k, (int)k, (int)d);
}

/* Entry (i, l), l <= i, of S over (regressors, sensors), from its three parts. */
static double forecast_moment(const struct svi_forecast *f, size_t i, size_t l) {
    const size_t k = (size_t)f->k;
    if (i < k)
        return triangle_row(f->regressors, i)[l];
    return l < k ? f->cross[l * (size_t)f->d + i - k] : triangle_row(f->sensors, i - k)[l - k];
}

/* Computes the last d columns of P = (S + ridge)^-1, (2). a[0] is the sum of the weights of all rows, as the
 * first regressor is 1. The ridge of a sensor is SHARE rows of its mean square, so it does not depend on the
 * scale. */
static void forecast_solve_others(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, n = k + d;
    double a[SIDE_MAX * SIDE_MAX];
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l <= i; l++)
            a[i * n + l] = a[l * n + i] = forecast_moment(f, i, l);
    const double rows = a[0];
    for (size_t i = 0; i < n; i++)
        a[i * n + i] += i == 0 ? TINY * rows : i < k ? RIDGE : SHARE * (a[i * n + i] / rows) + TINY * rows;
    if (!forecast_invert(a, n))
        return;
    for (size_t i = 0; i < n; i++) /* from the lower triangle: rounding makes the upper one differ */
        for (size_t j = 0; j < d; j++)
            f->inverse[i * d + j] = i < k + j ? a[(k + j) * n + i] : a[i * n + k + j];
    f->solved = true;
}

/* row = keep row + v z */
static inline __attribute__((always_inline)) void forecast_fade(double *restrict row, double keep, double v,
                                                                const double *restrict z, size_t n) {
    for (size_t j = 0; j < n; j++)
        row[j] = keep * row[j] + v * z[j];
}

#define SHORT 16 /* length up to which rows of a triangle are processed together */

/* triangle = keep triangle + z z', for n numbers z. Short rows waste vectors, so the products of the first
 * SHORT rows are written one after the other, in steps of 4, and added in one loop. The excess of a row is
 * overwritten by the next row; the 4 spare numbers take that of the last. */
SVI_WIDE
static void forecast_fade_triangle(double *restrict triangle, double keep, const double *restrict z,
                                   size_t n) {
    const size_t shorter = n < SHORT ? n : SHORT, entries = shorter * (shorter + 1) / 2;
    double product[SHORT * (SHORT + 1) / 2 + 4], padded[SHORT + 4] = {0};
    double *restrict to = product;
    memcpy(padded, z, shorter * sizeof *z);
    for (size_t i = 0; i < shorter; to += ++i)
        for (size_t j = 0; j <= i; j += 4)
            for (size_t l = 0; l < 4; l++)
                to[j + l] = padded[i] * padded[j + l];
    for (size_t e = 0; e < entries; e++)
        triangle[e] = keep * triangle[e] + product[e];
    for (size_t i = shorter; i < n; i++)
        forecast_fade(triangle + i * (i + 1) / 2, keep, z[i], z, i + 1);
}

SVI_WIDE
static void forecast_fade_cross(double *restrict cross, double keep, const double *restrict v, size_t k,
                                const double *restrict z, size_t d) {
    for (size_t i = 0; i < k; i++)
        forecast_fade(cross + i * d, keep, v[i], z, d);
}

static void forecast_sum(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d;
    const double keep = 1 - 1 / f->memory, *z = f->z;
    forecast_fade_triangle(f->regressors, keep, z, k);
    forecast_fade_cross(f->cross, keep, z, k, z + k, d);
    if (f->others)
        forecast_fade_triangle(f->sensors, keep, z + k, d);
}

/* Replaces the sensors in z by what is learned of them: the value, or its forecast where the sensor is odd or
 * the value is missing or too far away. A row that equals its forecast does not pull the coefficients
 * anywhere. */
SVI_WIDE
static void forecast_learn_values(double *restrict z, const double *restrict expected,
                                  const double *restrict by_context, const uint8_t *restrict odd, int d) {
    for (int j = 0; j < d; j++) {
        const double value = expected[j] + by_context[j];
        const bool learned = !odd[j] && value > -CLIP && value < CLIP; /* false for NaN */
        z[j] = learned ? value : expected[j];
    }
}

void svi_forecast_learn(struct svi_forecast *f, const double *x, const double *by_context,
                        const uint8_t *odd) {
    /* The moments first, in the present levels and scales: forecast_start may give a sensor its scale, which
     * holds from the next row on. */
    const int k = f->k, d = f->d;
    forecast_learn_values(f->z + k, f->expected, by_context, odd, d);
    forecast_sum(f);
    forecast_start(f, x);
    if (++f->rows < f->next)
        return;
    forecast_solve_context(f);
    if (f->others)
        forecast_solve_others(f);
    /* The next solution after an eighth more rows, between 8 and a limit that grows with the number of
     * unknowns, as the cost of a solution does. */
    const int64_t seldom = SELDOM * (1 + (k + d) / SELDOM), gap = f->rows / 8;
    f->next = f->rows + (gap < 8 ? 8 : gap < seldom ? gap : seldom);
}

/* ---- sensors that are added and reused */

void svi_forecast_forget(struct svi_forecast *f, int sensor) {
    const struct forecast_dims dims = forecast_dims(f->k, f->d);
    svi_arrays_forget(&forecast_arrays, f, dims.of, SENSORS, sensor);
    svi_arrays_forget(&forecast_arrays, f, dims.of, OTHERS, sensor);
    /* P_jj divides, so it must not be 0; with 0 elsewhere the sensor is forecast from nothing. */
    if (f->others)
        f->inverse[(size_t)(f->k + sensor) * (size_t)f->d + (size_t)sensor] = 1;
}

void svi_forecast_widen(struct svi_forecast *to, const struct svi_forecast *from) {
    const struct forecast_dims wide = forecast_dims(to->k, to->d), narrow = forecast_dims(from->k, from->d);
    svi_arrays_copy(&forecast_arrays, to, wide.of, from, narrow.of);
    to->memory = from->memory;
    to->rows = from->rows;
    to->next = from->next;
    /* From one sensor to more: S_xx was not kept before, so the sums start again, while the coefficients go
     * on forecasting. Otherwise P has grown by rows that must be computed. */
    if (to->others && !from->others) {
        memset(to->regressors, 0, (size_t)to->k * (size_t)(to->k + 1) / 2 * sizeof *to->regressors);
        memset(to->cross, 0, (size_t)to->k * (size_t)to->d * sizeof *to->cross);
        to->rows = 0;
        to->next = FIRST;
    } else if (from->rows >= FIRST && to->others) {
        forecast_solve_others(to);
    }
}

void svi_forecast_archive(struct svi_archive *a, struct svi_forecast *f) {
    /* An archive may have more regressors than a new object, for each named column of context,
     * never fewer. */
    int k = f->k;
    svi_archive_int(a, "regressors", &k, f->k, SVI_CONTEXT_MAX);
    if (!svi_archive_ok(a) || (k > f->k && svi_forecast_grow(f, k, a->err) != SVS_OK))
        return;
    const struct forecast_dims dims = forecast_dims(f->k, f->d);
    svi_archive_finite(a, "memory", &f->memory, 1);
    svi_archive_int64(a, "rows", &f->rows, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "next", &f->next, 1, 2 * SVI_COUNT_MAX);
    svi_archive_bool(a, "solved", &f->solved);
    svi_arrays_archive(a, &forecast_arrays, f, dims.of, dims.of);
    svi_archive_check(a, f->memory >= 1 && f->next > f->rows && (f->others || !f->solved),
                      "the forecasts contradict themselves");
}

double svi_forecast_memory(int k, int d) {
    const struct forecast_dims dims = forecast_dims(k, d);
    return (double)svi_arrays_bytes(&forecast_arrays, dims.of);
}
