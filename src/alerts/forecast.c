/* Forecasts of sensors from a matrix of moments (equations in forecast.h).
 *
 * The parts are in the order in which a row passes them. Its residuals follow from the coefficients
 * and the inverse of the last solution. Learning adds the row to a fading sum of products. At a few
 * rows the equations are then solved. Columns and the archive are at the end.
 *
 * z = (d sensors, lags x d sensors of the last rows, k regressors) is the row in scales. The
 * residuals fill in its sensors. A second row, with what is learned of them, waits until
 * SVI_FORECAST_ROWS rows can be added to S at a time.
 *
 * Invariant: sums have one order on every machine. Loops run along rows of the matrices, so that compilers
 * can process several columns at once without changing the order of any sum. */
#include "alerts/forecast.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/wide.h"
#include "alerts/context.h"

#define FIRST      32  /* rows before the first solution */
#define SELDOM     256 /* most rows between two solutions, and one more for each PRICE unknowns squared */
#define PRICE      32
#define MAX_LAGGED 20  /* sensors up to which all means of the rows before are coordinates; above, the first \
                        */
#define RIDGE      4.0 /* ridge on coefficients of regressors, in rows; regressors are 1 at most */
#define SHARE      0.4 /* ridge on those of sensors, in rows of their own mean square; of the last rows too */
#define CLIP       1e6 /* scales: values farther from their level are not learned */
#define HUGE_VALUE 1e150 /* its square is finite */
#define TINY       1e-9 /* a ridge that only keeps the matrix positive, as a part of the weight of all rows */

#define SIDE_MAX (SVI_CONTEXT_MAX + 2 * SVI_FORECAST_OTHERS) /* most unknowns that are solved for at once */

_Static_assert(4 * MAX_LAGGED <= 2 * SVI_FORECAST_OTHERS, "SIDE_MAX holds all lags of few sensors");

/* ---- what it consists of */

/* ALL: coordinates of S, which are only the regressors if there are too many sensors. SUMMED: sensors where
 * S_cx is kept by itself; LAGGED: where S holds it. LAST: sensors of the last rows. COORDINATES and ROW:
 * those of z, COORDINATES only with lags. */
enum { REGRESSORS, SENSORS, ALL, SUMMED, LAGGED, LAST, COORDINATES, ROW, DIMS };

static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_forecast, level, "level", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, scale, "scale", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, known, "known", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, mean, "mean", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, square, "square", SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, moments, "moments", SVI_AXIS_TRIANGLE(ALL)),
    SVI_ARRAY(struct svi_forecast, cross, "cross", SVI_AXIS(REGRESSORS), SVI_AXIS(SUMMED)),
    SVI_ARRAY(struct svi_forecast, waiting, "waiting", SVI_AXIS_LENGTH(SVI_FORECAST_ROWS),
              SVI_AXIS(COORDINATES)),
    SVI_ARRAY(struct svi_forecast, coefficients, "coefficients", SVI_AXIS(REGRESSORS), SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, inverse, "inverse", SVI_AXIS(COORDINATES), SVI_AXIS(LAGGED)),
    SVI_ARRAY(struct svi_forecast, z, "row", SVI_AXIS(ROW)),
    SVI_ARRAY(struct svi_forecast, learned, "last rows", SVI_AXIS(LAST)),
    SVI_ARRAY(struct svi_forecast, out, NULL, SVI_AXIS(SENSORS)),
    SVI_ARRAY(struct svi_forecast, expected, NULL, SVI_AXIS(SENSORS)),
};
static const struct svi_arrays forecast_arrays = SVI_ARRAYS(arrays, "the forecasts of the sensors");

struct forecast_dims {
    int32_t of[DIMS];
};

/* Means of the rows before: the last one, and fading means of about the last 4 and 25. Machines warm up and
 * fill: the last row alone does not say where they are in that. */
static const double forecast_shares[] = {1, 0.25, 0.04};
#define LAGS ((int)(sizeof forecast_shares / sizeof *forecast_shares))

static int forecast_lags(int d) {
    return d > SVI_FORECAST_OTHERS ? 0 : d > MAX_LAGGED ? 1 : LAGS;
}

static struct forecast_dims forecast_dims(int k, int d) {
    const int lags = forecast_lags(d), n = (1 + lags) * d + k;
    return (struct forecast_dims){{[REGRESSORS] = k,
                                   [SENSORS] = d,
                                   [ALL] = lags > 0 ? n : k,
                                   [SUMMED] = lags > 0 ? 0 : d,
                                   [LAGGED] = lags > 0 ? d : 0,
                                   [LAST] = lags * d,
                                   [COORDINATES] = lags > 0 ? n : 0,
                                   [ROW] = n}};
}

