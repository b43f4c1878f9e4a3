/* Refinement. P loses digits, and w follows it with every sample. The residual of the rows held
 * takes w back, w += P (b - G w), as exactly as a fresh solve would have it. Where that would not
 * last, P is made again.
 *
 * A check of the residual reads the whole window, so it is made when w may be off, not by the
 * clock. What P has lost acts like a matrix that was added to G. The error of w is the relative
 * error of P times the distance that w has moved since it was right. Both are measured about 32
 * times a window (refine_measure). For the error of P, G u is kept sample by sample for two vectors
 * u: P (G u) should be u again (svi_energy). The distance is measured from where w was (`from`).
 *
 * Removals that leave little of 1 call for a measurement once their losses add up. A P that is made
 * again keeps the epoch's coordinates: rounding decides when it is made, and that must not move the
 * ridge. In small windows a check is cheap, and with scale none the ridge drowns G u. There the
 * residual of the bias's equation, or the condition alone, decides. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "learner/learner_internal.h"
#include "linalg/sparse_rows.h"

#define WATCHES               32 /* times a window P is measured */
#define MIN_CHANGES_A_MEASURE 8  /* changes from one measure by G u to the next */
/* Mean squares of a feature in units of its variance, from which the epoch has lost the center: the next
 * rebuild comes forward. */
#define UNCENTRED 4
#define NOISE     1e-9 /* of the mean squares: a smaller variance is rounding */
#define OFFSET    1e-6 /* deviations from which a constant has left its center */

/* Of w, relative. What is corrected: a plain solve has some eps times the condition itself. The promise is
 * 1e-10; the error of P is known to a factor of about 3. */
#define TOLERATED       5e-13
#define TOLERATED_PLAIN 16
#define PROMISED        1e-11
#define OFF_MAX         2e-10 /* of P: w may move far within the samples between two measures */
#define OFF_PLAIN       10    /* times what is tolerated of w: from there on a new P is hardly better */
#define CORRECT_MAX     1e-3  /* more is no error of P, but the residual's own */
#define AGAIN_FROM      1e-9  /* a larger correction was not the last: P is that far off */
#define ROUNDS          3

#define PARTS      8  /* the most that the error of P is taken for, in multiples of what its probe shows */
#define HEAL_SHARE 12 /* a new P costs one check, and one more for each HEAL_SHARE features */

/* With scale none, for each SHARE features and rows of W a window may be read once more. */
#define SHARE 24
#define ILL   30 /* the condition from which a new P costs w digits, P b being off by its square */
/* One of up to SMALL rows is cheap to read: SMALL_LOOKS times in its length, and each time where the
 * condition is ILL_EACH or P has lost digits; what is more than rounding is corrected. */
#define SMALL       256
#define SMALL_LOOKS 8
#define ILL_EACH    1000
#define CORRECT_MIN 1e-13

#define ERROR   0.25 /* of w, by a residual of 1 a sample and a condition of 1 */
#define RELAXED 16   /* arrivals from one check to the next, where many learners share the time of a sample */

/* ---- the residual */

/* The sign of a row of W in the combination. Fixed, and pseudo-random: an error that is common to all rows
 * must not cancel. */
static inline double refine_sign(int k) {
    return k == 0 || ((k * 2654435761u) >> 16 & 1) ? 1 : -1;
}

/* The target of a sample in row k of W; k < 0: in the combination of all rows, whose signs sum to `signs`. */
static inline double refine_target(const svs_learner *l, int32_t slot, int k, double signs) {
    if (l->o.task == SVS_REGRESS)
        return svi_ring_target(&l->window, slot);
    const int label = svi_ring_label(&l->window, slot);
    if (k < 0)
        return 2 * refine_sign(label) - signs;
    return label == (svi_rows(l) == 1 ? 1 : k) ? 1 : -1;
}

/* Rows of the window at a time, as they arrived, that serve all vectors before the next ones come. */
struct refine_block {
    const double *row[SVI_REFINE_ROWS];
    int32_t slot[SVI_REFINE_ROWS];
    double weight[SVI_REFINE_ROWS], off[SVI_REFINE_ROWS];
    int count;
};

/* Rows are taken as they lie in the window, SVI_REFINE_ROWS at a time: while they are in the cache they
 * serve all rows of W. */
