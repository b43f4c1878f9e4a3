/* fpgm.h: the small problem of alfpgm: min 1/2 a'Q a + chi'a, 0 <= a <= upper, y'a + rest = 0, by an
 * augmented Lagrangian whose inner problems are solved by the fast projected gradient method (Bloom, Griva &
 * Quijada 2016; Aregbesola & Griva 2022, Eqs. 9, 11, 16).
 *
 * At high C that takes thousands of steps, though a few dozen show which variables are at their bounds. So
 * after a few the rest is done exactly: Newton steps on the face of the free variables, with a step to the
 * first bound in the way and a release of those that want to leave theirs (an active set method). Where Q is
 * not positive definite enough for it, the projected gradient goes on alone. */
#ifndef SVI_FPGM_H
#define SVI_FPGM_H

#include <stdbool.h>
#include <stddef.h>

struct svi_fpgm {
    int n;
    const double *q; /* n x n, row-major, full: Q_BB */
    const double *chi, *upper, *y;
    double rest;   /* y'a of what is not in this problem */
    double tol;    /* eps_sub */
    double *a;     /* n: in: the start, out: the solution */
    double lambda; /* in and out: the multiplier of y'a = 0; LIBSVM's rho */
    double *work;  /* svi_fpgm_work(n) */
    int *index;    /* 2 n */
};

/* Doubles of work space. */
static inline size_t svi_fpgm_work(size_t n) {
    return n * n + 4 * n;
}

/* True: the conditions of optimality hold within tol. */
bool svi_fpgm_solve(struct svi_fpgm *s);

#endif
