/* auc.h: area under the ROC curve of a stream of scores, from counts in fixed bins.
 *
 * A bin holds the scores that share their sign, exponent and first 8 bits of the mantissa. That is a monotone
 * map of a double's bits, so finding the bin costs a shift and no logarithm. A bin is at most 1/256 of its
 * score wide (scores from 2^-25 to 8 in size; larger and smaller ones share the outermost bins). Scores in
 * one bin count as ties:
 *
 *     auc = (sum over positives of negatives in lower bins + 1/2 of those in the same bin) / (positives x
 * negatives). */
#ifndef SVI_AUC_H
#define SVI_AUC_H

#include <stdint.h>
#include <string.h>

#define SVI_AUC_MANTISSA 8
#define SVI_AUC_OCTAVES  28
#define SVI_AUC_LOWEST   (-25) /* exponent of the smallest score that is distinct from 0 */
#define SVI_AUC_HALF     (SVI_AUC_OCTAVES << SVI_AUC_MANTISSA)
#define SVI_AUC_BINS     (2 * SVI_AUC_HALF)
#define SVI_AUC_BLOCK    64 /* bins; untouched blocks are skipped when the area is computed */

/* Zero-initialised is empty. */
struct svi_auc {
    int64_t count[SVI_AUC_BINS][2]; /* [bin][0 negative, 1 positive] */
    uint8_t touched[SVI_AUC_BINS / SVI_AUC_BLOCK];
};

/* The bin of a score, ascending with it; NaN falls into an outermost bin. There is no branch, because the
 * sign of a score is hard to predict. */
static inline int svi_auc_bin(double score) {
    uint64_t bits;
    score += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &score, sizeof bits);
    int place =
        (int)((bits & INT64_MAX) >> (52 - SVI_AUC_MANTISSA)) - ((1023 + SVI_AUC_LOWEST) << SVI_AUC_MANTISSA);
    place = place < 0 ? 0 : place;
    place = place < SVI_AUC_HALF ? place : SVI_AUC_HALF - 1;
    return SVI_AUC_HALF + (place ^ -(int)(bits >> 63));
}

/* NAN unless both labels occur. Cost: the touched blocks, a few microseconds. */
double svi_auc_area(const struct svi_auc *r);

/* Average precision of the positives: the sum over thresholds (one per bin) of precision x step of recall.
 * NAN unless both labels occur. Cost as svi_auc_area. */
double svi_auc_precision(const struct svi_auc *r);

#endif
