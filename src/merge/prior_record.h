/* prior_record.h: the sums of a prior of stream keys (learner/prior_sums.h) as a msgpack map: what a worker
 * adds to its sums record (key `prior`), and what a merger makes of those of all parts.
 *
 * The sums are sent in twice the precision, so that those of many parts add up to what one process would have
 * had. The bounds say what is normal among the keys that the sums are of. */
#ifndef SVI_PRIOR_RECORD_H
#define SVI_PRIOR_RECORD_H

#include "base/bytes.h"
#include "learner/prior_bounds.h"
#include "learner/prior_sums.h"

struct svi_prior_record {
    struct svi_prior_sums sums;
    struct svi_prior_bounds bounds; /* of the coordinates of `sums`; further ones are not known */
    int64_t keys;                   /* that the sums are of */
};

void svi_prior_record_clear(struct svi_prior_record *r); /* frees; *r may be zero */

/* Appends one map to `out`. SVS_NO_MEMORY: nothing was appended. */
svs_code svi_prior_record_encode(const struct svi_prior_sums *sums, const struct svi_prior_bounds *bounds,
                                 int64_t keys, struct svi_bytes *out, svs_error *err);

/* Reads a map from anybody into *r, which is cleared first; unknown keys are skipped. Memory is bounded by
 * that of SVI_PRIOR_FEATURES and SVI_PRIOR_LABELS. Codes of svi_sums_decode; SVS_WRONG_TYPE also for another
 * task; *r is then clear. */
svs_code svi_prior_record_decode(struct svi_prior_record *r, bool regress, const void *map, size_t size,
                                 svs_error *err);

#endif
