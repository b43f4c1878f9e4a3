#include "engine/rank.h"

#include <math.h>

struct area {
    double ordered;               /* pairs in the right order, ties half */
    int64_t negatives, positives; /* in the bins so far */
};

/* Four sums side by side: one alone would wait for each addition to end. */
static void add_block(struct area *a, const int64_t (*count)[2]) {
    int64_t negatives = a->negatives, positives = 0;
    double ordered[4] = {0, 0, 0, 0};
    for (int i = 0; i < SVI_RANK_BLOCK; i += 4)
        for (int k = 0; k < 4; k++) {
            const int64_t *bin = count[i + k];
            ordered[k] += (double)bin[1] * (double)(2 * negatives + bin[0]);
            negatives += bin[0];
            positives += bin[1];
        }
    a->ordered += 0.5 * ((ordered[0] + ordered[1]) + (ordered[2] + ordered[3]));
    a->negatives = negatives;
    a->positives += positives;
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
