/* The active-set method on z >= 0. Invariants:
 *
 *  - `factor` is the Cholesky factor of K over the support, in the order of `point`;
 *  - place[point[s]] = s;
 *  - z is 0 outside the support;
 *  - ones solves L ones = 1, so the optimum over the support alone is one triangular solve away.
 *
 * svi_active_set_solve alternates two moves. settle goes to the optimum of the support and removes
 * points that would turn negative on the way. Then the idle point with the largest violation
 * enters. A point whose pivot vanishes is a combination of the support. It replaces the point that
 * loses its weight first, or stays out. Entering appends a row to the factor, and leaving removes
 * one by rotations. Neither recomputes it.
 *
 * Archives store K and the factor as lower triangles, row by row. Loading checks that K can be the matrix of
 * a kernel and that L L' = K of the support. */
#include "novelty/active_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/arrays.h"

#define FEASIBLE 1e-12 /* (Kz)_i >= 1 - FEASIBLE counts as satisfied */
#define PIVOT    1e-13 /* squared pivot over K_ii below which a point depends on the support */

/* Accepted difference of K and L L' when loading: far more than rounding causes in a factor that was updated
 * for years, far less than damage does. */
#define AGREE 1e-4

enum { POINTS, DIMS };

#define OWNER   struct svi_active_set
#define A_POINT SVI_AXIS(POINTS)

static const struct svi_array arrays[] = {
    SVI_ARRAY(OWNER, k, NULL, A_POINT, A_POINT), SVI_ARRAY(OWNER, factor, NULL, A_POINT, A_POINT),
    SVI_ARRAY(OWNER, z, NULL, A_POINT),          SVI_ARRAY(OWNER, u, NULL, A_POINT),
    SVI_ARRAY(OWNER, ones, NULL, A_POINT),       SVI_ARRAY(OWNER, trial, NULL, A_POINT),
    SVI_ARRAY(OWNER, place, NULL, A_POINT),      SVI_ARRAY(OWNER, point, NULL, A_POINT),
    SVI_ARRAY(OWNER, idle, NULL, A_POINT),       SVI_ARRAY(OWNER, dependent, NULL, A_POINT),
};
static const struct svi_arrays active_set_arrays =
    SVI_ARRAYS_ALIGNED(arrays, "the active set of the one-class model");

void svi_active_set_clear(struct svi_active_set *h) {
    svi_arrays_free(&active_set_arrays, h);
    *h = (struct svi_active_set){0};
}

/* Kernels are set even without growth: a zeroed set needs them too. */
svs_code svi_active_set_reserve(struct svi_active_set *h, int capacity, svs_error *err) {
    const int32_t from[DIMS] = {h->capacity}, to[DIMS] = {capacity};
    h->pass = svi_kernels_get(SVS_ISA_BEST);
    svs_code code = capacity > h->capacity ? svi_arrays_resize(&active_set_arrays, h, from, to, err) : SVS_OK;
    h->capacity = code == SVS_OK && capacity > h->capacity ? capacity : h->capacity;
    return code;
}

static double *active_set_column(const struct svi_active_set *h, int c) {
    return h->factor + (size_t)c * (size_t)h->capacity;
}

static double *active_set_row(const struct svi_active_set *h, int i) {
    return h->k + (size_t)i * (size_t)h->capacity;
}

/* Derives `place` from `point`. False: a point is in the support twice. */
static bool active_set_find_places(struct svi_active_set *h) {
    for (int i = 0; i < h->count; i++)
        h->place[i] = -1;
    for (int s = 0; s < h->support; s++) {
        if (h->place[h->point[s]] >= 0)
            return false;
        h->place[h->point[s]] = s;
    }
    return true;
}

/* ---- in a shared block */

size_t svi_active_set_block(int capacity) {
    const int32_t dims[DIMS] = {capacity};
    return (svi_arrays_bytes(&active_set_arrays, dims) + 63) / 64 * 8; /* so that what follows is aligned */
}

void svi_active_set_place(struct svi_active_set *h, int capacity, double *block) {
    const int32_t dims[DIMS] = {capacity};
    h->capacity = capacity;
    h->pass = svi_kernels_get(SVS_ISA_BEST);
    svi_arrays_place(&active_set_arrays, h, block, dims);
}

/* Two triangles of n (n + 1) / 2, z and ones of n each, and the indices of the support, rounded up. The
 * support is at most all points, so the size follows from the count alone. */