static bool refine_fill(const svs_learner *l, struct refine_block *b, int32_t *next) {
    const struct svi_ring *r = &l->window;
    b->count = 0;
    for (int32_t s; b->count < SVI_REFINE_ROWS && (s = svi_next_learned(l, next)) >= 0; b->count++) {
        b->slot[b->count] = s;
        b->row[b->count] = svi_ring_row(r, s);
        b->weight[b->count] = l->o.forget == 1 ? svi_ring_weight(r, s)
                                               : svi_hat(l, svi_ring_weight(r, s), svi_ring_order(r, s));
    }
    return b->count > 0;
}

/* off = z'w, without making z: z'w = w_0 + sum (x_j - mean_j) (inverse_j w_j). The kernel takes the mean
 * out, so that features far from 0 cost no digits. */
static void refine_rows_dot(svs_learner *l, struct refine_block *b, const double *w) {
    double *v = l->m->r.y[0]; /* a vector that is free between two sweeps */
    for (int j = 0; j < l->d; j++)
        v[j] = l->scaler.inverse[j] * w[1 + j];
    l->m->kernels->about_dot(b->row, b->count, l->d, l->scaler.mean, v, b->off);
    for (int i = 0; i < b->count; i++)
        b->off[i] += w[0];
}

/* to += sum off z, likewise: the inverse deviations are applied once, to the sums. */
static void refine_rows_add(svs_learner *l, struct refine_block *b, double *to) {
    double *sums = l->m->r.y[0];
    memset(sums, 0, (size_t)l->d * sizeof *sums);
    l->m->kernels->about_add(b->row, b->count, l->d, l->scaler.mean, b->off, sums);
    for (int j = 0; j < l->d; j++)
        to[1 + j] += l->scaler.inverse[j] * sums[j];
    for (int i = 0; i < b->count; i++)
        to[0] += b->off[i];
}

/* residual += sum s z (t - z'w) over the block. */
static void refine_add(svs_learner *l, struct refine_block *b, const double *w, int k, double signs,
                       double *residual) {
    refine_rows_dot(l, b, w);
    for (int i = 0; i < b->count; i++)
        b->off[i] = b->weight[i] * (refine_target(l, b->slot[i], k, signs) - b->off[i]);
    refine_rows_add(l, b, residual);
}

/* The part of the residual that is the ridge's. */
static void refine_begin(svs_learner *l, const double *w, double *residual) {
    memset(residual, 0, (size_t)l->m->r.padded * sizeof *residual);
    svi_ridge_apply(l, w, residual);
    for (int j = 0; j <= l->d; j++)
        residual[j] = -residual[j];
}

void svi_residuals(svs_learner *l) {
    const size_t padded = (size_t)l->m->r.padded;
    const int rows = svi_rows(l);
    struct refine_block b;
    for (int k = 0; k < rows; k++) {
        double *residual = l->work->residual + (size_t)k * padded;
        refine_begin(l, l->m->r.w + (size_t)k * padded, residual);
        svi_prior_right(l, k, residual);
    }
    for (int32_t next = 0; refine_fill(l, &b, &next);)
        for (int k = 0; k < rows; k++)
            refine_add(l, &b, l->m->r.w + (size_t)k * padded, k, 0, l->work->residual + (size_t)k * padded);
}

void svi_rows_times(svs_learner *l, const double *v, double *out) {
    struct refine_block b;
    for (int32_t next = 0; refine_fill(l, &b, &next);) {
        refine_rows_dot(l, &b, v);
        for (int i = 0; i < b.count; i++)
            b.off[i] *= b.weight[i];
        refine_rows_add(l, &b, out);
    }
}

/* The combination of the rows of W; the sum of the squares of all rows. */
static double refine_combination(const svs_learner *l, double *w) {
    const int n = l->d + 1;
    const size_t padded = (size_t)l->m->r.padded;
    double squares = 0;
    memset(w, 0, padded * sizeof *w);
    for (int k = 0; k < svi_rows(l); k++) {
        const double *wk = l->m->r.w + (size_t)k * padded;
        l->m->kernels->add_times(w, wk, refine_sign(k), n);
        squares += l->m->kernels->dot(wk, wk, (int)padded);
    }
    return squares;
}

/* The combination of the rows of W is written to scratch[2], and its residual to scratch[0]. Returns the sum
 * of the squares of all rows. With targets and weights of all rows combined, one pass over the window serves
 * any number of classes. */
