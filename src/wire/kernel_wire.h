/* kernel_wire.h: a kernel model <-> one msgpack map: method, kernel (linear, polynomial, rbf), gamma, coef0,
 * degree, decision (rest, pairs), d, C, classes, rows, and as packed float64 (ext 2) b, coef, start, column,
 * value. */
#ifndef SVI_KERNEL_WIRE_H
#define SVI_KERNEL_WIRE_H

#include "svmstream/kernel.h"
#include "wire/event.h"

svs_code svi_kernel_encode(const svs_kernel_model *m, struct svi_bytes *out); /* SVS_NO_MEMORY */

/* NULL: SVS_WRONG_TYPE (also a key that lacks, numbers that contradict each other), SVS_NOT_FINITE,
 * SVS_NO_MEMORY. The bytes were checked by svi_msgpack_check. */
svs_kernel_model *svi_kernel_decode(const void *bytes, size_t length, svs_error *err);

#endif
