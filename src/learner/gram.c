#include "learner/gram.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define BLAS_FROM 96 /* below, our own rank-4 loops are as fast as dsyrk */

double svi_gram_memory(int n, int groups) {
    return 8.0 * n * (n + 1 + groups + SVI_GRAM_BLOCK);
}

static bool take_room(struct svi_gram *g, int n, int groups) {
    g->n = n;
    g->groups = groups;
    g->group_room = groups < 4 ? 4 : 2 * groups;
    g->g = svi_alloc_array((size_t)n * (size_t)n, sizeof(double));
    g->sums = svi_alloc_array((size_t)n * (size_t)(1 + g->group_room), sizeof(double));
    g->block = svi_alloc_array((size_t)n * SVI_GRAM_BLOCK, sizeof(double));
    g->filled = 0;
    if (g->g && g->sums && g->block)
        return true;
    svi_gram_clear(g);
    return false;
}

svs_code svi_gram_init(struct svi_gram *g, int n, int groups, svs_error *err) {
    return take_room(g, n, groups) ? SVS_OK : svi_fail_memory(err, "the Gram matrix");
}

void svi_gram_clear(struct svi_gram *g) {
    svi_free(g->g);
    svi_free(g->sums);
    svi_free(g->block);
    *g = (struct svi_gram){0};
}

void svi_gram_zero(struct svi_gram *g) {
    memset(g->g, 0, (size_t)g->n * (size_t)g->n * sizeof(double));
    memset(g->sums, 0, (size_t)g->n * (size_t)(1 + g->group_room) * sizeof(double));
    g->filled = 0;
}

void svi_gram_adopt(struct svi_gram *g, struct svi_gram *wider) {
    const int n = wider->n;
    for (int i = 0; i < g->n; i++)
        memcpy(wider->g + (size_t)i * n, g->g + (size_t)i * g->n, (size_t)g->n * sizeof(double));
    for (int c = 0; c <= g->groups; c++)
        memcpy(wider->sums + (size_t)c * n, g->sums + (size_t)c * g->n, (size_t)g->n * sizeof(double));
    for (int i = 0; i < g->filled; i++)
        memcpy(wider->block + (size_t)i * n, g->block + (size_t)i * g->n, (size_t)g->n * sizeof(double));
    memcpy(wider->weight, g->weight, sizeof g->weight);
    wider->filled = g->filled;
    svi_gram_clear(g);
    *g = *wider;
}

svs_code svi_gram_grow(struct svi_gram *g, int n, int groups, svs_error *err) {
    struct svi_gram wider = {0};
    if (n == g->n && groups <= g->group_room) {
        g->groups = groups;
        return SVS_OK;
    }
    svs_code code = svi_gram_init(&wider, n, groups, err);
    if (code == SVS_OK)
        svi_gram_adopt(g, &wider);
    return code;
}

static void add_scaled(double *restrict to, const double *restrict z, double s, int n) {
    for (int j = 0; j < n; j++)
        to[j] += s * z[j];
}

void svi_gram_add(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                  double target) {
    add_scaled(g->sums, z, s, g->n);
    add_scaled(g->sums + (size_t)(group < 0 ? 1 : 1 + group) * g->n, z, group < 0 ? s * target : s, g->n);
    memcpy(g->block + (size_t)g->filled * g->n, z, (size_t)g->n * sizeof *z);
    g->weight[g->filled++] = s;
    if (g->filled == SVI_GRAM_BLOCK)
        svi_gram_flush(g, k);
}

void svi_gram_flush(struct svi_gram *g, const struct svi_kernels *k) {
    int n = g->n, count = g->filled;
    g->filled = 0;
    if (n < BLAS_FROM) {
        k->gram(g->g, n, g->block, n, g->weight, count);
        return;
    }
    for (int i = 0; i < count; i++)
        cblas_dscal(n, sqrt(g->weight[i]), g->block + (size_t)i * n, 1);
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, n, count, 1, g->block, n, 1, g->g, n);
}

void svi_gram_scale(struct svi_gram *g, double factor) {
    for (size_t i = 0; i < (size_t)g->n * (size_t)g->n; i++)
        g->g[i] *= factor;
    for (size_t i = 0; i < (size_t)g->n * (size_t)(1 + g->groups); i++)
        g->sums[i] *= factor;
    for (int i = 0; i < g->filled; i++)
        g->weight[i] *= factor;
}

void svi_gram_move(struct svi_gram *g, const double *shift, const double *inverse_spread) {
    int n = g->n;
    double total = g->g[0];           /* sum s: z_0 = 1 */
    for (int i = n - 1; i > 0; i--) { /* G'_ij = (G_ij - m_i G_0j - m_j G_i0 + m_i m_j G_00) / (s_i s_j) */
        double *gi = g->g + (size_t)i * n;
        for (int j = 1; j <= i; j++) {
            double gj0 = g->g[(size_t)j * n];
            gi[j] += -shift[i] * gj0 - shift[j] * gi[0] + shift[i] * shift[j] * total;
            gi[j] *= inverse_spread[i] * inverse_spread[j];
        }
    }
    for (int i = 1; i < n; i++)
        g->g[(size_t)i * n] = (g->g[(size_t)i * n] - shift[i] * total) * inverse_spread[i];
    for (int c = 0; c <= g->groups; c++) {
        double *sum = g->sums + (size_t)c * n;
        for (int j = 1; j < n; j++)
            sum[j] = (sum[j] - shift[j] * sum[0]) * inverse_spread[j];
    }
}
