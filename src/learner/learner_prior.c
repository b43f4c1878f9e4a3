/* The prior of a learner: samples of others that count for it like a few of its own (learner/prior.h states
 * the problem). In the coordinates of the epoch, z_j = (x_j - mean_j) inverse_j, the prior's matrix is T A
 * T'. Its entries follow from what the prior holds around its own means m, with delta_j = m_j - mean_j,
 * without the cancellation that sums around 0 would bring. It is a part of the ridge: what reads the ridge
 * (refining, checks, rebuilds) reads it here.
 *
 * A learner takes the newest prior when its first sample comes and with each planned rebuild, which solves
 * from sums anyway. A feature that the prior does not know takes no part in it, as if it had been at its
 * mean. Each key has a center, between the mean of what it holds and the level of all, to which the samples
 * of others count as moved. What it holds is counted in shared sums: each sample as it is learned, and
 * again, taken out, as it leaves. Bounds decide which samples enter (learner/prior_bounds.h). Invariant:
 * a verdict changes only while all that is held is taken out, so what leaves is what entered.
 *
 * Read svi_prior_entry and svi_prior_begin first, then svi_prior_add_sample, svi_prior_left and prior_look.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/statistics.h"
#include "learner/learner_internal.h"
#include "learner/learner_prior.h"

#define MEAN_FROM 8      /* samples from which a key's mean counts for the level of all */
#define LOOKED    63     /* rows that a median is taken of */
#define NORMAL    1.4826 /* of a normal law: the deviation over the median distance from the median */

static const struct svi_array placed_table[] = {
#define OWNER struct svi_learner_prior
    SVI_ARRAY(OWNER, center, "center", SVI_AXIS(0)),
    SVI_ARRAY(OWNER, mean, "mean", SVI_AXIS(0)),
    SVI_ARRAY(OWNER, from, NULL, SVI_AXIS(0)),
#undef OWNER
};
static const struct svi_arrays placed_arrays = SVI_ARRAYS(placed_table, "the features of all keys");

/* Is what it holds counted in the sums? A learner that is being made in place of another is not, until it
 * takes its place. */
static bool prior_counts(const svs_learner *l) {
    return l->prior && !l->prior->lent;
}

static const struct svi_prior *prior_in(const svs_learner *l) {
    return l->prior ? l->prior->in : NULL;
}

/* The trait of its first feature; that of the target stands before it. */
static struct svi_prior_trait *prior_traits(const svs_learner *l) {
    return l->prior->key->trait + (l->o.task == SVS_REGRESS);
}

/* The place of feature j in `of` (NULL: it has none). */
static uint16_t prior_find(const svs_learner *l, const struct svi_prior *of, int j) {
    const struct svi_prior_sums *sums = l->prior->sums;
    const uint16_t place = prior_traits(l)[j].place;
    return of && place < sums->n ? svi_prior_feature(of, sums->identity[place], j) : SVI_PRIOR_NONE;
}

/* Of the features that there is space for. */
static svs_code prior_reserve_traits(const svs_learner *l, svs_error *err) {
    return svi_prior_key_reserve(l->prior->key, l->prior->capacity + (l->o.task == SVS_REGRESS), err);
}

bool svi_learner_has_prior(const svs_learner *l) {
    return l->prior != NULL;
}

/* As before the first sample: no mean counts, nothing is bounded, and the key has no weight. */
static void prior_unjudged(struct svi_learner_prior *p) {
    p->mean_of = 0;
    p->key->weight = 0;
    p->key->out = 0;
    p->key->most = INFINITY;
    p->key->factor = 1;
}

svs_code svi_learner_set_prior(svs_learner *l, double worth, struct svi_prior_sums *sums,
                               struct svi_prior_key *key, struct svi_prior *const *newest, svs_error *err) {
    struct svi_learner_prior *p = l->prior ? l->prior : svi_alloc_plain(sizeof *p);
    if (!p)
        return svi_fail_memory(err, "the model of all keys");
    l->prior = p;
    p->lent = !key;
    if (!key && !p->key && !(p->key = svi_alloc(sizeof *p->key)))
        return svi_fail_memory(err, "the model of all keys");
    p->key = key ? key : p->key;
    /* A key with a weight comes back from the disk: what it is among others is known, and must not be
     * forgotten. */
    if (p->key->weight == 0) /* else it comes back */
        prior_unjudged(p);
    p->worth = worth;
    p->sums = sums;
    p->newest = newest;
    return prior_reserve_traits(l, err);
}

