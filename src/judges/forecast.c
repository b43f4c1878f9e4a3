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
#include "base/wide.h"

#define FIRST      32    /* rows before the first solution */
#define SELDOM     256   /* rows between two solutions at most, for each SELDOM of unknowns or part of it */
#define RIDGE      4.0   /* rows, on the coefficients of regressors, whose size is 1 at most */
#define SHARE      0.4   /* rows, on those of sensors, each of its own mean square */
#define CLIP       1e6   /* scales: what is further from its level is not learned */
#define HUGE_VALUE 1e150 /* its square is a number */
#define TINY       1e-9  /* of the largest diagonal entry there is by nature */

#define MOST_ROWS (INT64_MAX / 4)

static size_t forecast_side(int k, int d) {
    return (size_t)k + (d > 1 && d <= SVI_FORECAST_OTHERS ? (size_t)d : 0);
}

size_t svi_forecast_side(const struct svi_forecast *f) {
    return forecast_side(f->k, f->d);
}

size_t svi_forecast_room(int k, int d) {
    const size_t n = forecast_side(k, d);
    return 7 * (size_t)d + 3 * n * n + 2 * (size_t)k * (size_t)d + 2 * (size_t)(k + d);
}

void svi_forecast_begin(struct svi_forecast *f, int k, int d, double memory) {
    const bool others = forecast_side(k, d) > (size_t)k;
    *f = (struct svi_forecast){.k = k, .d = d, .others = others, .memory = memory, .next = FIRST};
}

svs_code svi_forecast_init(struct svi_forecast *f, int k, int d, double memory, svs_error *err) {
    double *block = svi_alloc_array(svi_forecast_room(k, d), sizeof *block);
    svi_forecast_begin(f, k, d, memory);
    if (!block)
        return svi_fail_memory(err, "the forecasts of the sensors");
    svi_forecast_place(f, block);
    return SVS_OK;
}

void svi_forecast_place(struct svi_forecast *f, double *block) {
    const int k = f->k, d = f->d;
    const size_t n = forecast_side(k, d), cross = (size_t)k * (size_t)d;
    f->level = block;
    f->scale = f->level + d;
    f->known = f->scale + d;
    f->mean = f->known + d;
    f->square = f->mean + d;
    f->out = f->square + d;
    f->expected = f->out + d;
    f->moments = f->expected + d;
    f->cross = f->moments + n * n;
    f->coefficients = f->cross + cross;
    f->inverse = f->coefficients + cross;
    f->z = f->inverse + n * n;
    f->work = f->z + k + d;
}

void svi_forecast_clear(struct svi_forecast *f) {
    svi_free(f->level);
    *f = (struct svi_forecast){0};
}

/* ---- residuals */

/* out = sum_i v_i row_i over `count` rows of n numbers, in order; four at a time. */
SVI_WIDE
static void forecast_add_rows(double *restrict out, const double *restrict row, size_t stride,
                              const double *restrict v, int count, int n) {
    memset(out, 0, (size_t)n * sizeof *out);
    for (; count >= 4; count -= 4, v += 4, row += 4 * stride) {
        const double a = v[0], b = v[1], c = v[2], d = v[3];
        const double *restrict r = row + stride, *restrict s = r + stride, *restrict t = s + stride;
        for (int j = 0; j < n; j++)
            out[j] = (((out[j] + a * row[j]) + b * r[j]) + c * s[j]) + d * t[j];
    }
    for (; count > 0; count--, v++, row += stride)
        for (int j = 0; j < n; j++)
            out[j] += *v * row[j];
}

/* by_others: at first the residuals by context, as far as they count. */
SVI_WIDE
static void forecast_by_others(struct svi_forecast *f, const double *restrict by_context,
                               double *restrict by_others) {
    const int k = f->k, d = f->d, n = k + d;
    const size_t side = (size_t)n, first = side * (size_t)k + (size_t)k;
    const double *restrict out = f->out, *restrict diagonal = f->inverse + first;
    forecast_add_rows(f->out, f->inverse + k, side, f->z, n, d); /* P is symmetric */
    for (size_t j = 0; j < (size_t)d; j++) {
        const double left = by_context[j] - by_others[j]; /* what z does not have of it */
        by_others[j] = out[j] / diagonal[j * (side + 1)] + left;
    }
}

