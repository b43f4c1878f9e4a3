/* scaler.h: the coordinates in which P is kept: a constant 1, then each feature minus its mean, divided by
 * its deviation.
 *
 * G of the window is always kept in these coordinates, even when the setting is `scale none`: the ridge is
 * then nu T T' instead of nu I, with z = T (1, x), so that the model is the one of the raw features and only
 * the rounding differs (raw features may have a condition of 1e12). A scaler is frozen for an epoch: it
 * changes only when P is rebuilt. An unscaled feature has mean 0 and deviation 1 in every epoch. */
#ifndef SVI_SCALER_H
#define SVI_SCALER_H

#include "linalg/kernels.h"
#include "learner/ring.h"

struct svi_scaler {
    double *mean, *inverse; /* capacity values, the owner's: mean and 1/deviation of each feature */
    int d, capacity;
    uint8_t *unscaled; /* room flags, eight to a byte, whatever d is */
    int max_d, unscaled_count;
    double safe; /* no raw value of a row with |z|^2 up to here is beyond SVI_VALUE_MAX */
};

/* More features than before, or the first ones, for which there is room: mean 0, deviation 1. */
void svi_scaler_grow(struct svi_scaler *s, int d);

/* Mean 0 and deviation 1 everywhere. */
void svi_scaler_reset(struct svi_scaler *s);

/* Mean = x, deviation 1, but for the unscaled: before the first sample is in. */
void svi_scaler_center(struct svi_scaler *s, const double *x);

/* Mean and deviation of the live rows of the window (two passes). A feature that is constant there, but for
 * rounding, keeps the deviation that it had. scratch: d values. */
void svi_scaler_fit(struct svi_scaler *s, const struct svi_kernels *k, const struct svi_ring *window,
                    double *scratch);

/* From now on this feature (below `room`) is unscaled. False: its coordinate is another one so far, and the
 * caller has to make it plain, and P with it. */
bool svi_scaler_unscale(struct svi_scaler *s, int feature);

static inline bool svi_scaler_unscaled(const struct svi_scaler *s, int feature) {
    return s->unscaled[feature / 8] >> feature % 8 & 1;
}

/* Only says so: the coordinate is what it was. */
void svi_scaler_flag(struct svi_scaler *s, int feature, bool unscaled);

/* No feature is unscaled any more. */
void svi_scaler_scale_all(struct svi_scaler *s);

/* Makes `safe` again: after mean or inverse were changed from outside. */
void svi_scaler_bound(struct svi_scaler *s);

void svi_scaler_archive(struct svi_archive *a, struct svi_scaler *s);

/* Which features are unscaled: a part of its own, which the caller leaves out where none is. Loading: after
 * the scaler. */
void svi_scaler_archive_unscaled(struct svi_archive *a, struct svi_scaler *s);

/* z = T (1, x): z[0] = 1, z[1 + j] = (x[j] - mean[j]) inverse[j]. */
static inline void svi_scaler_apply(const struct svi_scaler *s, const double *restrict x,
                                    double *restrict z) {
    const double *restrict mean = s->mean, *restrict inverse = s->inverse;
    z[0] = 1;
    for (int j = 0; j < s->d; j++)
        z[1 + j] = (x[j] - mean[j]) * inverse[j];
}

#endif