void svi_prior_free(svs_learner *l) {
    if (!l->prior)
        return;
    svi_prior_release(&l->prior->in);
    if (l->prior->lent && l->prior->key) {
        svi_prior_key_clear(l->prior->key);
        svi_free(l->prior->key);
    }
    svi_arrays_free(&placed_arrays, l->prior);
    svi_free(l->prior);
    l->prior = NULL;
}

/* ---- its numbers in the present coordinates */

/* min(1, n0 / N) of learner/prior.h: the samples of others count as n0 samples at most. */
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
    /* Entry (0, 0) is share N, and (i, 0) is share inverse_i (off_i + N delta_i). Entry (i, j) is
     * share inverse_i inverse_j (S_ij + off_i delta_j + off_j delta_i + N delta_i delta_j). S and
     * off are sums about m, and off is what the rounding of m left. */
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

/* out += matrix x u. The entries are those of svi_prior_entry; sums that all rows share (off'u, delta'u) are
 * taken out of the inner loop, which leaves one product with S. */
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

/* sum s t (1, x - m) for row k of W, at coordinate `at` (-1: the 1). For classes it is 2 (sum over the
 * class) - (sum over all), as in gram.c; a class that the prior does not know has t = -1 throughout. */
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

static void prior_find_features(const svs_learner *l) {
    const struct svi_learner_prior *p = l->prior;
    for (int j = 0; j < p->placed; j++)
        p->from[j] = prior_find(l, p->in, j);
}

/* The prior in P may only change where P is made again: its matrix is part of P. */
static void prior_take(svs_learner *l) {
    struct svi_learner_prior *p = l->prior;
    if (p->in == *p->newest)
        return;
    struct svi_prior *taken = svi_prior_use(*p->newest);
    svi_prior_release(&p->in);
    p->in = taken;
    prior_find_features(l);
}

/* Sets the center of each feature from the mean of n samples. Categories (unscaled features) are 0 or 1 in
 * every key and are not moved. */
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

/* ---- what it is among others */

static const struct svi_prior_bounds *prior_bounds(const struct svi_prior *of) {
    static const struct svi_prior_bounds none;
    return of ? &of->bounds : &none;
}

/* The coordinate of feature j in the bounds of `of`; beyond them: it has none. */
static int prior_bound(const svs_learner *l, const struct svi_prior *of, int j) {
    const uint16_t at = prior_find(l, of, j);
    return at == SVI_PRIOR_NONE ? SVI_PRIOR_FEATURES + 1 : at + 1;
}

/* Numbers that others see in single precision are judged so here, too. */
static float prior_float(double v) {
    return (float)(v < -FLT_MAX ? -FLT_MAX : v > FLT_MAX && v < INFINITY ? FLT_MAX : v);
}

/* Categories are 0 or 1: they are not bounded. */
static bool prior_plain(const svs_learner *l, int j) {
    return svi_scaler_unscaled(&l->scaler, j);
}

/* What the bounds make of feature j: how far a value may lie from the center of its key, and whether the
 * key's mean counts for the level of all. Single precision, as it is kept for keys that are out of memory:
 * the verdict must be the same there. */
static void prior_bind(const svs_learner *l, const struct svi_prior *of, int j) {
    const struct svi_learner_prior *p = l->prior;
    struct svi_prior_trait *t = &prior_traits(l)[j];
    const int at = prior_bound(l, of, j);
    const bool bounded = !prior_plain(l, j) && t->place != SVI_PRIOR_NONE;
    t->mean = prior_float(p->mean[j]);
    t->limit = bounded ? prior_float(svi_prior_limit(prior_bounds(of), at)) : INFINITY;
    t->flags = bounded ? 0 : SVI_PRIOR_FREE;
    if (!bounded || svi_prior_near(prior_bounds(of), at, (double)t->mean))
        t->flags |= SVI_PRIOR_LEVEL;
}

/* What the bounds make of the key as a whole: the largest weight of a row, and the factor of all its rows,
 * by its most excessive spread. */
