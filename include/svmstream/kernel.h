/* kernel.h: kernel functions, and models that are sums of kernels over support vectors.
 *
 *     linear  x'z        polynomial  (gamma x'z + coef0)^degree        rbf  exp(-gamma |x - z|^2)
 *
 * (LIBSVM's -t 0, 1, 2 and its names.) */
#ifndef SVMSTREAM_KERNEL_H
#define SVMSTREAM_KERNEL_H

#include <stdio.h>

#include "svmstream/model.h"
#include "svmstream/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum svs_kernel_kind { SVS_LINEAR = 0, SVS_POLYNOMIAL, SVS_RBF } svs_kernel_kind;

typedef struct svs_kernel {
    svs_kernel_kind kind;
    double gamma; /* polynomial, rbf: > 0; 0 = 1/d */
    double coef0; /* polynomial */
    int degree;   /* polynomial, 1 to 20 */
} svs_kernel;

/* One kernel value from x'z, x'x and z'z. */
SVS_API double svs_kernel_value(const svs_kernel *k, double xz, double xx, double zz);

/* The rule by which decision values become a class. */
typedef enum svs_decision {
    SVS_ONE_VS_REST = 0, /* rows as in svs_model: 1 for two classes, else one a class; largest value wins */
    SVS_ONE_VS_ONE /* LIBSVM's: one row for each pair (0,1), (0,2) ... (1,2) ...; positive = the FIRST of the
                      pair; most votes win */
} svs_decision;

/* decision_r(x) = sum_i coef[r * count + i] K(support_i, x) + b[r] */
typedef struct svs_kernel_model {
    svs_kernel kernel;   /* gamma as used, never 0 */
    svs_rows support;    /* n = number of support vectors */
    const double *norm2; /* n: |support_i|^2 */
    int rows;            /* decision functions */
    svs_decision decision;
    const double
        *coef; /* rows x support.n, row-major: y_i alpha_i; 0 where a vector does not support that row */
    const double *b; /* rows */
    int class_count;
    const svs_value *classes; /* as in svs_model: with one row of SVS_ONE_VS_REST positive = classes[1] */
    const char *method;       /* "alfpgm", "sgd-lssvm", "libsvm"; static */
    double C;
    const char *const *features; /* support.d names, or NULL */
    const void *schema;          /* as in svs_model, only with features; NULL = none */
    size_t schema_size;          /* bytes of it */
} svs_kernel_model;

/* Decision values of one row of `x` (columns beyond the model's d are ignored); out: m->rows values. `work`:
 * scratch of m->support.n + m->support.d doubles. */
SVS_API void svs_kernel_scores(const svs_kernel_model *m, const svs_rows *x, int64_t row, double *work,
                               double *out);

/* The predicted class index for these decision values. Ties go to the lower index, as in LIBSVM. */
SVS_API int svs_kernel_predict(const svs_kernel_model *m, const double *scores);

/* Frees a model that owns all its arrays (from svs_train and readers of model files) and sets *m to NULL. */
SVS_API void svs_kernel_model_free(svs_kernel_model **m);

#ifdef __cplusplus
}
#endif
#endif
