#include "alerts/history.h"

#include <math.h>

#include "base/arrays.h"
#include "base/fail.h"
#include "base/wide.h"

#define MAX_DISTANCE 3e38 /* beyond the range of float it would become infinite, which stands for none */
#define FIRST_ROWS   20   /* capacity of a history that grows: what a young stream may need to report */

enum { COLUMNS, ROWS, DIMS };

#define OWNER struct svi_history

static const struct svi_array arrays[] = {
    SVI_ARRAY_WITH(OWNER, origin, "origin", SVI_ARRAY_KNOWN, NAN, SVI_AXIS(COLUMNS)),
    SVI_ARRAY(OWNER, time, "time", SVI_AXIS(ROWS)),
    SVI_ARRAY_WITH(OWNER, distance, "distance", SVI_ARRAY_LOWEST, -INFINITY, SVI_AXIS(ROWS),
                   SVI_AXIS(COLUMNS)),
};
static const struct svi_arrays history_arrays = SVI_ARRAYS(arrays, "the last rows of a stream");

void svi_history_clear(struct svi_history *h) {
    svi_arrays_free(&history_arrays, h);
    *h = (struct svi_history){0};
}

/* Rows to reserve before the next row. Three times as many at once, so that a key copies its rows twice. */
static int history_next_capacity(const struct svi_history *h, bool grows) {
    const int wider = h->capacity < FIRST_ROWS ? FIRST_ROWS : 3 * h->capacity;
    if (grows && h->rows < h->capacity)
        return h->capacity;
    return grows && wider < SVI_HISTORY_ROWS ? wider : SVI_HISTORY_ROWS;
}

svs_code svi_history_reserve(struct svi_history *h, int d, bool grows, svs_error *err) {
    if (d > SVI_HISTORY_COLUMNS) {
        svi_history_clear(h);
        return SVS_OK;
    }
    const int rows = history_next_capacity(h, grows), columns = d > h->d ? d : h->d;
    const int32_t from[DIMS] = {h->d, h->capacity}, to[DIMS] = {columns, rows};
    if (columns == 0 || (columns == h->d && rows == h->capacity))
        return SVS_OK;
    /* Row n has the place n % SVI_HISTORY_ROWS, which is n while the ring is not full: rows keep their places
     * when it grows. */
    SVI_TRY(svi_arrays_resize(&history_arrays, h, from, to, err));
    h->d = columns;
    h->capacity = rows;
    return SVS_OK;
}

int svi_history_held(const struct svi_history *h) {
    return h->rows < SVI_HISTORY_ROWS ? (int)h->rows : SVI_HISTORY_ROWS;
}

/* The place of the row `ago` rows before the last one (0). */
static size_t history_place(const struct svi_history *h, int ago) {
    return (size_t)((h->rows - 1 - ago) % SVI_HISTORY_ROWS);
}

/* The newest value becomes the origin of its column; the distances of older rows follow. */
static void history_recentre(struct svi_history *h, const double *x) {
    for (int j = 0; j < h->d; j++) {
        const double moved = isfinite(x[j]) && isfinite(h->origin[j]) ? x[j] - h->origin[j] : 0;
        if (moved == 0)
            continue;
        h->origin[j] = x[j];
        for (int i = 0; i < svi_history_held(h); i++) {
            float *distance = &h->distance[(size_t)i * (size_t)h->d + (size_t)j];
            if (isfinite(*distance))
                *distance = (float)fmax(-MAX_DISTANCE, fmin((double)*distance - moved, MAX_DISTANCE));
        }
    }
}

/* Writes the distances of a row. Returns whether a column has its first value. No branches: each row of each
 * stream passes here. */
SVI_WIDE
static bool history_measure(float *restrict to, const double *restrict x, const double *restrict origin,
                            int d) {
    int first = 0;
    for (int j = 0; j < d; j++) {
        double far = x[j] - origin[j] + (x[j] - x[j]); /* NaN for a value that is infinite */
        first |= far != far && x[j] == x[j];
        far = far > MAX_DISTANCE ? MAX_DISTANCE : far < -MAX_DISTANCE ? -MAX_DISTANCE : far;
        to[j] = far == far ? (float)far : -INFINITY;
    }
    return first != 0;
}

