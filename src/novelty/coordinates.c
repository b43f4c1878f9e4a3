#include "novelty/coordinates.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/statistics.h"
#include "novelty/similarity.h"

#define LOW       0.05
#define DEVIATION 3.2897072539029435 /* deviations of a normal distribution between these quantiles */
#define STEP      0.25               /* deviations from 0 to 1 in a column of a category */

enum { FEATURES, DIMS };

static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_coordinates, center, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(struct svi_coordinates, inverse, NULL, SVI_AXIS(FEATURES)),
};
static const struct svi_arrays coordinates_arrays = SVI_ARRAYS_ALIGNED(arrays, "the scales of the features");

svs_code svi_coordinates_init(struct svi_coordinates *c, int d, bool scale, svs_error *err) {
    const int32_t dims[DIMS] = {scale ? d : 0};
    *c =
        (struct svi_coordinates){.d = d, .stride = svi_round_up(d, 8), .pass = svi_kernels_get(SVS_ISA_BEST)};
    return svi_arrays_alloc(&coordinates_arrays, c, dims, err);
}

void svi_coordinates_clear(struct svi_coordinates *c) {
    svi_arrays_free(&coordinates_arrays, c);
}

double svi_coordinates_memory(int d) {
    const int32_t dims[DIMS] = {d};
    return (double)svi_arrays_bytes(&coordinates_arrays, dims);
}

/* The scale of a column of a category (coordinates.h): the inverse of what its step counts. 0 while all
 * values are equal. */
static double coordinates_of_category(const double *v, int64_t n) {
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; i++)
        zeros += v[i] == 0;
    const double rarer = fmin((double)zeros, (double)(n - zeros)) / (double)n;
    return rarer > 0 ? 1 / fmin(1, STEP * sqrt(fmax(1, LOW / rarer))) : 0;
}

/* Per feature: spread from quantiles, else from the deviation; the shrink limit; categories replace it
 * all. */
void svi_coordinates_fit(struct svi_coordinates *c, const double *rows, int64_t stride, int64_t count,
                         double *column, int first, int end) {
    for (int j = first; c->center && j < end; j++) {
        int64_t known = 0;
        /* inverse 1 marks a feature without a scale of its own, which limits nothing. */
        const double least = c->shrink > 0 && c->inverse[j] != 1 ? c->shrink / c->inverse[j] : 0;
        c->center[j] = 0;
        c->inverse[j] = 1;
        for (int64_t i = 0; i < count; i++) {
            column[known] = rows[i * stride + j];
            known += !isnan(column[known]);
        }
        if (known == 0)
            continue;
        /* Quantiles ignore the extreme 5 % on both sides, so outliers do not set the scale. */
        double spread = (svi_quantile(column, known, 1 - LOW) - svi_quantile(column, known, LOW)) / DEVIATION;
        if (!(spread > 0))
            spread = svi_deviation(column, known);
        spread = fmax(spread, least); /* never below `least` */
        if (c->category && c->category[j])
            spread = coordinates_of_category(column, known);
        /* A spread that rounding of the center explains does not count: dividing by it would only amplify noise. */
        c->center[j] = svi_quantile(column, known, 0.5);
        c->inverse[j] = spread > 1e-12 * fabs(c->center[j]) && isfinite(1 / spread) ? 1 / spread : 1;
    }
}

/* A row with missing values: coordinates of each run of known values between them. */
static void coordinates_apply_known(const struct svi_coordinates *c, const double *x, double *to) {
    for (int j = 0; j < c->d; j++) {
        int end = j;
        while (end < c->d && !isnan(x[end]))
            end++;
        if (end > j && c->center)
            c->pass->squash(x + j, c->center + j, c->inverse + j, end - j, to + j);
        else if (end > j)
            memmove(to + j, x + j, (size_t)(end - j) * sizeof *to);
        if (end < c->d)
            to[end] = NAN;
        j = end;
    }
}

/* Polynomial kernels: 0 for missing coordinates; the others are scaled so that the length is preserved on
 * average. */
static void coordinates_fill(const struct svi_coordinates *c, int missing, double *to) {
    const double scale = missing < c->d ? sqrt((double)c->d / (c->d - missing)) : 0;
    for (int j = 0; j < c->d; j++)
        to[j] = isnan(to[j]) ? 0 : to[j] * scale;
}

/* Rows without missing values take the fast path; padding is 0, so that distances can run over whole
 * strides. */
void svi_coordinates_apply(const struct svi_coordinates *c, const double *x, double *to) {
    const int missing = svi_count_missing(x, c->d);
    if (missing > 0)
        coordinates_apply_known(c, x, to);
    else if (c->center)
        c->pass->squash(x, c->center, c->inverse, c->d, to);
    else
        memmove(to, x, (size_t)c->d * sizeof *to);
    if (missing > 0 && c->fill)
        coordinates_fill(c, missing, to);
    memset(to + c->d, 0, (size_t)(c->stride - c->d) * sizeof *to);
}