size_t svi_active_set_packed(int count) {
    const size_t n = (size_t)count;
    return n * (n + 1) + 2 * n + (n * sizeof(int) + sizeof(double) - 1) / sizeof(double);
}

/* Copies a part of the set to where it is packed, or back; returns where the next part is packed. */
static double *active_set_carry(void *part, double *packed, int count, size_t entry, bool in) {
    const size_t bytes = (size_t)count * entry;
    memcpy(in ? part : packed, in ? packed : part, bytes);
    return packed + bytes / sizeof *packed;
}

void svi_active_set_pack(struct svi_active_set *h, double *packed, bool in) {
    const int n = h->count, s = h->support;
    /* Lower triangles are enough: K is symmetric, and the factor is 0 above its diagonal. */
    for (int i = 0; i < n; i++)
        packed = active_set_carry(active_set_row(h, i), packed, i + 1, sizeof *h->k, in);
    for (int c = 0; c < s; c++)
        packed = active_set_carry(active_set_column(h, c) + c, packed, s - c, sizeof *h->factor, in);
    packed = active_set_carry(h->z, packed, n, sizeof *h->z, in);
    packed = active_set_carry(h->ones, packed, s, sizeof *h->ones, in);
    (void)active_set_carry(h->point, packed, s, sizeof *h->point, in);
    if (!in)
        return;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            active_set_row(h, j)[i] = active_set_row(h, i)[j];
    (void)active_set_find_places(h);
    memset(h->dependent, 0, (size_t)n * sizeof *h->dependent);
}

void svi_active_set_empty(struct svi_active_set *h) {
    h->count = h->support = 0;
}

/* The new point is idle; its u keeps u = Kz valid until the next solve. */
void svi_active_set_add(struct svi_active_set *h, const double *row) {
    const int n = h->count++;
    for (int i = 0; i <= n; i++) {
        active_set_row(h, n)[i] = row[i];
        active_set_row(h, i)[n] = row[i];
    }
    h->z[n] = 0;
    h->u[n] = n > 0 ? cblas_ddot(n, row, 1, h->z, 1) : 0;
    h->place[n] = -1;
    h->dependent[n] = false;
}

/* ---- the support and its factor */

/* Appends point i to the support: the new row of the factor is l = L^-1 K_Si with pivot sqrt(K_ii - l'l).
 * False: the squared pivot is lost to rounding, the point depends on the support; `trial` holds l then. */
static bool active_set_insert(struct svi_active_set *h, int i) {
    const int n = h->support;
    double *row = h->trial, square = active_set_row(h, i)[i], own = square;
    for (int s = 0; s < n; s++)
        row[s] = active_set_row(h, i)[h->point[s]];
    /* Forward substitution; what remains of K_ii is the squared distance from the span of the support. */
    if (n > 0) {
        h->pass->lower_solve(h->factor, (size_t)h->capacity, n, row);
        square -= cblas_ddot(n, row, 1, row, 1);
    }
    if (!(square > PIVOT * own))
        return false;
    /* `ones` gains one entry from the new row: l'ones + pivot entry = 1. */
    const double pivot = sqrt(square);
    for (int c = 0; c < n; c++)
        active_set_column(h, c)[n] = row[c];
    active_set_column(h, n)[n] = pivot;
    h->ones[n] = (1 - (n > 0 ? cblas_ddot(n, row, 1, h->ones, 1) : 0)) / pivot;
    h->point[n] = i;
    h->place[i] = n;
    h->support++;
    return true;
}

/* Removes row j of the factor. What remains is lower triangular except for one diagonal above, which
 * rotations of neighbouring columns eliminate. `ones` is rotated along, so L ones = 1 still holds. */
