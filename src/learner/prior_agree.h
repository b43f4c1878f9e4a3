/* prior_agree.h: may a prior that comes from other machines be given to keys of this one?
 *
 * Bounds keep outlying rows and keys out of a prior (learner/prior_bounds.h). What other machines have summed
 * up cannot be looked at row by row any more, so it is judged as a whole, by what the keys here hold. */
#ifndef SVI_PRIOR_AGREE_H
#define SVI_PRIOR_AGREE_H

#include "learner/prior.h"

#define SVI_PRIOR_MAX_SPREAD 4 /* of a feature, in typical spreads within a key */

enum svi_prior_verdict {
    SVI_PRIOR_GOOD = 0,
    SVI_PRIOR_UNSOUND,  /* its sums are of no samples: the matrix is not positive definite */
    SVI_PRIOR_SPREAD,   /* the spread of a feature is not like that of the keys here */
    SVI_PRIOR_DISAGREES /* on what the keys here hold its model is worse than a constant */
};

/* Is the matrix of the prior that of samples, and are all numbers finite? SVS_NO_MEMORY. */
svs_code svi_prior_sound(const struct svi_prior *p, bool *sound, svs_error *err);

/* Judges `other` by `own` and the bounds of its keys; own NULL: only whether it is sound. SVS_NO_MEMORY. */
svs_code svi_prior_assess(const struct svi_prior *other, const struct svi_prior *own,
                         enum svi_prior_verdict *verdict, svs_error *err);

#endif
