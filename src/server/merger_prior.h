/* merger_prior.h: the prior event of a merge: what the stream keys of all parts hold, for new keys on any
 * machine (merge/prior_merge.h). */
#ifndef SVI_MERGER_PRIOR_H
#define SVI_MERGER_PRIOR_H

#include "merge/merge.h"

#define SVI_MERGER_PRIOR_PAIRS 2

/* Appends the pairs of the event of the parts that are joined to `out`. SVS_EMPTY: none of them has keys that
 * count, which is no failure; SVS_NO_MEMORY. */
svs_code svi_merger_prior(const struct svi_merge *m, struct svi_bytes *out, svs_error *err);

#endif
