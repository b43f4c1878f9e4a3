/* The prior of a learner: samples of others that it goes by as if they were a few of its own (prior/prior.h
 * states the problem; read svi_prior_entry and svi_prior_begin first). In the coordinates of the epoch, z_j =
 * (x_j - mean_j) inverse_j, the prior's matrix is T A T': its entries follow from what the prior holds around
 * its own means m, with delta_j = m_j - mean_j, without the cancellation that sums around 0 would bring. It
 * is a part of the ridge: what reads the ridge (refining, checks, rebuilds) reads it here.
 *
 * A learner takes the newest prior when its first sample comes and with each planned rebuild, which solves
 * from sums anyway; between them the prior stays. A feature that the prior does not know takes no part in it,
 * as if it had been at its mean. Keys may lie at different levels: each has a center, between the mean of
 * what it holds and the level of all, and the samples of others count for it as if they had been moved there.
 *
 * Likewise what it holds is counted in sums that it shares with others: each sample as it is learned, and
 * again, taken out, as it leaves. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "learner/learner_internal.h"
#include "learner/learner_prior.h"

#define MEAN_FROM 8 /* samples from which a key's mean counts for the level of all */

static const struct svi_array placed_table[] = {
#define ARRAY(member, name) SVI_ARRAY(struct svi_learner_prior, member, name, SVI_AXIS(0))
    ARRAY(identity, "identity"), ARRAY(center, "center"), ARRAY(mean, "mean"),
    ARRAY(place, NULL),          ARRAY(from, NULL),
#undef ARRAY
};
static const struct svi_arrays placed_arrays = SVI_ARRAYS(placed_table, "the features of all keys");

static const struct svi_prior *prior_in(const svs_learner *l) {
    return l->prior ? l->prior->in : NULL;
}

bool svi_learner_has_prior(const svs_learner *l) {
    return l->prior != NULL;
}

svs_code svi_learner_set_prior(svs_learner *l, double worth, struct svi_prior_sums *sums,
                               struct svi_prior *const *newest, svs_error *err) {
    if (!l->prior && !(l->prior = svi_alloc_plain(sizeof *l->prior)))
        return svi_fail_memory(err, "the model of all keys");
    l->prior->worth = worth;
    l->prior->sums = sums;
    l->prior->newest = newest;
    return SVS_OK;
}

void svi_prior_free(svs_learner *l) {
    if (!l->prior)
        return;
    svi_prior_leave(&l->prior->in);
    svi_arrays_free(&placed_arrays, l->prior);
    svi_free(l->prior);
    l->prior = NULL;
}

/* ---- its numbers in the present coordinates */

static double prior_share(const svs_learner *l) {
    return fmin(1, l->prior->worth / l->prior->in->total);
}

/* The prior's feature that is coordinate i, from 1; -1: none. */
static int prior_place(const svs_learner *l, int i) {
    const struct svi_learner_prior *p = l->prior;
    return i <= p->placed && p->from[i - 1] != SVI_PRIOR_NONE ? p->from[i - 1] : -1;
}

/* Where the mean of its samples lies for this key. */
static double prior_mean(const svs_learner *l, int i, int place) {
    return l->prior->in->mean[place] + l->prior->center[i - 1];
}

double svi_prior_entry(const svs_learner *l, int i, int j) {
    const struct svi_prior *p = prior_in(l);
    if (!p)
        return 0;
    if (i < j)
        return svi_prior_entry(l, j, i);
    const int a = i > 0 ? prior_place(l, i) : -1, b = j > 0 ? prior_place(l, j) : -1;
    if ((i > 0 && a < 0) || (j > 0 && b < 0))
        return 0;
    const double share = prior_share(l), *mean = l->scaler.mean, *inverse = l->scaler.inverse;
    if (i == 0)
        return share * p->total;
    const double delta = prior_mean(l, i, a) - mean[i - 1], scale = share * inverse[i - 1];
    if (j == 0)
        return scale * (p->off[a] + p->total * delta);
    const double other = prior_mean(l, j, b) - mean[j - 1];
    const double spread = p->spread[svi_triangle(a > b ? a : b) + (a > b ? b : a)];
    return scale * inverse[j - 1] *
           (spread + p->off[a] * other + p->off[b] * delta + p->total * delta * other);
}

