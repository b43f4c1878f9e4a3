/* active_set.h: the small one-class problem, solved exactly and kept exact while points are added and
 * removed.
 *
 *     minimise 1/2 z'Kz - 1'z   over z >= 0
 *
 * K holds the kernel values of the points of the active set A, K_ii > 0. The problem is the dual of
 * the hard margin (Le, Phung, Nguyen, Venkatesh 2015). With rho = 1 / sum z, alpha = rho z is the
 * point of the convex hull nearest to the origin. There w = sum alpha_i phi(x_i), |w|^2 = rho, and
 * w'phi(x)/rho = sum z_i k(x_i, x). At the optimum every point has (Kz)_i >= 1. Those with z_i > 0,
 * the support, have exactly 1.
 *
 * Lawson and Hanson's active-set method, always started from the last solution. The Cholesky factor of the
 * support's K is updated, never recomputed: adding or removing a point costs O(support^2). */
#ifndef SVI_ACTIVE_SET_H
#define SVI_ACTIVE_SET_H

#include <stdbool.h>

#include "base/archive.h"
#include "linalg/kernels.h"
#include "svmstream/error.h"

struct svi_active_set {
    int count, capacity; /* points of A; capacity of all arrays below, in points */
    double *k;           /* capacity x capacity, symmetric: K */
    double *z;           /* count; 0 = idle: in A but not in the support */
    double *u;           /* count: (Kz)_i after svi_active_set_solve; set to exactly 1 on the support */
    int *place;          /* count: index in the support, -1 = idle */
    int support;         /* points with z > 0 */
    int *point;          /* support: index of the point */
    double
        *factor;   /* capacity x capacity, by columns: L lower, L L' = K of the support in order of `point` */
    double *ones;  /* support: solution of L ones = 1 */
    double *trial; /* capacity: scratch */
    int *idle;     /* capacity: scratch */
    bool *
        dependent; /* count: depends on the support and cannot replace a point of it: ignored by this solve */
    const struct svi_kernels *pass;
};

/* Reserves capacity for that many points; a zeroed set has none. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_active_set_reserve(struct svi_active_set *h, int capacity, svs_error *err);
void svi_active_set_clear(struct svi_active_set *h); /* frees */
void svi_active_set_empty(struct svi_active_set *h); /* removes all points, keeps the capacity */

/* A set in a shared scratch block. _place lays its arrays out in a block of
 * svi_active_set_block(capacity) doubles. The block must be aligned to 64 bytes. _pack copies what
 * must persist into svi_active_set_packed(count) doubles. With `in` it copies back from there, and
 * restores everything but `u`, bit for bit. */
size_t svi_active_set_block(int capacity);
size_t svi_active_set_packed(int count);
void svi_active_set_place(struct svi_active_set *h, int capacity, double *block);
void svi_active_set_pack(struct svi_active_set *h, double *packed, bool in);

/* Appends an idle point; count < capacity. row: count + 1 kernel values, with the present points and
 * itself. */
void svi_active_set_add(struct svi_active_set *h, const double *row);

/* Removes point i; the last point gets its index. z is then feasible but not optimal: solve next. */
void svi_active_set_remove(struct svi_active_set *h, int i);

/* Brings z to the optimum, and u = Kz with it. False: stopped after far more steps than there are points
 * (svi_active_set_violation then shows how far off the solution is). */
bool svi_active_set_solve(struct svi_active_set *h);

/* The same in parts: begin once, then go_on until it returns true or svi_active_set_most_steps were taken.
 * The bits are those of svi_active_set_solve. */
void svi_active_set_begin(struct svi_active_set *h);
bool svi_active_set_go_on(struct svi_active_set *h, int steps);
int svi_active_set_most_steps(const struct svi_active_set *h);

/* 1 / sum z: the squared distance of the hull from the origin; 0 when empty. */
double svi_active_set_rho(const struct svi_active_set *h);

/* The largest violation of the optimality conditions, from a fresh product K z: |u_i - 1| on the support, 1 -
 * u_i elsewhere. O(count^2). */
double svi_active_set_violation(const struct svi_active_set *h);

/* name: prefix of the fields' names ("member 1"). count: points, which the owner archives; at most the
 * capacity. K and the factor are stored bit for bit: their last bits depend on the order in which points were
 * added. */
void svi_active_set_archive(struct svi_archive *a, struct svi_active_set *h, const char *name, int count);

#endif
