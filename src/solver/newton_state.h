/* newton_state.h: the inside of svi_newton and what its files share.
 *
 *   newton.c         rounds of Newton steps: line search, multipliers, penalty
 *   newton_rows.c    what is done row by row: multipliers, objective, slope along the step
 *   newton_system.c  the direction: Gram matrix of the band and Cholesky, or conjugate gradients when D is
 * large */
#ifndef SVI_SOLVER_NEWTON_STATE_H
#define SVI_SOLVER_NEWTON_STATE_H

#include "solver/newton.h"

struct svi_newton_state {
    struct svi_work *w;
    struct svi_sample sample;
    int64_t steps;         /* at most, 0 = many */
    double p, mu;          /* mu may be INFINITY for p = 2 */
    double *y, *cost;      /* n, of the sample */
    double *alpha;         /* n: the multipliers of this round */
    double *f, *df;        /* n: scores at v, and their change along the step */
    double *a;             /* n: multipliers at v */
    double *h;             /* n: weights in the Hessian, in units of svi_newton_unit */
    double *u, *g, *step;  /* padded: sum y a x; gradient; direction */
    double objective, gap; /* at v */

    double *gram, *factor; /* dim x dim: sum of weight x x', and the system; NULL when D is large */
    double *weight;        /* n: each row's weight in `gram` */
    double *change;        /* n: what is to be added to it */
    int64_t *index;        /* n: rows of `change` */
    double *cg[3];         /* padded, when D is large: residual, direction, product */

    double *repaired; /* for a certificate; NULL unless the bias is free */
    double *best_v, *best_a, best_gap;
    bool reached;
};

/* ---- newton_rows.c */
void svi_newton_scores(const struct svi_newton_state *s, const double *v, double *f);
/* a, u, g, objective and gap at v, whose scores are in f. */
void svi_newton_evaluate(struct svi_newton_state *s);
/* The slope of phi at v + t step; the rows' part of it. */
double svi_newton_slope(const struct svi_newton_state *s, double t);
/* h at v, after an evaluation. */
void svi_newton_curvature(struct svi_newton_state *s);
double svi_newton_unit(const struct svi_newton_state *s);

/* ---- newton_system.c */
svs_code svi_newton_reserve_system(struct svi_newton_state *s, svs_error *err);
void svi_newton_release_system(struct svi_newton_state *s);
/* step = -H^-1 g, exactly or nearly. */
svs_code svi_newton_direction(struct svi_newton_state *s, svs_error *err);

/* 0 for a free bias, 1 otherwise. */
static inline double svi_ridge(const struct svi_work *w, int j) {
    return w->problem->bias == SVS_BIAS_FREE && j == w->d ? 0 : 1;
}

#endif