svs_code svi_forecast_init(struct svi_forecast *f, int k, int d, double memory, svs_error *err) {
    const struct forecast_dims dims = forecast_dims(k, d);
    *f = (struct svi_forecast){.k = k, .d = d, .lags = forecast_lags(d), .memory = memory, .next = FIRST};
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

static int forecast_coordinates(const struct svi_forecast *f) {
    return (1 + f->lags) * f->d + f->k;
}

/* The regressors of the current row. */
static double *forecast_regressors(const struct svi_forecast *f) {
    return f->z + (size_t)(1 + f->lags) * (size_t)f->d;
}

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

/* Residuals after all other coordinates: (P z)_j / P_jj, by (2). On entry by_others holds the residuals by
 * context as limited in z; what the limit took away is added again, because z_j itself must not limit the
 * residual of j. */
SVI_WIDE
static void forecast_by_others(struct svi_forecast *f, const double *restrict by_context,
                               double *restrict by_others) {
    const size_t d = (size_t)f->d, n = (size_t)forecast_coordinates(f);
    const double *restrict out = f->out, *restrict diagonal = f->inverse;
    forecast_add_rows(f->out, f->inverse, d, f->z, (int)n, (int)d); /* P z, as P is symmetric */
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
    double *restrict z = f->z, *restrict expected = f->expected;
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
    memcpy(forecast_regressors(f), c, (size_t)f->k * sizeof *c);
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
    const double *row = f->inverse + (size_t)j * (size_t)f->d, *z = f->z;
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

/* Entry (i, l) of S. */
static double forecast_moment(const struct svi_forecast *f, size_t i, size_t l) {
    return i >= l ? triangle_row(f->moments, i)[l] : triangle_row(f->moments, l)[i];
}

/* Solves (S_cc + ridge) T = S_cx, (1), for all sensors at once. The constant has almost no ridge: it is the
 * mean level, which must not be pulled to 0. If the matrix is not positive, the last T stays. */
static void forecast_solve_context(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d;
    const size_t c = f->lags > 0 ? (size_t)(1 + f->lags) * d : 0; /* place of the first regressor in S */
    double a[SVI_CONTEXT_MAX * SVI_CONTEXT_MAX];
    for (size_t i = 0; i < k; i++) {
        for (size_t l = 0; l < k; l++)
            a[i * k + l] = forecast_moment(f, c + i, c + l);
        a[i * k + i] += i == 0 ? TINY * a[0] : RIDGE;
    }
    if (!forecast_invert(a, k))
        return;
    if (f->lags == 0) {
        for (size_t i = 0; i < k; i++)
            forecast_add_rows(f->coefficients + i * d, f->cross, d, a + i * k, (int)k, (int)d);
        return;
    }
    memset(f->coefficients, 0, k * d * sizeof *f->coefficients);
    for (size_t i = 0; i < k; i++)
        for (size_t l = 0; l < k; l++)
            for (size_t j = 0; j < d; j++)
                f->coefficients[i * d + j] += a[i * k + l] * triangle_row(f->moments, c + l)[j];
}

/* Computes the first d columns of P = (S + ridge)^-1, (2). The sum of the weights of all rows is the moment
 * of the first regressor, which is 1. The ridge of a sensor is SHARE rows of its mean square, so it does not
 * depend on the scale. */
static void forecast_solve_others(struct svi_forecast *f) {
    const size_t d = (size_t)f->d, n = (size_t)forecast_coordinates(f), c = n - (size_t)f->k;
    double a[SIDE_MAX * SIDE_MAX];
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l <= i; l++)
            a[i * n + l] = a[l * n + i] = triangle_row(f->moments, i)[l];
    const double rows = a[c * n + c];
    for (size_t i = 0; i < n; i++)
        a[i * n + i] += i == c ? TINY * rows : i > c ? RIDGE : SHARE * (a[i * n + i] / rows) + TINY * rows;
    if (!forecast_invert(a, n))
        return;
    for (size_t i = 0; i < n; i++) /* from the lower triangle: rounding makes the upper one differ */
        for (size_t j = 0; j < d; j++)
            f->inverse[i * d + j] = i < j ? a[j * n + i] : a[i * n + j];
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

/* Adds the rows that wait to S, the oldest first in each sum. Its weight, and that of what S held, is what it
 * would be had each row been added by itself. */
SVI_WIDE
static void forecast_add_waiting(struct svi_forecast *f) {
    const size_t n = (size_t)forecast_coordinates(f);
    const double keep = 1 - 1 / f->memory;
    double weight[SVI_FORECAST_ROWS + 1] = {1};
    for (int i = 1; i <= f->held; i++)
        weight[i] = weight[i - 1] * keep;
    double *restrict row = f->moments;
    for (size_t i = 0; i < n; row += ++i) {
        const double *restrict z = f->waiting;
        double v[SVI_FORECAST_ROWS] = {0};
        for (int r = 0; r < f->held; r++)
            v[r] = weight[f->held - 1 - r] * z[(size_t)r * n + i];
        const double old = weight[f->held];
        for (size_t l = 0; l <= i; l++)
            row[l] = old * row[l] + v[0] * z[l] + v[1] * z[n + l] + v[2] * z[2 * n + l] + v[3] * z[3 * n + l];
    }
    f->held = 0;
}

_Static_assert(SVI_FORECAST_ROWS == 4, "forecast_add_waiting adds four rows");

/* mean += share (now - mean) */
SVI_WIDE
static void forecast_follow(double *restrict mean, const double *restrict now, double share, size_t d) {
    for (size_t j = 0; j < d; j++)
        mean[j] = share * now[j] + (1 - share) * mean[j];
}

/* The current row as it is learned, `learned`, and the last ones. */
static void forecast_sum(struct svi_forecast *f, const double *learned) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, last = (size_t)f->lags * d;
    const double keep = 1 - 1 / f->memory, *c = forecast_regressors(f);
    if (f->lags == 0) {
        forecast_fade_triangle(f->moments, keep, c, k);
        forecast_fade_cross(f->cross, keep, c, k, learned, d);
        return;
    }
    double *row = f->waiting + (size_t)f->held++ * (size_t)forecast_coordinates(f);
    memcpy(row, learned, d * sizeof *row);
    memcpy(row + d, f->learned, last * sizeof *row);
    memcpy(row + d + last, c, k * sizeof *row);
    if (f->held == SVI_FORECAST_ROWS)
        forecast_add_waiting(f);
    /* Both rows enter the means: as it was, in z, and as it was learned. */
    for (int lag = 0; lag < f->lags; lag++) {
        forecast_follow(f->z + (size_t)(1 + lag) * d, f->z, forecast_shares[lag], d);
        forecast_follow(f->learned + (size_t)lag * d, learned, forecast_shares[lag], d);
    }
}

/* What is learned of the sensors: the value, or its forecast by (1) where the sensor is odd or the value is
 * missing or too far away. A row that equals its forecast does not pull the coefficients anywhere. */
SVI_WIDE
static void forecast_learn_values(double *restrict learned, const double *restrict expected,
                                  const double *restrict by_context, const uint8_t *restrict odd, int d) {
    for (int j = 0; j < d; j++) {
        const double value = expected[j] + by_context[j];
        const bool good = !odd[j] && value > -CLIP && value < CLIP; /* false for NaN */
        learned[j] = good ? value : expected[j];
    }
}

void svi_forecast_learn(struct svi_forecast *f, const double *x, const double *by_context,
                        const uint8_t *odd) {
    /* A value that was assessed and must leave no trace arrives here as a missing one. */
    for (int j = 0; j < f->d; j++)
        if (isnan(x[j]))
            f->z[j] = f->expected[j];
    /* The moments first, in the present levels and scales: forecast_start may give a sensor its scale, which
     * holds from the next row on. */
    forecast_learn_values(f->out, f->expected, by_context, odd, f->d);
    forecast_sum(f, f->out);
    forecast_start(f, x);
    if (++f->rows < f->next)
        return;
    if (f->held > 0)
        forecast_add_waiting(f);
    forecast_solve_context(f);
    if (f->lags > 0)
        forecast_solve_others(f);
    /* The next solution after an eighth more rows, between 8 and a limit that grows with the number of
     * unknowns, as the cost of a solution does. */
    const int64_t n = forecast_coordinates(f), seldom = SELDOM + n * n / PRICE, gap = f->rows / 8;
    f->next = f->rows + (gap < 8 ? 8 : gap < seldom ? gap : seldom);
}

/* ---- sensors that are added and reused */

void svi_forecast_forget(struct svi_forecast *f, int sensor) {
    const struct forecast_dims dims = forecast_dims(f->k, f->d);
    const int past = f->lags > 0 ? f->lags : 0;
    for (int dim = SENSORS; dim <= LAGGED; dim += dim == SENSORS ? SUMMED - SENSORS : 1)
        svi_arrays_forget(&forecast_arrays, f, dims.of, dim, sensor);
    for (int part = 0; part <= past; part++) {
        const int at = part * f->d + sensor;
        svi_arrays_forget(&forecast_arrays, f, dims.of, ROW, at);
        if (f->lags > 0) {
            svi_arrays_forget(&forecast_arrays, f, dims.of, ALL, at);
            svi_arrays_forget(&forecast_arrays, f, dims.of, COORDINATES, at);
        }
        if (part > 0)
            svi_arrays_forget(&forecast_arrays, f, dims.of, LAST, at - f->d);
    }
    /* P_jj divides, so it must not be 0; with 0 elsewhere the sensor is forecast from nothing. */
    if (f->lags > 0)
        f->inverse[(size_t)sensor * (size_t)f->d + (size_t)sensor] = 1;
}

/* The place in `to` of coordinate i of `from`, which has fewer sensors; -1: a lag that `to` does not have. */
static int forecast_place(const struct svi_forecast *to, const struct svi_forecast *from, int i) {
    const int part = i / from->d;
    if (part > from->lags) /* a regressor */
        return (1 + to->lags) * to->d + i - (1 + from->lags) * from->d;
    return part > to->lags ? -1 : part * to->d + i % from->d;
}

/* Copies what is kept by coordinates, whose places differ, into arrays of zeros. */
static void forecast_widen_coordinates(struct svi_forecast *to, const struct svi_forecast *from) {
    const int n = forecast_coordinates(from);
    for (int i = 0; i < n; i++) {
        const int at = forecast_place(to, from, i);
        if (at < 0)
            continue;
        to->z[at] = from->z[i];
        for (int r = 0; r < from->held; r++)
            to->waiting[(size_t)r * (size_t)forecast_coordinates(to) + (size_t)at] =
                from->waiting[(size_t)r * (size_t)n + (size_t)i];
        for (int l = 0; l <= i; l++) {
            const int low = forecast_place(to, from, l);
            if (low >= 0)
                triangle_row(to->moments, (size_t)(at > low ? at : low))[at > low ? low : at] =
                    triangle_row(from->moments, (size_t)i)[l];
        }
    }
    for (int i = 0; i < from->lags * from->d && i / from->d < to->lags; i++)
        to->learned[i / from->d * to->d + i % from->d] = from->learned[i];
}

void svi_forecast_widen(struct svi_forecast *to, const struct svi_forecast *from) {
    static const int by_sensor[] = {SENSORS, REGRESSORS};
    struct forecast_dims wide = forecast_dims(to->k, to->d), narrow = forecast_dims(from->k, from->d);
    /* What is kept by sensors and regressors follows its indices; the rest has no length here. */
    for (int i = 0; i < DIMS; i++)
        if (i != by_sensor[0] && i != by_sensor[1])
            narrow.of[i] = 0;
    if (from->lags == 0)
        narrow = forecast_dims(from->k, from->d);
    svi_arrays_copy(&forecast_arrays, to, wide.of, from, narrow.of);
    to->memory = from->memory;
    to->rows = from->rows;
    to->next = from->next;
    if (from->lags == 0) /* and so has `to`, which is wider */
        return;
    if (to->lags > 0) {
        to->held = from->held;
        forecast_widen_coordinates(to, from);
        /* P has grown by rows that must be computed. */
        if (from->rows >= FIRST)
            forecast_solve_others(to);
        return;
    }
    /* From sensors that were forecast from each other to too many: S_cx was part of S. */
    const size_t k = (size_t)to->k, first = (size_t)((1 + from->lags) * from->d);
    struct svi_forecast all = *from;
    if (all.held > 0)
        forecast_add_waiting(&all);
    for (size_t i = 0; i < k; i++) {
        memcpy(triangle_row(to->moments, i), triangle_row(all.moments, first + i) + first,
               (i + 1) * sizeof *to->moments);
        memcpy(to->cross + i * (size_t)to->d, triangle_row(all.moments, first + i),
               (size_t)from->d * sizeof *to->cross);
    }
    memcpy(forecast_regressors(to), forecast_regressors(from), k * sizeof *to->z);
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
    svi_archive_int(a, "waiting rows", &f->held, 0, f->lags > 0 ? SVI_FORECAST_ROWS - 1 : 0);
    svi_archive_bool(a, "solved", &f->solved);
    svi_arrays_archive(a, &forecast_arrays, f, dims.of, dims.of);
    svi_archive_check(a, f->memory >= 1 && f->next > f->rows && (f->lags > 0 || !f->solved),
                      "the forecasts contradict themselves");
}

double svi_forecast_memory(int k, int d) {
    const struct forecast_dims dims = forecast_dims(k, d);
    return (double)svi_arrays_bytes(&forecast_arrays, dims.of);
}