/* The entries of svi_prior_entry, with what rows have in common taken out of the inner loop. */
void svi_prior_apply(const svs_learner *l, const double *u, double *out) {
    const struct svi_prior *p = prior_in(l);
    const double *mean = l->scaler.mean, *inverse = l->scaler.inverse;
    double off = 0, moved = u[0];
    if (!p)
        return;
    const double share = prior_share(l);
    for (int j = 1; j <= l->d; j++) {
        const int b = prior_place(l, j);
        if (b < 0)
            continue;
        off += p->off[b] * inverse[j - 1] * u[j];
        moved += (prior_mean(l, j, b) - mean[j - 1]) * inverse[j - 1] * u[j];
    }
    out[0] += share * (off + p->total * moved);
    for (int i = 1; i <= l->d; i++) {
        const int a = prior_place(l, i);
        double sum = 0;
        for (int j = 1; a >= 0 && j <= l->d; j++) {
            const int b = prior_place(l, j);
            if (b >= 0)
                sum += p->spread[svi_triangle(a > b ? a : b) + (a > b ? b : a)] * inverse[j - 1] * u[j];
        }
        if (a >= 0)
            out[i] +=
                share * inverse[i - 1] *
                (sum + p->off[a] * moved + (prior_mean(l, i, a) - mean[i - 1]) * (off + p->total * moved));
    }
}

/* sum s t (1, x - m) for row k of W, of coordinate `at` (-1: the 1). */
static double prior_target(const svs_learner *l, int k, int at) {
    const struct svi_prior *p = l->prior->in;
    const int positive = svi_rows(l) == 1 ? 1 : k;
    const int label = p->regress                  ? 0
                      : positive < l->class_count ? svi_prior_label(p, l->classes[positive], positive)
                                                  : -1;
    const double own = label < 0 ? 0
                       : at < 0  ? p->weight[label]
                                 : p->sum[(size_t)label * (size_t)p->d + (size_t)at];
    return p->regress ? own : 2 * own - (at < 0 ? p->total : p->off[at]);
}

void svi_prior_right(const svs_learner *l, int k, double *r) {
    if (!prior_in(l))
        return;
    const double share = prior_share(l), weight = prior_target(l, k, -1);
    r[0] += share * weight;
    for (int i = 1; i <= l->d; i++) {
        const int at = prior_place(l, i);
        if (at < 0)
            continue;
        const double delta = prior_mean(l, i, at) - l->scaler.mean[i - 1];
        r[i] += share * l->scaler.inverse[i - 1] * (prior_target(l, k, at) + delta * weight);
    }
}

/* ---- which one */

static void prior_find_features(struct svi_learner_prior *p) {
    for (int j = 0; j < p->placed; j++)
        p->from[j] = p->in ? svi_prior_feature(p->in, p->identity[j], j) : SVI_PRIOR_NONE;
}

static void prior_take(struct svi_learner_prior *p) {
    if (p->in == *p->newest)
        return;
    struct svi_prior *taken = svi_prior_use(*p->newest);
    svi_prior_leave(&p->in);
    p->in = taken;
    prior_find_features(p);
}

/* The place of a key with these means of n samples; categories are where they are. */
static void prior_set_center(svs_learner *l, const double *mean, double n) {
    struct svi_learner_prior *p = l->prior;
    for (int j = 0; j < p->placed; j++) {
        const bool plain = svi_scaler_unscaled(&l->scaler, j) || j >= l->d;
        p->center[j] = plain ? 0
                       : p->in && p->from[j] != SVI_PRIOR_NONE
                           ? svi_prior_center(p->in, p->from[j], mean[j], n)
                           : mean[j];
    }
    p->centered = true;
}

/* Of the samples that are learned and held, into p->mean; how many. */
static double prior_held_mean(svs_learner *l) {
    struct svi_learner_prior *p = l->prior;
    const double n = (double)l->held_learned;
    for (int j = 0; j < p->placed; j++)
        p->mean[j] = 0;
    for (int32_t i = 0, slot; (slot = svi_next_learned(l, &i)) >= 0;)
        for (int j = 0; j < p->placed && j < l->d; j++)
            p->mean[j] += svi_ring_row(&l->window, slot)[j] / n; /* divided first: rows may be large */
    return n;
}

void svi_prior_first(svs_learner *l, const double *x) {
    if (l->prior && !l->prior->centered && l->prior->placed > 0)
        prior_set_center(l, x, 1);
}

void svi_prior_drop(svs_learner *l) {
    if (!l->prior)
        return;
    svi_prior_leave(&l->prior->in);
    l->prior->centered = false;
}

