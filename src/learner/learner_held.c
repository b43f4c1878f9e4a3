/* What a learner holds, for those that read it: numbers and newest row of the window, the samples of an id,
 * leverage, and means of features over the window. Nothing here changes the model but svi_learner_take_back.
 */
#include "learner/learner_held.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "learner/learner_internal.h"
#include "linalg/sparse_rows.h"

/* Rows from which the sum of a feature is kept for each of many learners. With fewer it is made again within
 * the time of a sample; and a kept sum takes the memory of 49 values. */
#define KEPT_FROM 1024

int64_t svi_learner_arrivals(const svs_learner *l) {
    return l->arrivals;
}

void svi_learner_span(const svs_learner *l, struct svi_learner_span *out) {
    *out = (struct svi_learner_span){.window = l->window.pushed,
                                     .window_oldest = svi_ring_oldest(&l->window),
                                     .waiting = l->waiting.pushed,
                                     .waiting_oldest = svi_ring_oldest(&l->waiting)};
}

/* The newest live slot of the window; -1: none. Dead slots at the end are passed over. */
static int32_t held_newest(const svs_learner *l) {
    int32_t i = l->window.live ? l->window.count - 1 : -1;
    while (i >= 0 && !svi_ring_live(&l->window, svi_ring_at(&l->window, i)))
        i--;
    return i < 0 ? -1 : svi_ring_at(&l->window, i);
}

const svs_value *svi_learner_classes(const svs_learner *l) {
    static const svs_value none;
    return l->classes ? l->classes : &none;
}

const double *svi_learner_newest(const svs_learner *l) {
    const int32_t slot = held_newest(l);
    return slot < 0 ? NULL : svi_ring_row(&l->window, slot);
}

bool svi_learner_held_row(const svs_learner *l, int64_t i, const double **row, int64_t *number) {
    if (i >= l->window.count)
        return false;
    const int32_t slot = svi_ring_at(&l->window, (int32_t)i);
    *row = svi_ring_live(&l->window, slot) ? svi_ring_row(&l->window, slot) : NULL;
    *number = svi_ring_number(&l->window, slot);
    return true;
}

const double *svi_learner_waiting_row(const svs_learner *l, svs_value id) {
    const int32_t slot = svi_ring_find(&l->waiting, id);
    return slot < 0 ? NULL : svi_ring_row(&l->waiting, slot);
}

/* The newest waiting sample was scored by another model as well (the bank's): its late label is reported
 * against that score. */
void svi_learner_rescore(svs_learner *l, const double *scores, int predicted) {
    const int32_t slot = svi_ring_at(&l->waiting, l->waiting.count - 1);
    struct svi_ring_scores *s = svi_ring_scored(&l->waiting, slot);
    memcpy(svi_ring_row(&l->waiting, slot) + l->feature_capacity, scores,
           (size_t)svi_rows_of(s->class_count) * sizeof *scores);
    s->predicted = predicted;
}

static struct svi_held_sample held_sample(const svs_learner *l, int32_t slot) {
    const struct svi_ring *r = &l->window;
    return (struct svi_held_sample){.x = svi_ring_row(&l->window, slot),
                                    .number = svi_ring_number(r, slot),
                                    .label = l->o.task == SVS_REGRESS ? -1 : svi_ring_label(r, slot),
                                    .target = svi_ring_target(r, slot),
                                    .weight = svi_ring_weight(r, slot),
                                    .own = svi_ring_double(r, SVI_RING_WEIGHT, slot, 1)};
}

/* Newest first, as the ids are chained. */
void svi_learner_each_held(const svs_learner *l, svs_value id,
                           void (*found)(void *user, const struct svi_held_sample *s), void *user) {
    for (int32_t slot = svi_ring_find(&l->window, id); slot >= 0;
         slot = svi_ring_find_older(&l->window, slot)) {
        const struct svi_held_sample s = held_sample(l, slot);
        found(user, &s);
    }
}

bool svi_learner_newest_sample(const svs_learner *l, struct svi_held_sample *out) {
    const int32_t slot = held_newest(l);
    if (slot >= 0)
        *out = held_sample(l, slot);
    return slot >= 0;
}

