/* io.h: file calls that hide interruptions and short transfers from their callers. Each is one plain system
 * call underneath, so that tests can inject failures. Part of the store. */
#ifndef SVI_IO_H
#define SVI_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

/* Each returns 0 or the errno of the failure. */
int svi_write_all(int fd, const void *bytes, size_t size);
int svi_read_at(int fd, void *bytes, size_t size, uint64_t offset,
                size_t *got); /* *got < size: end of file */
int svi_sync_data(int fd);    /* fdatasync */
int svi_sync_file(int fd);    /* fsync */
int svi_sync_system(int fd);  /* syncfs */
/* Waits until the kernel has sent all dirty pages of the file to the disk. This makes nothing durable, but a
 * sync that follows, of this file or another on the same file system, has little left to do. */
int svi_write_back(int fd);
int svi_truncate(int fd, uint64_t size);
int svi_random(void *bytes, size_t size); /* size: at most 256; for secrets */

/* Does the failure mean a lack of space, or a limit of the process that is reached (open files, which peers
 * use up as well)? Such a failure may be temporary. */
bool svi_no_space(int error);

/* Fills err with "DIRECTORY/NAME text" and returns `code`. `dir` is a path (shortened if long) or NULL. */
svs_code svi_fail_file(svs_error *err, svs_code code, const char *dir, const char *name, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));

/* SVS_IO: "DIRECTORY/NAME cannot be `what`: reason". */
svs_code svi_fail_io(svs_error *err, const char *dir, const char *name, const char *what, int error);

/* Free bytes for this process on the file system of a directory; -1: not known. */
int64_t svi_free_bytes(const char *dir);
/* The same, and the size of the file system, of an open folder. -1: not known. */
void svi_disk_bytes(int fd, int64_t *free, int64_t *size);

/* SVS_DISK_FULL with the bytes wanted and the bytes free, or the limit that is reached. */
svs_code svi_fail_full(svs_error *err, const char *dir, const char *name, uint64_t wanted, int error);

/* svi_fail_full if svi_no_space(error), else svi_fail_io. */
svs_code svi_fail_write(svs_error *err, const char *dir, const char *name, uint64_t wanted, const char *what,
                        int error);

const char *svi_errno_text(int error);

#endif
