/* model_file_internal.h: model files of LIBLINEAR and LIBSVM, for model_file.c (svs_model_write_liblinear
 * and _json: model.h). */
#ifndef SVI_MODEL_FILE_INTERNAL_H
#define SVI_MODEL_FILE_INTERNAL_H

#include "formats/model_file.h"

/* Read a model from text that ends in a NUL, followed by SVI_NUMBER_PAD readable bytes. SVS_INVALID with
 * the line, SVS_UNAVAILABLE (a kind that is not read), SVS_NO_MEMORY. A failure may leave a partial model
 * in *m. */
svs_code svi_liblinear_read(struct svi_machine *m, const char *text, svs_error *err);
svs_code svi_libsvm_read(struct svi_machine *m, const char *text, svs_error *err);

/* Body for svi_file_write; `machine` is a struct svi_machine. Two-class models only: SVS_UNAVAILABLE
 * otherwise. */
svs_code svi_libsvm_write(void *machine, FILE *to, svs_error *err);

#endif
