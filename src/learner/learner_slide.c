/* The slide: a sample enters P and w, and what leaves the full window is removed in the same sweep.
 *
 * Every removal is watched: the pivot, the leverage it had, whether it was by far the heaviest or had by far
 * the largest target, and the energies, which notice when large samples have left (NUMERICS 4.2). Where P
 * cannot be trusted any more the step ends in a rebuild (learner_rebuild.c), from the rows held. So after
 * each step either P is good or it is new.
 *
 * Invariants: held_learned counts the window's learned live slots; P and w hold exactly these, but for faded
 * ones whose removal would be below rounding (slide_leaves_trace). The energies, target sums and prior sums
 * hold the same samples, in the unit in which the newest sample counts fully.
 *
 * In the order of reading: svi_slide, slide_add_and_remove, slide_mend; then svi_remove_slot and svi_expire
 * for what leaves out of its turn. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "learner/learner_held.h"
#include "learner/learner_internal.h"

/* Beyond this the addition of a sample leaves P with 6 digits less in its direction: rebuild. */
#define LEVERAGE_MAX 1e6
/* And beyond this w feels it where the ridge does not count any more (measured: 1e-12). */
#define LEVERAGE_DRIFT 5e4
/* The removal of a sample may leave this relative error in P: eps |z|^2 / (nu (1 - a)). */
#define REMOVAL_ERROR_MAX 1e-8
/* And this much in its direction alone, which w feels; less where the system was ill-conditioned at the last
 * rebuild, or where rows are few, so that each has much of P. */
#define DRIFT_MAX     5e-13
#define DRIFT_MAX_ILL 1e-13
#define ILL           100 /* condition estimate */
/* Held samples for each coordinate from which a rebuild, which heals P, costs less than refining w for long.
 */
#define MIN_ROWS_A_COORDINATE 2
/* A feature whose spread falls this far below its peak has lost large samples. */
#define ENERGY_DROP  100
#define ENERGY_NOISE 1e-9 /* of the energy: a smaller spread is rounding */
/* But an unscaled feature whose peak was at most this, in units of the ridge, costs P 3 digits at most when
 * it leaves: a category that no sample has any more is no reason to rebuild. */
#define ENERGY_SMALL 1e3
/* What leaves is dwarfing when no other sample has this share of its weight, or of its weighted squared
 * target.
 */
#define DWARFED 0.01
/* FALSVM: a smaller lead is a tie that rounding broke (classes that were never learned have equal weights),
 * and ties are learned. */
#define TIE 1e-10
/* A new unit of hats before they lose range. */
#define GAIN_MAX 1e6
/* A faded sample that adds less than this to G, relative to the ridge, is below rounding: its removal is not
 * an operation. */
#define TRACE_MIN 1e-25

/* Hats grow with `order`: instead of fading all samples at each step, a new one weighs forget^-(order -
 * base) (learner_internal.h). */
double svi_hat(const svs_learner *l, double weight, int64_t order) {
    return l->o.forget == 1 ? weight : weight * pow(l->o.forget, (double)(l->base - order));
}

double svi_transform_into(svs_learner *l, int i, const double *x) {
    return l->m->kernels->standardise(l->m->r.x[i], x, l->scaler.mean, l->scaler.inverse, l->d,
                                      l->m->r.padded);
}

/* ---- operations */

/* What leaves, or nothing (slot -1), looked up once. */
struct slide_leaving {
    int32_t slot;
    int label;
    double weight, target;
    int64_t order;
};

static inline struct slide_leaving slide_look_up(const svs_learner *l, int32_t slot) {
    const struct svi_ring *r = &l->window;
    return (struct slide_leaving){slot, svi_ring_label(r, slot), svi_ring_weight(r, slot),
                                  l->o.task == SVS_REGRESS ? svi_ring_target(r, slot) : NAN,
                                  l->o.forget == 1 ? 0 : svi_ring_order(r, slot)};
}

/* What a sample weighs where the one learned at `newest` counts fully: the unit of the energies. */
static inline double slide_age_weight(const svs_learner *l, const struct slide_leaving *s, int64_t newest) {
    return l->o.forget == 1 ? s->weight : s->weight * pow(l->o.forget, (double)(newest - s->order));
}

