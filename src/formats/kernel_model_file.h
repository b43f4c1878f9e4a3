/* kernel_model_file.h: a kernel model <-> one msgpack map: method, kernel (linear, polynomial, rbf), gamma,
 * coef0, degree, decision (rest, pairs), d, C, classes, and as packed float64 (ext 2) b, coef, start, column,
 * value. */
#ifndef SVI_KERNEL_MODEL_FILE_H
#define SVI_KERNEL_MODEL_FILE_H

#include "base/bytes.h"
#include "svmstream/kernel.h"

extern const char *const svi_kernel_names[]; /* by svs_kernel_kind, ending in NULL; also LIBSVM's words */

svs_code svi_kernel_encode(const svs_kernel_model *m, struct svi_bytes *out); /* SVS_NO_MEMORY */

/* Decodes a model; the bytes must have passed svi_msgpack_check. Owner: the caller. NULL: SVS_WRONG_TYPE
 * (also a missing key, or numbers that contradict each other), SVS_NOT_FINITE, SVS_NO_MEMORY. */
svs_kernel_model *svi_kernel_decode(const void *bytes, size_t length, svs_error *err);

#endif
