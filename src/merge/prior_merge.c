/* The prior of the keys of many parts (prior_merge.h).
 *
 * In four steps, always in the order of the names: the records are read, and each is made a prior, whose
 * matrix must be that of samples (judged_read). A part then has traits, as a key has: the spread and the
 * level of each feature, its weight, its number of keys; what is typical of them are medians over parts
 * (typical_make). From these follows the factor of each part (weigh_part), and what it may say of levels. At
 * last the sums are added up, and the bounds of the result are the medians of those of the parts: so a part
 * that claims bounds without end moves them by one rank.
 *
 * A feature that fewer than SVI_PRIOR_MIN_KEYS parts have is judged by none: machines differ in what they
 * measure, and workers judge the result again. */
#include "merge/prior_merge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/statistics.h"
#include "learner/prior.h"
#include "learner/prior_agree.h"
#include "merge/prior_record.h"

#define NORMAL     1.4826 /* of a normal law: the deviation over the median distance from the median */
#define LEVELS     3      /* typical distances between levels, and spreads, beyond which one does not count */
#define MIN_FACTOR (1.0 / 4096)

/* A part at work. */
struct judged_part {
    struct svi_prior_part *of;
    struct svi_prior_record r;
    struct svi_prior *p; /* made of r; NULL: it is left out */
    double weight, keys; /* of its samples, of its levels; both as they count */
    double factor;       /* of its levels; that of its sums is in `of` */
};

struct judged {
    struct judged_part *part; /* [count], by name */
    int count;
    bool regress;
    struct svi_prior_sums all;       /* holds the coordinates of all parts, and nothing else */
    struct svi_prior_bounds typical; /* of parts: spreads, levels, weight (n: its coordinates) */
    double typical_keys;
    double *value, *scratch; /* [count] each */
};

static void judged_clear(struct judged *j) {
    for (int i = 0; j->part && i < j->count; i++) {
        svi_prior_release(&j->part[i].p);
        svi_prior_record_clear(&j->part[i].r);
    }
    svi_free(j->part);
    svi_free(j->value);
    svi_prior_sums_clear(&j->all);
    svi_prior_bounds_clear(&j->typical);
}

static void judged_leave_out(struct judged_part *p, const char *why) {
    svi_prior_release(&p->p);
    p->of->factor = p->factor = 0;
    snprintf(p->of->why, sizeof p->of->why, "%s", why);
}

/* ---- read */

static int judged_compare(const void *a, const void *b) {
    return strcmp(((const struct judged_part *)a)->of->name, ((const struct judged_part *)b)->of->name);
}

/* Only a lack of memory fails: a record that is wrong is left out, and says why. */
static svs_code judged_read(struct judged *j, struct judged_part *p, svs_error *err) {
    svs_error why = {0};
    bool sound = false;
    p->of->factor = p->factor = 1;
    p->of->why[0] = '\0';
    p->of->keys = 0;
    const svs_code code = svi_prior_record_decode(&p->r, j->regress, p->of->prior, p->of->size, &why);
    if (code == SVS_NO_MEMORY)
        return svi_fail_memory(err, "the prior of a part");
    if (code != SVS_OK) {
        judged_leave_out(p, why.text);
        return SVS_OK;
    }
    SVI_TRY(svi_prior_make(&p->r.sums, &p->r.bounds, 0, &p->p, err));
    p->of->keys = p->r.keys;
    if (!p->p) {
        judged_leave_out(p, "its keys hold no samples yet");
        return SVS_OK;
    }
    SVI_TRY(svi_prior_sound(p->p, &sound, err));
    if (!sound)
        judged_leave_out(p, "its sums are not those of samples");
    return SVS_OK;
}

