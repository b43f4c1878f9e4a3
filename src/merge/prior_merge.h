/* prior_merge.h: the prior of the keys of many parts, for new keys on any machine.
 *
 * The sums of parts add up to those of one process with all keys. From three parts on they are judged among
 * themselves, as the keys of a stream are (learner/prior_bounds.h), by medians over parts that fewer than
 * half of them cannot move far:
 *
 *  - A part counts for at most SVI_PRIOR_MAX_KEY_WEIGHT typical parts, by its weight times the square of its
 *    most excessive spread, and never for more than all others together: its sums get a factor, a power of 4.
 *    A part that would need less than 4^-6 is left out. So are the keys that it counts for the levels of all.
 *  - The level of a feature counts if it is not too far from the middle of the parts' levels.
 *
 * Whether two parts agree nobody else can say: they count as they are, and each worker judges the result by
 * its own keys (learner/prior_agree.h). The result depends on the parts and their names alone. */
#ifndef SVI_PRIOR_MERGE_H
#define SVI_PRIOR_MERGE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "svmstream/error.h"

struct svi_prior_part {
    const char *name;
    const void *prior; /* msgpack map of prior_record.h */
    size_t size;
    double factor;            /* set: of its sums; 0: left out, ... */
    int64_t keys;             /* set: that it is of */
    char why[SVS_ERROR_TEXT]; /* set: ... because */
};

/* Judges the parts and appends the map of their sums, in the form of a part's, to `out`. Names must differ;
 * any order. SVS_EMPTY: no part counts, nothing was appended; SVS_NO_MEMORY. */
svs_code svi_prior_merge(struct svi_prior_part *parts, int count, bool regress, struct svi_bytes *out,
                         svs_error *err);

#endif