void svi_history_add(struct svi_history *h, const double *x, double time) {
    if (h->d == 0 || svi_history_is_full(h)) /* a stream without a history */
        return;
    if (h->rows > 0 && h->rows % SVI_HISTORY_ROWS == 0)
        history_recentre(h, x);
    const size_t at = (size_t)(h->rows++ % SVI_HISTORY_ROWS);
    float *to = h->distance + at * (size_t)h->d;
    h->time[at] = time;
    if (!history_measure(to, x, h->origin, h->d))
        return;
    for (int j = 0; j < h->d; j++)
        if (isnan(h->origin[j]) && isfinite(x[j])) {
            h->origin[j] = x[j];
            to[j] = 0;
        }
}

int svi_history_column(const struct svi_history *h, int column, int count, double *values, double *times) {
    const int held = svi_history_held(h), rows = count < held ? count : held;
    if (column < 0 || column >= h->d)
        return 0;
    for (int i = 0; i < rows; i++) {
        const size_t at = history_place(h, rows - 1 - i);
        const float distance = h->distance[at * (size_t)h->d + (size_t)column];
        if (values)
            values[i] = isfinite(distance) ? h->origin[column] + (double)distance : NAN;
        if (times)
            times[i] = h->time[at];
    }
    return rows;
}

struct svi_history_span svi_history_over(const struct svi_history *h, int column, int count) {
    double values[SVI_HISTORY_ROWS], times[SVI_HISTORY_ROWS], sum = 0;
    struct svi_history_span s = {.mean = NAN, .first = NAN, .last = NAN, .least = NAN, .most = NAN};
    s.rows = svi_history_column(h, column, count, values, times);
    for (int i = 0; i < s.rows; i++) {
        if (isnan(values[i]))
            continue;
        s.first = s.values == 0 ? values[i] : s.first;
        s.last = values[i];
        s.least = fmin(s.least, values[i]); /* fmin and fmax return the number of a number and NAN */
        s.most = fmax(s.most, values[i]);
        sum += values[i] - s.first; /* from the first one, so that large values keep their digits */
        s.values++;
    }
    s.mean = s.values > 0 ? s.first + sum / s.values : NAN;
    s.begin = s.rows > 0 ? times[0] : 0;
    s.end = s.rows > 0 ? times[s.rows - 1] : 0;
    return s;
}

void svi_history_forget(struct svi_history *h, int column) {
    const int32_t dims[DIMS] = {h->d, h->capacity};
    if (column < h->d)
        svi_arrays_forget(&history_arrays, h, dims, COLUMNS, column);
}

void svi_history_move_times(struct svi_history *h, double from, double step) {
    for (int i = 0; i < svi_history_held(h); i++)
        h->time[i] += h->time[i] > from ? step : 0;
}

/* ---- archive */

void svi_history_archive(struct svi_archive *a, struct svi_history *h, int columns, bool grows) {
    int d = h->d;
    int64_t rows = h->rows;
    svi_archive_int(a, "history columns", &d, 0,
                    columns < SVI_HISTORY_COLUMNS ? columns : SVI_HISTORY_COLUMNS);
    svi_archive_int64(a, "history rows", &rows, 0, INT64_MAX / 4);
    if (!svi_archive_ok(a) || d == 0)
        return;
    /* Capacity beyond the rows is no part of the state. A loaded history that grows reserves with its next
     * row; any other has all its capacity, as its rows may come without a reserve. */
    const int held = rows < SVI_HISTORY_ROWS ? (int)rows : SVI_HISTORY_ROWS;
    if (svi_archive_loading(a)) {
        const int32_t none[DIMS] = {h->d, h->capacity}, all[DIMS] = {d, grows ? held : SVI_HISTORY_ROWS};
        /* A damaged size must not allocate: each row takes more than a byte of the archive. */
        if (svi_archive_left(a) < held)
            svi_archive_fail(a, SVS_DAMAGED, "there are fewer bytes than rows of a history");
        if (!svi_archive_ok(a) || svi_arrays_resize(&history_arrays, h, none, all, a->err) != SVS_OK)
            return;
        h->d = d;
        h->capacity = all[ROWS];
        h->rows = rows;
    }
    const int32_t dims[DIMS] = {h->d, h->capacity}, used[DIMS] = {d, held};
    svi_arrays_archive(a, &history_arrays, h, dims, used);
}

double svi_history_memory(int d) {
    const int32_t dims[DIMS] = {d, SVI_HISTORY_ROWS};
    return d > 0 && d <= SVI_HISTORY_COLUMNS ? (double)svi_arrays_bytes(&history_arrays, dims) : 0;
}