/* What the target of a regression adds to the sum of squares, before it fades. */
static inline double slide_target_energy(const svs_learner *l, double weight, double target) {
    return l->o.task == SVS_REGRESS ? weight * target * target : 0;
}

static inline double slide_held_energy(const svs_learner *l, int32_t slot) {
    return slide_target_energy(l, svi_ring_weight(&l->window, slot), svi_ring_target(&l->window, slot));
}

/* However heavy or large it was, it may have faded below rounding: weight, target and row are measured
 * against the ridge. A removal of it would be an operation on P with nothing to remove. The cheap tests come
 * first. */
static inline bool slide_leaves_trace(svs_learner *l, const struct slide_leaving *s) {
    if (l->o.forget == 1)
        return true;
    const double weight = slide_age_weight(l, s, l->order), least = TRACE_MIN * l->nu;
    return weight > least || /* |z| is 1 at least */
           slide_held_energy(l, s->slot) * (weight / s->weight) > least ||
           weight * svi_transform_into(l, 1, svi_ring_row(&l->window, s->slot)) > least;
}

/* Prepares the removal of a slot as change i of the next step; returns |z|^2. */
static inline double slide_prepare_removal(svs_learner *l, int i, const struct slide_leaving *s,
                                           struct svi_change *change) {
    const double energy = svi_transform_into(l, i, svi_ring_row(&l->window, s->slot));
    svi_targets(l, s->label, s->target, l->target[i]);
    /* A removal is an addition of weight -s in hats (Eq. 6 with the sign of S^-1 = -1 / s). */
    *change = (struct svi_change){l->target[i], -1 / svi_hat(l, s->weight, s->order), 0};
    return energy;
}

/* True when the sample that leaves dwarfs, in weight or target, all that stay and the one that enters (of
 * weight 0: none does). What the others are in P or w is then rounding of it. The walk ends at the first
 * sample that is large enough, mostly the first one. */
static bool slide_dwarfs_rest(const svs_learner *l, const struct slide_leaving *leaving, double coming,
                              double coming_target) {
    const double weight = DWARFED * leaving->weight,
                 target = DWARFED * slide_target_energy(l, leaving->weight, leaving->target);
    bool any = coming > 0, heavy = any && coming >= weight,
         large = any && slide_target_energy(l, coming, coming_target) >= target;
    for (int32_t i = 0, s; !(heavy && large) && (s = svi_next_learned(l, &i)) >= 0;) {
        if (s == leaving->slot)
            continue;
        any = true;
        heavy |= svi_ring_weight(&l->window, s) >= weight;
        large |= slide_held_energy(l, s) >= target;
    }
    return any && !(heavy && large);
}

/* Notes the relative error that the removal of z leaves in P along z. P z becomes P z / (1 - s x'Px), so the
 * rounding of x'Px counts once in what remains of 1, and once more in the quotient: eps |z| |P z| s / (1 - s
 * x'Px)^2. */
static void slide_note_drift(svs_learner *l, const struct svi_change *c, const double *y, double energy,
                             double left) {
    if (left > 0.5)
        return;
    const double size = sqrt(energy * l->m->kernels->dot(y, y, l->m->r.padded)) / -c->inverse_weight;
    const bool many = l->held_learned >= MIN_ROWS_A_COORDINATE * (l->d + 1);
    const double most = many && l->health.condition < ILL ? DRIFT_MAX : DRIFT_MAX_ILL;
    const double cost = DBL_EPSILON * size / (left * left);
    l->drifts |= cost > most;
    svi_refine_note_loss(l, cost);
}

/* Where features are unscaled: has one lost energy that cost digits? A category that no sample has any more
 * loses all of it at no cost; its peak begins again at what it is now. */
static bool slide_drop_counts(svs_learner *l) {
    const struct svi_energy *e = l->energy;
    const double inverse = e->energy[0] > 0 ? 1 / e->energy[0] : 0;
    bool counts = false;
    for (int j = 1; j <= l->d; j++) {
        const double now = e->energy[j] - e->sum[j] * e->sum[j] * inverse;
        if (!(ENERGY_DROP * now < e->peak[j] && e->peak[j] > ENERGY_NOISE * e->energy[j]))
            continue;
        if (svi_scaler_unscaled(&l->scaler, j - 1) && e->peak[j] <= ENERGY_SMALL * l->nu)
            e->peak[j] = now;
        else
            counts = true;
    }
    return counts;
}

