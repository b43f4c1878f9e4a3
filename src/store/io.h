/* io.h: the calls on files, made whole: callers see neither interruptions nor short transfers.
 * Each is a plain system call underneath, so that tests can put failures in its place. Part of the store. */
#ifndef SVI_IO_H
#define SVI_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

/* Each returns 0 or the errno of the failure. */
int svi_write_all(int fd, const void *bytes, size_t size);
int svi_read_at(int fd, void *bytes, size_t size, uint64_t offset, size_t *got); /* less at the file's end */
int svi_sync_data(int fd);                                                       /* fdatasync */
int svi_sync_file(int fd);                                                       /* fsync */
int svi_sync_system(int fd);                                                     /* syncfs */
/* Waits until the disk has been given what was written, which makes nothing durable: a sync that follows, of
 * this file or of another on the same file system, finds little left to do. */
int svi_write_back(int fd);
int svi_truncate(int fd, uint64_t size);
int svi_random(void *bytes, size_t size); /* at most 256 of them, for secrets */

/* The failure means that there is no room (or that a limit of the process is reached, such as open files,
 * which peers use up as well): it may go away. */
bool svi_no_space(int error);

/* "DIRECTORY/NAME what": the path is shortened where it is long; `dir`: its path, or NULL. */
svs_code svi_fail_file(svs_error *err, svs_code code, const char *dir, const char *name, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));

/* SVS_IO: "DIRECTORY/NAME cannot be `what`: reason". */
svs_code svi_fail_io(svs_error *err, const char *dir, const char *name, const char *what, int error);

/* Bytes free for this process on the file system of a directory; -1 = not known. */
int64_t svi_free_bytes(const char *dir);

/* SVS_DISK_FULL with the bytes that were wanted and those that are free, or the limit that is reached. */
svs_code svi_fail_full(svs_error *err, const char *dir, const char *name, uint64_t wanted, int error);

/* svi_fail_full where the disk or a limit is full (svi_no_space), else svi_fail_io. */
svs_code svi_fail_write(svs_error *err, const char *dir, const char *name, uint64_t wanted, const char *what,
                        int error);

const char *svi_errno_text(int error);

#endif
