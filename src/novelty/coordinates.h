/* coordinates.h: where distances are taken: for each feature 3 asinh(u/3), u = (x - center) inverse, and
 * beyond |u| = 8 what exceeds it as well.
 *
 * center is the median, 1/inverse the distance of the 5 % and 95 % quantiles over 3.29 (for a normal
 * distribution: its deviation), so that outliers among the rows do not set the scale. Tails are drawn in, so
 * that one wild feature does not drown the others; but a value so far out that it can be no tail counts
 * fully, or the spike of one sensor among forty would be lost.
 *
 * The column of a value of a CATEGORY, 1 in its rows and 0 in others, has no tails, and neither its quantiles
 * nor its deviation say how much a step between the two matters: by them it would count 3.3 for two frequent
 * values and 8 or more for a rare one, while two rows lie 1.1 apart in a sensor, and a few categories would
 * drown all sensors. The step counts a quarter, and as the root of their ratio more where one of the values
 * is rarer than 5 %, up to
 * 1. Measured with three sensors and categories of 8, 3 and 4 values (laplacian kernel, p <= 0.01): a sensor
 * that is 4 deviations off was found in 0.05 of the rows by quantiles, is in 0.96, and was in 1.00 without
 * the categories; rows of values that come in 1 % of all rows had p <= 0.01 in 0.61, and have in 0.03. With
 * 100 more values by Zipf's law: 0.08 and 0.63 of the faults.
 *
 * A missing value is NaN in x and stays so in coordinates. Polynomial kernels multiply, so there (`fill`) it
 * is 0, which leaves it out of every product and length, and the others grow by the root of d / their number.
 */
#ifndef SVI_COORDINATES_H
#define SVI_COORDINATES_H

#include <stdint.h>

#include "linalg/kernels.h"
#include "svmstream/rows.h"

struct svi_coordinates {
    int d, stride;            /* features; rounded up to a multiple of 8 */
    double *center, *inverse; /* d values each; owned; NULL = x itself */
    const struct svi_kernels *pass;
    double shrink;           /* > 0: a fit leaves so much of each scale that there was, at least */
    bool fill;               /* polynomial kernels */
    const uint8_t *category; /* d flags: not 0 for a column of a category; a view; NULL = there is none */
};

/* scale false: x itself. SVS_NO_MEMORY. */
svs_code svi_coordinates_init(struct svi_coordinates *c, int d, bool scale, svs_error *err);
void svi_coordinates_clear(struct svi_coordinates *c);
double svi_coordinates_memory(int d); /* bytes besides the struct, of scaled ones */

/* Center and scale of `count` rows of raw values, `stride` apart, for the features from `first` to before
 * `end`. A feature without spread between the quantiles takes its standard deviation, and 1 if that is 0 too.
 * Missing values count for nothing; of a feature that has none but such the center is 0. column: room for
 * count values. */
void svi_coordinates_fit(struct svi_coordinates *c, const double *rows, int64_t stride, int64_t count,
                         double *column, int first, int end);

/* `to`: c->stride values, zero from d on; may be x. */
void svi_coordinates_apply(const struct svi_coordinates *c, const double *x, double *to);

#endif
