/* learner_prior.h: a learner among others, whose pooled samples are a prior of each (learner/prior.h); its
 * own samples are counted in the pooled sums.
 *
 * For learners with a window, without forgetting and without class weights. */
#ifndef SVI_LEARNER_PRIOR_H
#define SVI_LEARNER_PRIOR_H

#include "learner/plain_sums.h"
#include "learner/prior.h"
#include "svmstream/learner.h"

/* Joins the learner, before its first sample: the prior *newest, which its owner may replace between two
 * calls, counts as `worth` samples; samples held are counted in `sums`; `key` describes the learner to the
 * others. All three must outlive the learner, and `sums` must be ready (svi_prior_sums_ready).
 * SVS_NO_MEMORY. */
svs_code svi_learner_set_prior(svs_learner *l, double worth, struct svi_prior_sums *sums,
                               struct svi_prior_key *key, struct svi_prior *const *newest, svs_error *err);
bool svi_learner_has_prior(const svs_learner *l);

/* Upper bound of the classes that the prior adds with the first sample. */
int svi_learner_classes_coming(const svs_learner *l);

/* place: states the name of a feature (NULL: it has none), by which others know it (svi_prior_identity),
 * before the first sample with a value other than 0 in it, and again after svi_learner_renew. SVS_NO_MEMORY.
 * placed: number of features with an identity; INT32_MAX without a prior. */
svs_code svi_learner_place(svs_learner *l, int feature, const char *name, svs_error *err);
int svi_learner_placed(const svs_learner *l);

/* Adds all samples held to the sums (sign 1), or subtracts them as they were added (-1): before the learner
 * is removed, or when the sums are rebuilt. */
void svi_learner_count_held(svs_learner *l, int sign);
void svi_learner_count_bounded(svs_learner *l, int sign); /* in the sums of the prior alone */
void svi_learner_count_plain(svs_learner *l, int sign);   /* in the plain sums alone */

/* States the name of a placed feature to the plain sums, if some are kept (struct svi_prior_sums, plain).
 * SVS_NO_MEMORY. */
svs_code svi_learner_plain_name(const svs_learner *l, int feature, const char *name, svs_error *err);

/* Assesses the samples held by the bounds of this prior and counts them again. The model stays. */
void svi_learner_apply_bounds(svs_learner *l, const struct svi_prior *of);

/* A part of the state, after svi_learner_archive; loading needs svi_learner_set_prior before. */
void svi_learner_prior_archive(struct svi_archive *a, svs_learner *l);

/* Bytes that a learner of d features needs for this, without the prior itself, which many share. */
double svi_learner_prior_memory(int d);

#endif