/* What the regressors do not say, and the row at hand. */
SVI_WIDE
static void forecast_by_context(struct svi_forecast *f, const double *restrict x,
                                const float *restrict deviation, double *restrict by_context,
                                double *restrict by_others) {
    const double *restrict level = f->level, *restrict scale = f->scale, *restrict out = f->out;
    double *restrict z = f->z + f->k, *restrict expected = f->expected;
    for (int j = 0; j < f->d; j++) {
        const double most = deviation ? SVI_FORECAST_FAR * (double)deviation[j] : INFINITY;
        double value = (x[j] - level[j]) / (scale[j] > 0 ? scale[j] : NAN);
        value = value > SVI_FORECAST_MOST    ? SVI_FORECAST_MOST
                : value < -SVI_FORECAST_MOST ? -SVI_FORECAST_MOST
                                             : value;
        const double residual = value - out[j];
        const double counted = residual > most ? most : residual < -most ? -most : residual;
        by_context[j] = residual;
        by_others[j] = counted;
        expected[j] = out[j];
        z[j] = out[j] + (counted == counted ? counted : 0);
    }
}

void svi_forecast_residuals(struct svi_forecast *f, const double *c, const double *x, const float *deviation,
                            double *by_context, double *by_others) {
    memcpy(f->z, c, (size_t)f->k * sizeof *c);
    forecast_add_rows(f->out, f->coefficients, (size_t)f->d, c, f->k, f->d); /* what the regressors say */
    forecast_by_context(f, x, deviation, by_context, by_others);
    if (f->solved)
        forecast_by_others(f, by_context, by_others);
    for (int j = 0; j < f->d && !f->solved; j++)
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

/* The level of a sensor is its first value, so that rows in which it rested there are 0 of it, as they were
 * learned; its scale is the deviation of FIRST values from when it moves. */
static void forecast_start(struct svi_forecast *f, const double *x) {
    for (int j = 0; j < f->d; j++) {
        if (f->scale[j] > 0 || isnan(x[j]))
            continue;
        const double v = fmax(-HUGE_VALUE, fmin(x[j], HUGE_VALUE));
        if (f->known[j] == 0)
            f->level[j] = f->mean[j] = v;
        const double n = ++f->known[j], gap = v - f->mean[j];
        f->mean[j] += gap / n;
        f->square[j] += gap * (v - f->mean[j]);
        const double deviation = sqrt(f->square[j] / n);
        if (deviation <= 1e-12 * fabs(f->level[j])) {
            f->known[j] = 1;
            f->square[j] = 0;
        } else if (n >= FIRST) {
            f->scale[j] = deviation;
        }
    }
}

/* The inverse of a symmetric positive matrix, whole, by n exchanges (Gauss and Jordan), without pivoting.
 * False: it is not positive enough. */
SVI_WIDE
static bool forecast_invert(double *restrict a, size_t n) {
    for (size_t p = 0; p < n; p++) {
        double *restrict pivot = a + p * n;
        const double inverse = 1 / pivot[p];
        if (!(pivot[p] > 0 && inverse > 0 && inverse < INFINITY))
            return false;
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
    for (size_t i = 0; i < n; i++)
        if (!(a[i * n + i] > 0 && a[i * n + i] < INFINITY))
            return false;
    return true;
}

/* S_cc and its ridge, whole, into a: k x k. */
static void forecast_solve_context(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, n = forecast_side(f->k, f->d);
    double *a = f->work;
    for (size_t i = 0; i < k; i++) {
        for (size_t l = 0; l <= i; l++)
            a[i * k + l] = a[l * k + i] = f->moments[i * n + l];
        a[i * k + i] += i == 0 ? TINY * a[0] : RIDGE;
    }
    if (!forecast_invert(a, k))
        return;
    for (size_t i = 0; i < k; i++)
        forecast_add_rows(f->coefficients + i * d, f->cross, d, a + i * k, (int)k, (int)d);
}

static void forecast_solve_others(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, n = k + d;
    double *a = f->work;
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l <= i; l++) /* S_xc is kept across */
            a[i * n + l] = a[l * n + i] = i >= k && l < k ? f->cross[l * d + i - k] : f->moments[i * n + l];
    const double rows = a[0];
    for (size_t i = 0; i < n; i++)
        a[i * n + i] += i == 0 ? TINY * rows : i < k ? RIDGE : SHARE * (a[i * n + i] / rows) + TINY * rows;
    if (!forecast_invert(a, n))
        return;
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l <= i; l++)
            f->inverse[i * n + l] = f->inverse[l * n + i] = a[i * n + l];
    f->solved = true;
}

/* row = keep row + v z */
SVI_WIDE
static void forecast_fade(double *restrict row, double keep, double v, const double *restrict z, size_t n) {
    for (size_t j = 0; j < n; j++)
        row[j] = keep * row[j] + v * z[j];
}

