/* The guard. Rounding in P grows slowly on ordinary data, and at once when large samples enter and
 * leave. It never heals by itself (NUMERICS 4). So P and w are rebuilt from sums that only ever
 * grew:
 *  - At fixed arrivals: 8, 16, 32, ... up to the window's size, because P = I/nu swings widely
 *    while the first samples come. Then every PERIOD windows. For the last window before such a
 *    rebuild a bucket gathers G sample by sample, so the rebuild itself needs no pass over the
 *    window.
 *  - At once, from the rows held, when a signal calls for it (learner_slide.c). The signals are the
 *    energy sentinel, a pivot, a leverage, and the removal of a weight or target that dwarfed the
 *    others.
 * Where classes are balanced, a planned rebuild comes after each quarter of what is held. It is
 * made from the rows, which are weighed again by the present shares (learner_weights.c). Each
 * rebuild begins an epoch: the scaler is fitted again, and w is refined once against the residual
 * of the rows. Read svi_guard and svi_rebuild first, then rebuild_scaler_from_sums and
 * rebuild_solve. */
#include <math.h>
#include <string.h>

#include "learner/learner_archive.h"
#include "learner/learner_internal.h"
#include "linalg/sparse_rows.h"

#define FIRST_REBUILD 8
#define PERIOD        4 /* windows between planned rebuilds */
#define WEIGH_SHARE   4 /* balanced classes: they come after such a part of the samples held */
/* Deviations that a mean may have moved for G to be moved instead of gathered again. */
#define SHIFT_MAX      1000
#define SHIFT_CONSTANT 1e-6
#define REFINE_FROM    1e4   /* condition estimate from which w is refined */
#define JITTER         1e-14 /* of the mean diagonal, 100-fold each try */
#define JITTER_TRIES   8

/* ---- sums over what is held */

int32_t svi_next_learned(const svs_learner *l, int32_t *i) {
    while (*i < l->window.count) {
        const int32_t slot = svi_ring_at(&l->window, (*i)++);
        if (svi_ring_in(&l->window, slot))
            return slot;
    }
    return -1;
}

bool svi_next_row(svs_learner *l, int32_t *i, struct svi_learned *row) {
    const int32_t slot = row->slot = svi_next_learned(l, i);
    if (slot < 0)
        return false;
    svi_scaler_apply(&l->scaler, svi_ring_row(&l->window, slot), l->scratch[1]);
    row->z = l->scratch[1];
    row->s = svi_hat(l, svi_ring_weight(&l->window, slot), svi_ring_order(&l->window, slot));
    row->label = svi_ring_label(&l->window, slot);
    row->target = svi_ring_target(&l->window, slot);
    return true;
}

/* ---- epochs */

/* Fits the scaler to what the sums hold, and moves the sums into its coordinates. False: a mean has moved
 * too many deviations; the products of the move would cancel, and the rows must be gathered again. */
static bool rebuild_scaler_from_sums(svs_learner *l) {
    struct svi_gram *g = l->gram;
    double *shift = l->scratch[2], *inverse = l->scratch[3], total = g->g[0];
    if (!(total > 0))
        return true;
    /* In the old coordinates, where the mean was 0 and the variance 1 at the last fit: shift and spread say
     * what has changed since. */
    for (int j = 1; j <= l->d; j++) {
        const double *row = g->g + (size_t)j * g->n;
        shift[j] = row[0] / total;
        double variance = row[j] / total - shift[j] * shift[j];
        if (svi_scaler_unscaled(&l->scaler, j - 1)) {
            shift[j] = 0;
            inverse[j] = 1;
            continue;
        }
        const bool constant = !(variance > 1e-12 * (1 + shift[j] * shift[j]));
        inverse[j] = constant ? 1 : 1 / sqrt(variance);
        /* Of a constant away from its center the sums do not say whether its rows are all the same. */
        if (l->o.window && fabs(shift[j]) * inverse[j] > (constant ? SHIFT_CONSTANT : SHIFT_MAX))
            return false;
    }
    /* The new scaler is the old one followed by this change: mean += shift deviation, deviation *= spread. */
    for (int j = 1; j <= l->d; j++) {
        double *mean = &l->scaler.mean[j - 1], old = *mean;
        *mean += shift[j] / l->scaler.inverse[j - 1];
        shift[j] = (*mean - old) * l->scaler.inverse[j - 1]; /* as rounded, which shows far from 0 */
        l->scaler.inverse[j - 1] *= inverse[j];
    }
    svi_scaler_bound(&l->scaler);
    svi_gram_move(g, shift, inverse);
    return true;
}

