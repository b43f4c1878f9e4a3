#include "bank/standardiser.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/fail.h"

static const struct svi_array standard_table[] = {
#define OWNER struct svi_standardiser
    SVI_ARRAY_WITH(OWNER, moments.count, "standard count", SVI_ARRAY_ANY, 0, SVI_AXIS(0)),
    SVI_ARRAY_WITH(OWNER, moments.mean, "standard mean", SVI_ARRAY_ANY, 0, SVI_AXIS(0)),
    SVI_ARRAY_WITH(OWNER, moments.squares, "standard squares", SVI_ARRAY_ANY, 0, SVI_AXIS(0)),
    SVI_ARRAY_WITH(OWNER, moments.inverse, "standard inverse", SVI_ARRAY_ANY, 0, SVI_AXIS(0)),
    SVI_ARRAY_WITH(OWNER, unscaled, "standard unscaled", SVI_ARRAY_ANY, 0, SVI_AXIS(0)),
#undef OWNER
};
static const struct svi_arrays standard_arrays =
    SVI_ARRAYS_ALIGNED(standard_table, "mean and deviation of the features");

svs_code svi_standardiser_init(struct svi_standardiser *s, svs_isa isa, svs_error *err) {
    *s = (struct svi_standardiser){.kernels = svi_floats_get(isa)};
    if (!s->kernels)
        return svi_fail(err, SVS_UNAVAILABLE, "this machine lacks the requested instruction set");
    return SVS_OK;
}

void svi_standardiser_clear(struct svi_standardiser *s) {
    svi_arrays_free(&standard_arrays, s);
    *s = (struct svi_standardiser){0};
}

/* Moments of a feature as if `count` rows had been 0 so far. An unscaled one has mean 0 and inverse 1 for
 * good, and counts nothing. */
static void standard_begin(struct svi_standardiser *s, int j, double count) {
    const struct svi_float_moments *m = &s->moments;
    m->count[j] = s->unscaled[j] ? 0 : count;
    m->mean[j] = m->squares[j] = 0;
    m->inverse[j] = s->unscaled[j];
}

void svi_standardiser_empty(struct svi_standardiser *s) {
    s->rows = 0;
    for (int j = 0; j < s->d; j++)
        standard_begin(s, j, 0);
}

/* Capacity to grow to when d features do not fit: a quarter more. */
static int32_t standard_capacity(int d) {
    return d + d / 4;
}

static svs_code standard_reserve(struct svi_standardiser *s, int d, svs_error *err) {
    const int32_t capacity = standard_capacity(d);
    if (d <= s->capacity)
        return SVS_OK;
    if (svi_arrays_resize(&standard_arrays, s, &s->capacity, &capacity, err) != SVS_OK)
        return SVS_NO_MEMORY;
    s->capacity = capacity;
    return SVS_OK;
}

svs_code svi_standardiser_grow(struct svi_standardiser *s, int d, svs_error *err) {
    if (d <= s->d)
        return SVS_OK;
    if (standard_reserve(s, d, err) != SVS_OK)
        return SVS_NO_MEMORY;
    for (int j = s->d; j < d; j++) {
        s->unscaled[j] = 0;
        standard_begin(s, j, (double)s->rows);
    }
    s->d = d;
    return SVS_OK;
}

void svi_standardiser_renew(struct svi_standardiser *s, int j) {
    standard_begin(s, j, 0);
}

void svi_standardiser_unscale(struct svi_standardiser *s, int j) {
    s->unscaled_count += !s->unscaled[j];
    s->unscaled[j] = 1;
    standard_begin(s, j, 0);
}

void svi_standardiser_row(const struct svi_standardiser *s, const double *x, float *z) {
    s->kernels->row(x, s->moments.mean, s->moments.inverse, s->d, z);
    memset(z + s->d, 0, (size_t)(svi_standardiser_padded(s) - s->d) * sizeof *z);
}

void svi_standardiser_take(struct svi_standardiser *s, const double *x) {
    s->kernels->moments(x, &s->moments, s->d);
    s->rows++;
    /* The kernel updates all columns at once; unscaled ones are put back, which is cheaper than a test
     * inside it. */
    for (int j = 0; s->unscaled_count > 0 && j < s->d; j++)
        if (s->unscaled[j])
            standard_begin(s, j, 0);
}

/* Whether loaded moments are numbers that rows can lead to: the bytes are not trusted, and the kernel's
 * sums must not overflow. */
static bool standard_sound(const struct svi_standardiser *s) {
    const struct svi_float_moments *m = &s->moments;
    for (int j = 0; j < s->d; j++)
        if (s->unscaled[j] > 1 || !(m->count[j] >= 0 && m->count[j] <= (double)s->rows) ||
            !(fabs(m->mean[j]) <= 1e101) || !(m->squares[j] >= 0 && m->squares[j] <= 1e220) ||
            !(m->inverse[j] >= 0 && m->inverse[j] <= 1e160))
            return false;
    return true;
}

void svi_standardiser_archive(struct svi_archive *a, struct svi_standardiser *s, int features_max) {
    int d = s->d;
    svi_archive_int(a, "standard features", &d, 0, features_max);
    svi_archive_int64(a, "standard rows", &s->rows, 0, INT64_MAX);
    /* Four doubles a feature must still be there before memory for them is made. */
    if (!svi_archive_check(a, svi_archive_left(a) / (4 * (int64_t)sizeof(double)) >= d,
                           "more features than bytes"))
        return;
    if (svi_archive_loading(a)) {
        s->d = 0;
        if (standard_reserve(s, d, a->err) != SVS_OK)
            return;
        s->d = d;
    }
    svi_arrays_archive(a, &standard_arrays, s, &s->capacity, &d);
    if (!svi_archive_ok(a) || !svi_archive_check(a, standard_sound(s), "a mean or deviation is out of range"))
        return;
    /* Not saved: it follows from the flags. */
    s->unscaled_count = 0;
    for (int j = 0; j < d; j++)
        s->unscaled_count += s->unscaled[j];
}

double svi_standardiser_memory(int d) {
    const int32_t capacity = standard_capacity(d);
    return (double)svi_arrays_bytes(&standard_arrays, &capacity);
}
