/* Sums of all samples, as a prior (prior.h).
 *
 * They are centred at the means in twice the precision, so that what a prior holds is as exact as the spread
 * of the features, wherever they lie. Its arrays hold the means, the centred products and sums of each
 * label, and the identities of features and labels, by which a learner finds its own. Invariant: a prior is
 * made whole and not changed again, so that all learners that use it can share one, on any thread; `users`
 * counts them.
 *
 * Read svi_prior_make with prior_fill first, then prior_fill_levels and svi_prior_center (levels of keys). */
#include "learner/prior.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "linalg/double_double.h"
#include "learner/owned_model.h"

#define MAX_CHANCE_DEVIATIONS 3 /* deviations of a mean from its level that chance brings about */

enum { FEATURES, LABELS };
static const struct svi_array prior_table[] = {
#define OWNER struct svi_prior
    SVI_ARRAY_WITH(OWNER, mean, "mean", SVI_ARRAY_NUMBER, 0, SVI_AXIS(FEATURES)),
    SVI_ARRAY_WITH(OWNER, level, "level", SVI_ARRAY_NUMBER, 0, SVI_AXIS(FEATURES)),
    SVI_ARRAY_WITH(OWNER, between, "between", SVI_ARRAY_NUMBER, 0, SVI_AXIS(FEATURES)),
    SVI_ARRAY_WITH(OWNER, off, "off", SVI_ARRAY_NUMBER, 0, SVI_AXIS(FEATURES)),
    SVI_ARRAY_WITH(OWNER, spread, "spread", SVI_ARRAY_NUMBER, 0, SVI_AXIS_TRIANGLE(FEATURES)),
    SVI_ARRAY_WITH(OWNER, weight, "weight", SVI_ARRAY_NUMBER, 0, SVI_AXIS(LABELS)),
    SVI_ARRAY_WITH(OWNER, sum, "sum", SVI_ARRAY_NUMBER, 0, SVI_AXIS(LABELS), SVI_AXIS(FEATURES)),
    SVI_ARRAY_WITH(OWNER, bounds.usual, "usual spread", SVI_ARRAY_NUMBER, 0, SVI_AXIS_PLUS(FEATURES, 1)),
    SVI_ARRAY_WITH(OWNER, bounds.middle, "middle", SVI_ARRAY_NUMBER, 0, SVI_AXIS_PLUS(FEATURES, 1)),
    SVI_ARRAY_WITH(OWNER, bounds.apart, "apart", SVI_ARRAY_NUMBER, 0, SVI_AXIS_PLUS(FEATURES, 1)),
    SVI_ARRAY_WITH(OWNER, identity, "identity", SVI_ARRAY_NUMBER, 0, SVI_AXIS(FEATURES)),
    SVI_ARRAY_WITH(OWNER, label, NULL, SVI_ARRAY_NUMBER, 0, SVI_AXIS(LABELS)),
    SVI_ARRAY_WITH(OWNER, name, NULL, SVI_ARRAY_NUMBER, 0, SVI_AXIS(LABELS), SVI_AXIS_LENGTH(SVS_NAME_MAX)),
#undef OWNER
};
static const struct svi_arrays prior_arrays = SVI_ARRAYS(prior_table, "the model of all keys");

static struct svi_prior *prior_new(bool regress, int d, int labels, svs_error *err) {
    const int32_t dims[] = {d, labels};
    struct svi_prior *p = svi_alloc_plain(sizeof *p);
    if (!p) {
        svi_fail_memory(err, prior_arrays.what);
        return NULL;
    }
    if (svi_arrays_alloc(&prior_arrays, p, dims, err) != SVS_OK) {
        svi_free(p);
        return NULL;
    }
    atomic_init(&p->users, 1);
    p->regress = regress;
    p->d = d;
    p->labels = labels;
    p->bounds.n = d + 1;
    return p;
}

struct svi_prior *svi_prior_use(struct svi_prior *p) {
    if (p)
        atomic_fetch_add_explicit(&p->users, 1, memory_order_relaxed);
    return p;
}

/* acq_rel: the last user frees what others have read, on other threads. */
void svi_prior_release(struct svi_prior **p) {
    if (*p && atomic_fetch_sub_explicit(&(*p)->users, 1, memory_order_acq_rel) == 1) {
        svi_arrays_free(&prior_arrays, *p);
        svi_free(*p);
    }
    *p = NULL;
}

