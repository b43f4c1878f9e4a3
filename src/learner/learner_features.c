#include <string.h>

#include "learner/learner_internal.h"

/* Of the sums, which hold no rows to gather again: z_j = x_j instead of (x_j - mean) inverse. */
static void features_make_sums_plain(svs_learner *l, int feature) {
    double *shift = l->scratch[2], *inverse_spread = l->scratch[3];
    const double mean = l->scaler.mean[feature], inverse = l->scaler.inverse[feature];
    for (int j = 0; j <= l->d; j++) {
        shift[j] = 0;
        inverse_spread[j] = 1;
    }
    shift[1 + feature] = -mean * inverse;
    inverse_spread[1 + feature] = 1 / inverse;
    svi_gram_flush(&l->gram, l->m->kernels);
    svi_gram_move(&l->gram, shift, inverse_spread);
}

void svs_learner_unscaled(svs_learner *l, int feature) {
    struct svi_scaler *s = &l->scaler;
    if (feature < 0 || feature >= l->o.max_features || svi_scaler_unscale(s, feature))
        return;
    if (l->o.window == 0)
        features_make_sums_plain(l, feature);
    s->mean[feature] = 0;
    s->inverse[feature] = 1;
    svi_scaler_bound(s);
    svi_rebuild(l, false);
    l->version++;
}
