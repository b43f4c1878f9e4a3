/* scratch.h: memory that a learner needs only while it works, and that many learners can share.
 *
 * A learner makes its own scratch unless it is given a shared one. While it works, P, W and the sums of
 * energies are in the scratch in the form that the kernels need, with vectors and matrices that hold nothing
 * between calls. When another learner works in the same scratch, the first one keeps a packed copy, a third
 * of the size. Which learner works where and when does not change any bit. The scratch grows when a learner
 * begins to use it or gets more features or classes, and never shrinks, so that a learner that has reserved
 * once cannot fail later.
 *
 * A scratch, and all learners that share it, are used by one thread at a time. Pointers into it
 * (svs_step.scores, svs_model) are valid until the next call on any learner that uses it. */
#ifndef SVI_LEARNER_SCRATCH_H
#define SVI_LEARNER_SCRATCH_H

#include "svmstream/learner.h"

struct svi_learner_scratch;

/* Makes an empty scratch. NULL: SVS_NO_MEMORY. Owner: the caller, which must free or move its learners first.
 */
struct svi_learner_scratch *svi_learner_scratch_new(svs_error *err);
void svi_learner_scratch_free(struct svi_learner_scratch **s);

/* svs_learner_new in a shared scratch; NULL: in its own. */
svs_learner *svi_learner_new(const svs_options *o, int d, struct svi_learner_scratch *s, svs_error *err);

/* The same with capacity for this number of features (>= d), so that the learner stays in a single block. */
svs_learner *svi_learner_new_for(const svs_options *o, int d, int capacity, struct svi_learner_scratch *s,
                                 svs_error *err);

/* Moves the learner, between two calls, to scratch s; NULL: to its own. If it has released its old scratch,
 * that is not touched, and another thread may be using it. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_learner_use_scratch(svs_learner *l, struct svi_learner_scratch *s, svs_error *err);

/* Packs the state of the learner, which then has nothing in a shared scratch until its next call. Cannot
 * fail. */
void svi_learner_release_scratch(svs_learner *l);

/* Upper bound of the bytes of a learner in a shared scratch whose samples all have weight 1, no id and a
 * label; and of a scratch for such learners. Together they are svs_learner_memory. */
double svi_learner_shared_memory(const svs_options *o, int d, int classes);
double svi_learner_scratch_memory(const svs_options *o, int d, int classes);

#endif