/* The classes that its samples are of, in their order; one place is left for a class of its own. */
svs_code svi_prior_begin(svs_learner *l, bool fresh, svs_error *err) {
    const struct svi_prior *p = *l->prior->newest;
    const int most = l->o.max_classes - fresh;
    svs_code code = SVS_OK;
    for (int k = 0; k < p->labels && l->o.task != SVS_REGRESS && code == SVS_OK; k++) {
        if (p->label[k].length > SVS_NAME_MAX || !(p->weight[k] > 0) || svi_class_find(l, p->label[k]) >= 0 ||
            l->class_count >= most)
            continue;
        code = svi_class_reserve(l, p->label[k], err);
        if (code == SVS_OK)
            svi_class_add(l, p->label[k]);
    }
    return code;
}

/* Means and deviations of the prior's samples, for those features that it knows. */
static void prior_scale(svs_learner *l) {
    const struct svi_prior *p = l->prior->in;
    for (int j = 0; j < l->d; j++) {
        const int at = prior_place(l, j + 1);
        if (at < 0 || svi_scaler_unscaled(&l->scaler, j))
            continue;
        const double variance = p->spread[svi_triangle(at) + at] / p->total;
        l->scaler.mean[j] = prior_mean(l, j + 1, at);
        if (variance > 1e-24 * l->scaler.mean[j] * l->scaler.mean[j] && variance > 1e-200)
            l->scaler.inverse[j] = 1 / sqrt(variance);
    }
    svi_scaler_bound(&l->scaler);
}

bool svi_prior_waits(const svs_learner *l) {
    return l->arrivals == 0 && l->prior && !l->prior->in && *l->prior->newest;
}

int svi_learner_classes_coming(const svs_learner *l) {
    return svi_prior_waits(l) && l->o.task != SVS_REGRESS ? (*l->prior->newest)->labels : 0;
}

void svi_prior_solve(svs_learner *l, const double *x) {
    prior_take(l->prior);
    if (l->prior->placed > 0)
        prior_set_center(l, x, 1);
    svi_scaler_center(&l->scaler, x); /* features that it does not know */
    prior_scale(l);
    svi_solve_empty(l);
    l->version++;
}

void svi_prior_follow(svs_learner *l) {
    if (prior_in(l))
        svi_rebuild(l, false);
}

/* ---- features */

static svs_code prior_reserve(struct svi_learner_prior *p, int room, svs_error *err) {
    const int32_t from = p->room, to = room;
    svs_code code = svi_arrays_resize(&placed_arrays, p, &from, &to, err);
    p->room = code == SVS_OK ? room : p->room;
    return code;
}

svs_code svi_learner_place(svs_learner *l, int feature, uint64_t identity, svs_error *err) {
    struct svi_learner_prior *p = l->prior;
    uint16_t place;
    if (!p || !p->sums)
        return SVS_OK;
    svi_claim(l);
    const int room = feature < l->declared ? l->declared : feature + 1;
    if (feature >= p->room && prior_reserve(p, room, err) != SVS_OK)
        return SVS_NO_MEMORY;
    if (svi_prior_sums_feature(p->sums, identity, feature + 1, &place, err) != SVS_OK)
        return SVS_NO_MEMORY;
    const bool known = feature < p->placed;
    p->placed = known ? p->placed : feature + 1;
    if (known && p->mean_of > 0)
        svi_prior_sums_key(p->sums, &p->place[feature], &p->mean[feature], 1, p->mean_of, -1);
    p->identity[feature] = identity;
    p->place[feature] = place;
    p->center[feature] = known ? p->center[feature] : 0;
    p->mean[feature] = 0; /* all that is held has 0 there */
    if (p->mean_of > 0)
        svi_prior_sums_key(p->sums, &p->place[feature], &p->mean[feature], 1, p->mean_of, 1);
    p->from[feature] = p->in ? svi_prior_feature(p->in, identity, feature) : SVI_PRIOR_NONE;
    if (p->in && feature < l->d && (known || p->from[feature] != SVI_PRIOR_NONE)) {
        svi_prior_follow(l);
        l->version++;
    }
    return SVS_OK;
}

int svi_learner_placed(const svs_learner *l) {
    return l->prior && l->prior->sums ? l->prior->placed : INT32_MAX;
}

/* ---- what it holds */

static void prior_count(svs_learner *l, const double *x, int label, double target, double weight) {
    struct svi_learner_prior *p = l->prior;
    const uint16_t place =
        l->o.task == SVS_REGRESS ? 0 : svi_prior_sums_find(p->sums, l->classes[label], label);
    svi_prior_sums_add(p->sums, l->kernels, p->place, p->center, p->placed < l->d ? p->placed : l->d, x,
                       weight, place, target);
}

svs_code svi_prior_reserve(svs_learner *l, svs_value y, svs_error *err) {
    uint16_t place;
    if (!l->prior || !l->prior->sums)
        return SVS_OK;
    return svi_prior_sums_label(l->prior->sums, y, 0, &place, err);
}

