/* guarded_file.h: files that security depends on (keys, the allow file). They are read only if no other user
 * could have changed them, or read a secret; they are written completely or not at all. */
#ifndef SVI_GUARDED_FILE_H
#define SVI_GUARDED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "svmstream/error.h"

/* Fails with "PATH: reason", the path escaped and shortened if long. Returns `code`. */
svs_code svi_fail_path(svs_error *err, svs_code code, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads a whole small regular file into `out` (size bytes, NUL-terminated). With `secret` no other user may
 * be able to read it, otherwise no other user may be able to write it. SVS_IO, SVS_TOO_LARGE. */
svs_code svi_guarded_read(const char *path, bool secret, char *out, size_t size, size_t *length,
                          svs_error *err);

/* Writes `text` to a temporary file next to `path`, syncs it and moves it into place in one step: only as a
 * new file (`fresh`), or over an existing one. SVS_IO: nothing was changed. */
svs_code svi_guarded_write(const char *path, const char *text, size_t length, int mode, bool fresh,
                           svs_error *err);

#endif