/* Keeps the sums of targets as the energies are kept: a sample of weight s is added, and those before it
 * count `keep` times what they did. s < 0: it is taken out. */
static void slide_count_target(svs_learner *l, int label, double target, double s, double keep) {
    if (l->o.task == SVS_REGRESS) {
        l->targets_in[0] = keep * l->targets_in[0] + s * target;
        return;
    }
    for (int k = 0; keep < 1 && k < l->class_count; k++)
        l->targets_in[k] *= keep;
    l->targets_in[label] += s;
}

/* True when P cannot be trusted after the removal of input i; s: the sample's weight in the unit of the
 * energies. */
static bool slide_removal_alarms(svs_learner *l, const struct svi_change *c, int i,
                                 const struct slide_leaving *leaving, double energy, double s) {
    const double *z = l->m->r.x[i];
    slide_count_target(l, leaving->label, leaving->target, -s, 1);
    /* 1 - s x'Px: what remains of 1 (ALGORITHMS 1: 1 - a). A P that is lost can make it look harmless, so
     * the test of the next line and the energies stand next to it. */
    double left = 1 + c->leverage / c->inverse_weight; /* 1 - s x'Px */
    slide_note_drift(l, c, l->m->r.y[i], energy, left);
    /* eps |z|^2 s / (nu (1 - a)): the negation catches NAN and a negative `left`. */
    bool lost = !(DBL_EPSILON * energy * s < REMOVAL_ERROR_MAX * l->nu * left);
    bool dropped = l->m->kernels->energy_remove(l->energy, z, s, ENERGY_DROP, ENERGY_NOISE, l->m->r.padded);
    if (dropped && l->scaler.unscaled_count)
        dropped = slide_drop_counts(l);
    return dropped | lost;
}

/* Removes a slot from P and w, without an addition in the same sweep. False: P must be rebuilt. The tests
 * stand behind the step: they read what it has left. */
static bool slide_remove_alone(svs_learner *l, const struct slide_leaving *leaving) {
    struct svi_change change;
    double energy = slide_prepare_removal(l, 0, leaving, &change);
    double s = slide_age_weight(l, leaving, l->order - 1); /* the newest is in already */
    return svi_alsvm_step(l->m, &change, 1, NULL) == SVS_OK &&
           !slide_removal_alarms(l, &change, 0, leaving, energy, s) && !slide_dwarfs_rest(l, leaving, 0, 0);
}

/* After the sample is in. When the hats have grown to GAIN_MAX all that is kept in them is divided by it, P
 * multiplied: no value changes but by rounding, and `base` is the new zero. */
static void slide_learned(svs_learner *l) {
    l->order++;
    l->held_learned++;
    l->health.learned++;
    if (l->o.forget == 1)
        return;
    double gain = svi_hat(l, 1, l->order);
    if (gain < GAIN_MAX)
        return;
    svi_alsvm_scale_inverse(l->m, gain);
    svi_gram_scale(l->gram, 1 / gain);
    for (int j = 0; j <= l->d; j++)
        l->ridge[j] /= gain;
    l->base = l->order;
}

/* The sample in input 0 enters P, w and the sums, and what leaves is removed in the same sweep: the addition
 * first, as the other order would pass through a smaller G (NUMERICS 2). False: P must be rebuilt. */
static bool slide_add_and_remove(svs_learner *l, const struct slide_leaving *leaving, double weight,
                                 svs_step *out) {
    struct svi_change change[2];
    double energy = 0;
    int count = 1;
    svi_targets(l, out->label, out->target, l->target[0]);
    change[0] = (struct svi_change){l->target[0], 1 / svi_hat(l, weight, l->order), 0};
    if (leaving->slot >= 0) {
        energy = slide_prepare_removal(l, 1, leaving, &change[1]);
        count = 2;
    }
    bool good = svi_alsvm_step(l->m, change, count, NULL) == SVS_OK;
    /* x'Px of the model before the sample, for a weight of 1. */
    out->leverage = change[0].leverage * svi_hat(l, 1, l->order);
    l->m->kernels->energy_add(l->energy, l->m->r.x[0], weight, l->o.forget, l->m->r.padded);
    slide_count_target(l, out->label, out->target, weight, l->o.forget);
    if (leaving->slot >= 0) {
        good &=
            !slide_removal_alarms(l, &change[1], 1, leaving, energy, slide_age_weight(l, leaving, l->order));
        good &= !slide_dwarfs_rest(l, leaving, weight, out->target);
    }
    /* A direction that P hardly knew: 1 + s x'Px is large, and the addition costs P as many digits along it.
     */
    const double ratio = change[0].leverage / change[0].inverse_weight;
    if (l->o.window && ratio > LEVERAGE_DRIFT) {
        l->drifts = true;
        svi_refine_note_loss(l, DBL_EPSILON * ratio);
    }
    if (svi_gathers(l))
        svi_gram_add(l->gram, l->m->kernels, l->m->r.x[0], svi_hat(l, weight, l->order), out->label,
                     out->target);
    return good && change[0].leverage < LEVERAGE_MAX * change[0].inverse_weight;
}

