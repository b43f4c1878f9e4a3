/* How far w and P are from a fresh solve in long double on what is held, in the coordinates of the present
 * epoch. Plain loops of O(n d^2 + d^3): for tests and verification, not for the stream. Everything is made
 * again from the rows (from the sums without a window), so an error of the recursion cannot hide in it. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_archive.h"
#include "learner/learner_internal.h"

/* P may be off where w is not, which is corrected (learner_refine.c); one that is this far off is not of
 * these rows. */
#define INVERSE_LOST 1e-6

/* x <- L^-T L^-1 x, given the factor L in the lower triangle of g. */
static void check_solve(const long double *g, int n, long double *x) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= g[i * n + k] * x[k];
        x[i] /= g[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            x[i] -= g[k * n + i] * x[k];
        x[i] /= g[i * n + i];
    }
}

/* Cholesky, in place, of the lower triangle: G = L L'. */
static void check_factor(long double *g, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            long double s = g[i * n + j];
            for (int k = 0; k < j; k++)
                s -= g[i * n + k] * g[j * n + k];
            g[i * n + j] = i == j ? sqrtl(s) : s / g[j * n + j];
        }
}

/* Without a window: the sums as they are, and what is still gathered for g. */
static void check_kept_sums(svs_learner *l, long double *g, long double *r) {
    const struct svi_gram *kept = l->gram;
    int n = l->d + 1, rows = svi_rows(l);
    for (int a = 0; a < n; a++)
        for (int b = 0; b <= a; b++) {
            g[a * n + b] = kept->g[(size_t)a * (size_t)n + b];
            for (int i = 0; i < kept->filled; i++) {
                const double *z = kept->block + (size_t)i * (size_t)n;
                g[a * n + b] += (long double)kept->weight[i] * z[a] * z[b];
            }
        }
    svi_right_hand_sides(l, l->W);
    for (int i = 0; i < rows * n; i++)
        r[i] = l->W[i];
}

/* The sums of the rows held: g += sum s z z' and r_k += sum s t_k z, then what the prior adds to both. */
static void check_sums(svs_learner *l, long double *g, long double *r, long double *z) {
    int n = l->d + 1, rows = svi_rows(l);
    const struct svi_ring *held = &l->window;
    for (int32_t i = 0, s; (s = svi_next_learned(l, &i)) >= 0;) {
        /* The same weight in hats that P holds: only then does P scale alike. */
        long double weight = svi_hat(l, svi_ring_weight(held, s), svi_ring_order(held, s));
        const double *x = svi_ring_row(held, s);
        z[0] = 1;
        for (int j = 0; j < l->d; j++)
            z[1 + j] = ((long double)x[j] - l->scaler.mean[j]) * l->scaler.inverse[j];
        svi_targets(l, svi_ring_label(held, s), svi_ring_target(held, s), l->target[0]);
        for (int a = 0; a < n; a++) {
            for (int b = 0; b <= a; b++)
                g[a * n + b] += weight * z[a] * z[b];
            for (int k = 0; k < rows; k++)
                r[k * n + a] += weight * l->target[0][k] * z[a];
        }
    }
    for (int a = 0; l->prior && a < n; a++)
        for (int b = 0; b <= a; b++)
            g[a * n + b] += svi_prior_entry(l, a, b);
    for (int k = 0; l->prior && k < rows; k++) {
        memset(l->scratch[0], 0, (size_t)n * sizeof(double));
        svi_prior_right(l, k, l->scratch[0]);
        for (int a = 0; a < n; a++)
            r[k * n + a] += l->scratch[0][a];
    }
}

/* One more row of weight `ridge` and target 0 along v = scratch[0] (Sherman-Morrison), given y = G^-1 v: x
 * -= y v'x / (1 / ridge + v'y). */