static svs_code judged_begin(struct judged *j, struct svi_prior_part *parts, int count, svs_error *err) {
    j->part = svi_alloc_array((size_t)count + 1, sizeof *j->part);
    j->value = svi_alloc_array(2 * (size_t)count + 1, sizeof *j->value);
    if (!j->part || !j->value)
        return svi_fail_memory(err, "the priors of parts");
    j->scratch = j->value + count;
    j->count = count;
    for (int i = 0; i < count; i++)
        j->part[i].of = &parts[i];
    qsort(j->part, (size_t)count, sizeof *j->part, judged_compare);
    for (int i = 0; i < count; i++)
        SVI_TRY(judged_read(j, &j->part[i], err));
    return SVS_OK;
}

/* ---- what is typical of parts */

/* A number of a part, at a coordinate of all: false where it has none. */
typedef bool judged_number(const struct judged *j, const struct judged_part *p, int at, double *v);

/* Its own coordinate of a feature (at >= 1) of all, from 0; SVI_PRIOR_NONE: it does not have it. */
static uint16_t judged_feature(const struct judged *j, const struct judged_part *p, int at) {
    return svi_prior_feature(p->p, j->all.identity[at], at - 1);
}

/* Of the target of a regression, whose squares are not summed up, at least that much: its covariance with a
 * feature over the feature's deviation. */
static double judged_target_spread(const struct svi_prior *p) {
    double most = 0;
    for (int i = 0; i < p->d; i++) {
        const double square = p->spread[svi_triangle(i) + i] / p->total, target = p->weight[0] / p->total,
                     together = (p->sum[i] - target * p->off[i]) / p->total;
        most = square > 0 ? fmax(most, fabs(together) / sqrt(square)) : most;
    }
    return most;
}

static bool number_spread(const struct judged *j, const struct judged_part *p, int at, double *v) {
    const uint16_t i = at > 0 ? judged_feature(j, p, at) : SVI_PRIOR_NONE;
    if (at == 0 && j->regress)
        *v = judged_target_spread(p->p);
    else if (i != SVI_PRIOR_NONE)
        *v = sqrt(fmax(0, p->p->spread[svi_triangle(i) + i] / p->p->total));
    return (at == 0 ? j->regress : i != SVI_PRIOR_NONE) && *v > 0;
}

static bool number_level(const struct judged *j, const struct judged_part *p, int at, double *v) {
    const uint16_t i = at > 0 ? judged_feature(j, p, at) : SVI_PRIOR_NONE;
    if (at == 0 && j->regress)
        *v = p->p->weight[0] / p->p->total;
    if (i == SVI_PRIOR_NONE)
        return at == 0 && j->regress;
    *v = p->p->level[i];
    return svi_prior_sums_of_keys(&p->r.sums, SVI_PRIOR_KEYS).high[i + 1] > 0;
}

static bool number_weight(const struct judged *j, const struct judged_part *p, int at, double *v) {
    (void)j;
    (void)at;
    *v = p->p->total;
    return true;
}

/* The most keys that a feature's level is of. */
static bool number_keys(const struct judged *j, const struct judged_part *p, int at, double *v) {
    const struct svi_prior_row keys = svi_prior_sums_of_keys(&p->r.sums, SVI_PRIOR_KEYS);
    (void)j;
    (void)at;
    *v = 0;
    for (int i = 1; i < p->r.sums.n; i++)
        *v = fmax(*v, keys.high[i]);
    return *v > 0;
}

static bool bound_spread(const struct judged *j, const struct judged_part *p, int at, double *v) {
    const uint16_t i = at > 0 ? judged_feature(j, p, at) : 0;
    *v = i == SVI_PRIOR_NONE ? INFINITY : p->r.bounds.usual[at > 0 ? i + 1 : 0];
    return *v > 0 && *v < INFINITY;
}

static bool bound_middle(const struct judged *j, const struct judged_part *p, int at, double *v) {
    const uint16_t i = at > 0 ? judged_feature(j, p, at) : 0;
    *v = i == SVI_PRIOR_NONE ? 0 : p->r.bounds.middle[at > 0 ? i + 1 : 0];
    return i != SVI_PRIOR_NONE && p->r.bounds.apart[at > 0 ? i + 1 : 0] < INFINITY;
}

