/* rows.h: a view of n samples of d features as rows, dense or sparse: the input of solvers.
 *
 * A view owns no memory: the arrays must outlive it and are never written. Values are finite. */
#ifndef SVMSTREAM_ROWS_H
#define SVMSTREAM_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct svs_rows {
    int64_t n;           /* rows, >= 0 */
    int d;               /* columns, >= 1 */
    const double *dense; /* row i is dense[i * stride .. i * stride + d); NULL = sparse */
    int64_t stride;      /* dense: doubles from row to row, >= d; sparse: offsets from row to row, 0 = 1 */
    bool padded; /* dense: aligned to 64 bytes, stride a multiple of 8, zero from d to stride: the fastest
                    form */
    const int64_t *start;  /* sparse (CSR): row i is start[i stride] .. start[i stride + 1] - 1; n + 1 offsets
                              with stride 1 */
    const int32_t *column; /* sparse: from 0, ascending within a row */
    const double *value;   /* sparse */
} svs_rows;

/* The number of stored entries; n d for dense rows. */
SVS_API int64_t svs_rows_stored(const svs_rows *r);

/* Copies row i to d values of `to`, absent ones as 0. */
SVS_API void svs_rows_copy(const svs_rows *r, int64_t i, double *to);

/* Checks offsets, columns and values against this header. SVS_INVALID, SVS_BAD_COLUMN, SVS_NOT_FINITE; the
 * text names the row. */
SVS_API svs_code svs_rows_check(const svs_rows *r, svs_error *err);

#ifdef __cplusplus
}
#endif
#endif