static void forecast_sum(struct svi_forecast *f) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, n = forecast_side(f->k, f->d);
    const double keep = 1 - 1 / f->memory, *z = f->z;
    for (size_t i = 0; i < k; i++) {
        forecast_fade(f->moments + i * n, keep, z[i], z, i + 1);
        forecast_fade(f->cross + i * d, keep, z[i], z + k, d);
    }
    for (size_t i = k; i < n; i++)
        forecast_fade(f->moments + i * n + k, keep, z[i], z + k, i - k + 1);
}

/* What is not to be learned counts as its forecast. */
SVI_WIDE
static void forecast_learn_values(double *restrict z, const double *restrict expected,
                                  const double *restrict by_context, const uint8_t *restrict odd, int d) {
    for (int j = 0; j < d; j++) {
        const double value = expected[j] + by_context[j];
        const bool learned = !odd[j] && value > -CLIP && value < CLIP; /* a number, then */
        z[j] = learned ? value : expected[j];
    }
}

void svi_forecast_learn(struct svi_forecast *f, const double *x, const double *by_context,
                        const uint8_t *odd) {
    const int k = f->k, d = f->d;
    forecast_learn_values(f->z + k, f->expected, by_context, odd, d);
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
    f->level[j] = f->scale[j] = f->known[j] = f->mean[j] = f->square[j] = 0;
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
    const double *const v[] = {from->level, from->scale, from->known, from->mean, from->square};
    double *const w[] = {to->level, to->scale, to->known, to->mean, to->square};
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
    if (to->others &&
        !from->others) { /* one sensor's squares were not kept: all starts again but the forecasts */
        memset(to->moments, 0, m * m * sizeof *to->moments);
        memset(to->cross, 0, k * wide * sizeof *to->cross);
        to->rows = 0;
        to->next = FIRST;
    } else if (from->rows >= FIRST && to->others)
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
    svi_archive_finite(a, "mean", f->mean, d);
    svi_archive_finite(a, "square", f->square, d);
    svi_archive_finite(a, "moments", f->moments, n * n);
    svi_archive_finite(a, "cross", f->cross, cross);
    svi_archive_finite(a, "coefficients", f->coefficients, cross);
    svi_archive_finite(a, "inverse", f->inverse, f->others ? n * n : 0);
    svi_archive_check(a, f->memory >= 1 && f->next > f->rows && (f->others || !f->solved),
                      "the forecasts contradict themselves");
}

/* ---- packed */

static void forecast_part(char **at, double *array, size_t count, bool out) {
    memcpy(out ? (void *)*at : (void *)array, out ? (void *)array : (void *)*at, count * sizeof *array);
    *at += count * sizeof *array;
}

/* P is symmetric; of a regressor that never was anything but 0 it holds the ridge alone. */
static void forecast_whole(struct svi_forecast *f, size_t used) {
    const size_t n = forecast_side(f->k, f->d);
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < i; l++)
            f->inverse[l * n + i] = f->inverse[i * n + l];
    for (size_t i = used; i < (size_t)f->k; i++)
        f->inverse[i * n + i] = 1 / RIDGE;
}

void svi_forecast_move(struct svi_forecast *f, int used, char **at, bool out) {
    const size_t k = (size_t)f->k, d = (size_t)f->d, n = forecast_side(f->k, f->d), u = (size_t)used;
    forecast_part(at, f->level, 5 * d, out);
    forecast_part(at, f->cross, u * d, out);
    forecast_part(at, f->coefficients, u * d, out);
    for (size_t i = 0; i < u; i++)
        forecast_part(at, f->moments + i * n, i + 1, out);
    for (size_t i = k; i < n; i++)
        forecast_part(at, f->moments + i * n + k, i - k + 1, out);
    if (!f->solved)
        return;
    for (size_t i = 0; i < u; i++)
        forecast_part(at, f->inverse + i * n, i + 1, out);
    for (size_t i = k; i < n; i++) {
        forecast_part(at, f->inverse + i * n, u, out);
        forecast_part(at, f->inverse + i * n + k, i - k + 1, out);
    }
    if (!out)
        forecast_whole(f, u);
}

size_t svi_forecast_packed(int k, int d, int used) {
    const size_t u = (size_t)used, s = forecast_side(k, d) - (size_t)k;
    return (5 * (size_t)d + 2 * u * (size_t)d + u * (u + 1) + s * (s + 1) + s * u) * sizeof(double);
}

double svi_forecast_memory(int k, int d) {
    return (double)svi_forecast_room(k, d) * sizeof(double);
}