static void active_set_leave(struct svi_active_set *h, int j) {
    const int n = h->support - 1;
    h->place[h->point[j]] = -1;
    for (int s = j; s < n; s++) {
        h->point[s] = h->point[s + 1];
        h->place[h->point[s]] = s;
    }
    /* Rows below j move up by one, in the part of each column that is stored. */
    for (int c = 0; c <= n; c++) {
        const int from = c > j ? c : j + 1;
        memmove(active_set_column(h, c) + from - 1, active_set_column(h, c) + from,
                (size_t)(n + 1 - from) * sizeof *h->factor);
    }
    for (int p = j; p < n; p++) {
        double *a = active_set_column(h, p) + p, *b = active_set_column(h, p + 1) + p, x = *a, y = *b, c, s;
        /* The rotation zeroes the entry above the diagonal; rows below p are turned in the same way. */
        cblas_drotg(&x, &y, &c, &s);
        cblas_drot(n - p, a, 1, b, 1, c, s);
        cblas_drot(1, h->ones + p, 1, h->ones + p + 1, 1, c, s);
        if (*a < 0) { /* the factor's diagonal stays positive */
            cblas_dscal(n - p, -1, a, 1);
            h->ones[p] = -h->ones[p];
        }
    }
    h->support = n;
}

/* Gives point `from` the index `to`: moves its figures and its row and column of K. */
static void active_set_rename(struct svi_active_set *h, int from, int to) {
    h->z[to] = h->z[from];
    h->u[to] = h->u[from];
    h->dependent[to] = h->dependent[from];
    h->place[to] = h->place[from];
    if (h->place[to] >= 0)
        h->point[h->place[to]] = to;
    for (int i = 0; i < h->count; i++)
        active_set_row(h, to)[i] = active_set_row(h, from)[i];
    for (int i = 0; i < h->count; i++)
        active_set_row(h, i)[to] = active_set_row(h, i)[from];
    active_set_row(h, to)[to] = active_set_row(h, from)[from];
}

/* A point of the support leaves the factor first, while its indices are still valid. */
void svi_active_set_remove(struct svi_active_set *h, int i) {
    if (h->place[i] >= 0)
        active_set_leave(h, h->place[i]);
    const int last = h->count - 1;
    if (i != last)
        active_set_rename(h, last, i);
    h->count = last;
}

/* ---- the solution */

/* The share of the way from z to trial, at most 1, that keeps every weight at least 0. */
static double active_set_longest_step(const struct svi_active_set *h) {
    double step = 1;
    for (int s = 0; s < h->support; s++) {
        const double z = h->z[h->point[s]];
        if (h->trial[s] <= 0 && z < step * (z - h->trial[s]))
            step = z / (z - h->trial[s]);
    }
    return step;
}

/* Moves z to the optimum of the support. Points that would turn negative leave it on the way, at least one in
 * two or three passes; the bound on passes only matters with NaN. */
static void active_set_settle(struct svi_active_set *h) {
    for (int left = 4 * h->support + 40; h->support > 0 && left > 0; left--) {
        memcpy(h->trial, h->ones, (size_t)h->support * sizeof *h->trial); /* solves L' trial = ones */
        h->pass->lower_solve_transposed(h->factor, (size_t)h->capacity, h->support, h->trial);
        const double step = active_set_longest_step(h);
        bool all = true;
        for (int s = 0; s < h->support; s++) {
            double *z = &h->z[h->point[s]];
            const bool leaves = h->trial[s] <= 0;
            *z += step * (h->trial[s] - *z);
            /* Rounding can leave the blocking point slightly above 0; it must leave now or the next pass
             * makes no progress. */
            if (leaves && *z <= 1e-15 * fabs(h->trial[s]))
                *z = 0;
            all = all && !leaves;
        }
        if (all)
            return;
        /* Backwards, because removing a point moves later ones forward. */
        for (int s = h->support - 1; s >= 0; s--)
            if (h->z[h->point[s]] <= 0) {
                h->z[h->point[s]] = 0;
                active_set_leave(h, s);
            }
    }
}

/* Point i, whose pivot vanished, is a combination of the support: K_i = K_S c. Along (e_i, -c) the objective
 * falls by 1 - u_i per unit and no curvature stops it; the first point of the support to lose its weight
 * does, and i replaces it. Not if the fall is within what the pivot may hide, nor if no point ever loses its
 * weight (the hull contains the origin). `trial` holds L^-1 K_i from active_set_insert. */
static void active_set_take_place(struct svi_active_set *h, int i) {
    int leaves = -1;
    double step = INFINITY, *c = h->trial;
    h->pass->lower_solve_transposed(h->factor, (size_t)h->capacity, h->support, c);
    for (int s = 0; s < h->support; s++)
        if (c[s] > 0 && h->z[h->point[s]] < step * c[s]) {
            step = h->z[h->point[s]] / c[s];
            leaves = s;
        }
    /* c_s > 0 means that the weight of s falls along the direction; the first to reach 0 ends the step. */
    if (leaves < 0 || !(step * PIVOT * active_set_row(h, i)[i] < 1 - h->u[i]))
        return;
    for (int s = 0; s < h->support; s++)
        h->z[h->point[s]] = s == leaves ? 0 : fmax(0, h->z[h->point[s]] - step * c[s]);
    active_set_leave(h, leaves);
    h->z[i] = active_set_insert(h, i) ? step : 0;
}