static double refine_combine(svs_learner *l) {
    const int n = l->d + 1, rows = svi_rows(l);
    const size_t padded = (size_t)l->m->r.padded;
    double *w = l->scratch[2], *residual = l->scratch[0], *right = l->scratch[1], signs = 0;
    const double squares = refine_combination(l, w);
    for (int k = 0; k < rows; k++)
        signs += refine_sign(k);
    refine_begin(l, w, residual);
    for (int k = 0; l->prior && k < rows; k++) {
        memset(right, 0, padded * sizeof *right);
        svi_prior_right(l, k, right);
        for (int j = 0; j < n; j++)
            residual[j] += refine_sign(k) * right[j];
    }
    struct refine_block b;
    for (int32_t next = 0; refine_fill(l, &b, &next);)
        refine_add(l, &b, w, rows == 1 ? 0 : -1, signs, residual);
    return squares;
}

/* ---- correction */

/* How far w is off, relative to it: |P residual| / |w| for the combination of its rows. With one
 * row that is w itself, whose correction is in scratch[3] then.
 *
 * One check serves all classes, as they share P: it checks one combination of the rows of W with
 * fixed signs. Only where its correction counts are all rows corrected, in one more pass. A stream
 * on which nothing is wrong keeps its bits. */
static double refine_look(svs_learner *l) {
    const double squares = refine_combine(l);
    l->health.window_reads++;
    svs_alsvm_apply(l->m, l->scratch[0], l->scratch[3]);
    return sqrt(svi_dot(l->scratch[3], l->scratch[3], l->d + 1) / squares);
}

static void refine_add_to(double *w, const double *correction, int n) {
    for (int j = 0; j < n; j++)
        w[j] += correction[j];
}

/* w += P residual for all rows of W; returns the largest share of |w| that a correction was. Shares below
 * rounding are left out: they would only change last bits. */
static double refine_correct(svs_learner *l) {
    const int n = l->d + 1;
    const size_t padded = (size_t)l->m->r.padded;
    double worst = 0, *correction = l->scratch[3];
    svi_residuals(l);
    l->health.window_reads++;
    for (int k = 0; k < svi_rows(l); k++) {
        double *w = l->m->r.w + (size_t)k * padded;
        svs_alsvm_apply(l->m, l->work->residual + (size_t)k * padded, correction);
        const double share = sqrt(svi_dot(correction, correction, n) / svi_dot(w, w, n));
        if (!(share > CORRECT_MIN))
            continue;
        refine_add_to(w, correction, n);
        worst = fmax(worst, share);
    }
    return worst;
}

/* ---- when */

/* Losses are independent errors of either sign: they add up in squares. */
void svi_refine_note_loss(svs_learner *l, double cost) {
    l->refine.lost = hypot(l->refine.lost, cost); /* losses of either sign */
}

/* The mean square of a feature in units of its variance: 1 while the epoch's mean is that of the window,
 * more when the window has moved away from it. */
static double refine_center(const svs_learner *l, int j) {
    const struct svi_energy *e = l->energy;
    const double variance = e->energy[j] - e->sum[j] * e->sum[j] / e->energy[0];
    if (variance > NOISE * e->energy[j])
        return e->energy[j] / variance;
    /* constant; or in units that a sample of another size left, in which all values are one */
    return e->energy[j] > OFFSET * OFFSET * e->energy[0] ? INFINITY : 1;
}

/* How far the equation of the bias is off, in the worst row of W, for a sample of weight 1: sum s t
 * - (G w)_0. All of it is kept in sums, so it costs no pass over the rows. */
static double refine_equation(svs_learner *l, double gain) {
    const size_t padded = (size_t)l->m->r.padded;
    const double total = l->energy->energy[0];
    double worst = 0, *ridge = l->scratch[0], *right = l->scratch[1];
    right[0] = 0;
    for (int k = 0; k < svi_rows(l); k++) {
        const double *w = l->m->r.w + (size_t)k * padded;
        const double targets =
            l->o.task == SVS_REGRESS ? l->targets_in[0] : 2 * l->targets_in[svi_rows(l) == 1 ? 1 : k] - total;
        svi_ridge_apply(l, w, ridge);
        if (l->prior) {
            memset(right, 0, padded * sizeof *right);
            svi_prior_right(l, k, right);
        }
        const double off =
            targets + (right[0] - ridge[0]) / gain - l->m->kernels->dot(l->energy->sum, w, (int)padded);
        worst = fmax(worst, fabs(off));
    }
    return worst / total;
}

/* P is measured by G u. */
bool svi_refine_probes(const svs_learner *l) {
    return l->held_learned > SMALL && l->o.scale != SVS_SCALE_NONE;
}

void svi_refine_way(double *way, int n) {
    for (int j = 0; j < n; j++) {
        const uint32_t hash = (uint32_t)(j + 1) * 2654435761u;
        way[j] = (hash >> 16 & 1 ? 1 : -1) * (0.5 + (hash >> 20) / 4096.0); /* of different sizes */
    }
}

