/* kernel_rows.h: rows of the kernel matrix, several at a time, kept in a cache of a given size (least
 * recently used is evicted first).
 *
 * A row costs O(n d) or O(stored entries) and n kernel values. Sixteen rows are computed at once, tile by
 * tile, so that products stay in the first-level cache: dense rows by GEMM with stored |x|^2, sparse ones
 * against sixteen transposed rows. Memory: at most `mib` MiB of rows (but at least `least` rows), allocated
 * when needed, and O(n + d). */
#ifndef SVI_KERNEL_ROWS_H
#define SVI_KERNEL_ROWS_H

#include "linalg/sparse_rows.h"
#include "svmstream/kernel.h"

struct svi_kernel_rows {
    struct svi_pool pool;
    const svs_rows *rows;
    const struct svi_kernels *vector;
    svs_kernel kernel;
    double shift;               /* added to each value: an appended constant's product */
    int64_t n, capacity, slots; /* capacity: rows that the cache may hold; slots: rows allocated so far */
    double *norm2;              /* n: |x_i|^2 */
    double *diagonal;           /* n: K_ii + shift */
    double **shelf;             /* memory of a few slots each */
    double *tile;               /* products being made into kernel values */
    double *gathered;           /* features of the rows being computed */
    int32_t *slot;              /* n: where row i is, -1 = nowhere */
    int32_t *owner;             /* room + 1: whose row it is, -1 = none; the last is the ring's end */
    int32_t *older, *newer;     /* room + 1: a ring of slots in the order of use; newer[room] is the oldest */
};

/* The cache holds at least `least` rows, which is the limit of one svi_kernel_rows_get. SVS_NO_MEMORY;
 * SVS_NUMERIC: the kernel overflows on these rows. */
svs_code svi_kernel_rows_init(struct svi_kernel_rows *k, const svs_rows *rows, const svs_kernel *kernel,
                              double shift, double mib, int64_t least, svs_error *err);
void svi_kernel_rows_clear(struct svi_kernel_rows *k);

/* Is row i in the cache? */
static inline bool svi_kernel_rows_has(const struct svi_kernel_rows *k, int64_t i) {
    return k->slot[i] >= 0;
}

/* row[a] = K(x_index[a], .) + shift, n values each, for count <= `least` different rows; valid until the next
 * call. */
void svi_kernel_rows_get(struct svi_kernel_rows *k, const int64_t *index, int count, const double **row);

/* f_i = sum_j coef_j (K_ij + shift) over all rows; rows with coef 0 are not computed. A full cache keeps its
 * content: repeated passes over all rows would otherwise evict each row just before its use. */
void svi_kernel_rows_product(struct svi_kernel_rows *k, const double *coef, double *f);

#endif
