/* How well scores tell anomalous rows from normal ones. */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/novelty.h"

struct labelled {
    double surprise;
    bool anomalous;
};

static int falling(const void *a, const void *b) {
    const double x = ((const struct labelled *)a)->surprise, y = ((const struct labelled *)b)->surprise;
    return (x < y) - (x > y);
}

/* From the highest score down, equal scores at once. */
static void walk(const struct labelled *l, int64_t n, double normal, double anomalous, double *auc,
                 double *precision) {
    double found = 0, taken = 0;
    *auc = *precision = 0;
    for (int64_t i = 0; i < n;) {
        double hits = 0, misses = 0;
        const double level = l[i].surprise;
        for (; i < n && l[i].surprise == level; i++)
            if (l[i].anomalous)
                hits++;
            else
                misses++;
        *auc += misses * (found + hits / 2);
        found += hits;
        taken += hits + misses;
        *precision += hits * found / taken;
    }
    *auc /= normal * anomalous;
    *precision /= anomalous;
}

svs_code cli_novelty_quality(const struct cli_novelty_rows *r, const double *surprise, double *auc,
                             double *precision) {
    struct labelled *l = svi_alloc_array((size_t)(r->normal + r->anomalous), sizeof *l);
    int64_t n = 0;
    if (!l)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < r->rows.n; i++)
        if (r->anomaly[i] >= 0)
            l[n++] = (struct labelled){surprise[i], r->anomaly[i] == 1};
    qsort(l, (size_t)n, sizeof *l, falling);
    walk(l, n, (double)r->normal, (double)r->anomalous, auc, precision);
    svi_free(l);
    return SVS_OK;
}