static bool bound_apart(const struct judged *j, const struct judged_part *p, int at, double *v) {
    const uint16_t i = at > 0 ? judged_feature(j, p, at) : 0;
    *v = i == SVI_PRIOR_NONE ? INFINITY : p->r.bounds.apart[at > 0 ? i + 1 : 0];
    return *v < INFINITY;
}

static bool bound_weight(const struct judged *j, const struct judged_part *p, int at, double *v) {
    (void)j;
    (void)at;
    *v = p->r.bounds.weight;
    return *v < INFINITY;
}

/* The median of a number over the parts that count, and their number; *scatter (or NULL): the typical
 * distance from it, as a deviation. */
static int judged_median(const struct judged *j, judged_number *of, int at, double *middle, double *scatter) {
    int count = 0;
    for (int i = 0; i < j->count; i++)
        count += j->part[i].p && of(j, &j->part[i], at, &j->value[count]);
    if (count == 0)
        return 0;
    memcpy(j->scratch, j->value, (size_t)count * sizeof *j->value);
    *middle = svi_quantile(j->scratch, count, 0.5);
    for (int i = 0; i < count && scatter; i++)
        j->scratch[i] = fabs(j->value[i] - *middle);
    if (scatter)
        *scatter = NORMAL * svi_quantile(j->scratch, count, 0.5);
    return count;
}

static svs_code typical_make(struct judged *j, svs_error *err) {
    uint16_t place;
    for (int i = 0; i < j->count; i++)
        for (int k = 0; j->part[i].p && k < j->part[i].p->d; k++)
            SVI_TRY(svi_prior_sums_feature(&j->all, j->part[i].p->identity[k], k + 1, &place, err));
    struct svi_prior_bounds *b = &j->typical;
    SVI_TRY(svi_prior_bounds_unknown(b, j->all.n, err));
    for (int at = 0; at < b->n; at++) {
        double usual, middle, scatter;
        if (judged_median(j, number_spread, at, &usual, NULL) >= SVI_PRIOR_MIN_KEYS)
            b->usual[at] = usual;
        if (judged_median(j, number_level, at, &middle, &scatter) < SVI_PRIOR_MIN_KEYS)
            continue;
        b->middle[at] = middle;
        b->apart[at] = LEVELS * (scatter + (b->usual[at] < INFINITY ? b->usual[at] : 0));
    }
    if (judged_median(j, number_weight, 0, &b->weight, NULL) < SVI_PRIOR_MIN_KEYS)
        b->weight = INFINITY;
    if (judged_median(j, number_keys, 0, &j->typical_keys, NULL) < SVI_PRIOR_MIN_KEYS)
        j->typical_keys = INFINITY;
    return SVS_OK;
}

/* ---- verdicts */

static void weigh_part(const struct judged *j, struct judged_part *p) {
    double excess = 0, v, keys = 0;
    if (!p->p)
        return;
    for (int at = 0; at < j->typical.n; at++) {
        if (number_spread(j, p, at, &v))
            excess = fmax(excess, svi_prior_excess(&j->typical, at, v));
        /* A target that lies far from all others has that much energy, too. */
        if (at == 0 && j->regress && !svi_prior_near(&j->typical, 0, p->p->weight[0] / p->p->total))
            excess = fmax(excess, svi_prior_excess(&j->typical, 0,
                                                   p->p->weight[0] / p->p->total - j->typical.middle[0]));
    }
    p->of->factor = svi_prior_factor(&j->typical, excess, p->p->total);
    if (p->of->factor == 0) {
        judged_leave_out(p, "its spread or its weight is far from that of the other parts");
        return;
    }
    number_keys(j, p, 0, &keys);
    p->weight = p->of->factor * p->p->total;
    while (p->factor * keys > SVI_PRIOR_MAX_KEY_WEIGHT * j->typical_keys && p->factor > MIN_FACTOR)
        p->factor /= 4;
    p->keys = p->factor * keys;
}

