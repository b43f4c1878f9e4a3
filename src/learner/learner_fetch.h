/* learner_fetch.h: a learner that is going to learn a sample soon comes into the caches (base/fetch.h): first
 * itself, then what it points to. */
#ifndef SVI_LEARNER_FETCH_H
#define SVI_LEARNER_FETCH_H

#include "svmstream/learner.h"

void svi_learner_fetch(const svs_learner *l);
void svi_learner_fetch_parts(const svs_learner *l);

#endif
