/* fpgm.h: the small problem of alfpgm: min 1/2 a'Q a + chi'a, 0 <= a <= upper, y'a + rest = 0. An
 * augmented Lagrangian solves it; the fast projected gradient method solves the inner problems
 * (Bloom, Griva & Quijada 2016; Aregbesola & Griva 2022, Eqs. 9, 11, 16).
 *
 * At high C this takes thousands of steps, although a few dozen show which variables are at their
 * bounds. Therefore an active set method finishes after the first steps. It takes Newton steps on
 * the face of the free variables, each cut at the first bound. It releases variables whose
 * multiplier has the wrong sign. If Q is not sufficiently positive definite for it, the projected
 * gradient continues alone. */
#ifndef SVI_FPGM_H
#define SVI_FPGM_H

#include <stdbool.h>
#include <stddef.h>

struct svi_fpgm {
    int n;
    const double *q; /* n x n, row-major, full: Q_BB */
    const double *chi, *upper, *y;
    double rest;   /* y'a of the variables outside this problem */
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
