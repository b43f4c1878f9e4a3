#include "solver/predictor.h"

#include "linalg/sparse_rows.h"
#include "learner/owned_model.h"
#include "solver/kernel_model.h"

/* Scores for rows of either model. The memory for a kernel's values and one full row is taken once: a row
 * then allocates nothing. */
svs_code svi_predictor_init(struct svi_predictor *p, const svs_model *linear, const svs_kernel_model *kernel,
                            svs_error *err) {
    const int64_t vectors = kernel ? kernel->support.n + kernel->support.d : 0;
    *p = (struct svi_predictor){.linear = linear, .kernel = kernel};
    p->work = svi_pool_doubles(&p->pool, (size_t)vectors);
    p->scores = svi_pool_doubles(&p->pool, (size_t)(kernel ? kernel->rows : linear->rows));
    return svi_pool_code(&p->pool, "the predictions", err);
}

void svi_predictor_clear(struct svi_predictor *p) {
    svi_pool_free(&p->pool);
}

int svi_predictor_row(struct svi_predictor *p, const svs_rows *rows, int64_t i) {
    if (p->kernel) {
        svi_kernel_scores(p->kernel, rows, i, p->work, p->scores);
        return svs_kernel_predict(p->kernel, p->scores);
    }
    const struct svi_entries x = svi_row_entries(rows, i);
    /* Sparse and dense rows give the same bits (owned_model.c). */
    if (x.column)
        svi_model_scores_sparse(p->linear, x.column, x.value, x.count, p->scores);
    else
        svs_model_scores(p->linear, x.value, p->scores);
    return svs_model_predict(p->linear, p->scores);
}
