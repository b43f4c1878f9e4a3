/* explain.h: which features make a sample novel: svs_novelty_explain without allocation, and its gradient.
 *
 * surprise = sum_e share_e s_e, s_e = -log sum_i z_i k(x_i, x). With w_i = z_i k(x_i, x) / sum z k, the share
 * of support vector i in the membership of x:
 *
 *     rbf         ds/dx_j = 2 gamma (x_j - sum_i w_i x_ij)
 *     laplacian   ds/dx_j = gamma sum_i w_i sign(x_j - x_ij)
 *     polynomial  ds/dx_j = -sum_i z_i p b_i^(p-1) db_i/dx_j / m, k = b^p
 *
 * and feature j adds |ds/dx_j| (x_j - sum_i w_i x_ij), a number without unit, whose sign tells high or low.
 */
#ifndef SVI_EXPLAIN_H
#define SVI_EXPLAIN_H

#include <stddef.h>

#include "svmstream/novelty.h"

/* Doubles that svi_explain works in. */
size_t svi_explain_room(const svs_novelty_model *m);

/* x: d raw values; work: svi_explain_room doubles, aligned to 64. `gradient` (of the surprise, in raw units)
 * and `adds` (see svs_novelty_explain): d values each, either may be NULL. */
void svi_explain(const svs_novelty_model *m, const double *x, double *work, double *gradient, double *adds);

#endif
