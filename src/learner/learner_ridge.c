/* The ridge: sum ridge_j v_j v_j', v_j the image of the coordinate that it is about.
 *
 * Without forgetting ridge_j is nu. With it all that P holds fades with every learned sample, the
 * ridge too. Adding what is missing to all coordinates each time would cost D times a step. So the
 * coordinates take turns. After n learned samples coordinate j (0 the bias) has faded for (n - j)
 * mod period samples and counts
 *
 *     rho_j = nu forget^((n - j) mod period),
 *
 * where the sample learned last counts fully. The period is the power of two that D fits into, or
 * the samples in which nu falls to one half, if these are fewer. So rho_j lies between nu/2 and nu.
 * It follows from the counts alone, whenever a feature arrived and whenever P was rebuilt.
 * Invariant: l->ridge is rho in hats to rounding, and exactly what P holds. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "learner/learner_internal.h"

double svi_ridge_weight(const svs_learner *l, int j) {
    return l->ridge ? l->ridge[j] : l->nu;
}

/* scale standard: v_j = e_j, so the ridge is nu |w|^2 in the epoch's coordinates. scale none: v_j = T e_j,
 * the image of the raw coordinate, so the ridge is the one of the raw model, whatever the epoch. */
void svi_ridge_vector(const svs_learner *l, int j, double *v) {
    memset(v, 0, (size_t)(l->d + 1) * sizeof *v);
    v[j] = 1;
    if (l->o.scale == SVS_SCALE_STANDARD)
        return;
    if (j > 0)
        v[j] = l->scaler.inverse[j - 1];
    for (int i = 0; j == 0 && i < l->d; i++)
        v[1 + i] = -l->scaler.mean[i] * l->scaler.inverse[i];
}

/* Two products with T: out = T diag(ridge) T' u, without making T. Then the prior's part. */
void svi_ridge_apply(const svs_learner *l, const double *u, double *out) {
    int n = l->d + 1;
    for (int j = 0; j < n; j++)
        out[j] = svi_ridge_weight(l, j) * u[j];
    if (l->o.scale == SVS_SCALE_STANDARD) {
        svi_prior_apply(l, u, out);
        return;
    }
    const double *mean = l->scaler.mean, *inverse = l->scaler.inverse;
    double first = u[0];
    for (int j = 1; j < n; j++) {
        first -= mean[j - 1] * inverse[j - 1] * u[j];
        out[j] *= inverse[j - 1] * inverse[j - 1];
    }
    out[0] = first *= svi_ridge_weight(l, 0);
    for (int j = 1; j < n; j++)
        out[j] -= mean[j - 1] * inverse[j - 1] * first;
    svi_prior_apply(l, u, out);
}

/* ---- turns */

/* log(0.5) / log(forget) samples are the half-life. */
static int ridge_period(const svs_learner *l, int d) {
    int power = 1;
    while (power < d + 1)
        power *= 2;
    return (int)fmax(1, fmin(power, floor(log(0.5) / log(l->o.forget))));
}

/* rho_j, in hats. */
static double ridge_due(const svs_learner *l, int j, int period) {
    const int64_t since = ((l->order - j) % period + period) % period;
    return l->nu * svi_hat(l, 1, l->order - 1 - since);
}

/* Brings the coordinates first, first + step, ... to rho_j, two in a sweep: what is missing is added like a
 * sample of weight `missing`, target 0, along v_j. False: P must be rebuilt. */
static bool ridge_renew(svs_learner *l, int first, int step, int period) {
    struct svi_change change[SVI_PASS_MAX];
    bool good = true;
    int count = 0;
    memset(l->target[0], 0, (size_t)svi_rows(l) * sizeof(double));
    for (int j = first; j <= l->d; j += step) {
        const double due = ridge_due(l, j, period), missing = due - l->ridge[j];
        /* Below rounding nothing is added: 1 / missing would be huge. */
        if (fabs(missing) > DBL_EPSILON * due) {
            svi_ridge_vector(l, j, l->m->r.x[count]);
            change[count++] = (struct svi_change){l->target[0], 1 / missing, 0};
            l->ridge[j] = due;
        }
        if (count == SVI_PASS_MAX || (count && j > l->d - step)) {
            good &= svi_alsvm_step(l->m, change, count, NULL) == SVS_OK;
            count = 0;
        }
    }
    return good;
}

/* Coordinates from `first` on, which nothing has touched yet. */
static void ridge_begin(svs_learner *l, int first, int period) {
    for (int j = first; j <= l->d; j++) {
        l->ridge[j] = ridge_due(l, j, period);
        svi_alsvm_set_alone(l->m, j, l->ridge[j]);
    }
}

double svi_ridge_begin_alone(svs_learner *l, int j) {
    if (l->ridge)
        l->ridge[j] = ridge_due(l, j, ridge_period(l, l->d));
    return svi_ridge_weight(l, j);
}

void svi_ridge_reset(svs_learner *l) {
    if (l->ridge)
        ridge_begin(l, 0, ridge_period(l, l->d));
}

/* One coordinate a sample: the one whose turn n mod period says. Over a period each has had its turn. */
bool svi_ridge_refresh(svs_learner *l) {
    if (!l->ridge)
        return true;
    const int period = ridge_period(l, l->d);
    return ridge_renew(l, (int)(l->order % period), period, period);
}

/* The period is a power of two, so it changes only when D passes one; then all coordinates change to the new
 * rule at once. */
void svi_ridge_grow(svs_learner *l, int old) {
    if (!l->ridge)
        return;
    const int period = ridge_period(l, l->d);
    ridge_begin(l, old + 1, period);
    if (period == ridge_period(l, old))
        return;
    if (!ridge_renew(l, 0, 1, period))
        svi_rebuild(l, false);
    l->version += l->arrivals > 0; /* before, w is 0 and stays it */
}