static void prior_bind_all(svs_learner *l, const struct svi_prior *of) {
    struct svi_learner_prior *p = l->prior;
    const struct svi_prior_bounds *b = prior_bounds(of);
    double excess = 0;
    p->key->most = prior_float(svi_prior_most(b));
    p->key->factor = 1;
    p->key->count = (uint16_t)(p->placed + (l->o.task == SVS_REGRESS));
    for (int j = 0; j < p->placed; j++) {
        const struct svi_prior_trait *t = &prior_traits(l)[j];
        prior_bind(l, of, j);
        if (!(t->flags & SVI_PRIOR_FREE) && t->spread > 0)
            excess = fmax(excess, svi_prior_excess(b, prior_bound(l, of, j), (double)t->spread));
    }
    if (l->o.task == SVS_REGRESS) {
        struct svi_prior_trait *target = p->key->trait;
        target->place = 0;
        target->flags = SVI_PRIOR_LEVEL;
        target->limit = prior_float(svi_prior_limit(b, 0));
        p->key->middle = b->n > 0 ? prior_float(b->middle[0]) : 0;
        excess = target->spread > 0 ? fmax(excess, svi_prior_excess(b, 0, (double)target->spread)) : excess;
    }
    /* Without a mean too few rows are held to say anything of spreads. */
    if (p->mean_of > 0)
        p->key->factor = (float)svi_prior_factor(b, excess, (double)p->key->weight);
}

/* Rows that medians are taken of, about evenly among those that are held. */
struct prior_sample {
    int32_t slot[LOOKED];
    int count;
};

/* At fixed distances: the sample depends on what is held alone. */
static void prior_sample(const svs_learner *l, struct prior_sample *s) {
    const int64_t step = (l->held_learned + LOOKED - 1) / LOOKED;
    int64_t wait = 0;
    s->count = 0;
    for (int32_t i = 0, slot; (slot = svi_next_learned(l, &i)) >= 0 && s->count < LOOKED; wait--)
        if (wait == 0) {
            s->slot[s->count++] = slot;
            wait = step;
        }
}

/* A feature, the target or the weight of a row that is held. */
enum { COLUMN_TARGET = -1, COLUMN_WEIGHT = -2 };

static double prior_value(const svs_learner *l, int32_t slot, int column) {
    const struct svi_ring *r = &l->window;
    return column == COLUMN_WEIGHT   ? svi_ring_double(r, SVI_RING_WEIGHT, slot, 1)
           : column == COLUMN_TARGET ? svi_ring_target(r, slot)
                                     : svi_ring_row(r, slot)[column];
}

/* The middle of a column, and *limit, the distance from it beyond which a row is one of the others. The
 * limit of the bounds holds where it leaves at least half of the rows; else the key differs from the others,
 * and its own median distance takes its place. */
static double prior_middle(const svs_learner *l, const struct prior_sample *s, int column, double *limit) {
    double v[LOOKED];
    int inside = 0;
    for (int i = 0; i < s->count; i++)
        v[i] = prior_value(l, s->slot[i], column);
    const double middle = svi_quantile(v, s->count, 0.5);
    for (int i = 0; i < s->count; i++) {
        v[i] = fabs(v[i] - middle);
        inside += v[i] <= *limit;
    }
    if (*limit > 0 && *limit < INFINITY && 2 * inside >= s->count)
        return middle;
    const double usual = svi_quantile(v, s->count, 0.5);
    *limit = usual > 0 && l->held_learned >= MEAN_FROM ? NORMAL * SVI_PRIOR_MAX_MULTIPLE * usual : INFINITY;
    return middle;
}

/* Mean and spread of a column, without rows that lie far outside: one bad row must not move the center of a
 * key. */
static double prior_held_mean(const svs_learner *l, const struct prior_sample *s, int column, double limit,
                              float *spread) {
    const double middle = prior_middle(l, s, column, &limit);
    double n = 0, sum = 0, squares = 0;
    for (int32_t i = 0, slot; (slot = svi_next_learned(l, &i)) >= 0;) {
        const double off = prior_value(l, slot, column) - middle;
        if (fabs(off) > limit)
            continue;
        n++;
        sum += off;
        squares += off * off;
    }
    const double mean = sum / n;
    *spread = l->held_learned >= MEAN_FROM ? prior_float(sqrt(fmax(0, squares / n - mean * mean))) : -1;
    return middle + mean;
}

