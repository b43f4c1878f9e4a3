/* learner_renew.h: a feature that no held sample has any more is given to something else. */
#ifndef SVI_LEARNER_RENEW_H
#define SVI_LEARNER_RENEW_H

#include "svmstream/learner.h"

/* No sample that is held or waits has a value other than 0 in this feature (below svs_learner_dimension):
 * from now on it is like one that has just come by svs_learner_grow, with weight 0 and nothing in P. Unscaled
 * stays unscaled. The version changes only where the model does: a weight was not 0. O(d); but a standardised
 * feature whose mean was not 0 shares in the bias, and then P is rebuilt from what is held. Without a window,
 * samples of before count as if they had had 0 there, and P is rebuilt if they had not. */
void svi_learner_renew(svs_learner *l, int feature);

/* Features from this one on, which the learner does not have yet, are not unscaled after all. */
void svi_learner_scale_from(svs_learner *l, int first);

#endif
