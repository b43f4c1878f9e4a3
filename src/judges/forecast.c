/* Forecasts of sensors from a matrix of moments.
 *
 * In the order of a row's life: its residuals, from the coefficients and the inverse of the last solution;
 * then it is learned, which is one weighted sum of products, and at some rows the equations are solved again.
 * Loops run along rows of the matrices, so that compilers can take several columns at once without changing
 * the order of any sum.
 */
#include "judges/forecast.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"

#define FIRST      32    /* rows before the first solution */
#define SELDOM     256   /* rows between two solutions at most, for each SELDOM of unknowns or part of it */
#define RIDGE      4.0   /* rows, on the coefficients of regressors, whose size is 1 at most */
#define SHARE      0.4   /* rows, on those of sensors, each of its own mean square */
#define CLIP       100.0 /* scales: a value is learned as so far from its level at most */
#define HUGE_VALUE 1e150 /* its square is a number */
#define TINY       1e-9  /* of the largest diagonal entry there is by nature */

#define MOST_ROWS (INT64_MAX / 4)

static size_t forecast_side(int k, int d) {
    return (size_t)k + (d > 1 && d <= SVI_FORECAST_OTHERS ? (size_t)d : 0);
}

static size_t forecast_room(int k, int d) {
    const size_t n = forecast_side(k, d);
    return 6 * (size_t)d + 3 * n * n + 2 * (size_t)k * (size_t)d + 2 * (size_t)(k + d);
}

svs_code svi_forecast_init(struct svi_forecast *f, int k, int d, double memory, svs_error *err) {
    const size_t n = forecast_side(k, d), cross = (size_t)k * (size_t)d;
    *f = (struct svi_forecast){.k = k, .d = d, .others = n > (size_t)k, .memory = memory, .next = FIRST};
    f->level = svi_alloc_array(forecast_room(k, d), sizeof *f->level);
    if (!f->level)
        return svi_fail_memory(err, "the forecasts of the sensors");
    f->scale = f->level + d;
    f->known = f->scale + d;
    f->square = f->known + d;
    f->out = f->square + d;
    f->expected = f->out + d;
    f->moments = f->expected + d;
    f->cross = f->moments + n * n;
    f->coefficients = f->cross + cross;
    f->inverse = f->coefficients + cross;
    f->z = f->inverse + n * n;
    f->work = f->z + k + d;
    return SVS_OK;
}

void svi_forecast_clear(struct svi_forecast *f) {
    svi_free(f->level);
    *f = (struct svi_forecast){0};
}

/* ---- residuals */

/* What the regressors say, into f->out. */
static void forecast_by_context(struct svi_forecast *f, const double *c) {
    double *out = f->out;
    memset(out, 0, (size_t)f->d * sizeof *out);
    for (int i = 0; i < f->k; i++) {
        const double *t = f->coefficients + (size_t)i * (size_t)f->d, v = c[i];
        for (int j = 0; j < f->d; j++)
            out[j] += v * t[j];
    }
}

/* by_others: at first the residuals by context, as far as they count. */
static void forecast_by_others(struct svi_forecast *f, const double *by_context, double *by_others) {
    const int k = f->k, d = f->d, n = k + d;
    double *out = f->out;
    memset(out, 0, (size_t)d * sizeof *out);
    for (int i = 0; i < n; i++) { /* P is symmetric */
        const double *row = f->inverse + (size_t)i * (size_t)n + k, v = f->z[i];
        for (int j = 0; j < d; j++)
            out[j] += v * row[j];
    }
    for (int j = 0; j < d; j++) {
        const double left = by_context[j] - by_others[j]; /* what z does not have of it */
        by_others[j] = out[j] / f->inverse[(size_t)(k + j) * (size_t)n + (size_t)(k + j)] + left;
    }
}

