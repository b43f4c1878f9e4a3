/* foreign.h: files that are no text, known by how they begin. */
#ifndef SVI_FOREIGN_H
#define SVI_FOREIGN_H

#include <stddef.h>

#include "svmstream/error.h"

/* SVS_SETTING: they are of another kind: which, and what makes text of them. `first`: the first bytes, as
 * many as there are; file: NULL is standard input. */
svs_code svi_foreign_refuse(const char *file, const unsigned char *first, size_t count, svs_error *err);

#endif