/* |P (G u) - u| / |u|, where coordinates count by their share of G. G u without the ridge, in the unit of
 * the energies, is kept sample by sample (svi_energy). */
static double refine_off(const svs_learner *l, const double *pgu, const double *u, double gain) {
    double off = 0, size = 0;
    for (int j = 0; j <= l->d; j++) {
        const double share = gain * l->energy->energy[j] + svi_ridge_weight(l, j), e = pgu[j] - u[j];
        off += share * e * e;
        size += share * u[j] * u[j];
    }
    return sqrt(off / size);
}

/* The relative error of P, by the probe's vector and by the unit vector of the bias: both G u are known, and
 * P times both takes one sweep. */
static double refine_error(svs_learner *l, double gain) {
    struct svi_recursion *r = &l->m->r;
    const struct svi_energy *e = l->energy;
    double *bias = l->scratch[0];
    memset(bias, 0, (size_t)r->padded * sizeof *bias);
    bias[0] = 1;
    svi_ridge_apply(l, e->way, r->x[0]);
    svi_ridge_apply(l, bias, r->x[1]);
    l->m->kernels->add_times(r->x[0], e->probe, gain, l->d + 1);
    l->m->kernels->add_times(r->x[1], e->sum, gain, l->d + 1);
    l->m->kernels->sweep(r, 2);
    /* A vector of no direction sees one of d + 1 parts of the squares of an error in one direction. In many
     * dimensions the rounding of many steps, which has all directions, is more than such a one. */
    const double parts = fmin(sqrt(l->d + 1), PARTS),
                 off = fmax(parts * refine_off(l, r->y[0], e->way, gain), refine_off(l, r->y[1], bias, gain));
    return off < 1 ? off : 1; /* NaN too */
}

/* How far w has moved since it was right, relative to it. */
static double refine_moved(svs_learner *l) {
    double *w = l->scratch[2];
    const int padded = l->m->r.padded;
    const double squares = refine_combination(l, w);
    l->m->kernels->add_times(w, l->from, -1, l->d + 1);
    const double moved = sqrt(l->m->kernels->dot(w, w, padded) / squares);
    return moved < 1 / DBL_EPSILON ? moved : squares > 0 ? 1 / DBL_EPSILON : 0;
}

static double refine_tolerated(const svs_learner *l) {
    return fmax(TOLERATED, TOLERATED_PLAIN * (DBL_EPSILON / 2) * l->refine.now);
}

static bool refine_off_too_far(const svs_learner *l) {
    return l->refine.off > fmax(OFF_MAX, OFF_PLAIN * refine_tolerated(l));
}

/* Calls for a check if w may be off too far before the next measurement. The estimate is what is
 * lost so far, plus the error of P times a distance. The distance is how far w has moved and, at
 * this pace, will move. */
static void refine_measure_error(svs_learner *l, double gain) {
    struct svi_refine *r = &l->refine;
    const double moved = refine_moved(l), on = fmax(moved - r->moved, 0);
    r->off = refine_error(l, gain);
    r->moved = moved;
    const double loss = r->lost + r->off * (moved + on);
    r->fresh = loss > fmax(PROMISED, refine_tolerated(l)) || refine_off_too_far(l);
    l->drifts = false;
}

/* Measures condition and error of now; returns how far the worst feature has left its center. The condition
 * is the largest P_jj G_jj: 1 for a coordinate that the others do not explain, 1 / (1 - R^2) else. */
static double refine_measure(svs_learner *l) {
    if (!l->o.window || !(l->energy->energy[0] > 0))
        return 0;
    const bool raw = l->o.scale == SVS_SCALE_NONE;
    const double gain = svi_hat(l, 1, l->order - 1);
    double ill = 0, uncentred = 0;
    for (int j = 0; j <= l->d; j++) {
        ill = fmax(ill, svi_alsvm_diagonal(l->m, j) * l->energy->energy[j] * gain);
        if (j > 0 && !raw && !svi_scaler_unscaled(&l->scaler, j - 1))
            uncentred = fmax(uncentred, refine_center(l, j));
    }
    /* With scale none the ridge cancels as far as the means are from 0, and coordinates may be of any size.
     */
    if (raw)
        ill = l->health.condition;
    l->refine.now = ill;
    l->refine.worst = fmax(l->refine.worst, ill);
    if (svi_refine_probes(l))
        refine_measure_error(l, gain);
    else
        l->refine.residual = raw ? DBL_EPSILON * ill : refine_equation(l, gain);
    return uncentred;
}

