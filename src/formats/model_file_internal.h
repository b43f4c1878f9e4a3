/* model_text_in.h: the model files of LIBLINEAR and LIBSVM, read; and LIBSVM's, written. */
#ifndef SVI_MODEL_TEXT_IN_H
#define SVI_MODEL_TEXT_IN_H

#include "wire/model_file.h"

/* `text` ends in a NUL, with SVI_NUMBER_PAD readable bytes behind it. SVS_INVALID with the line,
 * SVS_UNAVAILABLE (a kind that is not read), SVS_NO_MEMORY. */
svs_code svi_liblinear_read(struct svi_machine *m, const char *text, svs_error *err);
svs_code svi_libsvm_read(struct svi_machine *m, const char *text, svs_error *err);

/* Two-class models only: SVS_UNAVAILABLE otherwise. */
svs_code svi_libsvm_write(const struct svi_machine *m, FILE *to, svs_error *err);

#endif