void svi_prior_came(svs_learner *l, const double *x, double weight, const svs_step *out) {
    if (l->prior && l->prior->sums)
        prior_count(l, x, out->label, out->target, weight);
}

static void prior_count_slot(svs_learner *l, int32_t slot, int sign) {
    const struct svi_ring *r = &l->window;
    prior_count(l, svi_ring_row(r, slot), svi_ring_label(r, slot), svi_ring_target(r, slot),
                sign * svi_ring_double(r, SVI_RING_WEIGHT, slot, 1));
}

void svi_prior_left(svs_learner *l, int32_t slot) {
    if (l->prior && l->prior->sums && svi_ring_in(&l->window, slot))
        prior_count_slot(l, slot, -1);
}

void svi_learner_count_held(svs_learner *l, int sign) {
    struct svi_learner_prior *p = l->prior;
    if (!p || !p->sums)
        return;
    for (int32_t i = 0, slot; (slot = svi_next_learned(l, &i)) >= 0;)
        prior_count_slot(l, slot, sign);
    if (sign < 0 && p->mean_of > 0)
        svi_prior_sums_key(p->sums, p->place, p->mean, p->placed, p->mean_of, -1);
    p->mean_of = sign > 0 && l->held_learned >= MEAN_FROM ? prior_held_mean(l) : 0;
    if (p->mean_of > 0)
        svi_prior_sums_key(p->sums, p->place, p->mean, p->placed, p->mean_of, 1);
}

void svi_prior_renew(svs_learner *l) {
    if (!l->prior)
        return;
    svi_learner_count_held(l, -1); /* from where it lay so far */
    prior_take(l->prior);
    if (l->prior->placed > 0 && l->held_learned > 0) {
        const double n = prior_held_mean(l);
        prior_set_center(l, l->prior->mean, n);
    }
    svi_learner_count_held(l, 1);
}

/* ---- other options */

svs_code svi_prior_lend(svs_learner *fresh, const svs_learner *l, svs_error *err) {
    const struct svi_learner_prior *from = l->prior;
    if (!from)
        return SVS_OK;
    svs_code code = svi_learner_set_prior(fresh, from->worth, NULL, &from->in, err);
    if (code == SVS_OK)
        code = prior_reserve(fresh->prior, from->room, err);
    if (code != SVS_OK)
        return code;
    fresh->prior->placed = from->placed;
    svi_arrays_copy(&placed_arrays, fresh->prior, &from->room, from, &from->room);
    return SVS_OK;
}

void svi_prior_return(svs_learner *l, const svs_learner *old) {
    if (!l->prior)
        return;
    l->prior->sums = old->prior->sums;
    l->prior->newest = old->prior->newest;
}

void svi_prior_prune(svs_learner *l, const bool *features) {
    struct svi_learner_prior *p = l->prior;
    int kept = 0;
    for (int j = 0; p && j < p->placed; j++)
        if (features[j]) {
            p->identity[kept] = p->identity[j];
            p->center[kept] = p->center[j];
            p->place[kept] = p->place[j];
            p->from[kept++] = p->from[j];
        }
    if (p)
        p->placed = kept;
    if (p && l->arrivals == 0)
        svi_prior_drop(l);
}

/* ---- in the state */

double svi_learner_prior_memory(int d) {
    const int32_t room = d;
    return (double)(sizeof(struct svi_learner_prior) + svi_arrays_bytes(&placed_arrays, &room));
}

void svi_learner_prior_archive(struct svi_archive *a, svs_learner *l) {
    struct svi_learner_prior *p = l->prior;
    int placed = p->placed;
    svi_archive_bool(a, "centered", &p->centered);
    svi_archive_double(a, "mean of", &p->mean_of);
    svi_archive_int(a, "features", &placed, 0, l->declared);
    if (!svi_archive_ok(a) ||
        (svi_archive_loading(a) && placed > p->room && prior_reserve(p, placed, a->err) != SVS_OK))
        return;
    p->placed = placed;
    svi_archive_bytes(a, "places", p->place, placed * (int64_t)sizeof *p->place);
    const int32_t room = p->room, used = placed;
    svi_arrays_archive(a, &placed_arrays, p, &room, &used);
    svi_archive_check(a, p->mean_of >= 0, "a mean is of fewer than no samples");
    svi_prior_archive(a, &p->in, *p->newest);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    svi_archive_check(a, !p->in || p->in->regress == (l->o.task == SVS_REGRESS), "another task");
    prior_find_features(p);
}
