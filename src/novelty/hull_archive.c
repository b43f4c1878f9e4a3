/* The small one-class problem as it is kept: K and the factor as their lower triangles, row by row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "novelty/archive.h"

/* How far K and L L' may lie apart: far more than what rounding does to a factor that was updated for years,
 * far less than what damage does. */
#define AGREE 1e-4

struct packed {
    struct svi_archive *a;
    struct svi_hull *h;
    const char *name;
    double *v; /* a lower triangle, row by row */
};

static int64_t triangle(int n) {
    return (int64_t)n * (n + 1) / 2;
}

static const char *key_of(const struct packed *p, char key[64], const char *field) {
    snprintf(key, 64, "%s %s", p->name, field);
    return key;
}

/* Where (row, column) stands in a matrix whose rows are `across` apart and whose columns are `down` apart. */
static void move_triangle(const struct packed *p, double *matrix, int n, int across, int down) {
    double *v = p->v;
    for (int row = 0; row < n; row++)
        for (int c = 0; c <= row; c++, v++) {
            double *entry = matrix + (size_t)row * (size_t)across + (size_t)c * (size_t)down;
            if (svi_archive_loading(p->a))
                *entry = *v;
            else
                *v = *entry;
        }
}

/* Is it the matrix of a kernel? |K_ij| is at most the root of K_ii K_jj. */
static bool is_kernel(const struct svi_hull *h, int n) {
    for (int i = 0; i < n; i++) {
        const double *row = h->k + (size_t)i * (size_t)h->room;
        for (int j = 0; j <= i; j++) {
            const double own = row[i] * h->k[(size_t)j * (size_t)h->room + (size_t)j];
            if (!(row[i] > 0 && row[j] * row[j] <= own * (1 + AGREE)))
                return false;
        }
    }
    return true;
}

static void archive_kernel(const struct packed *p) {
    struct svi_hull *h = p->h;
    char key[64];
    if (!svi_archive_loading(p->a))
        move_triangle(p, h->k, h->count, h->room, 1);
    svi_archive_finite(p->a, key_of(p, key, "kernel"), p->v, triangle(h->count));
    if (!svi_archive_loading(p->a) || !svi_archive_ok(p->a))
        return;
    move_triangle(p, h->k, h->count, h->room, 1);
    move_triangle(p, h->k, h->count, 1, h->room); /* the upper one */
    svi_archive_check(p->a, is_kernel(h, h->count), "a kernel matrix is none");
}

/* Where each point stands in the support; false when one is there twice. */
static bool find_places(struct svi_hull *h) {
    for (int i = 0; i < h->count; i++)
        h->place[i] = -1;
    for (int s = 0; s < h->support; s++) {
        if (h->place[h->point[s]] >= 0)
            return false;
        h->place[h->point[s]] = s;
    }
    return true;
}

/* L L' = K of the support, L ones = 1, and nothing has a weight outside of it? v holds L. */
static bool is_factor(const struct packed *p) {
    const struct svi_hull *h = p->h;
    const double *row = p->v;
    for (int s = 0; s < h->support; s++) {
        const double *k = h->k + (size_t)h->point[s] * (size_t)h->room, *other = p->v;
        double size = 1;
        for (int c = 0; c <= s; c++)
            size += fabs(row[c] * h->ones[c]);
        if (!(row[s] > 0 && fabs(cblas_ddot(s + 1, row, 1, h->ones, 1) - 1) <= AGREE * size))
            return false;
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

static void archive_support(const struct packed *p) {
    struct svi_hull *h = p->h;
    char key[64];
    svi_archive_int(p->a, key_of(p, key, "support"), &h->support, 0, h->count);
    if (!svi_archive_ok(p->a))
        return;
    svi_archive_ints(p->a, key_of(p, key, "point"), h->point, h->support, 0, h->count - 1);
    if (!svi_archive_loading(p->a))
        move_triangle(p, h->factor, h->support, 1, h->room);
    svi_archive_finite(p->a, key_of(p, key, "factor"), p->v, triangle(h->support));
    svi_archive_finite(p->a, key_of(p, key, "ones"), h->ones, h->support);
    if (!svi_archive_loading(p->a) || !svi_archive_ok(p->a))
        return;
    move_triangle(p, h->factor, h->support, 1, h->room);
    if (svi_archive_check(p->a, find_places(h), "a point is in a support twice"))
        svi_archive_check(p->a, is_factor(p), "a factor is not that of its kernel matrix");
}

void svi_hull_archive(struct svi_archive *a, struct svi_hull *h, const char *name, int count) {
    struct packed p = {a, h, name, NULL};
    char key[64];
    if (!svi_archive_ok(a))
        return;
    if (svi_archive_loading(a)) {
        svi_hull_empty(h);
        h->count = count;
    }
    if (count == 0)
        return;
    p.v = svi_alloc_array((size_t)triangle(count), sizeof *p.v);
    if (!p.v) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for a kernel matrix");
        return;
    }
    archive_kernel(&p);
    svi_archive_finite(a, key_of(&p, key, "z"), h->z, count);
    archive_support(&p);
    svi_free(p.v);
}
