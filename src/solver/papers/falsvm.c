/* FALSVM (Le et al. 2015): the recursion over the rows in their order, learning only what the present model
 * gets wrong; what it has learned is then solved for in closed form, so that the answer carries no rounding
 * of the recursion. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "solver/least_squares.h"
#include "svmstream/alsvm.h"

#define DIMENSION_MAX 6000 /* of the recursion's matrix */
#define CHUNK         64

/* The recursion over one chunk of rows; marks what was learned. x: CHUNK x dim. */
static svs_code falsvm_learn(struct svi_work *w, svs_alsvm *m, int64_t first, double *x, double *weight,
                             svs_error *err) {
    const svs_problem *p = w->problem;
    svs_operation op[CHUNK] = {{0}};
    bool skip[CHUNK] = {false};
    const int count = (int)svi_work_block(w, first, CHUNK);
    for (int k = 0; k < count; k++) {
        double *row = x + (size_t)k * (size_t)w->dim;
        svs_rows_copy(&p->rows, first + k, row);
        if (w->bias_value != 0)
            row[w->d] = w->bias_value;
        op[k] = (svs_operation){.x = row, .t = p->y + first + k, .weight = w->cost[first + k] / p->C};
    }
    svs_code code = svs_alsvm_block(m, op, count, true, skip, NULL, err);
    for (int k = 0; k < count; k++)
        weight[first + k] = skip[k] ? 0 : 2 * w->cost[first + k];
    return code;
}

static svs_code falsvm_solve(struct svi_work *w, svs_error *err) {
    int64_t learned = 0;
    if (w->dim > DIMENSION_MAX)
        return svi_fail(err, SVS_LIMIT, "falsvm keeps a matrix of %d x %d; use alsvm or dcd", w->dim, w->dim);
    struct svi_pool pool = {0};
    double *x = svi_pool_doubles(&pool, (size_t)CHUNK * (size_t)w->dim);
    double *weight = svi_pool_doubles(&pool, (size_t)w->n); /* 2 c_i of what is learned, 0 of the others */
    svs_alsvm *m = svs_alsvm_new(w->dim, 1, 1 / (2 * w->problem->C), SVS_ISA_BEST, err);
    svs_code code = m ? svi_pool_code(&pool, "the weights of the rows", err) : SVS_NO_MEMORY;
    for (int64_t i = 0; i < w->n && code == SVS_OK; i += CHUNK)
        code = falsvm_learn(w, m, i, x, weight, err);
    svs_alsvm_free(&m);
    if (code == SVS_OK)
        code = svi_least_squares(w, weight, err);
    for (int64_t i = 0; i < w->n && code == SVS_OK; i++)
        learned += weight[i] > 0;
    snprintf(w->note, sizeof w->note, "learned %lld of %lld rows", (long long)learned, (long long)w->n);
    svi_pool_free(&pool);
    svi_free(w->alpha);
    w->alpha = NULL;
    return code;
}

const struct svi_method svi_method_FALSVM = {
    .solve = falsvm_solve,
    .can = SVI_LINEAR | SVI_SQUARES | SVI_APPENDED | SVI_NONE,
    .does = "the squared loss over misclassified samples, linear, bias appended or none",
};