void svi_forecast_residuals(struct svi_forecast *f, const double *c, const double *x, const float *deviation,
                            double *by_context, double *by_others) {
    const int k = f->k, d = f->d;
    memcpy(f->z, c, (size_t)k * sizeof *c);
    forecast_by_context(f, c);
    for (int j = 0; j < d; j++) {
        const double far = f->scale[j] > 0 ? (x[j] - f->level[j]) / f->scale[j] : NAN;
        const double value = far > SVI_FORECAST_MOST    ? SVI_FORECAST_MOST
                             : far < -SVI_FORECAST_MOST ? -SVI_FORECAST_MOST
                                                        : far;
        const double residual = value - f->out[j], most = deviation ? SVI_FORECAST_FAR * deviation[j] : CLIP;
        by_context[j] = residual;
        by_others[j] = residual > most ? most : residual < -most ? -most : residual;
        f->expected[j] = f->out[j];
        f->z[k + j] = f->out[j] + (isnan(residual) ? 0 : by_others[j]);
    }
    if (f->solved)
        forecast_by_others(f, by_context, by_others);
    for (int j = 0; j < d && !f->solved; j++)
        by_others[j] = NAN;
}

int svi_forecast_owes(const struct svi_forecast *f, int j) {
    const int k = f->k, n = k + f->d;
    int most = -1;
    double size = 0;
    if (!f->solved)
        return -1;
    const double *row = f->inverse + (size_t)(k + j) * (size_t)n;
    for (int i = 0; i < f->d; i++)
        if (i != j && fabs(row[k + i] * f->z[k + i]) > size) {
            size = fabs(row[k + i] * f->z[k + i]);
            most = i;
        }
    return most;
}

/* ---- learning */

/* The first level and scale of a sensor: mean and deviation of its first FIRST values, from the last one
 * before it moved on. */
static void forecast_start(struct svi_forecast *f, const double *x) {
    for (int j = 0; j < f->d; j++) {
        if (f->scale[j] > 0 || isnan(x[j]))
            continue;
        const double v = fmax(-HUGE_VALUE, fmin(x[j], HUGE_VALUE));
        const double n = ++f->known[j], gap = v - f->level[j];
        f->level[j] += gap / n;
        f->square[j] += gap * (v - f->level[j]);
        const double deviation = sqrt(f->square[j] / n);
        if (deviation <= 1e-12 * fabs(f->level[j])) {
            f->known[j] = 1;
            f->square[j] = 0;
        } else if (n >= FIRST)
            f->scale[j] = deviation;
    }
}

/* S_cc and its ridge, whole rows, into a: k x k. */
static void forecast_solve_context(struct svi_forecast *f) {
    const int k = f->k, d = f->d;
    const size_t n = forecast_side(k, d);
    double *a = f->work, *column = f->work + n * n;
    for (int i = 0; i < k; i++)
        memcpy(a + (size_t)i * (size_t)k, f->moments + (size_t)i * n, (size_t)k * sizeof *a);
    for (int i = 0; i < k; i++)
        a[(size_t)i * (size_t)k + (size_t)i] += i == 0 ? TINY * a[0] : RIDGE;
    if (!svi_factor_spd(a, k))
        return;
    for (int j = 0; j < d; j++) {
        for (int i = 0; i < k; i++)
            column[i] = f->cross[(size_t)i * (size_t)d + (size_t)j];
        svi_solve_factor(a, k, column);
        for (int i = 0; i < k; i++)
            f->coefficients[(size_t)i * (size_t)d + (size_t)j] = column[i];
    }
}

static void forecast_solve_others(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, n = k + d;
    double *a = f->work;
    memcpy(a, f->moments, n * n * sizeof *a);
    for (size_t j = 0; j < d; j++) /* S_xc, which is kept across */
        for (size_t i = 0; i < k; i++)
            a[(k + j) * n + i] = f->cross[i * d + j];
    const double rows = a[0];
    for (size_t i = 0; i < n; i++)
        a[i * n + i] += i == 0 ? TINY * rows : i < k ? RIDGE : SHARE * (a[i * n + i] / rows) + TINY * rows;
    if (!svi_invert_spd(a, (int)n))
        return;
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l <= i; l++)
            f->inverse[i * n + l] = f->inverse[l * n + i] = a[i * n + l];
    f->solved = true;
}

static void forecast_sum(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, n = forecast_side(f->k, f->d);
    const double keep = 1 - 1 / f->memory, *z = f->z;
    for (size_t i = 0; i < k; i++) {
        double *row = f->moments + i * n, *across = f->cross + i * d;
        const double v = z[i];
        for (size_t l = 0; l <= i; l++)
            row[l] = keep * row[l] + v * z[l];
        for (size_t j = 0; j < d; j++)
            across[j] = keep * across[j] + v * z[k + j];
    }
    for (size_t i = k; i < n; i++) {
        double *row = f->moments + i * n + k;
        const double v = z[i];
        for (size_t l = 0; l <= i - k; l++)
            row[l] = keep * row[l] + v * z[k + l];
    }
}