/* No part outweighs all others together: which of two is right is for neither of them to say. */
static void limit_largest(struct judged *j) {
    double weight = 0, keys = 0;
    int count = 0;
    for (int i = 0; i < j->count; i++)
        if (j->part[i].p) {
            weight += j->part[i].weight;
            keys += j->part[i].keys;
            count++;
        }
    for (int i = 0; i < j->count && count >= SVI_PRIOR_MIN_KEYS; i++) {
        struct judged_part *p = &j->part[i];
        const double others = weight - p->weight, others_keys = keys - p->keys;
        for (; p->p && p->weight > others && others > 0; p->weight /= 4)
            p->of->factor /= 4;
        for (; p->p && p->keys > others_keys && others_keys > 0; p->keys /= 4)
            p->factor /= 4;
    }
}

/* ---- the result */

/* What a part says of levels is scaled, or taken out, in its own sums, which are added up after it. */
static void judged_levels(const struct judged *j, struct judged_part *p) {
    for (int at = 1; at < j->all.n; at++) {
        const uint16_t i = judged_feature(j, p, at);
        const bool known = i != SVI_PRIOR_NONE;
        const double factor = known && svi_prior_near(&j->typical, at, p->p->level[i]) ? p->factor : 0;
        for (int k = 0; known && k < SVI_PRIOR_OF_KEYS; k++) {
            const struct svi_prior_row row = svi_prior_sums_of_keys(&p->r.sums, k);
            row.high[i + 1] *= factor;
            row.low[i + 1] *= factor;
        }
    }
}

static svs_code judged_bounds(const struct judged *j, const struct svi_prior_sums *sums,
                              struct svi_prior_bounds *b, svs_error *err) {
    SVI_TRY(svi_prior_bounds_unknown(b, sums->n, err));
    judged_median(j, bound_weight, 0, &b->weight, NULL);
    for (int i = 0; i < b->n; i++) {
        double usual, middle, scatter, apart;
        const int at =
            i == 0 ? 0 : svi_prior_find(j->all.identity + 1, j->all.n - 1, sums->identity[i], i - 1) + 1;
        if (judged_median(j, bound_spread, at, &usual, NULL) > 0)
            b->usual[i] = usual;
        if (judged_median(j, bound_middle, at, &middle, &scatter) == 0 ||
            judged_median(j, bound_apart, at, &apart, NULL) == 0)
            continue;
        b->middle[i] = middle;
        b->apart[i] = apart + LEVELS * scatter; /* levels of keys, and of parts */
    }
    return SVS_OK;
}

static svs_code judged_add_up(struct judged *j, struct svi_prior_record *out, svs_error *err) {
    svi_prior_sums_init(&out->sums, j->regress);
    SVI_TRY(svi_prior_sums_ready(&out->sums, err));
    for (int i = 0; i < j->count; i++) {
        struct judged_part *p = &j->part[i];
        if (!p->p)
            continue;
        judged_levels(j, p);
        SVI_TRY(svi_prior_sums_join(&out->sums, &p->r.sums, p->of->factor, err));
        out->keys += p->r.keys;
    }
    return judged_bounds(j, &out->sums, &out->bounds, err);
}

svs_code svi_prior_merge(struct svi_prior_part *parts, int count, bool regress, struct svi_bytes *out,
                         svs_error *err) {
    struct judged j = {.regress = regress};
    struct svi_prior_record merged = {0};
    svi_prior_sums_init(&j.all, regress);
    svs_code code = judged_begin(&j, parts, count, err);
    if (code == SVS_OK)
        code = typical_make(&j, err);
    for (int i = 0; i < count && code == SVS_OK; i++)
        weigh_part(&j, &j.part[i]);
    if (code == SVS_OK)
        limit_largest(&j);
    if (code == SVS_OK)
        code = judged_add_up(&j, &merged, err);
    if (code == SVS_OK && !merged.sums.touched)
        code = svi_fail(err, SVS_EMPTY, "no part has a usable prior of keys");
    if (code == SVS_OK)
        code = svi_prior_record_encode(&merged.sums, &merged.bounds, merged.keys, out, err);
    svi_prior_record_clear(&merged);
    judged_clear(&j);
    return code;
}
