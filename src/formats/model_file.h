/* model_file.h: trained models as files, linear and kernel, ours and theirs.
 *
 * Our own format is one msgpack map {format: "svmstream-model", v: 1, kind: "linear"|"kernel", ..., crc: N}:
 * the keys of a `model.` event for linear models; kernel, gamma, coef0, degree, support (CSR as ext 2 /
 * integers), coef, b, decision, classes, method, C for kernel ones; `crc` is the CRC-32 (zlib) of all bytes
 * before that key. Readers also take LIBLINEAR's text (-s 0 to 7, 11 to 13, 21; its bias multiplied out) and
 * LIBSVM's (c_svc, nu_svc with linear, polynomial, rbf kernels). Files are written next to PATH, synced and
 * renamed. */
#ifndef SVI_MODEL_FILE_H
#define SVI_MODEL_FILE_H

#include "base/bytes.h"
#include "svmstream/kernel.h"
#include "svmstream/model.h"

enum svi_model_format { SVI_FORMAT_OWN = 0, SVI_FORMAT_LIBLINEAR, SVI_FORMAT_LIBSVM };

/* Either of the two, never both. */
struct svi_machine {
    svs_model *linear;
    svs_kernel_model *kernel;
};

/* SVS_IO, SVS_NO_MEMORY, SVS_UNAVAILABLE (the format cannot hold it: LIBLINEAR linear ones with integer
 * labels; LIBSVM two-class ones, linear models as a kernel model with one support vector a row; says which
 * can). "-" = standard output (own format too). */
svs_code svi_machine_write(const struct svi_machine *m, const char *path, enum svi_model_format format,
                           svs_error *err);

/* Knows the format by its first bytes. SVS_IO, SVS_NO_MEMORY, SVS_TRUNCATED, SVS_NOT_MSGPACK, SVS_WRONG_TYPE,
 * SVS_UNAVAILABLE (a newer version, a kind of model that is not read here), SVS_INVALID (checksum, numbers
 * that contradict each other): with the line for text. The machine owns its model. */
svs_code svi_machine_read(struct svi_machine *m, const char *path, svs_error *err);
void svi_machine_clear(struct svi_machine *m);

/* A linear model from any file that has one: from the payload of a `model.` event, or what `train` or
 * LIBLINEAR wrote. *bytes: the payload, as it was or made of it; *model is the caller's to free, as the bytes
 * are. "-" = standard input, a payload alone. SVS_IO and others with the path; SVS_UNAVAILABLE: a kernel
 * model. */
svs_code svi_model_any_read(const char *path, struct svi_bytes *bytes, svs_model **model, svs_error *err);

#endif
