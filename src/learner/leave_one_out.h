/* leave_one_out.h: svs_learner_tune (svmstream/learner.h) for any grid of C, and what it takes. */
#ifndef SVI_LEAVE_ONE_OUT_H
#define SVI_LEAVE_ONE_OUT_H

#include "svmstream/learner.h"

/* As svs_learner_tune, for C[count], rising, each above 0, 1 <= count <= SVS_TUNING_MAX; `present`: the index
 * that the others are compared with. */
svs_code svi_leave_one_out(svs_learner *l, const double *C, int count, int present, svs_tuning *out,
                           svs_error *err);

/* Multiplications that svs_learner_tune would take now: a function of what is held alone. */
double svi_leave_one_out_cost(const svs_learner *l);

#endif
