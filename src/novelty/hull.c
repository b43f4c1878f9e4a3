#include "novelty/hull.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"

#define FEASIBLE 1e-12 /* (Kz)_i >= 1 - this counts as satisfied */
#define PIVOT    1e-13 /* squared pivot over K_ii below which a point depends on the support */

void svi_hull_clear(struct svi_hull *h) {
    svi_free(h->k);
    svi_free(h->z);
    svi_free(h->u);
    svi_free(h->place);
    svi_free(h->point);
    svi_free(h->factor);
    svi_free(h->ones);
    svi_free(h->trial);
    svi_free(h->dependent);
    *h = (struct svi_hull){0};
}

svs_code svi_hull_init(struct svi_hull *h, int room, svs_error *err) {
    const size_t n = (size_t)(room < 1 ? 1 : room);
    *h = (struct svi_hull){.room = (int)n};
    h->k = svi_alloc_array(n * n, sizeof *h->k);
    h->factor = svi_alloc_array(n * n, sizeof *h->factor);
    h->z = svi_alloc_array(n, sizeof *h->z);
    h->u = svi_alloc_array(n, sizeof *h->u);
    h->ones = svi_alloc_array(n, sizeof *h->ones);
    h->trial = svi_alloc_array(n, sizeof *h->trial);
    h->place = svi_alloc_array(n, sizeof *h->place);
    h->point = svi_alloc_array(n, sizeof *h->point);
    h->dependent = svi_alloc_array(n, sizeof *h->dependent);
    if (h->k && h->factor && h->z && h->u && h->ones && h->trial && h->place && h->point && h->dependent)
        return SVS_OK;
    svi_hull_clear(h);
    return svi_fail_memory(err, "the active set of the one-class model");
}

static void copy_square(double *to, int to_stride, const double *from, int from_stride, int n) {
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * (size_t)to_stride, from + (size_t)i * (size_t)from_stride,
               (size_t)n * sizeof *to);
}

svs_code svi_hull_reserve(struct svi_hull *h, int room, svs_error *err) {
    struct svi_hull wide;
    if (room <= h->room)
        return SVS_OK;
    svs_code code = svi_hull_init(&wide, room, err);
    if (code != SVS_OK)
        return code;
    const size_t n = (size_t)h->count;
    wide.count = h->count;
    wide.support = h->support;
    copy_square(wide.k, wide.room, h->k, h->room, h->count);
    copy_square(wide.factor, wide.room, h->factor, h->room, h->support);
    memcpy(wide.z, h->z, n * sizeof *h->z);
    memcpy(wide.u, h->u, n * sizeof *h->u);
    memcpy(wide.ones, h->ones, (size_t)h->support * sizeof *h->ones);
    memcpy(wide.place, h->place, n * sizeof *h->place);
    memcpy(wide.point, h->point, (size_t)h->support * sizeof *h->point);
    memcpy(wide.dependent, h->dependent, n * sizeof *h->dependent);
    svi_hull_clear(h);
    *h = wide;
    return SVS_OK;
}

void svi_hull_empty(struct svi_hull *h) {
    h->count = h->support = 0;
}

static double *column(const struct svi_hull *h, int c) {
    return h->factor + (size_t)c * (size_t)h->room;
}

static double *gram_row(const struct svi_hull *h, int i) {
    return h->k + (size_t)i * (size_t)h->room;
}

void svi_hull_add(struct svi_hull *h, const double *row) {
    const int n = h->count++;
    for (int i = 0; i <= n; i++) {
        gram_row(h, n)[i] = row[i];
        gram_row(h, i)[n] = row[i];
    }
    h->z[n] = 0;
    h->u[n] = n > 0 ? cblas_ddot(n, row, 1, h->z, 1) : 0;
    h->place[n] = -1;
    h->dependent[n] = false;
}

/* ---- the support and its factor */

/* False: the point depends on the support. */
static bool support_enter(struct svi_hull *h, int i) {
    const int n = h->support;
    double *row = h->trial, square = gram_row(h, i)[i], own = square;
    for (int s = 0; s < n; s++)
        row[s] = gram_row(h, i)[h->point[s]];
    if (n > 0) {
        cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, h->factor, h->room, row, 1);
        square -= cblas_ddot(n, row, 1, row, 1);
    }
    if (!(square > PIVOT * own))
        return false;
    const double pivot = sqrt(square);
    for (int c = 0; c < n; c++)
        column(h, c)[n] = row[c];
    column(h, n)[n] = pivot;
    h->ones[n] = (1 - (n > 0 ? cblas_ddot(n, row, 1, h->ones, 1) : 0)) / pivot;
    h->point[n] = i;
    h->place[i] = n;
    h->support++;
    return true;
}

/* Row j of the factor goes; what stays is lower triangular but for one diagonal above, which rotations of
 * neighbouring columns take away. `ones` is turned along with them. */
