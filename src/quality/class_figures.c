#include "quality/class_figures.h"

#include <math.h>

/* A share that is not known counts as 0. */
static double share_or_nothing(double share) {
    return isnan(share) ? 0 : share;
}

struct svi_class_averages svi_class_averages(const struct svi_class_count *c, int classes) {
    struct svi_class_averages a = {.commonest = -1};
    double recalls = 0, logarithms = 0;
    int met = 0, labels = 0;
    for (int k = 0; k < classes; k++) {
        const double precision = share_or_nothing(svi_class_precision(&c[k])),
                     recall = share_or_nothing(svi_class_recall(&c[k])),
                     f1 = share_or_nothing(svi_class_f1(&c[k])), support = (double)c[k].support;
        met += c[k].support + c[k].predicted > 0;
        a.n += c[k].support;
        a.hits += c[k].hits;
        a.precision += precision;
        a.recall += recall;
        a.f1 += f1;
        a.weighted_precision += support * precision;
        a.weighted_f1 += support * f1;
        if (c[k].support == 0)
            continue;
        labels++;
        recalls += recall;
        logarithms += log(recall);
        if (a.commonest < 0 || c[k].support > c[a.commonest].support)
            a.commonest = k;
    }
    const double n = (double)a.n, each = a.n > 0 ? met : 0; /* 0: what is divided by it is NAN */
    a.precision /= each;
    a.recall /= each;
    a.f1 /= each;
    a.weighted_precision /= n;
    a.weighted_f1 /= n;
    a.balanced_accuracy = recalls / labels;
    a.gmean = exp(logarithms / labels);
    return a;
}
