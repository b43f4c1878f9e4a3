/* learner_archive.h: a learner kept and taken back, bit for bit, and how far to trust what was taken back.
 *
 * What is archived is what determines future bits: the features and classes, P (one triangle; both halves of
 * a diagonal block are equal) with the rank-1 changes that still wait to be applied to it, W, scaler,
 * energies, ridge, both rings oldest first, and the sums where they are more than scratch. Not archived:
 * room, the place in a ring, hash chains, padding, the content of dead slots, a snapshot under way. So the
 * form does not depend on how the learner came to its state, nor on the kernels. */
#ifndef SVI_LEARNER_ARCHIVE_H
#define SVI_LEARNER_ARCHIVE_H

#include "base/archive.h"
#include "svmstream/learner.h"

/* Saving changes nothing of the state of l, but uses its buffers. Loading wants a learner fresh from
 * svs_learner_new with the options of the one that was saved and no more features (0 is fine); after a
 * failure it may only be freed. Failures: SVS_DAMAGED, SVS_NO_MEMORY. */
void svi_learner_archive(struct svi_archive *a, svs_learner *l);

/* The largest relative difference of W from a fresh solve in long double on the rows held (window 0: on the
 * sums); of P times a fixed +-1 vector where that is more than 1e-6. Nothing that determines results is changed. As slow as
 * svs_learner_check. SVS_NO_MEMORY. */
svs_code svi_learner_verify(svs_learner *l, double *error, svs_error *err);

/* How far w and P are from solving the system of the rows held: |b - G w| / |b| and |G P v - v| / |v|, the
 * larger; O(W d), changes nothing that determines results. NAN without a window or before the first labelled
 * sample. */
double svi_learner_residual(svs_learner *l);

/* Rebuilds P and w from the rows held (window 0: from the sums), now. For a state whose last bits are of
 * other kernels or of another version of the program. */
void svi_learner_rebuild(svs_learner *l);

#endif