void svi_right_hand_sides(const svs_learner *l, double *r) {
    for (int k = 0, rows = svi_rows(l); k < rows; k++)
        svi_gram_right_hand_side(l->gram, k, rows, l->o.task == SVS_REGRESS, r + (size_t)k * (l->d + 1));
}

/* w_k += P residual_k, the residual being summed over the rows and not taken from G: one step of iterative
 * refinement. Only where G has cost digits (its condition is high). */
static void rebuild_refine(svs_learner *l) {
    int n = l->d + 1;
    double *correction = l->scratch[3];
    if (l->health.condition < REFINE_FROM)
        return;
    svi_residuals(l);
    for (int k = 0; k < svi_rows(l); k++) {
        const size_t at = (size_t)k * (size_t)l->m->r.padded;
        double *w = l->m->r.w + at;
        svs_alsvm_apply(l->m, l->work->residual + at, correction);
        for (int j = 0; j < n; j++)
            w[j] += correction[j];
    }
}

/* gram + ridge into gram_copy, with `jitter` on the diagonal; its mean diagonal without that. With scale none
 * the bias's vector is not in the ridge: it is as long as the means are far from 0, and inside G it would
 * drown the samples (ridge_add_bias). */
static double rebuild_fill_copy(svs_learner *l, double jitter) {
    int n = l->d + 1;
    /* The ridge's vectors are unit vectors but for scale none, where v_j = inverse_j e_j (learner_ridge.c).
     */
    const bool raw = l->o.scale == SVS_SCALE_NONE;
    double trace = 0;
    memcpy(l->gram_copy, l->gram->g, (size_t)n * (size_t)n * sizeof(double));
    for (int i = 0; l->prior && i < n; i++)
        for (int j = 0; j <= i; j++)
            l->gram_copy[(size_t)i * n + j] += svi_prior_entry(l, i, j);
    for (int j = 0; j < n; j++) {
        double *entry = l->gram_copy + (size_t)j * n + j, v = raw && j > 0 ? l->scaler.inverse[j - 1] : 1;
        if (j > 0 || !raw)
            *entry += svi_ridge_weight(l, j) * v * v;
        trace += *entry;
        *entry += jitter;
    }
    return trace / n;
}

/* scale none: the bias's ridge as one more step after the solve, which costs the samples no digits. */
static void ridge_add_bias(svs_learner *l) {
    memset(l->target[0], 0, (size_t)svi_rows(l) * sizeof(double));
    struct svi_change change = {l->target[0], 1 / svi_ridge_weight(l, 0), 0};
    svi_ridge_vector(l, 0, l->m->r.x[0]);
    svi_alsvm_step(l->m, &change, 1, NULL); /* of a positive definite P: cannot fail but by overflow */
}

/* scale none, nothing in: P is the inverse of the ridge, known without a solve: with b and w_j of the raw
 * model independent, u_0 = b + sum mean_j w_j and u_j = w_j / inverse_j. */
static void rebuild_solve_empty(svs_learner *l) {
    int n = l->d + 1;
    double *p = l->gram_copy;
    memset(p, 0, (size_t)n * (size_t)n * sizeof *p);
    p[0] = 1 / svi_ridge_weight(l, 0);
    for (int j = 1; j < n; j++) {
        double mean = l->scaler.mean[j - 1], deviation = 1 / l->scaler.inverse[j - 1];
        double variance = 1 / svi_ridge_weight(l, j), *row = p + (size_t)j * n;
        p[0] += mean * mean * variance;
        row[0] = mean * deviation * variance;
        row[j] = deviation * deviation * variance;
    }
    svi_alsvm_set_inverse(l->m, p, l->W);
    l->health.condition = 1; /* in raw units */
}

