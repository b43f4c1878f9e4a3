/* coordinates.h: where distances are taken: for each feature 3 asinh(u/3), u = (x - center) inverse, and
 * beyond |u| = 8 what exceeds it as well.
 *
 * center is the median, 1/inverse the distance of the 5 % and 95 % quantiles over 3.29 (for a normal
 * distribution: its deviation), so that outliers among the rows do not set the scale. Tails are drawn in, so
 * that one wild feature does not drown the others; but a value so far out that it can be no tail counts
 * fully, or the spike of one sensor among forty would be lost.
 *
 * A missing value is NaN in x and stays so in coordinates. Polynomial kernels multiply, so there (`fill`) it is
 * 0, which leaves it out of every product and length, and the others grow by the root of d / their number. */
#ifndef SVI_COORDINATES_H
#define SVI_COORDINATES_H

#include <stdint.h>

#include "linalg/kernels.h"
#include "svmstream/rows.h"

struct svi_coordinates {
    int d, stride;            /* features; rounded up to a multiple of 8 */
    double *center, *inverse; /* d values each; owned; NULL = x itself */
    const struct svi_kernels *pass;
    bool fill; /* polynomial kernels */
};

/* scale false: x itself. SVS_NO_MEMORY. */
svs_code svi_coordinates_init(struct svi_coordinates *c, int d, bool scale, svs_error *err);
void svi_coordinates_clear(struct svi_coordinates *c);

/* Center and scale of `count` rows of raw values, `stride` apart. A feature without spread between the
 * quantiles takes its standard deviation, and 1 if that is 0 too. Missing values count for nothing; of a
 * feature that has none but such the center is 0. column: room for count values. */
void svi_coordinates_fit(struct svi_coordinates *c, const double *rows, int64_t stride, int64_t count,
                         double *column);

/* `to`: c->stride values, zero from d on; may be x. */
void svi_coordinates_apply(const struct svi_coordinates *c, const double *x, double *to);

#endif
