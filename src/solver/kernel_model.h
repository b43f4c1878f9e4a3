/* kernel_model.h: an svs_kernel_model that owns all it points to, for code that makes one. Support vectors
 * are sparse rows. */
#ifndef SVI_KERNEL_MODEL_H
#define SVI_KERNEL_MODEL_H

#include "base/pool.h"
#include "svmstream/kernel.h"

struct svi_owned_kernel {
    svs_kernel_model model; /* must be first: svs_kernel_model_free converts its address to the owner's */
    struct svi_pool pool;
    double *coef, *b, *norm2;
    int64_t *start;
    int32_t *column;
    double *value;
};

/* Allocates a model for n support vectors of d columns with `stored` entries in total, and `rows` decision
 * functions; classes are copied. The caller fills in start, column, value, coef, b and then calls
 * svi_kernel_model_norms. NULL: SVS_NO_MEMORY. */
struct svi_owned_kernel *svi_kernel_model_new(int rows, int64_t n, int d, int64_t stored,
                                              const svs_value *classes, int class_count, svs_error *err);
void svi_kernel_model_norms(struct svi_owned_kernel *o);

/* svs_kernel_scores for a `work` that is 0 from its n-th value on, before and after the call, so that a row
 * costs O(stored entries). */
void svi_kernel_scores(const svs_kernel_model *m, const svs_rows *x, int64_t row, double *work, double *out);

#endif
