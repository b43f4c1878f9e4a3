/* learner_renew.h: reassigns a feature that no held sample has any more to another value. */
#ifndef SVI_LEARNER_RENEW_H
#define SVI_LEARNER_RENEW_H

#include "svmstream/learner.h"

/* Makes a feature (below svs_learner_dimension) like one just added by svs_learner_grow, with weight 0 and
 * nothing in P. It must be 0 in all samples that are held or wait. Unscaled stays unscaled. The version
 * changes only if a weight was not 0. O(d), except that P is rebuilt from the samples held if the feature was
 * standardised with a mean other than 0, which is part of the bias. Without a window, earlier samples count
 * as if they had had 0 there, and P is rebuilt if they had not. */
void svi_learner_renew(svs_learner *l, int feature);

/* Withdraws svs_learner_unscaled for features from `first` on, which the learner does not have yet. */
void svi_learner_scale_from(svs_learner *l, int first);

#endif