/* P and w from gram + ridge. If even the sums are singular in floating point, the smallest ridge that
 * rounding would have made anyway is added to the diagonal, and a hundred times more with each try. */
static void rebuild_solve(svs_learner *l) {
    bool raw = l->o.scale == SVS_SCALE_NONE;
    double jitter = 0, mean = 0;
    /* The factorisation destroys gram_copy, so each try fills it again; the right-hand sides stay in W. */
    svi_right_hand_sides(l, l->W);
    for (int k = 0; k < svi_rows(l); k++)
        svi_prior_right(l, k, l->W + (size_t)k * (l->d + 1));
    if (raw && !(l->gram->g[0] + svi_prior_entry(l, 0, 0) > 0)) {
        rebuild_solve_empty(l);
        return;
    }
    for (int tries = 0; tries < JITTER_TRIES; tries++) {
        mean = rebuild_fill_copy(l, jitter);
        if (svs_alsvm_set(l->m, l->gram_copy, l->W, NULL) == SVS_OK)
            break;
        jitter = jitter > 0 ? 100 * jitter : JITTER * mean;
    }
    if (raw)
        ridge_add_bias(l);
    /* An estimate: tr(P) / n times the mean diagonal of G. It is 1 for a multiple of I and grows with the
     * spread of the eigenvalues. */
    l->health.condition = svi_alsvm_trace_inverse(l->m) / (l->d + 1) * mean;
}

/* |G (P v) - v| / |v| for v in scratch[0] (of +-1, so |v|^2 = n) and P v in scratch[2]. G is taken from the
 * rows (from the sums without a window), so it shows what the recursion has lost. */
static double rebuild_lost(svs_learner *l) {
    int n = l->d + 1;
    const double *v = l->scratch[0], *pv = l->scratch[2];
    double *gpv = l->scratch[3], sum = 0;
    svi_ridge_apply(l, pv, gpv);
    if (l->o.window)
        svi_rows_times(l, pv, gpv);
    for (int i = 0; !l->o.window && i < n; i++)
        for (int j = 0; j < n; j++)
            gpv[i] += l->gram->g[j <= i ? (size_t)i * n + j : (size_t)j * n + i] * pv[j];
    for (int j = 0; j < n; j++)
        sum += (gpv[j] - v[j]) * (gpv[j] - v[j]);
    return sqrt(sum / n);
}

double svi_learner_residual(svs_learner *l) {
    int n = l->d + 1, rows = svi_rows(l);
    if (l->o.window == 0 || l->arrivals == 0)
        return NAN;
    svi_claim(l);
    double *b = l->scratch[3];
    svi_signs(l->scratch[0], n);
    svi_alsvm_inverse_times(l->m, l->scratch[0], l->scratch[2]);
    double worst = rebuild_lost(l);
    svi_residuals(l);
    for (int k = 0; k < rows; k++) { /* |b - G w| / |b|, from the rows */
        struct svi_learned row;
        memset(b, 0, (size_t)n * sizeof *b);
        for (int32_t i = 0; svi_next_row(l, &i, &row);) {
            svi_targets(l, row.label, row.target, l->target[0]);
            for (int j = 0; j < n; j++)
                b[j] += row.s * l->target[0][k] * row.z[j];
        }
        svi_prior_right(l, k, b);
        const double *residual = l->work->residual + (size_t)k * (size_t)l->m->r.padded,
                     off = svi_dot(residual, residual, n), size = svi_dot(b, b, n);
        worst = fmax(worst, size > 0 ? sqrt(off / size) : sqrt(off));
    }
    return worst;
}