/* Counted in changes, not in time; more often where less is held. */
static int64_t refine_wait(const svs_learner *l) {
    const int64_t part = l->held_learned / WATCHES, least = svi_refine_probes(l) ? MIN_CHANGES_A_MEASURE : 1;
    return part > least ? part : least;
}

/* True only says that the epoch is worn: the guard then brings the next rebuild forward. */
bool svi_refine_watch(svs_learner *l) {
    const bool lost = l->drifts && svi_refine_probes(l) && l->refine.lost > PROMISED / 2;
    if (--l->refine.wait > 0 && !lost)
        return false;
    l->refine.wait = refine_wait(l);
    return refine_measure(l) > UNCENTRED;
}

/* w is right as it is: the distance is counted from here. */
static void refine_stay(svs_learner *l) {
    refine_combination(l, l->from);
    l->refine.moved = 0;
}

void svi_refine_new_rows(svs_learner *l) {
    memset(l->from, 0, (size_t)l->m->r.padded * sizeof *l->from);
}

/* P is new, and so is w = P b: what w has lost is what P is off by. */
void svi_refine_begin_epoch(svs_learner *l) {
    struct svi_refine *r = &l->refine;
    *r = (struct svi_refine){.looked = l->arrivals, .wait = refine_wait(l)};
    refine_stay(l);
    refine_measure(l);
    r->lost = r->off; /* w is P b */
    r->fresh = svi_refine_probes(l) ? r->lost > fmax(PROMISED / 4, refine_tolerated(l)) : r->now > ILL;
}

/* What w may be off by since the last check, relative to it, where P is not measured by G u: known losses,
 * and the bias's equation, amplified by the condition. */
static double refine_estimate(const svs_learner *l) {
    return l->refine.lost + ERROR * l->refine.residual * l->refine.now;
}

/* Three regimes: large windows, where the measure has decided; small ones, which are cheap to read; and
 * others in between (scale none), where reading the window may cost only a share of what learning costs. */
static bool refine_is_due(const svs_learner *l) {
    const struct svi_refine *r = &l->refine;
    if (svi_refine_probes(l))
        return r->fresh;
    const int64_t moved = l->arrivals - r->looked, held = l->held_learned;
    const double tolerated = refine_tolerated(l), estimate = refine_estimate(l);
    if (l->relaxed && l->arrivals % RELAXED != 0)
        return false;
    if (held <= SMALL)
        return l->drifts || r->fresh || r->worst > ILL_EACH ||
               (estimate > tolerated && moved * SMALL_LOOKS >= held);
    return r->fresh || (estimate > PROMISED && moved * WATCHES >= held) ||
           (estimate > tolerated && moved * (1 + (l->d + svi_rows(l)) / SHARE) >= held);
}

/* P is too far off, or looks have cost as much as a new one. */
static bool refine_wants_new(const svs_learner *l) {
    const struct svi_refine *r = &l->refine;
    const int64_t moved = l->arrivals - r->looked;
    if (!svi_refine_probes(l))
        return false;
    return (moved > 0 && refine_off_too_far(l)) || r->looks > l->d / HEAL_SHARE;
}

/* One check, and what follows from it. The order: a new P first where it is wanted, since a correction by a P
 * that is far off would not hold; that may have made the check needless. */
bool svi_refine(svs_learner *l) {
    if (!l->o.window || l->held_learned == 0 || !refine_is_due(l))
        return false;
    if (refine_wants_new(l))
        svi_heal(l);
    struct svi_refine *r = &l->refine;
    if (!refine_is_due(l))
        return false;
    const bool probes = svi_refine_probes(l);
    const double found = refine_look(l),
                 least = l->held_learned <= SMALL ? CORRECT_MIN : refine_tolerated(l) / 2;
    bool changed = false;
    /* Above CORRECT_MAX it is no error of P, and w must not follow it. */
    if (found > least && found < CORRECT_MAX) {
        double share = found;
        if (svi_rows(l) == 1)
            refine_add_to(l->m->r.w, l->scratch[3], l->d + 1);
        else
            share = refine_correct(l);
        changed = share > 0;
        /* P itself is off by the share that remains, so each round multiplies the error by it. */
        for (int i = 1; share > AGAIN_FROM && i < ROUNDS; i++)
            share = refine_correct(l);
    }
    refine_stay(l);
    r->lost = probes && !changed ? found : 0;
    r->residual = 0;
    r->fresh = false;
    r->looks += r->looked < l->arrivals;
    r->looked = l->arrivals;
    r->worst = r->now;
    return changed;
}
