/* learner_prune.h: features and classes that no held sample has leave a learner again. */
#ifndef SVI_LEARNER_PRUNE_H
#define SVI_LEARNER_PRUNE_H

#include "svmstream/learner.h"

/* Which features (d flags) are not 0, and which classes (svs_learner_class_count flags) are a label, in a
 * sample that is held; a sample that waits for its label counts for features. *any: is one held at all?
 * SVS_UNAVAILABLE: without a window nothing is held, and yet something was learned. */
svs_code svi_learner_held(const svs_learner *l, bool *features, bool *classes, bool *any, svs_error *err);

/* Keeps the features and classes that are flagged, among them all that are held, in their order; P and w are
 * made again from the rows. SVS_NO_MEMORY: nothing is changed. */
svs_code svi_learner_prune(svs_learner *l, const bool *features, const bool *classes, svs_error *err);

#endif
