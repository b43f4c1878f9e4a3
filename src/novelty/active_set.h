/* hull.h: the small one-class problem, solved exactly and kept exact while points join and leave.
 *
 *     minimise 1/2 z'Kz - 1'z   over z >= 0
 *
 * K holds the kernel values of the points of the active set A, K_ii > 0. With rho = 1 / sum z, alpha = rho z
 * is the point of the convex hull nearest to the origin, w = sum alpha_i phi(x_i), |w|^2 = rho, and
 * w'phi(x)/rho = sum z_i k(x_i, x) (Le, Phung, Nguyen, Venkatesh 2015, the dual of the hard margin). At the
 * optimum every point has (Kz)_i >= 1, and those with z_i > 0, the support, have exactly 1.
 *
 * Lawson and Hanson's active-set method, always started from the solution before; the Cholesky factor of the
 * support's K is updated, never computed afresh: a point that joins or leaves costs O(support^2). */
#ifndef SVI_HULL_H
#define SVI_HULL_H

#include <stdbool.h>

#include "svmstream/error.h"

struct svi_hull {
    int count, room; /* points of A; room for so many (all arrays below) */
    double *k;       /* room x room, symmetric: K */
    double *z;       /* count; 0 = idle, that is: in A but not in the support */
    double *u;       /* count: (Kz)_i after svi_hull_solve */
    int *place;      /* count: where in the support, -1 = idle */
    int support;     /* points with z > 0 */
    int *point;      /* support: which point */
    double *factor;  /* room x room, by columns: L lower, L L' = K of the support in the order of `point` */
    double *ones;    /* support: L ones = 1 */
    double *trial;   /* room: scratch */
    bool *dependent; /* count: its pivot vanished, and it can take no other point's place: left out of this
                        solution */
};

/* Room for so many points; svi_hull_reserve makes it more. SVS_NO_MEMORY. */
svs_code svi_hull_init(struct svi_hull *h, int room, svs_error *err);
svs_code svi_hull_reserve(struct svi_hull *h, int room, svs_error *err);
void svi_hull_clear(struct svi_hull *h); /* frees */
void svi_hull_empty(struct svi_hull *h); /* forgets the points, keeps the room */

/* Appends a point (count < room), idle. `row`: its kernel values with the points there are, then with itself:
 * count + 1 values. */
void svi_hull_add(struct svi_hull *h, const double *row);

/* Takes point i out; the last point takes its number. z is feasible, not optimal: solve next. */
void svi_hull_remove(struct svi_hull *h, int i);

/* Brings z to the optimum and u with it. Returns false when it gave up after far more steps than there are
 * points (the certificate then tells how far off it is). */
bool svi_hull_solve(struct svi_hull *h);

/* 1 / sum z: the squared distance of the hull from the origin; 0 when empty. */
double svi_hull_rho(const struct svi_hull *h);

/* The largest violation of the optimality conditions, by a fresh product K z: |u_i - 1| on the support, 1 -
 * u_i elsewhere. */
double svi_hull_violation(const struct svi_hull *h);

#endif