/* u = K z. On the support it is 1 at the optimum. Elsewhere it is computed with the fewer rows of K: a sum of
 * the support's rows, or a dot product for each idle point. */
static void active_set_multiply(struct svi_active_set *h) {
    const size_t capacity = (size_t)h->capacity;
    int idle = 0;
    /* z is 0 outside the support, so the sum runs over the support's rows alone. */
    if (2 * h->support < h->count)
        h->pass->chosen_sum(h->k, capacity, h->point, h->support, h->count, h->z, h->u);
    for (int i = 0; i < h->count && 2 * h->support >= h->count; i++)
        if (h->place[i] < 0)
            h->idle[idle++] = i;
    h->pass->chosen_dot(h->k, capacity, h->idle, idle, h->count, h->z, h->trial);
    for (int i = 0; i < idle; i++)
        h->u[h->idle[i]] = h->trial[i];
    for (int s = 0; s < h->support; s++)
        h->u[h->point[s]] = 1;
}

/* The idle point with the largest violation, -1 if no point violates. */
static int active_set_worst_idle(const struct svi_active_set *h) {
    int worst = -1;
    for (int i = 0; i < h->count; i++)
        if (h->place[i] < 0 && !h->dependent[i] && h->u[i] < 1 - FEASIBLE &&
            (worst < 0 || h->u[i] < h->u[worst]))
            worst = i;
    return worst;
}

void svi_active_set_begin(struct svi_active_set *h) {
    memset(h->dependent, 0, (size_t)h->count * sizeof *h->dependent);
    active_set_settle(h);
}

/* Each step lets one point enter. u must be recomputed before the choice, because settle has moved z. */
bool svi_active_set_go_on(struct svi_active_set *h, int steps) {
    for (; steps > 0; steps--) {
        active_set_multiply(h);
        /* Points that depend on the support and did not get in are ignored until the next begin, or they
         * would be chosen again for ever. */
        const int i = active_set_worst_idle(h);
        if (i < 0)
            return true;
        if (!active_set_insert(h, i))
            active_set_take_place(h, i);
        active_set_settle(h);
        h->dependent[i] = h->place[i] < 0; /* rounding alone can make settle remove it at once */
    }
    return false;
}

bool svi_active_set_solve(struct svi_active_set *h) {
    svi_active_set_begin(h);
    return svi_active_set_go_on(h, svi_active_set_most_steps(h));
}

/* The method is finite in exact arithmetic; with rounding the bound prevents an endless alternation. */
int svi_active_set_most_steps(const struct svi_active_set *h) {
    return 3 * h->count + 30;
}

double svi_active_set_rho(const struct svi_active_set *h) {
    double sum = 0;
    for (int i = 0; i < h->count; i++)
        sum += h->z[i];
    return sum > 0 ? 1 / sum : 0;
}

double svi_active_set_violation(const struct svi_active_set *h) {
    double worst = 0;
    for (int i = 0; i < h->count; i++) {
        const double gap = 1 - cblas_ddot(h->count, active_set_row(h, i), 1, h->z, 1);
        const double violation = h->place[i] >= 0 ? fabs(gap) : gap;
        worst = violation > worst ? violation : worst;
    }
    return worst;
}

/* ---- archive */

static int64_t active_set_triangle(int n) {
    return (int64_t)n * (n + 1) / 2;
}

static const char *active_set_key(char key[64], const char *name, const char *field) {
    snprintf(key, 64, "%s %s", name, field);
    return key;
}

/* Copies v, a lower triangle row by row, into a matrix with the given distances between rows (`across`) and
 * between columns (`down`); or back. */
static void active_set_move_triangle(bool in, double *v, double *matrix, int n, int across, int down) {
    for (int row = 0; row < n; row++)
        for (int c = 0; c <= row; c++, v++) {
            double *entry = matrix + (size_t)row * (size_t)across + (size_t)c * (size_t)down;
            *(in ? entry : v) = *(in ? v : entry);
        }
}

