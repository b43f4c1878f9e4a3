/* learner_archive.h: saves and loads a learner, bit for bit, and checks a loaded one.
 *
 * The archive holds what determines future bits:
 *
 *  - features and classes;
 *  - P with the pending rank-1 changes, as one triangle (both halves of a diagonal block are
 *    equal);
 *  - W, scaler, energies, ridge, and both rings with the oldest first;
 *  - the sums where they are more than scratch.
 *
 * Not archived: capacities, positions in a ring, hash chains, padding, the content of dead slots, a
 * snapshot in progress. So the form depends neither on how the learner reached its state nor on the
 * kernels. */
#ifndef SVI_LEARNER_ARCHIVE_H
#define SVI_LEARNER_ARCHIVE_H

#include "base/archive.h"
#include "svmstream/learner.h"

/* Saving uses buffers of l but does not change its state. Loading needs a new learner (svs_learner_new) with
 * the options of the saved one and not more features (0 is fine); after a failure (SVS_DAMAGED,
 * SVS_NO_MEMORY) it may only be freed. */
void svi_learner_archive(struct svi_archive *a, svs_learner *l);

/* The largest relative difference of W from a fresh solve in long double on the rows held (window 0: on the
 * sums); of P times a fixed +-1 vector where that is more than 1e-6. Nothing that determines results is
 * changed. As slow as svs_learner_check. SVS_NO_MEMORY. */
svs_code svi_learner_verify(svs_learner *l, double *error, svs_error *err);

/* Residual of w and P in the system of the rows held: the larger of |b - G w| / |b| and |G P v - v| / |v|.
 * O(W d), W samples held; changes nothing that determines results. NAN without a window or before the first
 * labelled sample. */
double svi_learner_residual(svs_learner *l);

/* Rebuilds P and w from the rows held (window 0: from the sums) now; for a state whose bits were made by
 * other kernels or another version of the program. */
void svi_learner_rebuild(svs_learner *l);

#endif
