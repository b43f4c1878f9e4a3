/* file_io.h: whole files in, and out without a moment in which a file is half there. */
#ifndef SVI_FILE_IO_H
#define SVI_FILE_IO_H

#include <stdio.h>

#include "base/bytes.h"

typedef svs_code svi_file_body(void *user, FILE *to, svs_error *err);

/* Lets `body` write a file next to PATH, syncs it and renames it to PATH; on failure PATH stays as it was. A
 * pipe or a device is written to directly. "-" = standard output. SVS_IO and what `body` returns. */
svs_code svi_file_write(const char *path, svi_file_body *body, void *user, svs_error *err);

/* The same for bytes that are ready. */
svs_code svi_file_write_bytes(const char *path, const struct svi_bytes *bytes, svs_error *err);

/* All of a file ("-" = standard input) with a NUL and, after it, the bytes that the reader of numbers may
 * look at: to be freed with svi_free in any case. SVS_IO, SVS_EMPTY, SVS_TOO_LARGE (2 GiB), SVS_NO_MEMORY. */
svs_code svi_file_read(const char *path, char **bytes, size_t *size, svs_error *err);

#endif
