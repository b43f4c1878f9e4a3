/* leave_one_out.h: svs_learner_tune (svmstream/learner.h) for any grid of C, and its cost. */
#ifndef SVI_LEAVE_ONE_OUT_H
#define SVI_LEAVE_ONE_OUT_H

#include "svmstream/learner.h"

/* As svs_learner_tune, for `count` ascending values C > 0, 1 <= count <= SVS_TUNING_MAX; `present`: index of
 * the value with which the others are compared. */
svs_code svi_leave_one_out(svs_learner *l, const double *C, int count, int present, svs_tuning *out,
                           svs_error *err);

/* Number of multiplications that svs_learner_tune would take now; a function of the samples held alone. */
double svi_leave_one_out_cost(const svs_learner *l);

#endif
