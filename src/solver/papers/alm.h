/* alm.h: what Algorithms 1 and 2 of Nie et al. 2014 share: e-step, multipliers and bookkeeping.
 *
 * With alpha_i = -y_i lambda_i and e_i = y_i s_i one iteration at scores f is
 *     alpha <- alpha + mu (1 - y f - s)        (Eq. 9, of the iteration before)
 *     s     <- prox(1 - y f + alpha / mu)      (Eqs. 10-13)
 *     z     <- y (1 - s + alpha / mu)          (the target of Eq. 14)
 * and then a w-step towards  min |X v - z|^2 + R-norm(v)^2 / mu. After an exact one R v = X'(y alpha), so the
 * clipped alpha is a good dual point. mu is held (0.3 C at p = 1 to C at p = 2): a mu that grows without
 * bound freezes the iterate far from the optimum. */
#ifndef SVI_ALM_H
#define SVI_ALM_H

#include "solver/solver_internal.h"

struct svi_alm {
    struct svi_work *w;
    struct svi_pool pool;
    double mu;
    bool begun;        /* s is that of an iteration */
    double *f, *s, *z; /* n */
    double *best;      /* padded: the v with the lowest objective so far */
    double best_objective;
    double *room; /* for the certificate */
};

/* Takes room in a->pool, which the caller frees. */
svs_code svi_alm_reserve(struct svi_alm *a, struct svi_work *w, svs_error *err);

/* e-step for rows first .. first + count - 1 whose scores are in f: alpha, s, z. Returns their loss. */
double svi_alm_step(struct svi_alm *a, int64_t first, int64_t count);

/* After a pass over all rows with this loss: objective, best point, and at intervals the gap. True:
 * stop, w->stop says why. */
bool svi_alm_stop(struct svi_alm *a, double loss, int64_t default_iterations);

/* The best point into w->v, its multipliers clipped into w->alpha. */
void svi_alm_finish(struct svi_alm *a);

#endif
