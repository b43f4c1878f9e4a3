/* standardiser.h: the rows that members of the bank see: each feature minus its running mean, divided by
 * its running deviation, clipped at +-10, in single precision.
 *
 * Mean and deviation are of all rows taken in so far (Welford, Technometrics 4, 1962, in double
 * precision), whatever the weights of samples. A feature that has not varied yet gives 0, so the first row
 * is all zeros. A feature that is declared unscaled (a column of 0 and 1) has mean 0 and deviation 1. One
 * sample: row (with the moments before it), score, learn, take.
 *
 * x: d doubles, at most 1e100 in size. z: svi_standardiser_padded(s) floats, aligned to 64 bytes, zero
 * from d on; finite. A row with its take costs 0.14 us at d = 54. */
#ifndef SVI_STANDARDISER_H
#define SVI_STANDARDISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/archive.h"
#include "linalg/kernels_floats.h"
#include "svmstream/error.h"

struct svi_standardiser {
    const struct svi_floats *kernels;
    int d, capacity;
    int unscaled_count;
    int64_t rows;                     /* rows taken in */
    struct svi_float_moments moments; /* capacity values each */
    uint8_t *unscaled;                /* capacity flags */
};

/* Starts without features. SVS_UNAVAILABLE: the machine lacks the instruction set. */
svs_code svi_standardiser_init(struct svi_standardiser *s, svs_isa isa, svs_error *err);
void svi_standardiser_clear(struct svi_standardiser *s);

/* Forgets all rows; the features, and which of them are unscaled, stay. */
void svi_standardiser_empty(struct svi_standardiser *s);

/* Grows to d features; new ones count as if they had been 0 in all rows so far. SVS_NO_MEMORY: nothing has
 * changed. */
svs_code svi_standardiser_grow(struct svi_standardiser *s, int d, svs_error *err);

/* Forgets the moments of feature j < d: it starts again. */
void svi_standardiser_renew(struct svi_standardiser *s, int j);

/* Feature j < d is unscaled from now on. */
void svi_standardiser_unscale(struct svi_standardiser *s, int j);

static inline int svi_standardiser_padded(const struct svi_standardiser *s) {
    return (s->d + SVI_FLOATS_PAD - 1) / SVI_FLOATS_PAD * SVI_FLOATS_PAD;
}

/* z of a row x, by the moments of the rows taken in; and one more row for the moments. */
void svi_standardiser_row(const struct svi_standardiser *s, const double *x, float *z);
void svi_standardiser_take(struct svi_standardiser *s, const double *x);

/* Saves or loads. To load, initialise `s`; the bytes may announce at most features_max features. */
void svi_standardiser_archive(struct svi_archive *a, struct svi_standardiser *s, int features_max);

/* Bytes at most, without the struct, for d features. */
double svi_standardiser_memory(int d);

#endif
