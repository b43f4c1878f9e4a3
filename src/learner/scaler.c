#include "learner/scaler.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define CONSTANT 1e-12 /* of the mean: a smaller deviation is rounding */
#define SMALLEST 1e-90 /* its inverse square can still be computed with */

void svi_scaler_bound(struct svi_scaler *s) {
    double least = SVI_VALUE_MAX;
    for (int j = 0; j < s->d; j++)
        least = fmin(least, 0.99 * (SVI_VALUE_MAX - fabs(s->mean[j])) * s->inverse[j]); /* 0.99: rounding */
    s->safe = least > 0 ? least * least : 0;
}

svs_code svi_scaler_init(struct svi_scaler *s, int d, svs_error *err) {
    *s = (struct svi_scaler){0};
    return svi_scaler_grow(s, d, err);
}

void svi_scaler_clear(struct svi_scaler *s) {
    svi_free(s->mean);
    svi_free(s->inverse);
    *s = (struct svi_scaler){0};
}

svs_code svi_scaler_grow(struct svi_scaler *s, int d, svs_error *err) {
    if (d > s->capacity || !s->mean) {
        int capacity = d > 2 * s->capacity ? d : 2 * s->capacity;
        capacity = capacity ? capacity : 8;
        double *mean = svi_alloc_array((size_t)capacity, sizeof *mean);
        double *inverse = svi_alloc_array((size_t)capacity, sizeof *inverse);
        if (!mean || !inverse) {
            svi_free(mean);
            svi_free(inverse);
            return svi_fail_memory(err, "the scaler");
        }
        for (int j = 0; j < s->d; j++) {
            mean[j] = s->mean[j];
            inverse[j] = s->inverse[j];
        }
        svi_free(s->mean);
        svi_free(s->inverse);
        s->mean = mean;
        s->inverse = inverse;
        s->capacity = capacity;
    }
    for (int j = s->d; j < d; j++) {
        s->mean[j] = 0;
        s->inverse[j] = 1;
    }
    s->d = d;
    svi_scaler_bound(s);
    return SVS_OK;
}

void svi_scaler_reset(struct svi_scaler *s) {
    for (int j = 0; j < s->d; j++) {
        s->mean[j] = 0;
        s->inverse[j] = 1;
    }
    svi_scaler_bound(s);
}

void svi_scaler_center(struct svi_scaler *s, const double *x) {
    svi_scaler_reset(s);
    memcpy(s->mean, x, (size_t)s->d * sizeof *x);
    svi_scaler_bound(s);
}

void svi_scaler_fit(struct svi_scaler *s, const struct svi_ring *window, double *scratch) {
    if (window->live == 0)
        return;
    double *mean = s->mean, *square = scratch, n = window->live;
    memset(mean, 0, (size_t)s->d * sizeof *mean);
    memset(square, 0, (size_t)s->d * sizeof *square);
    for (int32_t i = 0; i < window->count; i++) {
        int32_t slot = svi_ring_at(window, i);
        const double *x = svi_ring_row(window, slot);
        for (int j = 0; window->slots[slot].live && j < s->d; j++)
            mean[j] += x[j] / n; /* divided first: rows may be as large as 1e100 */
    }
    for (int32_t i = 0; i < window->count; i++) {
        int32_t slot = svi_ring_at(window, i);
        const double *x = svi_ring_row(window, slot);
        for (int j = 0; window->slots[slot].live && j < s->d; j++)
            square[j] += (x[j] - mean[j]) * (x[j] - mean[j]);
    }
    for (int j = 0; j < s->d; j++) {
        double deviation = sqrt(square[j] / n);
        if (deviation > CONSTANT * fabs(mean[j]) && deviation > SMALLEST)
            s->inverse[j] = 1 / deviation;
    }
    svi_scaler_bound(s);
}
