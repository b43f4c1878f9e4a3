/* fpgm.h: the small problem of alfpgm: min 1/2 a'Q a + chi'a, 0 <= a <= upper, y'a + rest = 0, by an
 * augmented Lagrangian whose inner problems are solved by the fast projected gradient method (Bloom, Griva &
 * Quijada 2016; Aregbesola & Griva 2022, Eqs. 9, 11, 16). */
#ifndef SVI_SOLVER_FPGM_H
#define SVI_SOLVER_FPGM_H

struct svi_fpgm {
    int n;
    const double *q; /* n x n, row-major, full: Q_BB */
    const double *chi, *upper, *y;
    double rest;   /* y'a of what is not in this problem */
    double tol;    /* eps_sub */
    double *a;     /* n: in: the start, out: the solution */
    double lambda; /* in and out: the multiplier of y'a = 0; LIBSVM's rho */
    double *work;  /* 4 n */
};

void svi_fpgm_solve(struct svi_fpgm *s);

#endif
