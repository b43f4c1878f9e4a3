/* alsvm.h: the adaptable linear SVM, an exact least-squares SVM kept up to date by rank-1 steps.
 *
 * For samples x in R^D (the caller appends the constant 1 for a bias), targets t in R^K and weights s > 0,
 *
 *     G = sum s x x' + nu I,   r_k = sum s t_k x,   P = G^-1,   w_k = P r_k,   nu = 1/(2C)
 *
 * minimises 1/2 |w_k|^2 + C sum s (t_k - w_k'x)^2 (Le et al. 2015, "Adaptable Linear Support Vector Machine",
 * Eq. 2). Adding or removing a sample is one Kailath step (Eqs. 4 to 6 and their mirror image):
 *
 *     q = P x,  d = 1/s + x'q  (add)  or  x'q - 1/s  (remove),
 *     w_k <- w_k + q (t_k - w_k'x) / d,   P <- P - q q'/d.
 *
 * K models share one P. This is the bare recursion, without window, scaling and guard against rounding
 * (learner.h has them). P is a strip-packed lower triangle in which the last steps are still pending: one
 * sweep applies them and multiplies the next one or two samples. A step costs about 3 D^2 + 2 K D flops,
 * allocates nothing and calls no BLAS. D, K >= 1. Use one object from one thread at a time. */
#ifndef SVMSTREAM_ALSVM_H
#define SVMSTREAM_ALSVM_H

#include <stdbool.h>

#include "svmstream/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct svs_alsvm svs_alsvm;

/* The instruction set of the kernels. SVS_ISA_BEST selects the best that the machine has, or the one that the
 * environment variable SVMSTREAM_ISA names (generic, avx2, avx512). Results differ between sets in the last
 * bits. */
typedef enum svs_isa { SVS_ISA_BEST = 0, SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512 } svs_isa;

/* One sample to be added or removed. */
typedef struct svs_operation {
    const double *x; /* D values */
    const double *t; /* K targets */
    double weight;   /* s > 0 */
    bool remove;     /* remove it instead of adding it; it must have been added, with this weight */
} svs_operation;

/* Creates the empty model: P = I/nu, w = 0. NULL on failure: SVS_INVALID (dim < 1, rows < 1, nu <= 0, an
 * instruction set the machine lacks), SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_alsvm *svs_alsvm_new(int dim, int rows, double nu, svs_isa isa, svs_error *err);
SVS_API void svs_alsvm_free(svs_alsvm **m);

/* The current D and K. */
SVS_API int svs_alsvm_dim(const svs_alsvm *m);
SVS_API int svs_alsvm_rows(const svs_alsvm *m);

/* scores[k] = w_k'x for the K rows. */
SVS_API void svs_alsvm_scores(const svs_alsvm *m, const double *x, double *scores);

/* One or two operations (count 1 or 2, in this order) in one sweep over P: a slide is an add and a removal.
 * leverage[i], if not NULL, receives x'Px of operation i just before it. SVS_NUMERIC: a pivot has the wrong
 * sign or is not finite; the model is unchanged, rebuild it with svs_alsvm_set. SVS_INVALID: count. */
SVS_API svs_code svs_alsvm_step(svs_alsvm *m, const svs_operation *op, int count, double *leverage,
                                svs_error *err);

/* Runs any number of operations as one block through BLAS (Eqs. 3 and 7), in the given order. The
 * result equals one-by-one steps up to rounding. scores, if not NULL, receives count x K values:
 * each sample's scores just before its own operation. Allocates.
 *
 * falsvm needs K = 1 and targets +-1. It skips an addition with t w'x > 0, and a removal whose
 * `skip` entry is set. On return skip[i] is true for skipped operations. Without falsvm skip may be
 * NULL. SVS_NUMERIC, SVS_NO_MEMORY: the model is unchanged. */
SVS_API svs_code svs_alsvm_block(svs_alsvm *m, const svs_operation *op, int count, bool falsvm, bool *skip,
                                 double *scores, svs_error *err);

/* out = P v, D values each, which must not overlap. */
SVS_API void svs_alsvm_apply(svs_alsvm *m, const double *v, double *out);

/* Row k of W, D values; valid until the next call that changes the model. */
SVS_API const double *svs_alsvm_weights(const svs_alsvm *m, int k);

/* Rebuilds the model from a Gram matrix: P = gram^-1 and w_k = P r_k. gram: D x D, row-major, lower triangle
 * read, nu I included, overwritten; r: K x D, row-major. SVS_NUMERIC: gram is not positive definite; the
 * model is unchanged. */
SVS_API svs_code svs_alsvm_set(svs_alsvm *m, double *gram, const double *r, svs_error *err);

/* Replaces row k of W (a refinement, a late class); D values. */
SVS_API void svs_alsvm_set_weights(svs_alsvm *m, int k, const double *w);

/* Appends one row to W: w = P r. For a class that appears late, r = sum s t x over the current samples.
 * SVS_NO_MEMORY: the model is unchanged. */
SVS_API svs_code svs_alsvm_add_row(svs_alsvm *m, const double *r, svs_error *err);

/* Appends features that were 0 in every sample so far: G gains rows of nu_new I, P of I/nu_new, w of 0.
 * Exact. */
SVS_API svs_code svs_alsvm_grow(svs_alsvm *m, int dim, double nu_new, svs_error *err);

/* P as a full D x D row-major matrix (for tests and checkpoints). */
SVS_API void svs_alsvm_inverse(svs_alsvm *m, double *p);

#ifdef __cplusplus
}
#endif
#endif
