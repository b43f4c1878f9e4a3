/* predictor.h: predictions of a trained model, linear or kernel, for rows, with the buffers they need. */
#ifndef SVI_PREDICTOR_H
#define SVI_PREDICTOR_H

#include "base/pool.h"
#include "svmstream/kernel.h"
#include "svmstream/model.h"

struct svi_predictor {
    const svs_model *linear; /* one of the two, borrowed */
    const svs_kernel_model *kernel;
    struct svi_pool pool;
    double *work;   /* of svi_kernel_scores */
    double *scores; /* decision values of the last row */
};

/* Exactly one of the two models is not NULL and must outlive *p. Rows must have at least the columns of the
 * model. SVS_NO_MEMORY; call svi_predictor_clear in any case. */
svs_code svi_predictor_init(struct svi_predictor *p, const svs_model *linear, const svs_kernel_model *kernel,
                            svs_error *err);
void svi_predictor_clear(struct svi_predictor *p);

/* The class index of a row, -1 for none and in regression (scores[0] is the value then). */
int svi_predictor_row(struct svi_predictor *p, const svs_rows *rows, int64_t i);

#endif
