/* novelty_model.h: building a novelty model, for training and for the reader of model files, and explaining
 * its scores. */
#ifndef SVI_NOVELTY_MODEL_H
#define SVI_NOVELTY_MODEL_H

#include <stddef.h>

#include "svmstream/novelty.h"

/* "rbf", "laplacian", "polynomial", by svs_novelty_kernel; then NULL. */
extern const char *const svi_novelty_kernels[];

/* Arrays of a new member, for the caller to fill; owned by the model. */
struct svi_member_slot {
    double *support; /* count x stride, zeroed */
    double *norm2, *z;
};

/* A model of d features without members. scale: center 0 and inverse 1, otherwise both NULL. names[d] (may be
 * NULL) are copied; lags is 1, the rest zero. NULL: SVS_NO_MEMORY. Free with svs_novelty_free. */
svs_novelty_model *svi_novelty_model_new(int d, bool scale, const char *const *names, svs_error *err);

/* Copies center[d] and inverse[d] into a scaled model; does nothing for one without scales. */
void svi_novelty_model_place(svs_novelty_model *m, const double *center, const double *inverse);

/* Stores a copy of the schema of raw rows. SVS_NO_MEMORY. */
svs_code svi_novelty_model_describe(svs_novelty_model *m, const void *schema, size_t size, svs_error *err);

/* Appends a member of `count` support vectors; the caller sets its other figures. SVS_LIMIT: too many
 * members. SVS_NO_MEMORY. */
svs_code svi_novelty_model_member(svs_novelty_model *m, int count, struct svi_member_slot *slot,
                                  svs_error *err);

/* Call after filling the support: sets norm2 to NaN for vectors with a missing coordinate. */
void svi_novelty_model_mark(const svs_novelty_model *m, const struct svi_member_slot *slot, int count);

/* Fills surprise[count] of one member, for rows that are in coordinates already. SVS_NO_MEMORY. */
svs_code svi_novelty_member_surprise(const svs_novelty_model *m, int member, const double *points,
                                     int64_t count, double *surprise, svs_error *err);

/* ---- which features make a sample novel: svs_novelty_explain without allocation, and its gradient
 *
 * surprise = sum_e share_e s_e, s_e = -log sum_i z_i k(x_i, x). With w_i = z_i k(x_i, x) / sum z k, the share
 * of support vector i in the membership of x:
 *
 *     rbf         ds/dx_j = 2 gamma (x_j - sum_i w_i x_ij)
 *     laplacian   ds/dx_j = gamma sum_i w_i sign(x_j - x_ij)
 *     polynomial  ds/dx_j = -sum_i z_i p b_i^(p-1) db_i/dx_j / m, k = b^p
 *
 * and feature j adds |ds/dx_j| (x_j - sum_i w_i x_ij), a number without unit whose sign shows high or low. */

/* Doubles of scratch that svi_explain needs. */
size_t svi_explain_doubles(const svs_novelty_model *m);

/* x: d raw values; work: svi_explain_doubles doubles, aligned to 64. `gradient` (of the surprise, in raw
 * units) and `adds` (see svs_novelty_explain): d values each, either may be NULL. */
void svi_explain(const svs_novelty_model *m, const double *x, double *work, double *gradient, double *adds);

#endif