static double prior_held_weight(const svs_learner *l, const struct prior_sample *s, double most) {
    double limit = INFINITY, sum = 0;
    const double middle = prior_middle(l, s, COLUMN_WEIGHT, &limit);
    most = fmin(most, SVI_PRIOR_MAX_MULTIPLE * middle);
    for (int32_t i = 0, slot; (slot = svi_next_learned(l, &i)) >= 0;)
        sum += fmin(prior_value(l, slot, COLUMN_WEIGHT), most);
    return sum / (double)l->held_learned;
}

/* Looks at all that is held: means and spreads, then what the bounds make of them. Must be called while
 * nothing of it is counted. */
static void prior_look(svs_learner *l, const struct svi_prior *of) {
    struct svi_learner_prior *p = l->prior;
    const bool held = l->held_learned > 0;
    struct prior_sample sample;
    prior_sample(l, &sample);
    p->mean_of = l->held_learned >= MEAN_FROM ? (int32_t)l->held_learned : 0;
    p->key->out = 0;
    /* Twice: limits come first, by which rows enter the means; then means and spreads are there, by which
     * the key is bounded. */
    prior_bind_all(l, of);
    for (int j = 0; j < p->placed; j++) {
        struct svi_prior_trait *t = &prior_traits(l)[j];
        t->spread = p->mean_of > 0 ? 0 : -1;
        if (held && j < l->d)
            p->mean[j] = prior_held_mean(l, &sample, j, (double)t->limit, &t->spread);
        else
            p->mean[j] = held ? 0 : p->mean[j];
    }
    if (held && l->o.task == SVS_REGRESS) {
        struct svi_prior_trait *t = p->key->trait;
        t->mean = prior_float(prior_held_mean(l, &sample, COLUMN_TARGET, (double)t->limit, &t->spread));
    }
    if (held)
        p->key->weight = fmaxf(prior_float(prior_held_weight(l, &sample, (double)p->key->most)), FLT_MIN);
    prior_bind_all(l, of);
}

/* The first sample that is learned: its values are all that is known of the key. */
static void prior_look_first(svs_learner *l, const double *x, double weight, double target) {
    struct svi_learner_prior *p = l->prior;
    p->key->weight = fmaxf(prior_float(weight), FLT_MIN);
    for (int j = 0; j < p->placed; j++) {
        p->mean[j] = j < l->d ? x[j] : 0;
        prior_traits(l)[j].spread = -1;
    }
    if (l->o.task == SVS_REGRESS)
        *p->key->trait = (struct svi_prior_trait){.mean = prior_float(target), .spread = -1};
    prior_bind_all(l, *p->newest);
}

void svi_prior_first(svs_learner *l, const double *x) {
    if (l->prior && !l->prior->centered && l->prior->placed > 0)
        prior_set_center(l, x, 1);
}

void svi_prior_drop(svs_learner *l) {
    if (!l->prior)
        return;
    svi_prior_release(&l->prior->in);
    l->prior->centered = false;
    prior_unjudged(l->prior);
}

/* The classes that its samples are of, in their order; one place is left for a class of its own. */
/* The classes of the prior's samples, in their order, so that a class has the same index in all keys that
 * begin now. One place is left for a new class of the first sample itself. */
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

/* The epoch before the first sample: means and deviations of the prior's samples, for the features that it
 * knows. */
