/* standard.h: rows with standardised columns for the solver, and weights back in raw units. Dense columns get
 * mean 0 and deviation 1; sparse ones root mean square 1 only, or they would not be sparse any more. Constant
 * columns become 0 and get weight 0. */
#ifndef SVI_STANDARD_H
#define SVI_STANDARD_H

#include "base/pool.h"
#include "svmstream/rows.h"

struct svi_standard {
    struct svi_pool pool;
    svs_rows rows; /* the given ones when nothing is scaled */
    int d;
    double *mean, *inverse; /* d; NULL = not scaled; inverse 0: a constant column */
    double *values;         /* the copy */
};

/* `unscaled`: d flags of columns that stay as they are, or NULL. The caller frees the pool. SVS_NO_MEMORY. */
svs_code svi_standard_make(struct svi_standard *s, const svs_rows *rows, bool scale, const uint8_t *unscaled,
                           svs_error *err);

/* w (d) and b of the scaled problem into `W` and `out_b`. */
void svi_standard_back(const struct svi_standard *s, const double *w, double b, double *W, double *out_b);

#endif