/* ---- the slide */

/* After a removal. Where P cannot be trusted it is rebuilt. Where nothing is in any more the model is P =
 * ridge^-1, w = 0 again, and not the rounding that is left, which FALSVM's next decision would follow. */
static void slide_mend(svs_learner *l, bool good) {
    bool emptied = l->o.window && l->held_learned == 0;
    l->health.alarms += !good;
    if (!good || emptied)
        svi_rebuild(l, false);
    /* Only where P is not measured (svi_refine_probes): else the measure decides. */
    else if (l->drifts && !svi_refine_probes(l) && l->held_learned >= MIN_ROWS_A_COORDINATE * (l->d + 1))
        svi_heal(l);
}

/* Before a slot of the window leaves, all that counts it is updated: a snapshot may want its row; the bucket
 * cannot hold it any more; means, prior and class counts lose it. Returns what P and w hold of it; slot -1:
 * nothing. */
static struct slide_leaving slide_release(svs_learner *l, int32_t slot) {
    const struct svi_ring *r = &l->window;
    const bool live = svi_ring_live(r, slot), in = svi_ring_in(r, slot);
    if (l->snapshot && svi_ring_number(r, slot) >= l->snapshot->next)
        svi_snapshot_copy(l->snapshot, l, INT64_MAX);
    if (l->bucket && live && l->o.window && svi_ring_number(r, slot) >= l->bucket_from)
        l->bucket = false;
    if (l->kept && live)
        svi_kept_add(l->kept, svi_ring_row(r, slot), -1);
    l->held_learned -= in;
    svi_prior_left(l, slot);
    struct slide_leaving leaving = {.slot = -1};
    if (!live)
        return leaving;
    leaving = slide_look_up(l, slot);
    svi_class_left(l, leaving.label);
    if (!in || !slide_leaves_trace(l, &leaving))
        leaving.slot = -1;
    return leaving;
}

static void slide_remember(svs_learner *l, const double *x, svs_value id, struct svi_weight weight,
                           double time, const svs_step *out) {
    struct svi_slot s = svi_slot_of(l, id, out, weight);
    s.time = time;
    s.learned = out->learned;
    memcpy(svi_ring_row(&l->window, svi_ring_push(&l->window, &s)), x, (size_t)l->d * sizeof *x);
    if (l->kept)
        svi_kept_add(l->kept, x, 1);
}

void svi_scores_now(const svs_learner *l, double *scores) {
    const struct svi_recursion *r = &l->m->r;
    const struct svi_kernels *k = l->m->kernels;
    if (r->rows == 1)
        scores[0] = k->dot(r->w, r->x[0], r->padded);
    else
        k->rows_dot(r->w, (size_t)r->padded, r->rows, r->padded, r->x[0], scores);
}

/* FALSVM does not learn what the model classifies rightly. */
static bool slide_falsvm_skips(svs_learner *l, int label) {
    double *scores = l->target[0];
    if (l->o.rule != SVS_FALSVM)
        return false;
    svi_scores_now(l, scores); /* not those of the arrival: a late label, a new class */
    if (l->class_count < 3)
        return (label == 1 ? scores[0] : -scores[0]) > TIE;
    for (int k = 0; k < l->class_count; k++)
        if (k != label && scores[k] + TIE >= scores[label])
            return false;
    return true;
}