static void prior_scale(svs_learner *l) {
    const struct svi_prior *p = l->prior->in;
    for (int j = 0; j < l->d; j++) {
        const int at = prior_place(l, j + 1);
        if (at < 0 || svi_scaler_unscaled(&l->scaler, j))
            continue;
        const double variance = p->spread[svi_triangle(at) + at] / p->total;
        l->scaler.mean[j] = prior_mean(l, j + 1, at);
        /* A variance that is rounding of the mean, or too small to be inverted, keeps deviation 1. */
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

/* The order: the center needs the prior; the scaler begins at the row and is then set for what the prior
 * knows; P and w are solved of prior and ridge alone. */
void svi_prior_solve(svs_learner *l, const double *x) {
    prior_take(l);
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

static svs_code prior_reserve(struct svi_learner_prior *p, int capacity, svs_error *err) {
    const int32_t from = p->capacity, to = capacity;
    svs_code code = svi_arrays_resize(&placed_arrays, p, &from, &to, err);
    p->capacity = code == SVS_OK ? capacity : p->capacity;
    return code;
}

/* The plain sums have the places of the bounded ones. */
static svs_code prior_place_plain(const svs_learner *l, int feature, uint16_t place, const char *name,
                                  svs_error *err) {
    struct svi_plain_sums *plain = l->prior->sums->plain;
    return plain ? svi_plain_sums_feature(plain, l->prior->sums, place, name, prior_plain(l, feature), err)
                 : SVS_OK;
}

/* A feature gets its place in the sums. A feature that is known under another identity (it was renewed) is
 * taken out under the old one and counted again under the new. */
svs_code svi_learner_place(svs_learner *l, int feature, const char *name, svs_error *err) {
    struct svi_learner_prior *p = l->prior;
    uint16_t place;
    if (!prior_counts(l))
        return SVS_OK;
    const uint64_t identity = svi_prior_identity(name, feature);
    svi_claim(l);
    const int capacity = feature < l->declared ? l->declared : feature + 1;
    if (feature >= p->capacity && prior_reserve(p, capacity, err) != SVS_OK)
        return SVS_NO_MEMORY;
    if (prior_reserve_traits(l, err) != SVS_OK)
        return SVS_NO_MEMORY;
    if (svi_prior_sums_feature(p->sums, identity, feature + 1, &place, err) != SVS_OK)
        return SVS_NO_MEMORY;
    SVI_TRY(prior_place_plain(l, feature, place, name, err));
    const bool known = feature < p->placed;
    if (known) /* under what it was so far */
        svi_learner_count_held(l, -1);
    p->placed = known ? p->placed : feature + 1;
    prior_traits(l)[feature].place = place;
    p->center[feature] = known ? p->center[feature] : 0;
    p->mean[feature] = 0; /* all that is held has 0 there */
    prior_traits(l)[feature].spread = p->mean_of > 0 ? 0 : -1;
    prior_bind(l, *p->newest, feature);
    p->key->count = (uint16_t)(p->placed + (l->o.task == SVS_REGRESS));
    if (known)
        svi_learner_count_held(l, 1);
    /* Only new: its mean, 0, counts at once where the key's means do. */
    else if (p->mean_of > 0)
        svi_prior_sums_key(p->sums, &prior_traits(l)[feature], &p->mean[feature], 1, p->mean_of, 1);
    p->from[feature] = prior_find(l, p->in, feature);
    if (p->in && feature < l->d && (known || p->from[feature] != SVI_PRIOR_NONE)) {
        svi_prior_follow(l);
        l->version++;
    }
    return SVS_OK;
}

int svi_learner_placed(const svs_learner *l) {
    return prior_counts(l) ? l->prior->placed : INT32_MAX;
}

/* ---- what it holds */

/* Does a row with this target enter? */
static bool prior_takes(const svs_learner *l, double target) {
    const struct svi_learner_prior *p = l->prior;
    return p->key->factor > 0 && (l->o.task != SVS_REGRESS ||
                                  fabs(target - (double)p->key->middle) <= (double)p->key->trait->limit);
}

static uint16_t prior_label(const svs_learner *l, int label) {
    return l->o.task == SVS_REGRESS ? 0 : svi_prior_sums_find(l->prior->sums, l->classes[label], label);
}

/* The same in the plain sums, which no bound limits. */
static void prior_count_plain(const svs_learner *l, const double *x, int label, double target,
                              double weight) {
    struct svi_learner_prior *p = l->prior;
    if (p->sums->plain)
        svi_plain_sums_add(p->sums->plain, l->kernels, prior_traits(l), p->placed < l->d ? p->placed : l->d,
                           x, weight, prior_label(l, label), target);
}

/* Counts a row, or takes it out (weight < 0); false: it does not enter. Each quantity that decides is kept
 * in the key, so the same row gets the same verdict when it leaves. */
static bool prior_count(svs_learner *l, const double *x, int label, double target, double weight) {
    struct svi_learner_prior *p = l->prior;
    const uint16_t place = prior_label(l, label);
    const double most = (double)p->key->most, size = fabs(weight) < most ? fabs(weight) : most;
    const bool enters = prior_takes(l, target) &&
                        svi_prior_sums_add(p->sums, l->kernels, prior_traits(l), p->center,
                                           p->placed < l->d ? p->placed : l->d, x,
                                           copysign(size * (double)p->key->factor, weight), place, target);
    if (!enters)
        svi_prior_sums_leave_out(p->sums, weight < 0 ? -1 : 1);
    return enters;
}

svs_code svi_prior_reserve(svs_learner *l, svs_value y, svs_error *err) {
    uint16_t place;
    if (!prior_counts(l))
        return SVS_OK;
    SVI_TRY(svi_prior_sums_label(l->prior->sums, y, 0, &place, err));
    struct svi_plain_sums *plain = l->prior->sums->plain;
    return plain ? svi_prior_sums_follow(&plain->sums, l->prior->sums, err) : SVS_OK;
}

void svi_prior_add_sample(svs_learner *l, const double *x, double weight, const svs_step *out) {
    if (!prior_counts(l))
        return;
    if (l->prior->key->weight == 0)
        prior_look_first(l, x, weight, out->target);
    l->prior->key->out += !prior_count(l, x, out->label, out->target, weight);
    prior_count_plain(l, x, out->label, out->target, weight);
}

static void prior_count_slot(svs_learner *l, int32_t slot, int sign) {
    const struct svi_ring *r = &l->window;
    prior_count(l, svi_ring_row(r, slot), svi_ring_label(r, slot), svi_ring_target(r, slot),
                sign * svi_ring_double(r, SVI_RING_WEIGHT, slot, 1));
}

static void prior_count_slot_plain(const svs_learner *l, int32_t slot, int sign) {
    const struct svi_ring *r = &l->window;
    prior_count_plain(l, svi_ring_row(r, slot), svi_ring_label(r, slot), svi_ring_target(r, slot),
                      sign * svi_ring_double(r, SVI_RING_WEIGHT, slot, 1));
}

/* In the bounded sums alone: verdicts change there, while the plain sums hold the same rows. */
static void prior_count_held(svs_learner *l, int sign) {
    struct svi_learner_prior *p = l->prior;
    if (!prior_counts(l))
        return;
    for (int32_t i = 0, slot; (slot = svi_next_learned(l, &i)) >= 0;)
        prior_count_slot(l, slot, sign);
    if (p->mean_of > 0)
        svi_prior_sums_key(p->sums, prior_traits(l), p->mean, p->placed, p->mean_of, sign);
}

/* Half of what is held did not enter: the key has moved, or began far off. All is taken out, looked at and
 * counted again, which it does by its own spread then. */
void svi_prior_learned(svs_learner *l) {
    if (!prior_counts(l) || l->prior->key->out < MEAN_FROM ||
        2 * (int64_t)l->prior->key->out < l->held_learned)
        return;
    prior_count_held(l, -1);
    prior_look(l, *l->prior->newest);
    prior_count_held(l, 1);
}

void svi_prior_left(svs_learner *l, int32_t slot) {
    if (!prior_counts(l) || !svi_ring_in(&l->window, slot))
        return;
    prior_count_slot(l, slot, -1);
    prior_count_slot_plain(l, slot, -1);
}

void svi_learner_count_bounded(svs_learner *l, int sign) {
    prior_count_held(l, sign);
}

void svi_learner_count_plain(svs_learner *l, int sign) {
    if (!prior_counts(l) || !l->prior->sums->plain)
        return;
    for (int32_t i = 0, slot; (slot = svi_next_learned(l, &i)) >= 0;)
        prior_count_slot_plain(l, slot, sign);
}

void svi_learner_count_held(svs_learner *l, int sign) {
    prior_count_held(l, sign);
    svi_learner_count_plain(l, sign);
}

void svi_learner_apply_bounds(svs_learner *l, const struct svi_prior *of) {
    if (!l->prior)
        return;
    prior_count_held(l, -1);
    prior_bind_all(l, of);
    prior_count_held(l, 1);
}

/* A planned rebuild: out by the old verdicts, then the newest prior, a new look, the new center, and in
 * again. */
void svi_prior_renew(svs_learner *l) {
    struct svi_learner_prior *p = l->prior;
    if (!p)
        return;
    prior_count_held(l, -1); /* from where it lay so far */
    prior_take(l);
    prior_look(l, p->in);
    if (p->placed > 0 && l->held_learned > 0)
        prior_set_center(l, p->mean, (double)l->held_learned);
    prior_count_held(l, 1);
}

/* ---- plain sums */

svs_code svi_learner_plain_name(const svs_learner *l, int feature, const char *name, svs_error *err) {
    return prior_counts(l) && feature < l->prior->placed
               ? prior_place_plain(l, feature, prior_traits(l)[feature].place, name, err)
               : SVS_OK;
}

/* ---- other options */

svs_code svi_prior_lend(svs_learner *fresh, const svs_learner *l, svs_error *err) {
    const struct svi_learner_prior *from = l->prior;
    if (!from)
        return SVS_OK;
    SVI_TRY(svi_learner_set_prior(fresh, from->worth, from->sums, NULL, &from->in, err));
    SVI_TRY(prior_reserve(fresh->prior, from->capacity, err));
    fresh->prior->placed = from->placed;
    svi_arrays_copy(&placed_arrays, fresh->prior, &from->capacity, from, &from->capacity);
    SVI_TRY(prior_reserve_traits(fresh, err));
    svi_array_copy(prior_traits(fresh), prior_traits(l), (size_t)from->placed * sizeof *from->key->trait);
    return SVS_OK;
}

/* After the exchange of structures: the key's own description, to which the fleet points, must keep its
 * address; so the contents are exchanged and not the pointers. */
void svi_prior_return(svs_learner *l, const svs_learner *old) {
    struct svi_learner_prior *p = l->prior;
    if (!p)
        return;
    struct svi_prior_key *own = p->key;
    const struct svi_prior_key before = *old->prior->key;
    p->key = old->prior->key;
    *p->key = *own;
    *own = before;
    old->prior->key = own; /* which goes with it */
    old->prior->lent = p->lent;
    p->lent = false;
    p->newest = old->prior->newest;
    prior_look(l, *p->newest);
}

void svi_prior_prune(svs_learner *l, const bool *features) {
    struct svi_learner_prior *p = l->prior;
    int kept = 0;
    for (int j = 0; p && j < p->placed; j++)
        if (features[j]) {
            p->center[kept] = p->center[j];
            p->mean[kept] = p->mean[j];
            prior_traits(l)[kept] = prior_traits(l)[j];
            p->from[kept++] = p->from[j];
        }
    if (!p)
        return;
    p->placed = kept;
    p->key->count = (uint16_t)(kept + (l->o.task == SVS_REGRESS));
    if (l->arrivals == 0)
        svi_prior_drop(l);
    else
        prior_look(l, *p->newest);
}

/* ---- in the state */

double svi_learner_prior_memory(int d) {
    const int32_t capacity = d;
    return (double)(sizeof(struct svi_learner_prior) + svi_arrays_bytes(&placed_arrays, &capacity)) +
           d * (double)sizeof(struct svi_prior_trait);
}

/* What the learner holds in P is archived as a whole (p->in): a newer prior may exist by then, of which P
 * knows nothing. */
void svi_learner_prior_archive(struct svi_archive *a, svs_learner *l) {
    struct svi_learner_prior *p = l->prior;
    int placed = p->placed, mean_of = p->mean_of;
    svi_archive_bool(a, "centered", &p->centered);
    svi_archive_int(a, "mean of", &mean_of, 0, INT32_MAX);
    p->mean_of = mean_of;
    svi_archive_int(a, "features", &placed, 0, l->declared);
    if (!svi_archive_ok(a) ||
        (svi_archive_loading(a) && placed > p->capacity && prior_reserve(p, placed, a->err) != SVS_OK))
        return;
    p->placed = placed;
    const int32_t capacity = p->capacity, used = placed;
    svi_arrays_archive(a, &placed_arrays, p, &capacity, &used);
    svi_prior_key_archive(a, p->key);
    svi_archive_check(a, placed == 0 || p->key->count == placed + (l->o.task == SVS_REGRESS),
                      "traits are missing");
    svi_prior_archive(a, &p->in, *p->newest);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    svi_archive_check(a, !p->in || p->in->regress == (l->o.task == SVS_REGRESS), "another task");
    prior_find_features(l);
}
