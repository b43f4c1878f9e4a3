/* active_set.h: the small one-class problem, solved exactly and kept exact while points join and leave.
 *
 *     minimise 1/2 z'Kz - 1'z   over z >= 0
 *
 * K holds the kernel values of the points of the active set A, K_ii > 0. With rho = 1 / sum z, alpha = rho z
 * is the point of the convex hull nearest to the origin, w = sum alpha_i phi(x_i), |w|^2 = rho, and
 * w'phi(x)/rho = sum z_i k(x_i, x) (Le, Phung, Nguyen, Venkatesh 2015, the dual of the hard margin). At the
 * optimum every point has (Kz)_i >= 1, and those with z_i > 0, the support, have exactly 1.
 *
 * Lawson and Hanson's active-set method, always started from the solution before; the Cholesky factor of the
 * support's K is updated, never computed again: a point that joins or leaves costs O(support^2). */
#ifndef SVI_ACTIVE_SET_H
#define SVI_ACTIVE_SET_H

#include <stdbool.h>

#include "base/archive.h"
#include "linalg/kernels.h"
#include "svmstream/error.h"

struct svi_active_set {
    int count, capacity; /* points of A; room for `room` (all arrays below) */
    double *k;           /* room x room, symmetric: K */
    double *z;           /* count; 0 = idle, that is: in A but not in the support */
    double *u;       /* count: (Kz)_i after svi_active_set_solve; 1 on the support, as the optimum makes it */
    int *place;      /* count: where in the support, -1 = idle */
    int support;     /* points with z > 0 */
    int *point;      /* support: which point */
    double *factor;  /* room x room, by columns: L lower, L L' = K of the support in the order of `point` */
    double *ones;    /* support: L ones = 1 */
    double *trial;   /* room: scratch */
    int *idle;       /* room: scratch */
    bool *dependent; /* count: its pivot vanished, and it can take no other point's place: left out of this
                        solution */
    const struct svi_kernels *pass;
};

/* Room for `room` points; a zeroed set has none. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_active_set_reserve(struct svi_active_set *h, int capacity, svs_error *err);
void svi_active_set_clear(struct svi_active_set *h); /* frees */
void svi_active_set_empty(struct svi_active_set *h); /* forgets the points, keeps the room */

/* A set whose arrays lie in a block of others while it is worked on, of svi_active_set_block(room) doubles,
 * and packed in between (`in`: back from there): svi_active_set_packed(count) doubles. Where it is in, all
 * but `u` is as it was. */
size_t svi_active_set_block(int capacity);
size_t svi_active_set_packed(int count);
void svi_active_set_place(struct svi_active_set *h, int capacity, double *block);
void svi_active_set_pack(struct svi_active_set *h, double *packed, bool in);

/* Appends a point (count < room), idle. `row`: its kernel values with the points there are, then with itself:
 * count + 1 values. */
void svi_active_set_add(struct svi_active_set *h, const double *row);

/* Takes point i out; the last point takes its number. z is feasible, not optimal: solve next. */
void svi_active_set_remove(struct svi_active_set *h, int i);

/* Brings z to the optimum and u with it. Returns false when it gave up after far more steps than there are
 * points (the certificate then shows how far off it is). */
bool svi_active_set_solve(struct svi_active_set *h);

/* The same in parts: begin, then steps until one call returns true or svi_active_set_most_steps were taken;
 * bit for bit what svi_active_set_solve does. */
void svi_active_set_begin(struct svi_active_set *h);
bool svi_active_set_go_on(struct svi_active_set *h, int steps);
int svi_active_set_most_steps(const struct svi_active_set *h);

/* 1 / sum z: the squared distance of the hull from the origin; 0 when empty. */
double svi_active_set_rho(const struct svi_active_set *h);

/* The largest violation of the optimality conditions, by a new product K z: |u_i - 1| on the support, 1 -
 * u_i elsewhere. */
double svi_active_set_violation(const struct svi_active_set *h);

/* `name`: a prefix of the fields' names ("member 1"). count: the points, which the owner of the set keeps; at
 * most its room. K and the factor are kept bit for bit: their last bits depend on the order in which points
 * came. */
void svi_active_set_archive(struct svi_archive *a, struct svi_active_set *h, const char *name, int count);

#endif
