/* guarded_file.h: the files that security rests on (keys, the allow file): read only when no other user could
 * have changed them, or have read a secret; written whole or not at all. */
#ifndef SVI_GUARDED_FILE_H
#define SVI_GUARDED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "svmstream/error.h"

/* "PATH: reason"; the path is escaped, and shortened where it is long. Returns `code`. */
svs_code svi_fail_path(svs_error *err, svs_code code, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads all of a small regular file into `out` (size bytes, ends in NUL). With `secret` no other user may be
 * able to read it, else no other user may be able to write it. SVS_IO, SVS_TOO_LARGE. */
svs_code svi_guarded_read(const char *path, bool secret, char *out, size_t size, size_t *length,
                          svs_error *err);

/* Writes `text` to a temporary file next to `path`, syncs it and puts it in place in one step: as a new file
 * only (`fresh`), or over what is there. SVS_IO: nothing was changed. */
svs_code svi_guarded_write(const char *path, const char *text, size_t length, int mode, bool fresh,
                           svs_error *err);

#endif
