#include "novelty/tail.h"

#include <math.h>

#define SHARE  10   /* one in so many scores is above the threshold */
#define LEAST  20   /* excesses for a fit */
#define MOST   1000 /* more would cost time and gain little */
#define SAFETY 3

/* Fills in part i, its weight as the logarithm of the likelihood. */
static void fit_part(struct svi_tail *t, int i, const double *top, double mean) {
    const double shape = (i + 0.5) / SVI_TAIL_PARTS;
    double total = 0;
    t->slope[i] = shape / (1 - shape) / mean;
    for (int k = 0; k < t->count; k++)
        total += log1p(t->slope[i] * (top[k] - t->threshold));
    t->total[i] = total;
    t->weight[i] = t->count * log(t->slope[i] * mean / total) - total;
}

static void normalise(double *weight) {
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < SVI_TAIL_PARTS; i++)
        most = fmax(most, weight[i]);
    for (int i = 0; i < SVI_TAIL_PARTS; i++)
        sum += weight[i] = exp(weight[i] - most);
    for (int i = 0; i < SVI_TAIL_PARTS; i++)
        weight[i] /= sum;
}

void svi_tail_fit(struct svi_tail *t, const double *sorted, int n) {
    const int count = n / SHARE < MOST ? n / SHARE : MOST;
    const double *top = sorted + (n - count);
    double sum = 0;
    *t = (struct svi_tail){0};
    if (count < LEAST)
        return;
    t->threshold = top[-1];
    for (int k = 0; k < count; k++)
        sum += top[k] - t->threshold;
    if (!(sum / count >= 1e-300 && sum < INFINITY))
        return;
    t->count = count;
    t->share = (1.0 + count) / (1.0 + n);
    for (int i = 0; i < SVI_TAIL_PARTS; i++)
        fit_part(t, i, top, sum / count);
    normalise(t->weight);
}

double svi_tail_p(const struct svi_tail *t, double score) {
    const double excess = score - t->threshold;
    double p = 0;
    if (t->count == 0)
        return 1;
    for (int i = 0; i < SVI_TAIL_PARTS; i++)
        p += t->weight[i] * exp(-t->count * log1p(log1p(t->slope[i] * excess) / t->total[i]));
    return fmin(1, SAFETY * t->share * p);
}
