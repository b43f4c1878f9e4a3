/* rank.h: area under the ROC curve of a stream of scores, from counts in fixed bins.
 *
 * A bin holds the scores that agree in sign, exponent and the first 8 bits of the mantissa: a monotone map of
 * a double's bits, so finding it costs a shift and no logarithm, and a bin is at most 1/256 of its score wide
 * (2^-25 to 8; what lies outside shares the outermost bins). Scores in one bin count as ties:
 *
 *     auc = (sum over positives of negatives in lower bins + 1/2 of those in the same bin) / (positives x
 * negatives). */
#ifndef SVI_RANK_H
#define SVI_RANK_H

#include <stdint.h>
#include <string.h>

#define SVI_RANK_MANTISSA 8
#define SVI_RANK_OCTAVES  28
#define SVI_RANK_LOWEST   (-25) /* exponent of the smallest score that is told from 0 */
#define SVI_RANK_HALF     (SVI_RANK_OCTAVES << SVI_RANK_MANTISSA)
#define SVI_RANK_BINS     (2 * SVI_RANK_HALF)
#define SVI_RANK_BLOCK    64 /* bins; blocks never touched cost nothing when the area is asked for */

/* Zero-initialised is empty. */
struct svi_rank {
    int64_t count[SVI_RANK_BINS][2]; /* [bin][0 negative, 1 positive] */
    uint8_t touched[SVI_RANK_BINS / SVI_RANK_BLOCK];
};

/* The bin of a score, ascending; NaN shares an outermost. No branch: signs of scores are hard to predict. */
static inline int svi_rank_bin(double score) {
    uint64_t bits;
    score += 0.0; /* -0 and 0 are one */
    memcpy(&bits, &score, sizeof bits);
    int place = (int)((bits & INT64_MAX) >> (52 - SVI_RANK_MANTISSA)) -
                ((1023 + SVI_RANK_LOWEST) << SVI_RANK_MANTISSA);
    place = place < 0 ? 0 : place;
    place = place < SVI_RANK_HALF ? place : SVI_RANK_HALF - 1;
    return SVI_RANK_HALF + (place ^ -(int)(bits >> 63));
}

/* NAN unless both labels occur. Cost: the touched blocks, a few microseconds. */
double svi_rank_area(const struct svi_rank *r);

#endif