void svi_forecast_learn(struct svi_forecast *f, const double *x, const double *by_context,
                        const uint8_t *odd) {
    const int k = f->k, d = f->d;
    for (int j = 0; j < d; j++) {
        double *z = &f->z[k + j];
        if (odd[j] && !isnan(by_context[j]))
            *z = f->expected[j];
        *z = *z > CLIP ? CLIP : *z < -CLIP ? -CLIP : *z;
    }
    forecast_sum(f);
    forecast_start(f, x);
    if (++f->rows < f->next)
        return;
    forecast_solve_context(f);
    if (f->others)
        forecast_solve_others(f);
    const int64_t seldom = SELDOM * (1 + (k + d) / SELDOM), gap = f->rows / 8;
    f->next = f->rows + (gap < 8 ? 8 : gap < seldom ? gap : seldom);
}

/* ---- sensors that come and change hands */

void svi_forecast_forget(struct svi_forecast *f, int sensor) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, n = forecast_side(f->k, f->d), j = (size_t)sensor;
    f->level[j] = f->scale[j] = f->known[j] = f->square[j] = 0;
    for (size_t i = 0; i < k; i++)
        f->cross[i * d + j] = f->coefficients[i * d + j] = 0;
    if (!f->others)
        return;
    for (size_t i = k; i < n; i++) {
        f->moments[(k + j) * n + i] = f->moments[i * n + k + j] = 0;
        f->inverse[(k + j) * n + i] = f->inverse[i * n + k + j] = 0;
    }
    for (size_t i = 0; i < k; i++)
        f->inverse[(k + j) * n + i] = f->inverse[i * n + k + j] = 0;
    f->inverse[(k + j) * n + k + j] = 1;
}

void svi_forecast_widen(struct svi_forecast *to, const struct svi_forecast *from) {
    const size_t k = (size_t)from->k, d = (size_t)from->d, wide = (size_t)to->d;
    const size_t n = forecast_side(from->k, from->d), m = forecast_side(to->k, to->d);
    const double *const v[] = {from->level, from->scale, from->known, from->square};
    double *const w[] = {to->level, to->scale, to->known, to->square};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        memcpy(w[i], v[i], d * sizeof **w);
    for (size_t i = 0; i < n && i < m; i++)
        memcpy(to->moments + i * m, from->moments + i * n, (n < m ? n : m) * sizeof *to->moments);
    for (size_t i = 0; i < k; i++) {
        memcpy(to->cross + i * wide, from->cross + i * d, d * sizeof *to->cross);
        memcpy(to->coefficients + i * wide, from->coefficients + i * d, d * sizeof *to->coefficients);
    }
    to->memory = from->memory;
    to->rows = from->rows;
    to->next = from->next;
    if (from->rows >= FIRST && to->others)
        forecast_solve_others(to);
}

void svi_forecast_archive(struct svi_archive *a, struct svi_forecast *f) {
    const int64_t d = f->d, n = (int64_t)forecast_side(f->k, f->d), cross = (int64_t)f->k * d;
    svi_archive_finite(a, "memory", &f->memory, 1);
    svi_archive_int64(a, "rows", &f->rows, 0, MOST_ROWS);
    svi_archive_int64(a, "next", &f->next, 1, 2 * MOST_ROWS);
    svi_archive_bool(a, "solved", &f->solved);
    svi_archive_finite(a, "level", f->level, d);
    svi_archive_finite(a, "scale", f->scale, d);
    svi_archive_finite(a, "known", f->known, d);
    svi_archive_finite(a, "square", f->square, d);
    svi_archive_finite(a, "moments", f->moments, n * n);
    svi_archive_finite(a, "cross", f->cross, cross);
    svi_archive_finite(a, "coefficients", f->coefficients, cross);
    svi_archive_finite(a, "inverse", f->inverse, f->others ? n * n : 0);
    svi_archive_check(a, f->memory >= 1 && f->next > f->rows && (f->others || !f->solved),
                      "the forecasts contradict themselves");
}

double svi_forecast_memory(int k, int d) {
    return (double)forecast_room(k, d) * sizeof(double);
}
