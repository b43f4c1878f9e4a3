/* Many operations at once (Eqs. 3 and 7): with A = the samples as rows, S = diag(+-s),
 *
 *     T = A P A',   S^-1 + T = L Delta L' (in the given order, no pivoting),   U = L^-1 (t - A w),
 *     w <- w + V Delta^-1 U,   P <- P - V Delta^-1 V',   V = P A' L^-T,
 *
 * and U_i is the innovation t_i - w'x_i that a one-by-one recursion would have seen, so the score before each
 * sample comes for free, and FALSVM can decide while eliminating. This is the portable reference of the
 * sweeps, and faster than them only without vector instructions at large D. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/alsvm_state.h"

struct block {
    int n, dim, rows;
    double *p;     /* dim x dim */
    double *a;     /* n x dim, samples; then unused */
    double *v;     /* n x dim: P A', turned into V row by row */
    double *t;     /* n x n, lower: T, turned into L */
    double *u;     /* n x rows: t - A w, turned into U */
    double *pivot; /* n: Delta, or 0 = skipped */
};

static void block_free(struct block *b) {
    double *parts[] = {b->p, b->a, b->v, b->t, b->u, b->pivot};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        svi_free(parts[i]);
}

static bool block_new(struct block *b) {
    size_t n = (size_t)b->n, d = (size_t)b->dim;
    b->p = svi_alloc_array(d * d, sizeof(double));
    b->a = svi_alloc_array(n * d, sizeof(double));
    b->v = svi_alloc_array(n * d, sizeof(double));
    b->t = svi_alloc_array(n * n, sizeof(double));
    b->u = svi_alloc_array(n * (size_t)b->rows, sizeof(double));
    b->pivot = svi_alloc_array(n, sizeof(double));
    return b->p && b->a && b->v && b->t && b->u && b->pivot;
}

static void block_fill(struct block *b, svs_alsvm *m, const svs_operation *op) {
    svs_alsvm_inverse(m, b->p);
    for (int i = 0; i < b->n; i++) {
        double *u = b->u + (size_t)i * b->rows;
        memcpy(b->a + (size_t)i * b->dim, op[i].x, (size_t)b->dim * sizeof(double));
        svs_alsvm_scores(m, op[i].x, u);
        for (int k = 0; k < b->rows; k++)
            u[k] = op[i].t[k] - u[k];
    }
    cblas_dsymm(CblasRowMajor, CblasRight, CblasLower, b->n, b->dim, 1, b->p, b->dim, b->a, b->dim, 0, b->v,
                b->dim);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, b->n, b->n, b->dim, 1, b->a, b->dim, b->v, b->dim, 0,
                b->t, b->n);
}

static bool falsvm_skips(const svs_operation *op, double innovation, bool skipped_before) {
    return op->remove ? skipped_before : op->t[0] * (op->t[0] - innovation) > 0;
}

/* Row i of the elimination: L_ij, U_i and the row of V, then the pivot. False when the pivot has the wrong
 * sign. */
static bool eliminate(struct block *b, int i, const svs_operation *op) {
    double *ti = b->t + (size_t)i * b->n, *ui = b->u + (size_t)i * b->rows, *vi = b->v + (size_t)i * b->dim;
    double d = ti[i] + (op->remove ? -1 : 1) / op->weight;
    for (int j = 0; j < i; j++) {
        const double *tj = b->t + (size_t)j * b->n;
        if (b->pivot[j] == 0)
            continue;
        double s = ti[j]; /* still T_ij minus what the rows before j took */
        for (int k = 0; k < j; k++)
            if (b->pivot[k] != 0)
                s -= ti[k] * tj[k] * b->pivot[k];
        double l = ti[j] = s / b->pivot[j];
        d -= l * l * b->pivot[j];
        for (int k = 0; k < b->rows; k++)
            ui[k] -= l * b->u[(size_t)j * b->rows + k];
        cblas_daxpy(b->dim, -l, b->v + (size_t)j * b->dim, 1, vi, 1);
    }
    b->pivot[i] = d;
    return op->remove ? d < 0 && d >= -1 / op->weight : d >= 1 / op->weight && d < INFINITY;
}

static bool solve(struct block *b, const svs_operation *op, bool falsvm, bool *skip, double *scores) {
    for (int i = 0; i < b->n; i++) {
        bool good = eliminate(b, i, &op[i]);
        const double *u = b->u + (size_t)i * b->rows;
        for (int k = 0; scores && k < b->rows; k++)
            scores[(size_t)i * b->rows + k] = op[i].t[k] - u[k];
        if (skip)
            skip[i] = falsvm && falsvm_skips(&op[i], u[0], skip[i]);
        if (skip && skip[i])
            b->pivot[i] = 0;
        else if (!good)
            return false;
    }
    return true;
}

/* P <- P - V Delta^-1 V' on the lower triangle, w <- w + V Delta^-1 U. */
static void apply(struct block *b, svs_alsvm *m) {
    for (int i = 0; i < b->n; i++) {
        if (b->pivot[i] == 0)
            continue;
        const double *v = b->v + (size_t)i * b->dim, *u = b->u + (size_t)i * b->rows;
        cblas_dsyr(CblasRowMajor, CblasLower, b->dim, -1 / b->pivot[i], v, 1, b->p, b->dim);
        for (int k = 0; k < b->rows; k++)
            cblas_daxpy(b->dim, u[k] / b->pivot[i], v, 1, m->r.w + (size_t)k * m->r.padded, 1);
    }
    int strip = m->r.strip;
    for (int i = 0; i < b->dim; i++)
        for (int j = 0; j < b->dim; j++)
            if (j <= i || i / strip == j / strip)
                m->r.p[svi_packed_at(i, j, strip)] =
                    b->p[j <= i ? (size_t)i * b->dim + j : (size_t)j * b->dim + i];
}

svs_code svs_alsvm_block(svs_alsvm *m, const svs_operation *op, int count, bool falsvm, bool *skip,
                         double *scores, svs_error *err) {
    struct block b = {.n = count, .dim = m->r.dim, .rows = m->r.rows};
    if (count < 1 || (falsvm && (b.rows != 1 || !skip)))
        return svi_fail(err, SVS_INVALID, "a block needs operations; FALSVM blocks one row and a skip array");
    svs_code code = SVS_OK;
    if (!block_new(&b)) {
        code = svi_fail_memory(err, "a block of operations");
    } else {
        block_fill(&b, m, op);
        if (solve(&b, op, falsvm, skip, scores))
            apply(&b, m);
        else
            code = svi_fail(err, SVS_NUMERIC, "a pivot of the block has the wrong sign; nothing was changed");
    }
    block_free(&b);
    return code;
}
