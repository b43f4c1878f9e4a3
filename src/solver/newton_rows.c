#include <math.h>
#include <string.h>

#include "linalg/rows.h"
#include "solver/loss.h"
#include "solver/newton_state.h"

#define BLOCK  256
#define INLINE static inline __attribute__((always_inline))

/* The loops are compiled once for each form of the multiplier, so that the frequent ones stay free of
 * branches. */
enum form { HINGE, SQUARED_PRIMAL, ANY };

static enum form form_of(const struct svi_newton_state *s) {
    return s->p == 1 ? HINGE : isinf(s->mu) ? SQUARED_PRIMAL : ANY;
}

/* The multiplier of row i at a margin 1 - y f. */
INLINE double multiplier(const struct svi_newton_state *s, enum form form, int64_t i, double margin) {
    double cost = s->cost[i];
    if (form == SQUARED_PRIMAL)
        return 2 * cost * svi_positive(margin);
    double lifted = svi_positive(s->alpha[i] + s->mu * margin); /* mu tau */
    if (form == HINGE)
        return lifted < cost ? lifted : cost;
    return lifted > 0 ? lifted - s->mu * svi_prox(s->p, lifted / s->mu, cost / s->mu) : 0;
}

void svi_newton_scores(const struct svi_newton_state *s, const double *v, double *f) {
    const struct svi_work *w = s->w;
    svi_rows_multiply(w->kernels, &s->sample.rows, 0, s->sample.n, v, w->bias_value, f);
}

struct sums {
    double loss, gain;
};

INLINE struct sums evaluate(struct svi_newton_state *s, enum form form, double p) {
    double coefficient[BLOCK];
    struct sums total = {0, 0};
    for (int64_t i = 0; i < s->sample.n; i += BLOCK) {
        int64_t count = s->sample.n - i < BLOCK ? s->sample.n - i : BLOCK;
        for (int64_t k = i; k < i + count; k++) {
            double margin = 1 - s->y[k] * s->f[k], a = multiplier(s, form, k, margin);
            s->a[k] = a;
            coefficient[k - i] = s->y[k] * a;
            total.loss += s->cost[k] * svi_hinge(p, margin);
            total.gain += svi_gain(p, s->cost[k], a);
        }
        svi_rows_add(s->w->kernels, &s->sample.rows, i, count, coefficient, s->u, s->w->bias_value);
    }
    return total;
}

void svi_newton_evaluate(struct svi_newton_state *s) {
    const struct svi_work *w = s->w;
    const enum form form = form_of(s);
    double dual_norm = 0, norm = 0;
    memset(s->u, 0, (size_t)svi_padded(w->dim) * sizeof *s->u);
    struct sums t = form == HINGE            ? evaluate(s, HINGE, 1)
                    : form == SQUARED_PRIMAL ? evaluate(s, SQUARED_PRIMAL, 2)
                                             : evaluate(s, ANY, s->p);
    for (int j = 0; j < w->dim; j++) {
        double r = svi_ridge(w, j);
        s->g[j] = r * w->v[j] - s->u[j];
        dual_norm += r * s->u[j] * s->u[j];
        norm += r * w->v[j] * w->v[j];
    }
    s->objective = 0.5 * norm + t.loss;
    s->gap = s->objective - t.gain + 0.5 * dual_norm;
}

INLINE double slope(const struct svi_newton_state *s, enum form form, double t) {
    double sum = 0;
    for (int64_t i = 0; i < s->sample.n; i++) {
        double change = s->y[i] * s->df[i];
        sum -= multiplier(s, form, i, 1 - s->y[i] * s->f[i] - t * change) * change;
    }
    return sum;
}

double svi_newton_slope(const struct svi_newton_state *s, double t) {
    const enum form form = form_of(s);
    double sum = form == HINGE            ? slope(s, HINGE, t)
                 : form == SQUARED_PRIMAL ? slope(s, SQUARED_PRIMAL, t)
                                          : slope(s, ANY, t);
    for (int j = 0; j < s->w->dim; j++)
        sum += svi_ridge(s->w, j) * (s->w->v[j] + t * s->step[j]) * s->step[j];
    return sum;
}

/* mu loss'' / (mu + loss'') at the s of the proximal step. */
static double curvature_between(const struct svi_newton_state *s, int64_t i) {
    double cost = s->cost[i], mu = s->mu, p = s->p;
    double margin = (s->alpha[i] - s->a[i]) / mu + 1 - s->y[i] * s->f[i];
    double second = p == 2 ? 2 * cost : cost * p * (p - 1) * pow(fmax(margin, 1e-300), p - 2);
    return isinf(second) ? mu : mu * second / (mu + second);
}

void svi_newton_curvature(struct svi_newton_state *s) {
    const enum form form = form_of(s);
    for (int64_t i = 0; i < s->sample.n; i++) {
        double a = s->a[i];
        if (form == HINGE)
            s->h[i] = a > 0 && a < s->cost[i];
        else
            s->h[i] = a <= 0 ? 0 : form == SQUARED_PRIMAL ? s->cost[i] : curvature_between(s, i);
    }
}

double svi_newton_unit(const struct svi_newton_state *s) {
    const enum form form = form_of(s);
    return form == HINGE ? s->mu : form == SQUARED_PRIMAL ? 2 : 1;
}
