/* model_file.h: trained models as files, linear and kernel, in our format and in others.
 *
 * Our own format is one msgpack map {format: "svmstream-model", v: 1, kind: "linear"|"kernel", model, crc:
 * N} (checked_file.h). A linear model has the keys of a `model.` event; a kernel model those of
 * kernel_model_file.h. Readers also take LIBLINEAR's text (-s 0 to 7, 11 to 13, 21; its bias multiplied
 * out) and LIBSVM's (c_svc, nu_svc with linear, polynomial, rbf kernels). Files are written next to PATH,
 * synced and renamed. */
#ifndef SVI_MODEL_FILE_H
#define SVI_MODEL_FILE_H

#include "base/bytes.h"
#include "svmstream/kernel.h"
#include "svmstream/model.h"

enum svi_model_format { SVI_FORMAT_OWN = 0, SVI_FORMAT_LIBLINEAR, SVI_FORMAT_LIBSVM };

/* A model of either kind: one of the two is NULL. */
struct svi_machine {
    svs_model *linear;
    svs_kernel_model *kernel;
};

/* Writes a model; PATH "-" = standard output, in any format. SVS_IO, SVS_NO_MEMORY; SVS_UNAVAILABLE: the
 * format cannot hold the model, and the text says which can. LIBLINEAR holds linear models with integer
 * labels; LIBSVM two-class ones, a linear model as a kernel model whose one support vector is w. */
svs_code svi_machine_write(const struct svi_machine *m, const char *path, enum svi_model_format format,
                           svs_error *err);

/* Reads a model and recognises the format by the first bytes. SVS_IO, SVS_NO_MEMORY, SVS_TRUNCATED,
 * SVS_NOT_MSGPACK, SVS_WRONG_TYPE, SVS_UNAVAILABLE (a newer version, a kind of model that is not read
 * here), SVS_INVALID (checksum, numbers that contradict each other): for text with the line. The machine
 * owns its model. */
svs_code svi_machine_read(struct svi_machine *m, const char *path, svs_error *err);
void svi_machine_clear(struct svi_machine *m);

/* Reads a linear model from any file that has one: the payload of a `model.` event, or what `train` or
 * LIBLINEAR wrote. *bytes: the payload as read, or encoded from the model; free both *bytes and *model.
 * "-" = standard input, a payload only. SVS_IO and others with the path; SVS_UNAVAILABLE: a kernel model. */
svs_code svi_model_any_read(const char *path, struct svi_bytes *bytes, svs_model **model, svs_error *err);

#endif