static void check_bias(const svs_learner *l, const long double *y, long double ridge, long double *x) {
    const double *v = l->scratch[0];
    long double vx = 0, vy = 0;
    for (int j = 0; j <= l->d; j++) {
        vx += v[j] * x[j];
        vy += v[j] * y[j];
    }
    for (int j = 0; j <= l->d; j++)
        x[j] -= y[j] * (vx / (1 / ridge + vy));
}

/* The first `count` rows of r become G^-1 times them. Nothing is done, and false is returned, while nothing
 * is in: w is 0 and P the inverse of the ridge then. */
static bool check_solves(svs_learner *l, long double *g, long double *r, int count, long double *z) {
    int n = l->d + 1;
    bool raw = l->o.scale == SVS_SCALE_NONE;
    if (!(g[0] > 0))
        return false;
    /* scale none: without the bias's part, which follows after the solve (check_bias): 64 bits of mantissa do
     * not hold it and the samples. */
    for (int i = raw; i < n; i++) {
        svi_ridge_vector(l, i, l->scratch[0]);
        g[i * n + i] += (long double)svi_ridge_weight(l, i) * l->scratch[0][i] * l->scratch[0][i];
    }
    check_factor(g, n);
    svi_ridge_vector(l, 0, l->scratch[0]);
    for (int j = 0; j < n; j++)
        z[j] = l->scratch[0][j];
    check_solve(g, n, z);
    for (int k = 0; k < count; k++) {
        check_solve(g, n, r + k * n);
        if (raw)
            check_bias(l, z, svi_ridge_weight(l, 0), r + k * n);
    }
    return true;
}

/* |w - x| / |x| */
static double check_distance(const double *w, const long double *x, int n) {
    long double distance = 0, size = 0;
    for (int j = 0; j < n; j++) {
        distance += (w[j] - x[j]) * (w[j] - x[j]);
        size += x[j] * x[j];
    }
    return (double)sqrtl(size > 0 ? distance / size : distance);
}

static void check_keep_worse(double *worst, double relative) {
    if (relative > *worst || isnan(relative))
        *worst = relative;
}

/* Of the rows of W and, if asked for, of P v for a fixed +-1 vector v. */
static svs_code check_compare(svs_learner *l, double *weights, double *inverse, svs_error *err) {
    svi_claim(l);
    int n = l->d + 1, rows = svi_rows(l);
    double *v = l->scratch[2], *pv = l->scratch[3];
    /* One allocation: g is n x n, then `rows` right-hand sides, the +-1 vector x as one more, and z. */
    long double *g = svi_alloc_array((size_t)n * (size_t)(n + rows + 2), sizeof *g);
    if (!g)
        return svi_fail_memory(err, "a fresh solve");
    long double *r = g + n * n, *x = r + rows * n, *z = x + n;
    if (l->o.window)
        check_sums(l, g, r, z);
    else
        check_kept_sums(l, g, r);
    svi_signs(v, n);
    for (int j = 0; j < n; j++)
        x[j] = v[j];
    bool solved = check_solves(l, g, r, rows + (inverse != NULL), z);
    *weights = 0;
    /* The solution 0 of an empty learner leaves |w| itself as the distance (check_distance). */
    for (int k = 0; k < rows; k++)
        check_keep_worse(weights, check_distance(svs_alsvm_weights(l->m, k), r + k * n, n));
    if (inverse && solved) {
        svi_alsvm_inverse_times(l->m, v, pv);
        *inverse = check_distance(pv, x, n);
    }
    svi_free(g);
    return SVS_OK;
}

double svs_learner_check(svs_learner *l) {
    double weights;
    if (l->o.window == 0)
        return -1;
    return check_compare(l, &weights, NULL, NULL) == SVS_OK ? weights : INFINITY;
}

svs_code svi_learner_verify(svs_learner *l, double *error, svs_error *err) {
    double inverse = 0;
    SVI_TRY(check_compare(l, error, &inverse, err));
    /* The error of P counts only beyond INVERSE_LOST: below, refinement keeps w right in spite of it. */
    if (!(inverse <= INVERSE_LOST))
        check_keep_worse(error, inverse);
    return SVS_OK;
}
