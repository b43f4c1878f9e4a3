/* recursion.h: the inside of an svs_alsvm, for the learner, which writes its standardised samples
 * straight into the buffers of the recursion. */
#ifndef SVI_RECURSION_H
#define SVI_RECURSION_H

#include "base/archive.h"
#include "linalg/kernels.h"
#include "svmstream/alsvm.h"

struct svs_alsvm {
    struct svi_recursion r;
    const struct svi_kernels *kernels;
    double *memory;     /* everything but w, in one block */
    size_t memory_size; /* bytes */
    size_t w_size;      /* bytes of w; space for w_size / (8 padded) rows */
};

/* The step of svs_alsvm_step for samples that are already in m->r.x[i] (entries from dim on zero). */
svs_code svi_alsvm_step(svs_alsvm *m, struct svi_change *change, int count, svs_error *err);

/* Capacity for a model of this size, so that svs_alsvm_add_row cannot fail; the present model stays.
 * SVS_NO_MEMORY. */
svs_code svi_alsvm_reserve(svs_alsvm *m, const struct svi_kernels *kernels, int dim, int rows,
                           svs_error *err);

/* Begins another model in place of the present one, within its capacity. Vectors are zero from `dim` on; the
 * rest is undefined until svi_alsvm_unpack or svi_alsvm_reset. */
void svi_alsvm_begin(svs_alsvm *m, const struct svi_kernels *kernels, int dim, int rows);

/* The state in few doubles: one triangle of P, the pending changes and W; each with `dim` values a row. */
struct svi_packed {
    uint8_t pending, adds; /* bit k of adds: change k is an addition */
};
size_t svi_alsvm_packed(int dim, int rows);
void svi_alsvm_pack(svs_alsvm *m, struct svi_packed *to, double *values);
void svi_alsvm_unpack(svs_alsvm *m, const struct svi_packed *from, const double *values);

/* P = p (dim x dim, row-major, lower triangle read) and w_k = P r_k. */
void svi_alsvm_set_inverse(svs_alsvm *m, const double *p, const double *r);

/* P <- factor P (weights in a new unit: G <- G / factor, and w as it was). */
void svi_alsvm_scale_inverse(svs_alsvm *m, double factor);

/* out = P v; pending changes stay pending. */
void svi_alsvm_inverse_times(const svs_alsvm *m, const double *v, double *out);

double svi_alsvm_trace_inverse(svs_alsvm *m);

/* P_jj; pending changes stay pending. */
double svi_alsvm_diagonal(const svs_alsvm *m, int j);

/* Back to P = I/nu, w = 0 with `rows` rows. */
void svi_alsvm_reset(svs_alsvm *m, int rows, double nu);

/* Back to P = I/nu, w = 0 with `dim` coordinates, not more than now; the capacity stays. */
void svi_alsvm_shrink(svs_alsvm *m, int dim, double nu);

/* P_jj = 1/nu, for a coordinate that no sample has touched since the reset or growth. */
void svi_alsvm_set_alone(svs_alsvm *m, int j, double nu);

/* Makes coordinate j one that no sample has touched: P_jj = 1/nu, zeros in the rest of its row and column and
 * in every row of w. The rest stays right if all samples in the model have 0 there. True: a weight was not 0.
 * O(dim). */
bool svi_alsvm_renew(svs_alsvm *m, int j, double nu);

/* Bytes of an object of this size. */
double svi_alsvm_memory(int dim, int rows, svs_isa isa);

/* `scratch`: dim (dim + 1) / 2 values. Loading: dim and rows are set and have capacity. */
void svi_alsvm_archive(struct svi_archive *a, svs_alsvm *m, double *scratch);

#endif