/* Archives a triangle through the buffer v. True: it was loaded. */
static bool active_set_archive_triangle(struct svi_archive *a, const char *key, double *v, double *matrix,
                                        int n, int across, int down) {
    const bool in = svi_archive_loading(a);
    if (!in)
        active_set_move_triangle(false, v, matrix, n, across, down);
    svi_archive_finite(a, key, v, active_set_triangle(n));
    if (!in || !svi_archive_ok(a))
        return false;
    active_set_move_triangle(true, v, matrix, n, across, down);
    return true;
}

/* Can K be the matrix of a kernel? |K_ij| must not exceed sqrt(K_ii K_jj). */
static bool active_set_is_kernel(const struct svi_active_set *h) {
    for (int i = 0; i < h->count; i++) {
        const double *row = active_set_row(h, i);
        for (int j = 0; j <= i; j++) {
            const double own = row[i] * active_set_row(h, j)[j];
            if (!(row[i] > 0 && row[j] * row[j] <= own * (1 + AGREE)))
                return false;
        }
    }
    return true;
}

static void active_set_archive_kernel(struct svi_archive *a, struct svi_active_set *h, const char *name,
                                      double *v) {
    char key[64];
    if (!active_set_archive_triangle(a, active_set_key(key, name, "kernel"), v, h->k, h->count, h->capacity,
                                     1))
        return;
    active_set_move_triangle(true, v, h->k, h->count, 1, h->capacity); /* the upper triangle */
    svi_archive_check(a, active_set_is_kernel(h), "a matrix is not that of a kernel");
}

/* Checks L L' = K of the support, L ones = 1, and that no weight is negative or outside the support. v holds
 * L, row by row. The error of L ones is relative to the size of its terms. */
static bool active_set_is_factor(const struct svi_active_set *h, const double *v) {
    const double *row = v;
    for (int s = 0; s < h->support; s++) {
        const double *k = active_set_row(h, h->point[s]), *other = v;
        double size = 1;
        for (int c = 0; c <= s; c++)
            size += fabs(row[c] * h->ones[c]);
        if (!(row[s] > 0 && fabs(cblas_ddot(s + 1, row, 1, h->ones, 1) - 1) <= AGREE * size))
            return false;
        /* `other` walks the rows of L: row t has t + 1 values. */
        for (int t = 0; t <= s; other += ++t)
            if (!(fabs(cblas_ddot(t + 1, row, 1, other, 1) - k[h->point[t]]) <= AGREE * k[h->point[s]]))
                return false;
        row += s + 1;
    }
    for (int i = 0; i < h->count; i++)
        if (!(h->z[i] >= 0) || (h->place[i] < 0 && h->z[i] != 0))
            return false;
    return true;
}

static void active_set_archive_support(struct svi_archive *a, struct svi_active_set *h, const char *name,
                                       double *v) {
    char key[64];
    svi_archive_finite(a, active_set_key(key, name, "z"), h->z, h->count);
    svi_archive_int(a, active_set_key(key, name, "support"), &h->support, 0, h->count);
    if (!svi_archive_ok(a))
        return;
    svi_archive_ints(a, active_set_key(key, name, "point"), h->point, h->support, 0, h->count - 1);
    const bool loaded = active_set_archive_triangle(a, active_set_key(key, name, "factor"), v, h->factor,
                                                    h->support, 1, h->capacity);
    svi_archive_finite(a, active_set_key(key, name, "ones"), h->ones, h->support);
    if (loaded && svi_archive_ok(a) &&
        svi_archive_check(a, active_set_find_places(h), "a point is in a support twice"))
        svi_archive_check(a, active_set_is_factor(h, v), "a factor is not that of its kernel matrix");
}

void svi_active_set_archive(struct svi_archive *a, struct svi_active_set *h, const char *name, int count) {
    if (!svi_archive_ok(a))
        return;
    if (svi_archive_loading(a)) {
        svi_active_set_empty(h);
        h->count = count;
    }
    if (count == 0)
        return;
    /* One buffer serves both triangles: K first, then the factor, which active_set_is_factor reads from
     * it. */
    double *v = svi_alloc_array((size_t)active_set_triangle(count), sizeof *v);
    if (!v) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for a kernel matrix");
        return;
    }
    active_set_archive_kernel(a, h, name, v);
    active_set_archive_support(a, h, name, v);
    svi_free(v);
}
