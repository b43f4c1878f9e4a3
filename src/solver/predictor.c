#include "solver/predictor.h"

svs_code svi_predictor_init(struct svi_predictor *p, const svs_model *linear, const svs_kernel_model *kernel,
                            int d, svs_error *err) {
    const int64_t vectors = kernel ? kernel->support.n + kernel->support.d : 0;
    *p = (struct svi_predictor){.linear = linear, .kernel = kernel};
    p->row = svi_pool_doubles(&p->pool, (size_t)d);
    p->work = svi_pool_doubles(&p->pool, (size_t)vectors);
    p->scores = svi_pool_doubles(&p->pool, (size_t)(kernel ? kernel->rows : linear->rows));
    return svi_pool_code(&p->pool, "the predictions", err);
}

void svi_predictor_clear(struct svi_predictor *p) {
    svi_pool_free(&p->pool);
}

int svi_predictor_row(struct svi_predictor *p, const svs_rows *rows, int64_t i) {
    if (p->kernel) {
        svs_kernel_scores(p->kernel, rows, i, p->work, p->scores);
        return svs_kernel_predict(p->kernel, p->scores);
    }
    svs_rows_copy(rows, i, p->row);
    svs_model_scores(p->linear, p->row, p->scores);
    return svs_model_predict(p->linear, p->scores);
}
