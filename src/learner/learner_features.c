/* The features of a learner: how more are added, which of them are unscaled, and which take part.
 *
 * If no feature is unscaled, every declared feature is in the recursion at once. If one is, later
 * features are declared first and wait for their first value other than 0. With that value a
 * feature enters the recursion, and so do all before it. It enters in the same sample whether a
 * stream begins with all of its columns or gains them as its categories come. Both streams
 * therefore do the same work and have the same bits. Until then d is less than `declared`. The
 * weights of the waiting features are 0, and the rows held have 0 there. */
#include <string.h>

#include "base/fail.h"
#include "learner/learner_internal.h"

/* ---- more of them */

/* Space for `features` of them in all that has one entry for each. */
/* Rings last: P and the scratch may have grown in vain if these fail, which harms nothing, whereas
 * feature_capacity says how wide the rows are. */
static svs_code features_reserve(svs_learner *l, int features, svs_error *err) {
    const int old = l->feature_capacity, scores = l->waiting.stride - old;
    SVI_TRY(svi_learner_reserve(l, features, svi_rows(l), l->gram->groups, err));
    SVI_TRY(svi_ring_restride(&l->window, features, old, 0, 0, 0, err));
    SVI_TRY(svi_ring_restride(&l->waiting, features + scores, old, old, features, scores, err));
    l->feature_capacity = features;
    return SVS_OK;
}

svs_code svi_learner_features_declare(svs_learner *l, int d, svs_error *err) {
    svs_code code = SVS_OK;
    /* At least doubled: features may be added one at a time. */
    if (d > l->feature_capacity) {
        const int capacity = d > 2 * l->feature_capacity ? d : 2 * l->feature_capacity;
        code = features_reserve(l, capacity < l->o.max_features ? capacity : l->o.max_features, err);
    }
    if (code == SVS_OK && d > l->declared)
        l->declared = d;
    return code;
}

svs_code svi_learner_features_widen(svs_learner *l, int d, svs_error *err) {
    struct svi_gram wider = {0}; /* taken first and put in place last: all that can fail lies between */
    if (d <= l->d)
        return SVS_OK;
    svs_code code = svi_gram_init_wider(&wider, d + 1, l->gram->groups, l->gram, err);
    if (code == SVS_OK)
        code = svs_alsvm_grow(l->m, d + 1, l->nu, err);
    if (code != SVS_OK) {
        svi_gram_clear(&wider);
        return code;
    }
    svi_gram_adopt(l->gram, &wider);
    svi_scaler_grow(&l->scaler, d);
    /* A feature's column of P is that of an independent coordinate: 1 / ridge on the diagonal, 0 elsewhere,
     * and w 0 (ALGORITHMS 1), until its first value. */
    const int old = l->d;
    l->d = d;
    svi_ridge_grow(l, old);
    return SVS_OK;
}

svs_code svs_learner_grow(svs_learner *l, int d, svs_error *err) {
    const int before = l->declared;
    svi_claim(l);
    if (d > l->o.max_features)
        return svi_fail(err, SVS_LIMIT, "%d features are more than max.features (%d)", d, l->o.max_features);
    if (d <= before)
        return SVS_OK;
    svs_code code = svi_learner_features_declare(l, d, err);
    /* Where some feature is unscaled, later ones are in only from their first value on
     * (svi_learner_features_wake).
     */
    if (code == SVS_OK && l->scaler.unscaled_count == 0)
        code = svi_learner_features_widen(l, d, err);
    if (code != SVS_OK)
        l->declared = before;
    return code;
}

/* Features beyond the last one that is not 0 in this row stay out; all before it are in, so that the order
 * of features never changes. */
svs_code svi_learner_features_wake(svs_learner *l, const double *x, bool *widened, svs_error *err) {
    int d = l->declared;
    while (d > l->d && x[d - 1] == 0)
        d--;
    *widened = d > l->d;
    SVI_TRY(svi_learner_features_widen(l, d, err));
    if (*widened)
        svi_prior_follow(l);
    return SVS_OK;
}

/* ---- which are unscaled */

/* Rewrites the sums, as there are no rows to gather again: z_j = x_j instead of (x_j - mean) inverse. In the
 * notation of svi_gram_move the shift is -mean inverse and the spread is inverse. */
static void features_make_sums_plain(svs_learner *l, int feature) {
    double *shift = l->scratch[2], *inverse_spread = l->scratch[3];
    const double mean = l->scaler.mean[feature], inverse = l->scaler.inverse[feature];
    for (int j = 0; j <= l->d; j++) {
        shift[j] = 0;
        inverse_spread[j] = 1;
    }
    shift[1 + feature] = -mean * inverse;
    inverse_spread[1 + feature] = 1 / inverse;
    svi_gram_flush(l->gram, l->m->kernels);
    svi_gram_move(l->gram, shift, inverse_spread);
}

/* Nothing was learned and nothing waits: no feature is in any more, until its first value. */
void svi_learner_features_wait(svs_learner *l) {
    if (l->window.rows) /* rows of slots that are not in use have to be 0 beyond the features */
        memset(l->window.rows, 0, (size_t)l->window.capacity * (size_t)l->window.stride * sizeof(double));
    svi_prior_drop(l);
    svi_gram_zero(l->gram);
    l->gram->n = 1;
    svi_alsvm_shrink(l->m, 1, l->nu);
    l->d = l->scaler.d = 0;
    svi_scaler_bound(&l->scaler);
    svi_ridge_reset(l);
}

/* Three cases: nothing learned yet, where features wait for their first value; a coordinate that is plain
 * already; else the rows (or sums) are taken into new coordinates by a rebuild. */
void svs_learner_unscaled(svs_learner *l, int feature) {
    struct svi_scaler *s = &l->scaler;
    if (feature < 0 || feature >= l->o.max_features)
        return;
    svi_claim(l);
    const bool plain = svi_scaler_unscale(s, feature);
    if (l->d > 0 && l->arrivals == 0 && l->waiting.live == 0)
        svi_learner_features_wait(l);
    if (plain)
        return;
    if (l->o.window == 0)
        features_make_sums_plain(l, feature);
    s->mean[feature] = 0;
    s->inverse[feature] = 1;
    svi_scaler_bound(s);
    svi_rebuild(l, false);
    l->version++;
}