/* The probe is G times a fixed vector, exactly of what is in, whatever rounding the slides have left in it.
 * G is a lower triangle: each entry serves its row and its column. */
static void rebuild_measure_probe(svs_learner *l) {
    const struct svi_gram *g = l->gram;
    const double gain = svi_hat(l, 1, l->order - 1), *way = l->energy->way;
    double *probe = l->energy->probe;
    for (int i = 0; i <= l->d; i++) {
        const double *row = g->g + (size_t)i * g->n;
        double s = row[i] * way[i];
        for (int j = 0; j < i; j++) {
            s += row[j] * way[j];
            probe[j] += row[j] * (way[i] / gain);
        }
        probe[i] = s / gain;
    }
}

/* The energies in the unit in which the newest sample counts fully. The peak begins at the spread of now: an
 * epoch knows nothing of larger samples before it. */
static void rebuild_measure_energy(svs_learner *l) {
    const struct svi_gram *g = l->gram;
    double gain = svi_hat(l, 1, l->order - 1), total = g->g[0]; /* the newest counts fully */
    for (int j = 0; j <= l->d; j++) {
        l->energy->energy[j] = g->g[(size_t)j * g->n + j] / gain;
        l->energy->sum[j] = g->g[(size_t)j * g->n] / gain;
        l->energy->peak[j] =
            total > 0 ? l->energy->energy[j] - l->energy->sum[j] * l->energy->sum[j] * gain / total : 0;
    }
    for (int k = 0; k < l->class_count || k == 0; k++)
        l->targets_in[k] = g->sums[(size_t)k * (size_t)g->n] / gain;
    rebuild_measure_probe(l);
}

/* The row of a slot, in the present coordinates, into the sums, with others as soon as they are a block. */
static inline void rebuild_gather_slot(svs_learner *l, struct svi_gram_rows *rows, int32_t slot,
                                       double weight) {
    const struct svi_ring *r = &l->window;
    svi_gram_rows_take(rows, svi_ring_row(r, slot), weight, svi_ring_label(r, slot),
                       svi_ring_target(r, slot));
    if (rows->count < SVI_GRAM_BLOCK)
        return;
    svi_gram_add_rows(l->gram, l->m->kernels, rows, l->scaler.mean, l->scaler.inverse);
    rows->count = 0;
}

static void rebuild_gather(svs_learner *l) {
    const struct svi_ring *r = &l->window;
    struct svi_gram_rows rows;
    rows.count = 0;
    svi_gram_zero(l->gram);
    for (int32_t i = 0, slot; (slot = svi_next_learned(l, &i)) >= 0;)
        rebuild_gather_slot(l, &rows, slot, svi_hat(l, svi_ring_weight(r, slot), svi_ring_order(r, slot)));
    svi_gram_add_rows(l->gram, l->m->kernels, &rows, l->scaler.mean, l->scaler.inverse);
    svi_gram_flush(l->gram, l->m->kernels);
}

/* Unlike svi_rebuild it keeps the coordinates of the epoch: it comes by a measure of rounding, and must not
 * move the ridge, which is defined in these coordinates. */
void svi_heal(svs_learner *l) {
    rebuild_gather(l);
    l->bucket = l->drifts = false;
    rebuild_solve(l);
    rebuild_refine(l);
    rebuild_measure_probe(l);
    svi_refine_begin_epoch(l);
    l->health.rebuilds++;
}

void svi_solve_sums(svs_learner *l) {
    svi_gram_flush(l->gram, l->m->kernels);
    rebuild_solve(l);
    l->health.rebuilds++;
}

/* Gathers the bucket from the rows, for a learner whose sums are scratch: the same rows in the same order,
 * so exactly the bits that gathering them one by one would have given. */
