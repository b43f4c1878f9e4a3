/* scaler.h: the coordinates in which P is kept: a constant 1, then each feature minus its mean,
 * divided by its deviation.
 *
 * G of the window is always kept in these coordinates, even when the setting is `scale none`. The
 * ridge is then nu T T' instead of nu I, with z = T (1, x). The model is therefore that of the raw
 * features, and only the rounding differs. Raw features may have a condition of 1e12. A scaler is
 * frozen for an epoch: it changes only when P is rebuilt. An unscaled feature has mean 0 and
 * deviation 1 in every epoch. */
#ifndef SVI_SCALER_H
#define SVI_SCALER_H

#include "linalg/kernels.h"
#include "learner/ring.h"

struct svi_scaler {
    double *mean,
        *inverse; /* `capacity` values, owned by the learner: mean and 1/deviation of each feature */
    int d, capacity;
    uint8_t *unscaled; /* max_d flags, eight to a byte, independent of d */
    int max_d, unscaled_count;
    double safe; /* a row with |z|^2 up to here has no raw value beyond SVI_VALUE_MAX */
};

/* Grows to d features, within capacity: the new ones have mean 0, deviation 1. */
void svi_scaler_grow(struct svi_scaler *s, int d);

/* Mean 0 and deviation 1 everywhere. */
void svi_scaler_reset(struct svi_scaler *s);

/* Mean = x, deviation 1, except unscaled features; before the first sample is learned. */
void svi_scaler_center(struct svi_scaler *s, const double *x);

/* Mean and deviation of the live rows of the window (two passes). A feature that is constant there up to
 * rounding keeps its previous deviation. scratch: d values. */
void svi_scaler_fit(struct svi_scaler *s, const struct svi_kernels *k, const struct svi_ring *window,
                    double *scratch);

/* Marks a feature (below max_d) as unscaled. False: its coordinate has been scaled so far, and the caller
 * must transform it and P. */
bool svi_scaler_unscale(struct svi_scaler *s, int feature);

static inline bool svi_scaler_unscaled(const struct svi_scaler *s, int feature) {
    return s->unscaled[feature / 8] >> feature % 8 & 1;
}

/* Sets the flag alone; the coordinate does not change. */
void svi_scaler_flag(struct svi_scaler *s, int feature, bool unscaled);

/* Clears the flags of all features. */
void svi_scaler_scale_all(struct svi_scaler *s);

/* Computes `safe`; required after mean or inverse were changed from outside. */
void svi_scaler_bound(struct svi_scaler *s);

void svi_scaler_archive(struct svi_archive *a, struct svi_scaler *s);

/* The flags of unscaled features: a separate part, which the caller omits without any. Loading: after
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
