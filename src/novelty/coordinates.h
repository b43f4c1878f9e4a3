/* coordinates.h: the coordinates in which distances are computed. For each feature 3 asinh(u/3) with u = (x -
 * center) inverse, plus the excess of |u| over 8, with its sign.
 *
 * `center` is the median. The scale 1/inverse is the distance of the 5 % and 95 % quantiles over
 * 3.29 (the deviation of a normal distribution). So outliers among the rows do not set the scale.
 * Tails are compressed, so that one wild feature does not dominate. But a value too far out to be a
 * tail counts fully, or the spike of one sensor among forty would be lost.
 *
 * The column of a value of a CATEGORY, 1 in its rows and 0 in others, has no tails. Scaled by
 * quantiles or deviation, a step in it would count 3.3 for two frequent values and 8 or more for a
 * rare one. Two rows lie 1.1 apart in a sensor, so a few categories would dominate all sensors. The
 * step therefore counts 1/4. Where the rarer of 0 and 1 has a share s below 5 %, it counts 1/4
 * sqrt(0.05 / s), at most 1. Measured with three sensors and categories of 8, 3 and 4 values
 * (laplacian kernel, p <= 0.01):
 *
 *  - A sensor that is 4 deviations off is found in 0.96 of the rows (0.05 with quantiles, 1.00
 *    without categories).
 *  - Rows with values of 1 % of all rows have p <= 0.01 in 0.03 of the cases (0.61 with quantiles).
 *  - With 100 more values by Zipf's law 0.63 of the faults are found (0.08 with quantiles).
 *
 * A missing value is NaN in x and in coordinates. Polynomial kernels multiply, so there (`fill`) it becomes
 * 0, which removes it from every product and length, and the known coordinates are scaled by sqrt(d /
 * known). */
#ifndef SVI_COORDINATES_H
#define SVI_COORDINATES_H

#include <stdint.h>

#include "linalg/kernels.h"
#include "svmstream/rows.h"

struct svi_coordinates {
    int d, stride;            /* features; rounded up to a multiple of 8 */
    double *center, *inverse; /* d values each; owned; NULL: coordinates are x itself */
    const struct svi_kernels *pass;
    double shrink;           /* > 0: least factor by which a fit may change an existing scale */
    bool fill;               /* polynomial kernels: missing values become 0 */
    const uint8_t *category; /* d flags, nonzero for a column of a category; borrowed; NULL: none */
};

/* scale false: coordinates are x itself. SVS_NO_MEMORY. */
svs_code svi_coordinates_init(struct svi_coordinates *c, int d, bool scale, svs_error *err);
void svi_coordinates_clear(struct svi_coordinates *c);
double svi_coordinates_memory(int d); /* bytes besides the struct, of scaled ones */

/* Computes center and scale of the features first .. end - 1 from `count` rows of raw values, `stride`
 * doubles apart. A feature without spread between the quantiles is scaled by its standard deviation, or by 1
 * if that is 0 too. Missing values are ignored; a feature without values has center 0. column: scratch, count
 * values. */
void svi_coordinates_fit(struct svi_coordinates *c, const double *rows, int64_t stride, int64_t count,
                         double *column, int first, int end);

/* Fills to[c->stride] with the coordinates of x[d], zero from d on. `to` may be x. */
void svi_coordinates_apply(const struct svi_coordinates *c, const double *x, double *to);

#endif
