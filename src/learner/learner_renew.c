/* A feature that no sample held has a value in becomes another one: its coordinate is cleared, so that
 * nothing of the old feature is left in P, w or the sums. */
#include "learner/learner_renew.h"

#include "learner/learner_internal.h"

void svi_learner_scale_from(svs_learner *l, int first) {
    for (int j = first > l->declared ? first : l->declared; j < l->scaler.max_d; j++)
        svi_scaler_flag(&l->scaler, j, false);
}

void svi_learner_renew(svs_learner *l, int feature) {
    struct svi_scaler *s = &l->scaler;
    const int j = 1 + feature;
    if (feature < 0 || feature >= l->d)
        return;
    svi_claim(l);
    bool rebuild = s->mean[feature] != 0; /* then z_j is a constant other than 0 */
    if (l->o.window == 0 && svi_gram_clear_coordinate(l->gram, l->m->kernels, j))
        rebuild = true; /* with a window the sums are of rows held, which have 0 there */
    s->mean[feature] = 0;
    s->inverse[feature] = 1;
    svi_scaler_bound(s);
    if (rebuild && l->arrivals > 0)
        svi_rebuild(l, false);
    /* All rows held have 0 there, so P has no connection between j and the other coordinates but what
     * rounding left: it is set as for a new feature. */
    bool changed = svi_alsvm_renew(l->m, j, svi_ridge_begin_alone(l, j));
    l->energy->energy[j] = l->energy->sum[j] = l->energy->peak[j] = l->energy->probe[j] = 0;
    l->version += changed || rebuild;
}
