/* model_any.h: a linear model from any file that has one, as the payload of a model event. */
#ifndef SVI_MODEL_ANY_H
#define SVI_MODEL_ANY_H

#include "base/bytes.h"
#include "svmstream/model.h"

/* From the payload of a `model.` event, or what `train` or LIBLINEAR wrote. *bytes: the payload, as it was or
 * made of it; *model is the caller's to free, as the bytes are. "-" = standard input, a payload alone. SVS_IO
 * and others with the path; SVS_UNAVAILABLE: a kernel model. */
svs_code svi_model_any_read(const char *path, struct svi_bytes *bytes, svs_model **model, svs_error *err);

#endif
