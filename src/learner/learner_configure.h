/* learner_configure.h: svs_learner_configure in two halves, for who must do something between what can fail
 * and what changes: write it down. */
#ifndef SVI_LEARNER_CONFIGURE_H
#define SVI_LEARNER_CONFIGURE_H

#include "svmstream/learner.h"

/* Called for each sample that was learned again by `fresh`: the scores of its step were made before it was.
 */
typedef void svi_learner_watch(void *user, const svs_learner *fresh, const svs_sample *sample, double time,
                               const svs_step *step);

/* The learner that is to take the place of *l, which stays as it is; NULL in *fresh with SVS_OK: it is only
 * the ridge that changes. `watch` may be NULL. Codes of svs_learner_configure. Owner: the caller. */
svs_code svi_learner_prepare(const svs_learner *l, const svs_options *o, svi_learner_watch *watch, void *user,
                             svs_learner **fresh, svs_error *err);

/* Nothing was done with *l since: it takes over. *fresh is NULL after it. */
void svi_learner_take(svs_learner *l, const svs_options *o, svs_learner **fresh);

#endif
