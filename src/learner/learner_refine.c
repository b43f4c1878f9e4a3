/* Refinement: where P has lost digits, w follows it with every sample; the residual of the rows held takes it
 * back, w += P (b - G w), as exactly as a fresh solve would have it. P itself heals at the next rebuild.
 *
 * When: after each change of the model while it drifts (learner_slide.c says since when), and where the
 * system was ill-conditioned at the last rebuild. The correction is first measured, and made only where it is
 * more than rounding: a stream on which nothing is wrong keeps its bits. */
#include <math.h>
#include <string.h>

#include "learner/learner_internal.h"
#include "linalg/sparse_rows.h"

#define CHECK_FROM  300   /* condition estimate from which the drift is measured between planned rebuilds */
#define FEW_ROWS    128   /* held: then each time */
#define CHECKS      32    /* else this many times a window */
#define CORRECT_MIN 1e-13 /* of w: a smaller measured correction is rounding of its own */
#define AGAIN_FROM  1e-11 /* a larger one was not the last: P is that far off */
#define ROUNDS      3
#define RELAXED     16 /* arrivals from one look to the next, where many learners share the time of a sample */

static inline double refine_target(const svs_learner *l, int32_t slot, int k) {
    if (l->o.task == SVS_REGRESS)
        return svi_ring_target(&l->window, slot);
    return svi_ring_label(&l->window, slot) == (svi_rows(l) == 1 ? 1 : k) ? 1 : -1;
}

/* b_k - G w_k, summed over the rows, into scratch[0]. */
static const double *refine_residual(svs_learner *l, int k) {
    const struct svi_kernels *kernels = l->m->kernels;
    const int n = l->d + 1, padded = l->m->r.padded;
    const double *w = l->m->r.w + (size_t)k * (size_t)padded;
    double *residual = l->scratch[0], *z = l->scratch[1];
    memset(residual, 0, (size_t)padded * sizeof *residual);
    svi_ridge_apply(l, w, residual);
    for (int j = 0; j < n; j++)
        residual[j] = -residual[j];
    svi_prior_right(l, k, residual);
    for (int32_t i = 0, s; (s = svi_next_learned(l, &i)) >= 0;) {
        const double *x = svi_ring_row(&l->window, s);
        kernels->standardise(z, x, l->scaler.mean, l->scaler.inverse, l->d);
        const double weight = svi_hat(l, svi_ring_weight(&l->window, s), svi_ring_order(&l->window, s)),
                     off = weight * (refine_target(l, s, k) - kernels->dot(w, z, padded));
        kernels->rows_add(z, 0, 1, n, &off, residual);
    }
    return residual;
}

/* w_k += P residual_k; true when that was more than rounding. */
static bool refine_row(svs_learner *l, int k) {
    const int n = l->d + 1;
    double *w = l->m->r.w + (size_t)k * (size_t)l->m->r.padded, *correction = l->scratch[3], share = INFINITY;
    bool changed = false;
    for (int i = 0; i < ROUNDS && share > AGAIN_FROM; i++) {
        svs_alsvm_apply(l->m, refine_residual(l, k), correction);
        share = sqrt(svi_dot(correction, correction, n) / svi_dot(w, w, n));
        if (!(share > CORRECT_MIN))
            return changed;
        for (int j = 0; j < n; j++)
            w[j] += correction[j];
        changed = true;
    }
    return changed;
}

/* Is it time to look? Where rows are few each time, else CHECKS times a window. */
static bool refine_is_due(const svs_learner *l) {
    const int64_t every = l->held_learned <= FEW_ROWS ? 1 : l->held_learned / CHECKS;
    if (l->relaxed && l->arrivals % RELAXED != 0)
        return false;
    return l->drifts || (l->health.condition >= CHECK_FROM && l->arrivals % every == 0);
}

bool svi_refine(svs_learner *l) {
    bool changed = false;
    if (l->o.window && l->held_learned > 0 && refine_is_due(l))
        for (int k = 0; k < svi_rows(l); k++)
            changed |= refine_row(l, k);
    return changed;
}
