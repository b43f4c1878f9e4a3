#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/rows.h"
#include "solver/alm.h"
#include "solver/loss.h"

#define INLINE static inline __attribute__((always_inline))

svs_code svi_alm_reserve(struct svi_alm *a, struct svi_work *w, svs_error *err) {
    const size_t n = (size_t)w->problem->rows.n;
    const double share = 0.3 + 0.7 * (w->problem->p - 1);
    a->w = w;
    a->mu = w->mu = w->o->mu > 0 ? w->o->mu : share * w->problem->C;
    a->best_objective = INFINITY;
    a->f = svi_alloc_array(n, sizeof *a->f);
    a->s = svi_alloc_array(n, sizeof *a->s);
    a->z = svi_alloc_array(n, sizeof *a->z);
    a->best = svi_vector(w->dim);
    a->work = svi_alloc_array((size_t)svi_padded(w->dim) + n, sizeof *a->work);
    return a->f && a->s && a->z && a->best && a->work ? SVS_OK
                                                      : svi_fail_memory(err, "the augmented Lagrangian");
}

void svi_alm_release(struct svi_alm *a) {
    double *const all[] = {a->f, a->s, a->z, a->best, a->work};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
}

/* p as an argument of its own: compiled once for 1, once for 2, once for what lies between. */
INLINE double step(struct svi_alm *a, double p, int64_t first, int64_t count) {
    const struct svi_work *w = a->w;
    const double mu = a->mu, before = a->begun ? 1 : 0;
    double loss = 0;
    for (int64_t i = first; i < first + count; i++) {
        double y = w->problem->y[i], margin = 1 - y * a->f[i], cost = w->cost[i];
        double alpha = w->alpha[i] + before * mu * (margin - a->s[i]);
        double s = svi_prox(p, margin + alpha / mu, cost / mu);
        loss += cost * svi_hinge(p, margin);
        w->alpha[i] = alpha;
        a->s[i] = s;
        a->z[i] = y * (1 - s + alpha / mu);
    }
    return loss;
}

double svi_alm_step(struct svi_alm *a, int64_t first, int64_t count) {
    const double p = a->w->problem->p;
    return p == 1 ? step(a, 1, first, count) : p == 2 ? step(a, 2, first, count) : step(a, p, first, count);
}

static double gap_now(const struct svi_alm *a) {
    struct svi_certificate c;
    svi_certify(a->w, a->best, a->w->alpha, a->work, &c);
    return c.gap;
}

/* The gap costs as much as the iteration: asked for after 1, 2, 4, 8 iterations and after every 8th. */
static bool due(int64_t iterations) {
    return iterations % 8 == 0 || (iterations < 8 && (iterations & (iterations - 1)) == 0);
}

bool svi_alm_stop(struct svi_alm *a, double loss, int64_t default_iterations) {
    struct svi_work *w = a->w;
    int penalised = w->problem->bias == SVS_BIAS_FREE ? w->d : w->dim;
    double norm = 0, gap = NAN;
    for (int j = 0; j < penalised; j++)
        norm += w->v[j] * w->v[j];
    a->begun = true;
    a->objective = 0.5 * norm + loss;
    if (a->objective < a->best_objective) {
        a->best_objective = a->objective;
        memcpy(a->best, w->v, (size_t)svi_padded(w->dim) * sizeof *a->best);
    }
    w->iterations++;
    if (due(w->iterations))
        gap = gap_now(a);
    bool told = svi_work_stop(w, a->best_objective, gap, default_iterations);
    if (gap <= w->o->tol * a->best_objective) {
        w->stop = SVS_STOP_TOL;
        return true;
    }
    return told;
}

void svi_alm_finish(struct svi_alm *a) {
    struct svi_work *w = a->w;
    if (a->best_objective < INFINITY)
        memcpy(w->v, a->best, (size_t)svi_padded(w->dim) * sizeof *w->v);
    for (int64_t i = 0; i < w->problem->rows.n; i++) {
        double alpha = svi_positive(w->alpha[i]);
        w->alpha[i] = w->problem->p == 1 && alpha > w->cost[i] ? w->cost[i] : alpha;
    }
}
