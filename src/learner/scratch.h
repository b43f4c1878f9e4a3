/* scratch.h: what a learner needs only while it works, which many learners can share.
 *
 * A learner makes one for itself, unless it is made with one that others use too: then P, W and the sums of
 * energies lie there as the kernels want them while it works, with the vectors and matrices that hold nothing
 * between calls, and the learner keeps a packed copy of them, a third of the size, once another one works in
 * the same scratch. Which learner works where and when makes no bit different. Room is taken in the scratch
 * when a learner comes to use it, or comes to have more features or classes, and is never given back, so that
 * a learner that found room once cannot fail for it later.
 *
 * A scratch is used by one thread at a time; learners that use the same one are too. What points into it
 * (svs_step.scores, svs_model) is valid until the next call on any learner that uses it. */
#ifndef SVI_LEARNER_SCRATCH_H
#define SVI_LEARNER_SCRATCH_H

#include "svmstream/learner.h"

struct svi_learner_scratch;

/* Empty. NULL: SVS_NO_MEMORY. Owner: the caller, who frees or moves the learners that use it first. */
struct svi_learner_scratch *svi_learner_scratch_new(svs_error *err);
void svi_learner_scratch_free(struct svi_learner_scratch **s);

/* svs_learner_new in a scratch of others; NULL: in one of its own. */
svs_learner *svi_learner_new(const svs_options *o, int d, struct svi_learner_scratch *s, svs_error *err);

/* Likewise, with room for that many features, d at least: the one block of a learner is what it needs then.
 */
svs_learner *svi_learner_new_for(const svs_options *o, int d, int capacity, struct svi_learner_scratch *s,
                                 svs_error *err);

/* From now on the learner works in s; NULL: in one of its own. Between any two calls. A learner that rests
 * does not touch the scratch that it leaves, which another thread may be using. SVS_NO_MEMORY: it stays where
 * it was. */
svs_code svi_learner_use_scratch(svs_learner *l, struct svi_learner_scratch *s, svs_error *err);

/* Nothing of it is in a scratch that others use, until its next call. Cannot fail. */
void svi_learner_release_scratch(svs_learner *l);

/* Bytes at most of a learner in a scratch of others, all of whose samples have weight 1, no id and a label;
 * and of a scratch for such learners: svs_learner_memory in two halves. */
double svi_learner_shared_memory(const svs_options *o, int d, int classes);
double svi_learner_scratch_memory(const svs_options *o, int d, int classes);

#endif
