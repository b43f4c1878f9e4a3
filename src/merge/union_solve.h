/* union_solve.h: the model that the sums of a union determine: that of a fresh learner on all of its samples,
 *
 *     minimise  sum w (t - a - v'z)^2 + nu (a^2 + |v|^2),   nu = 1 / (2 C),
 *
 * with z the features as the setting `scale` has them: raw (none), or minus the mean of the union, divided by
 * its deviation (standard; features that are exempt stay raw; a constant one keeps deviation 1). Mean and
 * deviation are weighted as the samples are. The bias is penalised, as in the learner. */
#ifndef SVI_UNION_SOLVE_H
#define SVI_UNION_SOLVE_H

#include "merge/union_sums.h"

struct svi_union_options {
    double C; /* > 0 */
    svs_scale scale;
    const bool *exempt; /* [d] features that `standard` leaves raw; NULL: none */
};

/* Solves: W (rows x d, row by row) and b (rows) in raw units; rows: 1, or the classes when these are 3 or
 * more. SVS_NUMERIC: the numbers cannot be solved with so small a ridge, or are of no samples; SVS_NO_MEMORY.
 */
svs_code svi_union_solve(const struct svi_union_sums *u, const struct svi_union_options *o, double *W,
                         double *b, svs_error *err);

#endif
