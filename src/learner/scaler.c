/* The coordinates in which P is kept (scaler.h): how means and deviations are set, and the bound by which
 * one comparison checks a row. */
#include "learner/scaler.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define CONSTANT 1e-12 /* of the mean: a smaller deviation is rounding */
#define SMALLEST 1e-90 /* its inverse square can still be computed with */
#define ROWS     64    /* at a time */

/* If |z|^2 <= safe, then |x_j - mean_j| inverse_j <= sqrt(safe) <= 0.99 (MAX - |mean_j|) inverse_j for each
 * j, so |x_j| < MAX. */
void svi_scaler_bound(struct svi_scaler *s) {
    double least = SVI_VALUE_MAX;
    for (int j = 0; j < s->d; j++)
        least = fmin(least, 0.99 * (SVI_VALUE_MAX - fabs(s->mean[j])) * s->inverse[j]); /* 0.99: rounding */
    s->safe = least > 0 ? least * least : 0;
}

/* Mean 0 and deviation 1 for features first .. end - 1. */
static void scaler_set_plain(struct svi_scaler *s, int first, int end) {
    for (int j = first; j < end; j++) {
        s->mean[j] = 0;
        s->inverse[j] = 1;
    }
}

void svi_scaler_grow(struct svi_scaler *s, int d) {
    scaler_set_plain(s, s->d, d);
    s->d = d;
    svi_scaler_bound(s);
}

void svi_scaler_reset(struct svi_scaler *s) {
    scaler_set_plain(s, 0, s->d);
    svi_scaler_bound(s);
}

static void scaler_keep_unscaled(struct svi_scaler *s) {
    for (int j = 0; s->unscaled_count && j < s->d; j++)
        if (svi_scaler_unscaled(s, j))
            scaler_set_plain(s, j, j + 1);
}

void svi_scaler_flag(struct svi_scaler *s, int feature, bool unscaled) {
    const uint8_t bit = (uint8_t)(1 << feature % 8);
    if (svi_scaler_unscaled(s, feature) == unscaled)
        return;
    s->unscaled[feature / 8] ^= bit;
    s->unscaled_count += unscaled ? 1 : -1;
}

/* True also where the feature has no coordinate yet, or one that is plain as it is. */
bool svi_scaler_unscale(struct svi_scaler *s, int feature) {
    svi_scaler_flag(s, feature, true);
    return feature >= s->d || (s->mean[feature] == 0 && s->inverse[feature] == 1);
}

void svi_scaler_scale_all(struct svi_scaler *s) {
    memset(s->unscaled, 0, ((size_t)s->max_d + 7) / 8);
    s->unscaled_count = 0;
}

/* Before the first sample is in: in these coordinates its z is (1, 0, ...), however far from 0 it lies. */
void svi_scaler_center(struct svi_scaler *s, const double *x) {
    scaler_set_plain(s, 0, s->d);
    memcpy(s->mean, x, (size_t)s->d * sizeof *x);
    scaler_keep_unscaled(s);
    svi_scaler_bound(s);
}

/* The next live rows of the window; how many. */
static int32_t scaler_rows(const struct svi_ring *window, int32_t *next, const double *row[ROWS]) {
    int32_t count = 0;
    for (int32_t slot; count < ROWS && (slot = svi_ring_next(window, next)) >= 0;)
        row[count++] = svi_ring_row(window, slot);
    return count;
}

/* Two passes: means first, then squares about them. The one-pass formula would cancel where features lie far
 * from 0. */
void svi_scaler_fit(struct svi_scaler *s, const struct svi_kernels *k, const struct svi_ring *window,
                    double *scratch) {
    if (window->live == 0)
        return;
    double *mean = s->mean, *square = scratch, n = window->live, share[ROWS];
    const double *row[ROWS], *first = NULL;
    memset(mean, 0, (size_t)s->d * sizeof *mean);
    memset(square, 0, (size_t)s->d * sizeof *square);
    for (int i = 0; i < ROWS; i++)
        share[i] = 1 / n;
    /* The mean about one of the rows: exactly its value where a feature is constant. */
    for (int32_t next = 0, count; (count = scaler_rows(window, &next, row)) > 0;) {
        first = first ? first : row[0];
        k->about_add(row, count, s->d, first, share, mean);
    }
    for (int j = 0; j < s->d; j++)
        mean[j] += first[j];
    for (int32_t next = 0, count; (count = scaler_rows(window, &next, row)) > 0;)
        k->about_squares(row, count, s->d, mean, square);
    for (int j = 0; j < s->d; j++) {
        double deviation = sqrt(square[j] / n);
        /* A constant feature keeps the deviation it had: the rounding of its mean would be its deviation
         * otherwise. */
        if (deviation > CONSTANT * fabs(mean[j]) && deviation > SMALLEST)
            s->inverse[j] = 1 / deviation;
    }
    scaler_keep_unscaled(s);
    svi_scaler_bound(s);
}

void svi_scaler_archive(struct svi_archive *a, struct svi_scaler *s) {
    bool positive = true;
    svi_archive_finite(a, "means", s->mean, s->d);
    svi_archive_finite(a, "inverse deviations", s->inverse, s->d);
    for (int j = 0; j < s->d; j++)
        positive &= s->inverse[j] > 0;
    if (svi_archive_check(a, positive, "a deviation is not positive") && a->loading)
        svi_scaler_bound(s);
}

/* Flags up to the last one that is set. */
void svi_scaler_archive_unscaled(struct svi_archive *a, struct svi_scaler *s) {
    bool plain = true, flags = true;
    int count = s->max_d;
    while (!a->loading && count > 0 && !svi_scaler_unscaled(s, count - 1))
        count--;
    svi_archive_int(a, "unscaled flags", &count, 0, s->max_d);
    if (!svi_archive_ok(a))
        return;
    uint8_t *each = svi_alloc((size_t)count + 1);
    if (!each) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the scaler");
        return;
    }
    for (int j = 0; j < count; j++)
        each[j] = svi_scaler_unscaled(s, j);
    svi_archive_bytes(a, "unscaled", each, count);
    for (int j = 0; a->loading && svi_archive_ok(a) && j < count; j++) {
        flags &= each[j] <= 1;
        plain &= !each[j] || j >= s->d || (s->mean[j] == 0 && s->inverse[j] == 1);
        svi_scaler_flag(s, j, each[j]);
    }
    svi_free(each);
    svi_archive_check(a, flags && plain, "an unscaled feature is scaled");
}
