/* learner_fetch.h: prefetches a learner that will soon learn a sample into the caches (base/fetch.h): first
 * the structure, then what it points to. */
#ifndef SVI_LEARNER_FETCH_H
#define SVI_LEARNER_FETCH_H

#include "svmstream/learner.h"

void svi_learner_fetch(const svs_learner *l);
void svi_learner_fetch_parts(const svs_learner *l);

#endif
