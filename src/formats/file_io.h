/* file_io.h: reads whole files, and writes files atomically: a reader sees the old file or the new one. */
#ifndef SVI_FILE_IO_H
#define SVI_FILE_IO_H

#include <stdio.h>

#include "base/bytes.h"

/* Writes the content to `to`. What it returns is passed on by svi_file_write. */
typedef svs_code svi_file_body(void *user, FILE *to, svs_error *err);

/* Lets `body` write a temporary file next to PATH, syncs it and renames it to PATH; on failure PATH is
 * unchanged. A pipe or device is written directly, and so is standard output ("-"). SVS_IO, and what
 * `body` returns. */
svs_code svi_file_write(const char *path, svi_file_body *body, void *user, svs_error *err);

/* The same for bytes in memory. */
svs_code svi_file_write_bytes(const char *path, const struct svi_bytes *bytes, svs_error *err);

/* Reads a whole file ("-" = standard input), followed by a NUL and the bytes that the number reader may
 * look at. Free *bytes with svi_free in any case. SVS_IO, SVS_EMPTY, SVS_TOO_LARGE (2 GiB), SVS_NO_MEMORY. */
svs_code svi_file_read(const char *path, char **bytes, size_t *size, svs_error *err);

#endif
