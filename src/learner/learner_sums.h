/* learner_sums.h: the sums over the samples in the model of a learner. */
#ifndef SVI_LEARNER_SUMS_H
#define SVI_LEARNER_SUMS_H

#include "learner/window_sums.h"
#include "svmstream/learner.h"

/* Fills *s with the sums over all samples that the model contains, by their raw rows; d is
 * svs_learner_dimension.
 *
 * With a window: one pass over the rows held, O(n d^2), in blocks; the center is their weighted mean, and
 * each sum is as exact as float64 sums about the mean. Without a window: from the sums of the learner,
 * O(d^2); the center is the mean of its present coordinates, and target_square is NAN, because the learner
 * does not keep it.
 *
 * Changes nothing in the model. SVS_UNAVAILABLE: falsvm, or forget < 1; SVS_NUMERIC: a sum is not finite;
 * SVS_LIMIT, SVS_NO_MEMORY. */
svs_code svi_learner_sums(svs_learner *l, struct svi_window_sums *s, svs_error *err);

/* The learner's options; valid until they change. */
const svs_options *svi_learner_options(const svs_learner *l);

/* Is the feature never standardised (svs_learner_unscaled)? */
bool svi_learner_is_unscaled(const svs_learner *l, int feature);

#endif