/* The order of the steps is fixed by what each needs. The leaving slot is released while its row is still in
 * the ring; the sweep reads both rows; then the slot is freed and the new sample takes its place. `order`
 * rises after the sample's hat was computed, and the ridge's turn follows the new order. Repairs come last,
 * the guard's planned work after `arrivals` was counted, and the refinement when P is settled. */
void svi_slide(svs_learner *l, const double *x, const svs_value *id, double own, double factor, double time,
               svs_step *out) {
    const struct svi_weight weight = {own, factor};
    int64_t rebuilds = l->health.rebuilds;
    if (l->arrivals == 0)
        /* The sums of all keys need a center for this key before its first sample is counted. */
        svi_prior_first(l, x);
    if (l->arrivals == 0 && !(l->prior && l->prior->in)) {
        svi_scaler_center(&l->scaler, x); /* the epoch before the first sample: centred there */
        svi_solve_empty(l);
        /* Input 0 already had the row, in the coordinates of before: the center has just changed. */
        svi_transform_into(l, 0, x);
    }
    bool good = true, full = l->o.window > 0 && svi_ring_full(&l->window);
    out->learned = !slide_falsvm_skips(l, out->label);
    out->removed += full && svi_ring_live(&l->window, l->window.first);
    const struct slide_leaving leaving =
        full ? slide_release(l, l->window.first) : (struct slide_leaving){.slot = -1};
    if (out->learned)
        good = slide_add_and_remove(l, &leaving, weight.own * weight.factor, out);
    else if (leaving.slot >= 0)
        good = slide_remove_alone(l, &leaving);
    if (full)
        svi_ring_pop(&l->window);
    if (l->o.window)
        slide_remember(l, x, *id, weight, time, out);
    svi_class_count_change(l, out);
    if (out->learned) {
        svi_prior_add_sample(l, x, weight.own, out);
        slide_learned(l);
        /* This may count all samples held again: the new one must be in the ring and in held_learned. */
        svi_prior_learned(l);
        /* A turn of the ridge can find P lost, like a removal. */
        good &= svi_ridge_refresh(l);
    }
    l->arrivals++;
    if (!good || full || l->drifts)
        slide_mend(l, good);
    svi_guard(l);
    const bool corrected = svi_refine(l);
    /* a rebuild and a correction change last bits */
    l->version += out->learned || leaving.slot >= 0 || l->health.rebuilds > rebuilds || corrected;
}

void svi_remove_slot(svs_learner *l, int32_t slot) {
    int64_t rebuilds = l->health.rebuilds;
    const struct slide_leaving leaving = slide_release(l, slot);
    const bool trace = leaving.slot >= 0, good = !trace || slide_remove_alone(l, &leaving);
    svi_ring_kill(&l->window, slot);
    slide_mend(l, good);
    svi_refine_watch(l);
    const bool corrected = svi_refine(l);
    l->version += trace || l->health.rebuilds > rebuilds || corrected;
}

/* The slots are not removed from P one by one: one rebuild follows for all. */
int svi_learner_shrink(svs_learner *l, int64_t last, int64_t least) {
    const int64_t from = l->window.pushed - last;
    int removed = 0;
    svi_claim(l);
    while (l->o.window && l->window.live > least && svi_ring_number(&l->window, l->window.first) < from) {
        if (svi_ring_live(&l->window, l->window.first)) {
            slide_release(l, l->window.first);
            removed++;
        }
        svi_ring_pop(&l->window);
    }
    if (removed) {
        svi_rebuild(l, false);
        l->version++;
    }
    return removed;
}

/* Dead slots at the front go whatever their time. */
static bool slide_expired(const struct svi_ring *r, double time, double seconds) {
    return r->count && (!svi_ring_live(r, r->first) || *svi_ring_time(r, r->first) < time - seconds);
}

int svi_expire(svs_learner *l, double time) {
    int removed = 0;
    while (slide_expired(&l->waiting, time, l->o.labels_ttl)) {
        l->health.labels_expired += svi_ring_live(&l->waiting, l->waiting.first);
        svi_ring_pop(&l->waiting);
    }
    while (l->o.window_seconds > 0 && slide_expired(&l->window, time, l->o.window_seconds)) {
        if (svi_ring_live(&l->window, l->window.first)) {
            /* Killed first, while it is in the ring; then popped as a dead slot. */
            svi_remove_slot(l, l->window.first);
            removed++;
        }
        svi_ring_pop(&l->window);
    }
    return removed;
}
