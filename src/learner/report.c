#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_state.h"

/* W_j = w_j / deviation_j, b = w_0 - sum W_j mean_j. */
svs_code svs_learner_model(svs_learner *l, svs_model *m, svs_error *err) {
    (void)err;
    int rows = svi_rows(l);
    for (int k = 0; k < rows; k++) {
        const double *w = svs_alsvm_weights(l->m, k);
        double *raw = l->W + (size_t)k * (size_t)l->d, b = w[0];
        for (int j = 0; j < l->d; j++) {
            raw[j] = w[1 + j] * l->scaler.inverse[j];
            b -= raw[j] * l->scaler.mean[j];
        }
        l->b[k] = b;
    }
    *m = (svs_model){.version = l->version,
                     .method = l->o.rule == SVS_FALSVM ? "falsvm" : "alsvm",
                     .task = l->o.task,
                     .d = l->d,
                     .rows = rows,
                     .class_count = l->class_count,
                     .W = l->W,
                     .b = l->b,
                     .classes = l->classes,
                     .C = l->o.C,
                     .window = l->o.window,
                     .learned = l->health.learned,
                     .serves = true};
    return SVS_OK;
}

void svs_learner_health(const svs_learner *l, svs_health *h) {
    *h = l->health;
    h->held = l->window.live;
    h->waiting = l->waiting.live;
}

double svs_learner_memory(const svs_options *o, int d, int classes) {
    double n = d + 1, rows = classes < 3 ? 1 : classes;
    double waiting = o->labels_ttl > 0 ? svi_ring_memory(o->labels_max, (int)(d + 2 * rows)) : 0;
    return svi_ring_memory((double)o->window, d) + waiting + svi_alsvm_memory(d + 1, (int)rows, o->isa) +
           svi_gram_memory(d + 1, classes) + 8 * (n * n + 2 * rows * n + 12 * n);
}

/* ---- the checker: a fresh solve in long double, in the coordinates of the present epoch
 * ---------------------------- */

static void check_row(const svs_learner *l, const double *x, long double *z) {
    z[0] = 1;
    for (int j = 0; j < l->d; j++)
        z[1 + j] = ((long double)x[j] - l->scaler.mean[j]) * l->scaler.inverse[j];
}

/* scale none: without the bias's part, which follows behind the solve (check_bias): 64 bits of mantissa do
 * not hold it and the samples. */
static void check_ridge(svs_learner *l, long double *g) {
    int n = l->d + 1;
    double *v = l->scratch[0];
    for (int i = l->o.scale == SVS_SCALE_NONE; i < n; i++) {
        svi_ridge_vector(l, i, v);
        g[i * n + i] += (long double)svi_ridge_weight(l, i) * v[i] * v[i];
    }
}

/* x <- L^-T L^-1 x, the factor in g's lower triangle. */
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

static void check_factor(long double *g, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            long double s = g[i * n + j];
            for (int k = 0; k < j; k++)
                s -= g[i * n + k] * g[j * n + k];
            g[i * n + j] = i == j ? sqrtl(s) : s / g[j * n + j];
        }
}

static void check_sums(svs_learner *l, long double *g, long double *r, long double *z) {
    int n = l->d + 1, rows = svi_rows(l);
    for (int32_t i = 0; i < l->window.count; i++) {
        int32_t slot = svi_ring_at(&l->window, i);
        const struct svi_slot *s = &l->window.slots[slot];
        if (!s->live || !s->learned)
            continue;
        long double weight = svi_hat(l, s->weight, s->order);
        check_row(l, svi_ring_row(&l->window, slot), z);
        svi_targets(l, s->label, s->target, l->target[0]);
        for (int a = 0; a < n; a++) {
            for (int b = 0; b <= a; b++)
                g[a * n + b] += weight * z[a] * z[b];
            for (int k = 0; k < rows; k++)
                r[k * n + a] += weight * l->target[0][k] * z[a];
        }
    }
}

/* One more row of weight `ridge` and target 0 along scratch[0], given y = G^-1 of it: x -= y v'x / (1/ridge +
 * v'y). */
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

/* The rows of r become those of W: r = 0 while nothing is in. */
static void check_weights(svs_learner *l, long double *g, long double *r, long double *z) {
    int n = l->d + 1, rows = svi_rows(l);
    bool raw = l->o.scale == SVS_SCALE_NONE;
    if (!(g[0] > 0))
        return;
    check_ridge(l, g);
    check_factor(g, n);
    svi_ridge_vector(l, 0, l->scratch[0]);
    for (int j = 0; j < n; j++)
        z[j] = l->scratch[0][j];
    check_solve(g, n, z);
    for (int k = 0; k < rows; k++) {
        check_solve(g, n, r + k * n);
        if (raw)
            check_bias(l, z, svi_ridge_weight(l, 0), r + k * n);
    }
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

double svs_learner_check(svs_learner *l) {
    int n = l->d + 1, rows = svi_rows(l);
    double worst = 0;
    if (l->o.window == 0)
        return -1;
    long double *g = svi_alloc_array((size_t)n * (size_t)(n + rows + 1), sizeof *g);
    if (!g)
        return INFINITY;
    long double *r = g + n * n, *z = r + rows * n;
    check_sums(l, g, r, z);
    check_weights(l, g, r, z);
    for (int k = 0; k < rows; k++) {
        double relative = check_distance(svs_alsvm_weights(l->m, k), r + k * n, n);
        worst = relative > worst || isnan(relative) ? relative : worst;
    }
    svi_free(g);
    return worst;
}
