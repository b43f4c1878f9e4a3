/* learner_prior.h: a learner among others: what all of them hold is a prior of each (learner/prior.h), and what
 * it holds is counted in the sums of all.
 *
 * For learners with a window, without forgetting, whose samples count by their own weights alone. */
#ifndef SVI_LEARNER_PRIOR_H
#define SVI_LEARNER_PRIOR_H

#include "learner/prior.h"
#include "svmstream/learner.h"

/* From now on, before the first sample: the newest prior, which its owner may change between two calls,
 * counts as `worth` samples, and what is held is counted in `sums`; `key` has what it is among others. They
 * outlive the learner, and `sums` is ready (svi_prior_sums_ready). SVS_NO_MEMORY. */
svs_code svi_learner_set_prior(svs_learner *l, double worth, struct svi_prior_sums *sums,
                               struct svi_prior_key *key, struct svi_prior *const *newest, svs_error *err);
bool svi_learner_has_prior(const svs_learner *l);

/* Classes at most that come with the first sample, from the prior. */
int svi_learner_classes_coming(const svs_learner *l);

/* What a feature is (svi_prior_identity): before the first sample with a value other than 0 in it; again when
 * it has become another one (svi_learner_renew). SVS_NO_MEMORY. And how many are known; INT32_MAX where
 * nobody asks. */
svs_code svi_learner_place(svs_learner *l, int feature, uint64_t identity, svs_error *err);
int svi_learner_placed(const svs_learner *l);

/* All that it holds is counted (1) as it was when it was taken out of the sums (-1): for one that is going to
 * be no more, or for sums that are made again. */
void svi_learner_count_held(svs_learner *l, int sign);

/* What it holds is judged by the bounds of this prior, and counted again. Its model stays. */
void svi_learner_apply_bounds(svs_learner *l, const struct svi_prior *of);

/* A part of the state, after svi_learner_archive, into a learner with svi_learner_set_prior. */
void svi_learner_prior_archive(struct svi_archive *a, svs_learner *l);

/* Bytes of what a learner of d features keeps for it; the prior itself is shared by many. */
double svi_learner_prior_memory(int d);

#endif
