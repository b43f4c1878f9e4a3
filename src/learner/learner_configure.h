/* learner_configure.h: svs_learner_configure in two halves: prepare can fail and changes nothing, take
 * changes and cannot fail. A caller that keeps its state writes the change to its journal between them. */
#ifndef SVI_LEARNER_CONFIGURE_H
#define SVI_LEARNER_CONFIGURE_H

#include "svmstream/learner.h"

/* Called for each sample after `fresh` has learned it; the scores in *step were made before that. */
typedef void svi_learner_watch(void *user, const svs_learner *fresh, const svs_sample *sample, double time,
                               const svs_step *step);

/* Makes the learner that will replace *l, which stays unchanged; SVS_OK with *fresh NULL: only the ridge
 * changes. `watch` may be NULL. Codes of svs_learner_configure. Owner of *fresh: the caller. */
svs_code svi_learner_prepare(const svs_learner *l, const svs_options *o, svi_learner_watch *watch, void *user,
                             svs_learner **fresh, svs_error *err);

/* Replaces the content of *l by that of *fresh, which becomes NULL. *l must not have been used since prepare.
 */
void svi_learner_take(svs_learner *l, const svs_options *o, svs_learner **fresh);

#endif
