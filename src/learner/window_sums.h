/* window_sums.h: the sums over the samples of a window that determine its least-squares model. They
 * add up: moved to one center, the sums of several windows are those of all their samples.
 *
 *  - x: the raw features.
 *  - w: the weight with which the model counts a sample, class factor and forgetting included.
 *  - c: a center near the mean, so that no digits are lost to the level of a feature.
 *  - t: the target of a regression. */
#ifndef SVI_WINDOW_SUMS_H
#define SVI_WINDOW_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

/* d + 1 coordinates: the packed triangle of more would not fit one msgpack ext. */
#define SVI_SUMS_FEATURES_MAX 32767
#define SVI_SUMS_CLASSES_MAX  100000

struct svi_window_sums {
    int d, classes;       /* features; classes, 0 in a regression */
    int64_t n;            /* samples */
    double weight;        /* sum w */
    double *center;       /* [d] c */
    double *sum;          /* [d] sum w (x - c) */
    double *square;       /* [d (d + 1) / 2] sum w (x_i - c_i)(x_j - c_j), j <= i, row by row */
    double *class_weight; /* [classes] sum w over the class */
    double *class_sum;    /* [classes x d] sum w (x - c) over the class */
    double target_weight; /* of a regression: sum w t */
    double *target_sum;   /* [d] sum w t (x - c); in a classification unused */
    double target_square; /* sum w t^2 */
    double *block;        /* owned; the arrays above lie in it */
    size_t capacity;      /* doubles of `block` */
};

/* The number of packed values: of row i the first is at svi_sums_packed(i). */
static inline size_t svi_sums_packed(int d) {
    return (size_t)d * ((size_t)d + 1) / 2;
}

/* Sets d and classes, and arrays of these sizes; all numbers become 0. Allocates only while it grows.
 * SVS_LIMIT: more than the limits above, SVS_NO_MEMORY; then it is empty (d 0). */
svs_code svi_window_sums_shape(struct svi_window_sums *s, int d, int classes, svs_error *err);

void svi_window_sums_clear(struct svi_window_sums *s); /* frees */

#endif