static void prior_set_label(struct svi_prior *p, int k, svs_value label) {
    p->label[k] = label;
    if (label.kind == SVS_STR)
        p->label[k].as.s = memcpy(p->name + (size_t)k * SVS_NAME_MAX, label.as.s, label.length);
}

uint16_t svi_prior_feature(const struct svi_prior *p, uint64_t identity, int guess) {
    return svi_prior_find(p->identity, p->d, identity, guess);
}

int svi_prior_label(const struct svi_prior *p, svs_value label, int guess) {
    return svi_class_index(p->label, p->labels, label, guess);
}

/* ---- from sums */

static struct svi_dd prior_at(const double *high, const double *low, size_t at) {
    return svi_two_sum(high[at], low[at]);
}

/* sum s (x_j - m_j), given sum s x_j and sum s. */
static struct svi_dd prior_center(struct svi_dd sum, struct svi_dd weight, double mean) {
    return svi_dd_add(sum, svi_dd_minus(svi_dd_times(weight, mean)));
}

/* The variance of a feature within keys: the pooled samples lie about the centers of their keys. */
static double prior_within(const struct svi_prior *p, size_t j) {
    return fmax(0, p->spread[(size_t)svi_triangle((int)j) + j] / p->total);
}

static struct svi_dd prior_of_keys(const struct svi_prior_sums *s, int row, int feature) {
    return prior_at(s->by_key, s->by_key_low, (size_t)row * (size_t)s->capacity + (size_t)feature + 1);
}

/* Level and variance of the means of keys. By the method of moments: the variance of K means is that between
 * keys plus that within divided by the n of each, so the mean of within / n is subtracted (below 0: 0). */
static void prior_fill_levels(struct svi_prior *p, const struct svi_prior_sums *s) {
    for (int j = 0; j < p->d; j++) {
        const struct svi_dd sum = prior_of_keys(s, SVI_PRIOR_MEAN, j),
                            squares = prior_of_keys(s, SVI_PRIOR_SQUARE, j);
        const double keys = prior_of_keys(s, SVI_PRIOR_KEYS, j).high,
                     inverse = prior_of_keys(s, SVI_PRIOR_INVERSE, j).high,
                     level = keys > 0 ? sum.high / keys : 0;
        p->level[j] = level;
        p->between[j] = INFINITY;
        if (keys < 2)
            continue;
        const double square = prior_center(squares, sum, level).high, within = prior_within(p, (size_t)j);
        p->between[j] = fmax(0, square / (keys - 1) - within * inverse / keys);
    }
}

/* All differences of large sums are taken in double-double: in plain double a feature whose mean is 1e8
 * deviations from 0 would have no digit left. */
static void prior_fill(struct svi_prior *p, const struct svi_prior_sums *s) {
    const struct svi_dd total = svi_prior_sums_at(s, 0, 0);
    p->total = total.high;
    for (int i = 0; i < p->d; i++) {
        const struct svi_dd sum = svi_prior_sums_at(s, i + 1, 0);
        p->identity[i] = s->identity[i + 1];
        p->mean[i] = sum.high / total.high;
        const struct svi_dd off = prior_center(sum, total, p->mean[i]);
        p->off[i] = off.high;
        for (int j = 0; j <= i; j++) { /* sum s x_i (x_j - m_j), less m_i times sum s (x_j - m_j) */
            const struct svi_dd other = svi_prior_sums_at(s, j + 1, 0),
                                off_j = prior_center(other, total, p->mean[j]),
                                half = prior_center(svi_prior_sums_at(s, i + 1, j + 1), sum, p->mean[j]);
            p->spread[svi_triangle(i) + j] = prior_center(half, off_j, p->mean[i]).high;
        }
    }
    for (int k = 0; k < p->labels; k++) {
        const double *high = s->by_label + (size_t)k * (size_t)s->capacity,
                     *low = s->by_low + (size_t)k * (size_t)s->capacity;
        const struct svi_dd weight = prior_at(high, low, 0);
        p->weight[k] = weight.high;
        for (int j = 0; j < p->d; j++)
            p->sum[(size_t)k * (size_t)p->d + (size_t)j] =
                prior_center(prior_at(high, low, (size_t)j + 1), weight, p->mean[j]).high;
        prior_set_label(p, k, s->label[k]);
    }
    prior_fill_levels(p, s);
}

