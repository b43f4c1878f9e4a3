#include "novelty/coordinates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/pass.h"

#define LOW 0.05
#define DEVIATION                                                                                            \
    3.2897072539029435 /* between these quantiles of a normal distribution lie so many deviations */

svs_code svi_coordinates_init(struct svi_coordinates *c, int d, bool scale, svs_error *err) {
    *c = (struct svi_coordinates){.d = d, .stride = svi_round_up(d, 8)};
    if (!scale)
        return SVS_OK;
    c->center = svi_alloc_array((size_t)d, sizeof *c->center);
    c->inverse = svi_alloc_array((size_t)d, sizeof *c->inverse);
    if (c->center && c->inverse)
        return SVS_OK;
    svi_coordinates_clear(c);
    return svi_fail_memory(err, "the scales of the features");
}

void svi_coordinates_clear(struct svi_coordinates *c) {
    svi_free(c->center);
    svi_free(c->inverse);
    c->center = c->inverse = NULL;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int64_t n, double share) {
    const double at = share * (double)(n - 1);
    const int64_t below = (int64_t)at;
    const int64_t above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

static double deviation(const double *v, int64_t n) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        mean += (v[i] - mean) / (double)(i + 1);
    for (int64_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    return sqrt(squares / (double)n);
}

void svi_coordinates_fit(struct svi_coordinates *c, const double *rows, int64_t stride, int64_t count,
                         double *column) {
    for (int j = 0; c->center && j < c->d; j++) {
        for (int64_t i = 0; i < count; i++)
            column[i] = rows[i * stride + j];
        qsort(column, (size_t)count, sizeof *column, ascending);
        double spread = (quantile(column, count, 1 - LOW) - quantile(column, count, LOW)) / DEVIATION;
        if (!(spread > 0))
            spread = deviation(column, count);
        c->center[j] = quantile(column, count, 0.5);
        c->inverse[j] = spread > 1e-12 * fabs(c->center[j]) && isfinite(1 / spread) ? 1 / spread : 1;
    }
}

void svi_coordinates_apply(const struct svi_coordinates *c, const double *x, double *to) {
    if (c->center)
        for (int j = 0; j < c->d; j++)
            to[j] = asinh((x[j] - c->center[j]) * c->inverse[j]);
    else
        memmove(to, x, (size_t)c->d * sizeof *to);
    memset(to + c->d, 0, (size_t)(c->stride - c->d) * sizeof *to);
}
