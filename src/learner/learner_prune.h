/* learner_prune.h: removes features and classes that no held sample has. */
#ifndef SVI_LEARNER_PRUNE_H
#define SVI_LEARNER_PRUNE_H

#include "svmstream/learner.h"

/* Flags the features (d flags) that are not 0, and the classes (svs_learner_class_count flags) that are a
 * label, in any held sample; for features, samples that wait for a label count as well. *any: is any sample
 * held? SVS_UNAVAILABLE: samples were learned, but without a window none is held. */
svs_code svi_learner_held(const svs_learner *l, bool *features, bool *classes, bool *any, svs_error *err);

/* Keeps the flagged features and classes, in their order; all that are held must be flagged. P and w are
 * rebuilt from the rows. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_learner_prune(svs_learner *l, const bool *features, const bool *classes, svs_error *err);

#endif