static void support_leave(struct svi_hull *h, int j) {
    const int n = h->support - 1;
    h->place[h->point[j]] = -1;
    for (int s = j; s < n; s++) {
        h->point[s] = h->point[s + 1];
        h->place[h->point[s]] = s;
    }
    for (int c = 0; c <= n; c++) {
        const int from = c > j ? c : j + 1;
        memmove(column(h, c) + from - 1, column(h, c) + from, (size_t)(n + 1 - from) * sizeof *h->factor);
    }
    for (int p = j; p < n; p++) {
        double *a = column(h, p) + p, *b = column(h, p + 1) + p, x = *a, y = *b, c, s;
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

static void rename_point(struct svi_hull *h, int from, int to) {
    h->z[to] = h->z[from];
    h->u[to] = h->u[from];
    h->dependent[to] = h->dependent[from];
    h->place[to] = h->place[from];
    if (h->place[to] >= 0)
        h->point[h->place[to]] = to;
    for (int i = 0; i < h->count; i++)
        gram_row(h, to)[i] = gram_row(h, from)[i];
    for (int i = 0; i < h->count; i++)
        gram_row(h, i)[to] = gram_row(h, i)[from];
    gram_row(h, to)[to] = gram_row(h, from)[from];
}

void svi_hull_remove(struct svi_hull *h, int i) {
    if (h->place[i] >= 0)
        support_leave(h, h->place[i]);
    const int last = h->count - 1;
    if (i != last)
        rename_point(h, last, i);
    h->count = last;
}

/* ---- the solution */

/* The optimum over the support alone, unsigned, in trial: L' trial = ones. */
static void solve_support(struct svi_hull *h) {
    memcpy(h->trial, h->ones, (size_t)h->support * sizeof *h->trial);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, h->support, h->factor, h->room, h->trial,
                1);
}

/* How far z may go towards trial. */
static double longest_step(const struct svi_hull *h) {
    double step = 1;
    for (int s = 0; s < h->support; s++) {
        const double z = h->z[h->point[s]];
        if (h->trial[s] <= 0 && z < step * (z - h->trial[s]))
            step = z / (z - h->trial[s]);
    }
    return step;
}

/* Moves z to the optimum of the support; points that would turn negative leave it on the way, at least one in
 * two passes or three: the bound is for numbers that are none. */
static void settle(struct svi_hull *h) {
    for (int left = 4 * h->support + 40; h->support > 0 && left > 0; left--) {
        solve_support(h);
        const double step = longest_step(h);
        bool all = true;
        for (int s = 0; s < h->support; s++) {
            double *z = &h->z[h->point[s]];
            const bool leaves = h->trial[s] <= 0;
            *z += step * (h->trial[s] - *z);
            if (leaves && *z <= 1e-15 * fabs(h->trial[s]))
                *z = 0;
            all = all && !leaves;
        }
        if (all)
            return;
        for (int s = h->support - 1; s >= 0; s--)
            if (h->z[h->point[s]] <= 0) {
                h->z[h->point[s]] = 0;
                support_leave(h, s);
            }
    }
}

/* Point i, whose pivot vanished, is a combination of the support, K_i = K_S c: along (e_i, -c) the objective
 * falls by 1 - u_i a unit, and no curvature ends that, but a point of the support without weight does: i
 * takes its place. Not when the fall is no more than what the pivot may hide, nor when no point ever loses
 * its weight (the hull holds the origin). `trial` holds L^-1 K_i. */
static void take_place(struct svi_hull *h, int i) {
    int leaves = -1;
    double step = INFINITY, *c = h->trial;
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, h->support, h->factor, h->room, c, 1);
    for (int s = 0; s < h->support; s++)
        if (c[s] > 0 && h->z[h->point[s]] < step * c[s]) {
            step = h->z[h->point[s]] / c[s];
            leaves = s;
        }
    if (leaves < 0 || !(step * PIVOT * gram_row(h, i)[i] < 1 - h->u[i]))
        return;
    for (int s = 0; s < h->support; s++)
        h->z[h->point[s]] = s == leaves ? 0 : fmax(0, h->z[h->point[s]] - step * c[s]);
    support_leave(h, leaves);
    h->z[i] = support_enter(h, i) ? step : 0;
}

static void multiply(struct svi_hull *h, double *u) {
    cblas_dgemv(CblasRowMajor, CblasNoTrans, h->count, h->count, 1, h->k, h->room, h->z, 1, 0, u, 1);
}

/* The idle point that violates most, -1 when none does. */
static int worst_idle(const struct svi_hull *h) {
    int worst = -1;
    for (int i = 0; i < h->count; i++)
        if (h->place[i] < 0 && !h->dependent[i] && h->u[i] < 1 - FEASIBLE &&
            (worst < 0 || h->u[i] < h->u[worst]))
            worst = i;
    return worst;
}

bool svi_hull_solve(struct svi_hull *h) {
    const int limit = 3 * h->count + 30;
    int steps = 0;
    memset(h->dependent, 0, (size_t)h->count * sizeof *h->dependent);
    settle(h);
    for (; steps < limit; steps++) {
        if (h->count > 0)
            multiply(h, h->u);
        const int i = worst_idle(h);
        if (i < 0)
            break;
        if (!support_enter(h, i))
            take_place(h, i);
        settle(h);
        h->dependent[i] = h->place[i] < 0; /* rounding alone can send it back at once */
    }
    return steps < limit;
}

double svi_hull_rho(const struct svi_hull *h) {
    double sum = 0;
    for (int i = 0; i < h->count; i++)
        sum += h->z[i];
    return sum > 0 ? 1 / sum : 0;
}

double svi_hull_violation(const struct svi_hull *h) {
    double worst = 0;
    for (int i = 0; i < h->count; i++) {
        const double gap = 1 - cblas_ddot(h->count, gram_row(h, i), 1, h->z, 1);
        const double violation = h->place[i] >= 0 ? fabs(gap) : gap;
        worst = violation > worst ? violation : worst;
    }
    return worst;
}