void svi_bucket_gather(svs_learner *l) {
    const struct svi_ring *r = &l->window;
    if (!l->bucket || l->own_gram)
        return;
    struct svi_gram_rows rows;
    rows.count = 0;
    svi_gram_zero(l->gram);
    for (int32_t i = 0; i < r->count; i++) {
        const int32_t slot = svi_ring_at(r, i);
        if (svi_ring_in(r, slot) && svi_ring_number(r, slot) >= l->bucket_from)
            rebuild_gather_slot(l, &rows, slot, svi_ring_weight(r, slot));
    }
    svi_gram_add_rows(l->gram, l->m->kernels, &rows, l->scaler.mean, l->scaler.inverse);
}

/* The order: residual of the old P first, which is a figure; weights and prior, which change what the sums
 * must hold; coordinates and sums; P and w; then what is measured against them (energies, refinement). */
void svi_rebuild(svs_learner *l, bool planned) {
    const bool from_sums = l->o.window == 0 || (planned && l->bucket); /* unplanned, it holds only a part */
    if (planned && l->shared)
        svi_bucket_gather(l);
    svi_gram_flush(l->gram, l->m->kernels);
    if (planned) {
        svi_signs(l->scratch[0], l->d + 1);
        svs_alsvm_apply(l->m, l->scratch[0], l->scratch[2]);
        l->health.residual = rebuild_lost(l); /* of the recursion */
        svi_class_weigh_again(l);
        svi_prior_renew(l);
    }
    /* The sums in the coordinates of the new epoch: the bucket's if it holds exactly what the window holds,
     * else from the rows. */
    if (!from_sums || !rebuild_scaler_from_sums(l)) {
        svi_scaler_fit(&l->scaler, l->m->kernels, &l->window, l->scratch[2]);
        rebuild_gather(l);
    }
    l->bucket = l->drifts = false;
    rebuild_solve(l);
    if (l->o.window)
        rebuild_refine(l);
    rebuild_measure_energy(l);
    svi_refine_begin_epoch(l);
    l->health.rebuilds++;
}

void svi_solve_empty(svs_learner *l) {
    svi_gram_zero(l->gram);
    rebuild_solve(l);
    rebuild_measure_energy(l);
    svi_refine_begin_epoch(l);
}

/* The arrival of the planned rebuild that follows `arrival`. */
static int64_t rebuild_after(const svs_learner *l, int64_t arrival) {
    int64_t window = l->o.window;
    if (arrival < FIRST_REBUILD)
        return FIRST_REBUILD;
    if (window && l->o.class_rule == SVS_CLASSES_BALANCED)
        return arrival +
               (l->window.live > WEIGH_SHARE * FIRST_REBUILD ? l->window.live / WEIGH_SHARE : FIRST_REBUILD);
    if (window == 0 || 2 * arrival <= window)
        return 2 * arrival;
    return arrival < window ? window : arrival + PERIOD * window;
}

/* Called once an arrival, so that all planned work falls on fixed numbers of samples: two runs over the same
 * stream rebuild at the same places. */
void svi_guard(svs_learner *l) {
    if (l->next_rebuild == 0)
        l->next_rebuild = rebuild_after(l, 0);
    /* An epoch that has lost the center of a feature costs digits: its end comes forward. */
    if (svi_refine_watch(l) && l->arrivals > l->o.window && l->next_rebuild - l->arrivals > l->o.window)
        l->next_rebuild = l->arrivals + l->o.window;
    if (l->arrivals == l->next_rebuild) {
        svi_rebuild(l, true);
        l->next_rebuild = rebuild_after(l, l->arrivals);
        /* One window before the rebuild the bucket begins. It then holds exactly the window when the rebuild
         * comes, unless a sample of it leaves early (slide_release). */
    } else if (l->o.window && l->o.rule == SVS_ALSVM && l->arrivals > l->o.window &&
               l->arrivals == l->next_rebuild - l->o.window) {
        svi_gram_zero(l->gram);
        l->bucket = true;
        l->bucket_from = l->window.pushed;
    }
}

void svi_learner_rebuild(svs_learner *l) {
    svi_claim(l);
    if (l->arrivals == 0)
        return; /* P is the inverse of the ridge, w = 0: exact as they are */
    svi_rebuild(l, false);
    l->version++;
}
