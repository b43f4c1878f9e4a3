/* kernel_rows.h: rows of the kernel matrix, several at a time, kept in a cache of a given size (least
 * recently used goes first). */
#ifndef SVI_KERNEL_ROWS_H
#define SVI_KERNEL_ROWS_H

#include "svmstream/kernel.h"

struct svi_kernel_rows {
    const svs_rows *rows;
    svs_kernel kernel;
    double shift;     /* added to each value: an appended constant's product */
    int64_t n, room;  /* room: rows that the cache holds */
    double *norm2;    /* n: |x_i|^2 */
    double *diagonal; /* n: K_ii + shift */
    double *cache;    /* room x n */
    double *block;    /* rows being computed */
    double *gathered; /* their features */
    int32_t *slot;    /* n: where row i is, -1 = nowhere */
    int64_t *owner;   /* room: whose row it is, -1 = nobody's */
    int64_t *used;    /* room: when it was asked for last */
    int64_t clock;
};

/* `least` rows fit in any case: they may be asked for at once. SVS_NO_MEMORY. */
svs_code svi_kernel_rows_init(struct svi_kernel_rows *k, const svs_rows *rows, const svs_kernel *kernel,
                              double shift, double mib, int64_t least, svs_error *err);
void svi_kernel_rows_clear(struct svi_kernel_rows *k);

/* row[a] = K(x_index[a], .), n values each, for count <= `least` different rows; valid until the next call.
 */
void svi_kernel_rows_get(struct svi_kernel_rows *k, const int64_t *index, int count, const double **row);

/* f_i = sum_j coef_j (K_ij + shift) over all rows; rows with coef 0 are not computed. */
void svi_kernel_rows_product(struct svi_kernel_rows *k, const double *coef, double *f);

#endif
