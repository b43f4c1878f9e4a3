/* kernel_model.h: an svs_kernel_model that owns all it points to, for the code that makes one. Support
 * vectors are sparse rows. */
#ifndef SVI_KERNEL_MODEL_H
#define SVI_KERNEL_MODEL_H

#include "base/pool.h"
#include "svmstream/kernel.h"

struct svi_owned_kernel {
    svs_kernel_model model; /* first: svs_kernel_model_free takes its address for the owner's */
    struct svi_pool pool;
    double *coef, *b, *norm2;
    int64_t *start;
    int32_t *column;
    double *value;
};

/* Room for n support vectors of d columns with `stored` entries in all, and `rows` decision functions;
 * classes are copied. To be filled: start, column, value, coef, b; then svi_kernel_model_norms. NULL:
 * SVS_NO_MEMORY. */
struct svi_owned_kernel *svi_kernel_model_new(int rows, int64_t n, int d, int64_t stored,
                                              const svs_value *classes, int class_count, svs_error *err);
void svi_kernel_model_norms(struct svi_owned_kernel *o);

/* svs_kernel_scores, where `work` is all 0 from the model's n-th value on, before and after: a row costs what
 * it holds. */
void svi_kernel_scores(const svs_kernel_model *m, const svs_rows *x, int64_t row, double *work, double *out);

#endif
