/* learner_times.h: the times of the samples that a learner holds, for when the clock that they were read from
 * is moved. */
#ifndef SVI_LEARNER_TIMES_H
#define SVI_LEARNER_TIMES_H

#include "svmstream/learner.h"

/* Samples of the window and samples that wait for a label: a time after `from` moves by `step`, and none
 * stays later than that of a sample which came after it. */
void svi_learner_move_times(svs_learner *l, double from, double step);

#endif
