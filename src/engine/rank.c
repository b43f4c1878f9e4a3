#include "engine/rank.h"

#include <math.h>
#include <stdbool.h>

struct area {
    double ordered;               /* pairs in the right order, ties half */
    int64_t negatives, positives; /* in the bins so far */
};

/* Counts below this may be multiplied as whole numbers. */
#define SMALL (UINT64_C(1) << 30)

/* A block's own pairs, twice, once its counts are too large for whole numbers. */
static double large_pairs(const int64_t (*count)[2]) {
    double twice = 0;
    int64_t negatives = 0;
    for (int i = 0; i < SVI_RANK_BLOCK; i++) {
        twice += (double)count[i][1] * (double)(2 * negatives + count[i][0]);
        negatives += count[i][0];
    }
    return twice;
}

/* Whole numbers are exact, and no bin costs a conversion. */
static void add_block(struct area *a, const int64_t (*count)[2]) {
    uint64_t twice = 0, negatives = 0, positives = 0; /* twice may wrap: then it is not used */
    for (int i = 0; i < SVI_RANK_BLOCK; i++) {
        uint64_t negative = (uint64_t)count[i][0], positive = (uint64_t)count[i][1];
        twice += positive * (2 * negatives + negative);
        negatives += negative;
        positives += positive;
    }
    bool small = (negatives | positives) < SMALL;
    a->ordered += (double)a->negatives * (double)positives;
    a->ordered += 0.5 * (small ? (double)twice : large_pairs(count));
    a->negatives += (int64_t)negatives;
    a->positives += (int64_t)positives;
}

double svi_rank_area(const struct svi_rank *r) {
    struct area a = {0, 0, 0};
    for (int block = 0; block < SVI_RANK_BINS / SVI_RANK_BLOCK; block++)
        if (r->touched[block])
            add_block(&a, r->count + block * SVI_RANK_BLOCK);
    if (a.negatives == 0 || a.positives == 0)
        return NAN;
    return a.ordered / ((double)a.negatives * (double)a.positives);
}
