/* learner_times.h: moves the times of the samples that a learner holds, after their clock was moved. */
#ifndef SVI_LEARNER_TIMES_H
#define SVI_LEARNER_TIMES_H

#include "svmstream/learner.h"

/* Moves times after `from` by `step`, for samples of the window and samples that wait for a label. Times stay
 * in the order of arrival: none may be later than that of a sample after it. */
void svi_learner_move_times(svs_learner *l, double from, double step);

#endif
