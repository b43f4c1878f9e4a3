#include "solver/curvature.h"

#include <string.h>

#include "linalg/sparse_rows.h"
#include "solver/solver_internal.h"

#define BLOCK 2048 /* rows that are added at once */

/* gram += sum change z z' over the listed rows, up to BLOCK of them. */
static svs_code curvature_add(struct svi_curvature *c, const svs_rows *rows, double bias_value,
                              const int64_t *index, const double *change, int count, svs_error *err) {
    return count == 0 ? SVS_OK : svi_rows_gram(rows, index, count, change, bias_value, c->gram, err);
}

/* By the rows whose weight has changed, or from scratch where these are as many as those that count at all:
 * the cost is the same, and nothing cancels. */
svs_code svi_curvature_update(struct svi_curvature *c, const svs_rows *rows, double bias_value,
                              const double *weight, svs_error *err) {
    const size_t dim = (size_t)rows->d + (bias_value != 0);
    double change[BLOCK];
    int64_t index[BLOCK], changed = 0, members = 0;
    int count = 0;
    svs_code code = SVS_OK;
    for (int64_t i = 0; i < rows->n; i++) {
        changed += weight[i] != c->weight[i];
        members += weight[i] != 0;
    }
    const bool fresh = !c->known || changed >= members;
    /* Not known while it is being changed: after a failure neither gram nor weights are of one state. */
    c->known = false;
    if (fresh)
        memset(c->gram, 0, dim * dim * sizeof *c->gram);
    for (int64_t i = 0; i < rows->n && code == SVS_OK; i++) {
        const double now = weight[i], d = fresh ? now : now - c->weight[i];
        c->weight[i] = now;
        index[count] = i;
        change[count] = d;
        count += d != 0;
        if (count < BLOCK)
            continue;
        code = curvature_add(c, rows, bias_value, index, change, count, err);
        count = 0;
    }
    if (code == SVS_OK)
        code = curvature_add(c, rows, bias_value, index, change, count, err);
    c->known = code == SVS_OK;
    return code;
}

/* Solves (unit gram + diagonal) step = -g by a factor, which needs n^3 / 3 operations whatever changed. */
bool svi_curvature_step(const struct svi_curvature *c, double unit, const struct svi_diagonal *add, int n,
                        const double *g, double *factor, double *step) {
    for (size_t k = 0; k < (size_t)n * (size_t)n; k++)
        factor[k] = unit * c->gram[k];
    for (int j = 0; j < n; j++)
        step[j] = -g[j];
    const bool good = svi_factor_ridge(factor, n, add);
    if (good)
        svi_solve_factor(factor, n, step);
    return good;
}

svs_code svi_curvature_solve(struct svi_curvature *c, const svs_problem *p, const svs_solve_options *o,
                             const svs_start *start, svs_solution *out, svs_error *err) {
    return svi_work_solve(p, o, start, c, out, err);
}