/* Empirical Bayes (prior.h): the more a key's own mean is known (V / n small against B), the less it is
 * drawn to the level of all. A key that is far off by more than chance stays where its samples lie. */
double svi_prior_center(const struct svi_prior *p, uint16_t feature, double mean, double n) {
    const size_t j = feature;
    /* chance: the variance of a mean of n rows. */
    const double between = p->between[j], chance = prior_within(p, j) / n;
    const double far = p->bounds.apart[j + 1] + MAX_CHANCE_DEVIATIONS * sqrt(chance);
    if (!(between < INFINITY) || !(chance > 0) || fabs(mean - p->bounds.middle[j + 1]) > far)
        return mean;
    return p->level[j] + between / (between + chance) * (mean - p->level[j]);
}

/* Coordinates that the sums have and the bounds do not are new. */
static void prior_fill_bounds(struct svi_prior *p, const struct svi_prior_bounds *b) {
    p->bounds.weight = b->n > 0 ? b->weight : INFINITY;
    for (int j = 0; j < p->bounds.n; j++) {
        const bool known = j < b->n;
        p->bounds.usual[j] = known ? b->usual[j] : INFINITY;
        p->bounds.middle[j] = known ? b->middle[j] : 0;
        p->bounds.apart[j] = known ? b->apart[j] : INFINITY;
    }
}

svs_code svi_prior_make(const struct svi_prior_sums *s, const struct svi_prior_bounds *b, uint64_t number,
                        struct svi_prior **made, svs_error *err) {
    *made = NULL;
    /* Nothing is in the sums, or what was has left: there is no prior then, which is no error. */
    if (!s->touched || !(s->high[0] > 0))
        return SVS_OK;
    if (!(*made = prior_new(s->regress, s->n - 1, s->labels, err)))
        return SVS_NO_MEMORY;
    (*made)->number = number;
    prior_fill(*made, s);
    prior_fill_bounds(*made, b);
    return SVS_OK;
}

/* ---- the archive */

void svi_prior_archive(struct svi_archive *a, struct svi_prior **p, struct svi_prior *newest) {
    bool any = *p != NULL, regress = any && (*p)->regress;
    uint64_t number = any ? (*p)->number : 0;
    int d = any ? (*p)->d : 0, labels = any ? (*p)->labels : 0;
    char capacity[SVS_NAME_MAX];
    svi_archive_bool(a, "any", &any);
    if (!svi_archive_ok(a) || !any)
        return;
    svi_archive_uint64(a, "number", &number);
    svi_archive_bool(a, "regress", &regress);
    svi_archive_int(a, "features", &d, 0, SVI_PRIOR_FEATURES);
    svi_archive_int(a, "labels", &labels, 0, SVI_PRIOR_LABELS);
    const int32_t dims[] = {d, labels};
    const int64_t count = 7 * (int64_t)d + 3 + svi_triangle(d) + labels * (1 + (int64_t)d);
    const bool fits = count <= svi_archive_left(a) / 8;
    if (!svi_archive_check(a, fits, "the model of all keys is truncated") ||
        (svi_archive_loading(a) && !(*p = prior_new(regress, d, labels, a->err))))
        return;
    struct svi_prior *of = *p;
    of->number = number;
    svi_archive_double(a, "total", &of->total);
    svi_archive_check(a, of->total > 0, "the model of all keys is of no samples");
    svi_archive_double(a, "usual weight", &of->bounds.weight);
    svi_archive_check(a, of->bounds.weight >= 0, "a weight is below 0");
    for (int k = 0; k < labels && !regress; k++) {
        svs_value label = svi_archive_loading(a) ? svs_none() : of->label[k];
        svi_archive_value(a, "label", &label, capacity);
        if (svi_archive_loading(a) && svi_archive_ok(a))
            prior_set_label(of, k, label);
    }
    svi_arrays_archive(a, &prior_arrays, of, dims, dims);
    /* Loading: keys that used the same prior before share one again. */
    if (!svi_archive_ok(a) || !svi_archive_loading(a) || !newest || newest->number != number)
        return;
    svi_prior_release(p); /* one for all that go by it */
    *p = svi_prior_use(newest);
}
