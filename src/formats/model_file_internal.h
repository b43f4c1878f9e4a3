/* model_file_internal.h: the model files of LIBLINEAR and LIBSVM (svs_model_write_liblinear and _json:
 * model.h). */
#ifndef SVI_MODEL_FILE_INTERNAL_H
#define SVI_MODEL_FILE_INTERNAL_H

#include "formats/model_file.h"

/* `text` ends in a NUL, with SVI_NUMBER_PAD readable bytes after it. SVS_INVALID with the line,
 * SVS_UNAVAILABLE (a kind that is not read), SVS_NO_MEMORY. */
svs_code svi_liblinear_read(struct svi_machine *m, const char *text, svs_error *err);
svs_code svi_libsvm_read(struct svi_machine *m, const char *text, svs_error *err);

/* A struct svi_machine; two-class models only: SVS_UNAVAILABLE otherwise. */
svs_code svi_libsvm_write(void *machine, FILE *to, svs_error *err);

#endif