/* Without a window: the sample learned last is taken out of the sums again, and P and w are solved from
 * them. The recursion would do it as well, but would leave its rounding behind; a solve is exact. */
void svi_learner_take_back(svs_learner *l, const struct svi_held_sample *s) {
    svi_claim(l);
    svi_transform_into(l, 0, s->x);
    svi_gram_take(l->gram, l->m->kernels, l->m->r.x[0], s->weight, s->label, s->target);
    l->m->kernels->energy_remove(l->energy, l->m->r.x[0], s->weight, INFINITY, 0, l->m->r.padded);
    l->held_learned--;
    svi_solve_sums(l);
    l->version++;
}

void svi_learner_relax(svs_learner *l, bool relaxed) {
    l->relaxed = relaxed;
}

/* x'P x, scaled so that the newest sample weighs 1 (P is in hats). */
double svi_learner_leverage(svs_learner *l, const double *x) {
    svi_claim(l);
    double *const z = l->scratch[0], *const product = l->scratch[1];
    l->m->kernels->standardise(z, x, l->scaler.mean, l->scaler.inverse, l->d, l->d + 1);
    svi_alsvm_inverse_times(l->m, z, product);
    return svi_dot(z, product, l->d + 1) * svi_hat(l, 1, l->order);
}

/* ---- means */

/* An exact sum (base/exact_sum.h): what enters and leaves does so without rounding, so the mean depends on
 * the rows alone, not on the history. */
void svi_kept_add(struct svi_kept_sums *k, const double *x, int sign) {
    for (int i = 0; i < k->count; i++)
        svi_exact_add(&k->of[i].sum, x[k->of[i].feature], sign);
}

void svi_kept_clear(svs_learner *l) {
    if (l->kept) {
        svi_free(l->kept->of);
        svi_free(l->kept->place);
    }
    svi_free(l->kept);
    l->kept = NULL;
}

static void held_add_up(const svs_learner *l, int feature, struct svi_exact_sum *sum) {
    *sum = (struct svi_exact_sum){0};
    for (int32_t i = 0, slot; (slot = svi_ring_next(&l->window, &i)) >= 0;)
        svi_exact_add(sum, svi_ring_row(&l->window, slot)[feature], 1);
}

/* The sum of a feature, made once and kept from now on. NULL without memory, and for a short window of one
 * of many learners: the caller adds up the rows then. */
static struct svi_exact_sum *held_keep(svs_learner *l, int feature) {
    /* One of many learners must stay small. */
    if (l->shared && l->window.count < KEPT_FROM)
        return NULL;
    struct svi_kept_sums *k = l->kept ? l->kept : (l->kept = svi_alloc(sizeof *k));
    if (!k)
        return NULL;
    if (feature < k->places && k->place[feature])
        return &k->of[k->place[feature] - 1].sum;
    if (!svi_grow(&k->of, k->count, &k->capacity, 4, sizeof *k->of))
        return NULL;
    if (feature >= k->places) {
        const int places = l->feature_capacity;
        int32_t *more =
            svi_realloc(k->place, (size_t)k->places * sizeof *more, (size_t)places * sizeof *more);
        if (!more)
            return NULL;
        k->place = more;
        k->places = places;
    }
    struct svi_kept_sum *own = &k->of[k->count++];
    own->feature = feature;
    held_add_up(l, feature, &own->sum);
    k->place[feature] = k->count;
    return &own->sum;
}

/* Without a window: the mean by the sums of z = (x - mean) inverse, weighted, and faded, as they are. */
static double held_mean_of_sums(const svs_learner *l, int feature) {
    const double weight = svi_gram_total(l->gram, 0), sum = svi_gram_total(l->gram, 1 + feature);
    return weight > 0 ? l->scaler.mean[feature] + sum / weight / l->scaler.inverse[feature] : 0;
}

double svi_learner_mean(svs_learner *l, int feature) {
    struct svi_exact_sum once, *sum;
    if (feature < 0 || feature >= l->d)
        return 0;
    if (l->o.window == 0)
        return held_mean_of_sums(l, feature);
    if (l->window.live == 0)
        return 0;
    sum = held_keep(l, feature);
    if (!sum)
        held_add_up(l, feature, sum = &once);
    return svi_exact_value(sum) / l->window.live;
}
