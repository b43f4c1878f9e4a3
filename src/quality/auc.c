#include "quality/auc.h"

#include <math.h>

/* Counts below this are multiplied as integers: 2 x 2^30 x 2^30 stays below 2^64. */
#define SMALL (UINT64_C(1) << 30)

/* Twice the ordered pairs within a block, in doubles, for counts too large for integers. */
static double large_pairs(const int64_t (*count)[2]) {
    double twice = 0;
    int64_t negatives = 0;
    for (int i = 0; i < SVI_AUC_BLOCK; i++) {
        twice += (double)count[i][1] * (double)(2 * negatives + count[i][0]);
        negatives += count[i][0];
    }
    return twice;
}

/* Pairs are counted per block in integers, which is exact and converts once per block instead of once per
 * bin. They are counted twice over, so that the half of a tie is an integer too. */
double svi_auc_area(const struct svi_auc *r) {
    double ordered = 0;                           /* pairs in the right order, ties half */
    int64_t all_negatives = 0, all_positives = 0; /* in the blocks so far */
    for (int block = 0; block < SVI_AUC_BINS / SVI_AUC_BLOCK; block++) {
        const int64_t(*count)[2] = r->count + block * SVI_AUC_BLOCK;
        /* Most blocks of a stream were never touched; skipping them makes the cost that of the scores that
         * occur. */
        if (!r->touched[block])
            continue;
        uint64_t twice = 0, negatives = 0, positives = 0; /* twice may wrap: then it is not used */
        for (int i = 0; i < SVI_AUC_BLOCK; i++) {
            uint64_t negative = (uint64_t)count[i][0], positive = (uint64_t)count[i][1];
            /* Each positive beats the negatives of the lower bins and ties with those of its own. */
            twice += positive * (2 * negatives + negative);
            negatives += negative;
            positives += positive;
        }
        /* All negatives of lower blocks are below every positive of this one. */
        ordered += (double)all_negatives * (double)positives;
        ordered += 0.5 * ((negatives | positives) < SMALL ? (double)twice : large_pairs(count));
        all_negatives += (int64_t)negatives;
        all_positives += (int64_t)positives;
    }
    if (all_negatives == 0 || all_positives == 0)
        return NAN;
    return ordered / ((double)all_negatives * (double)all_positives);
}

double svi_auc_precision(const struct svi_auc *r) {
    /* From the highest bin down: lowering the threshold bin by bin, precision after each step weighs its new
     * positives. */
    double sum = 0;
    int64_t negatives = 0, positives = 0; /* in the bins so far, from above */
    for (int block = SVI_AUC_BINS / SVI_AUC_BLOCK; block-- > 0;) {
        if (!r->touched[block])
            continue;
        for (int bin = (block + 1) * SVI_AUC_BLOCK; bin-- > block * SVI_AUC_BLOCK;) {
            const int64_t here = r->count[bin][1];
            negatives += r->count[bin][0];
            positives += here;
            if (here > 0)
                sum += (double)here * (double)positives / (double)(positives + negatives);
        }
    }
    /* The recall step of a bin is here / positives; the division is the same for all and comes last. */
    return negatives > 0 && positives > 0 ? sum / (double)positives : NAN;
}
