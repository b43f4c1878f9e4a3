#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fail.h"

#define INTERRUPTIONS 1000 /* in a row, before they count as a failure */
#define PATH_SHOWN    96   /* bytes of the directory's path in a text */

int svi_write_all(int fd, const void *bytes, size_t size) {
    const char *at = bytes;
    int interrupted = 0; /* in a row: a transfer that makes progress may be interrupted any number of times */
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR && ++interrupted < INTERRUPTIONS)
            continue;
        if (n <= 0) /* write of a regular file never returns 0; if it did, the loop would not end */
            return n < 0 ? errno : EIO;
        at += n;
        size -= (size_t)n;
        interrupted = 0;
    }
    return 0;
}

int svi_read_at(int fd, void *bytes, size_t size, uint64_t offset, size_t *got) {
    int interrupted = 0;
    *got = 0;
    while (*got < size) {
        ssize_t n = pread(fd, (char *)bytes + *got, size - *got, (off_t)(offset + *got));
        if (n < 0 && errno == EINTR && ++interrupted < INTERRUPTIONS)
            continue;
        if (n < 0)
            return errno;
        if (n == 0) /* end of the file; the caller decides whether that is a failure */
            break;
        *got += (size_t)n;
        interrupted = 0;
    }
    return 0;
}

/* Returns 0 or an errno from the calling function; repeats an interrupted call. An interrupted sync has
 * reported no lost write, so it may be repeated; after any other failure it must not be. */
#define RETURN_OF(call)                                                                                      \
    for (int i = 0; i < INTERRUPTIONS; i++) {                                                                \
        if ((call) >= 0)                                                                                     \
            return 0;                                                                                        \
        if (errno != EINTR)                                                                                  \
            return errno;                                                                                    \
    }                                                                                                        \
    return EINTR

int svi_sync_data(int fd) {
    RETURN_OF(fdatasync(fd));
}

int svi_sync_file(int fd) {
    RETURN_OF(fsync(fd));
}

int svi_sync_system(int fd) {
    RETURN_OF(syncfs(fd));
}

int svi_truncate(int fd, uint64_t size) {
    RETURN_OF(ftruncate(fd, (off_t)size));
}

/* getrandom never returns fewer bytes than asked for, up to 256. */
int svi_random(void *bytes, size_t size) {
    RETURN_OF(getrandom(bytes, size, 0));
}

static int write_back(int fd) {
    RETURN_OF(sync_file_range(
        fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
}

int svi_write_back(int fd) {
    const int error = write_back(fd);
    /* Some systems lack sync_file_range and some sandboxes forbid it: a full sync does more, never less. */
    return error == ENOSYS || error == EPERM || error == EINVAL ? svi_sync_data(fd) : error;
}

/* Too many open files, in this process or in the system. */
static bool no_descriptor(int error) {
    return error == EMFILE || error == ENFILE;
}

bool svi_no_space(int error) {
    return error == ENOSPC || error == EDQUOT || error == EFBIG || no_descriptor(error);
}

/* strerrordesc_np instead of strerror: it is safe in threads, and its text does not depend on the locale. */
const char *svi_errno_text(int error) {
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown reason";
}

svs_code svi_fail_file(svs_error *err, svs_code code, const char *dir, const char *name, const char *format,
                       ...) {
    char text[SVS_ERROR_TEXT], path[PATH_SHOWN];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!dir)
        return svi_fail(err, code, "%s %s", name, text);
    /* The path comes from the user and may hold anything; `name` is always one of ours. */
    svi_escape(path, sizeof path, dir, strlen(dir));
    return svi_fail(err, code, "%s%s%s %s", path, *name ? "/" : "", name, text);
}

svs_code svi_fail_io(svs_error *err, const char *dir, const char *name, const char *what, int error) {
    return svi_fail_file(err, SVS_IO, dir, name, "cannot be %s: %s", what, svi_errno_text(error));
}

int64_t svi_free_bytes(const char *dir) {
    struct statvfs s;
    if (!dir || statvfs(dir, &s) != 0)
        return -1;
    return (int64_t)((uint64_t)s.f_bavail * s.f_frsize);
}

void svi_disk_bytes(int fd, int64_t *free, int64_t *size) {
    struct statvfs s;
    const bool known = fstatvfs(fd, &s) == 0;
    *free = known ? (int64_t)((uint64_t)s.f_bavail * s.f_frsize) : -1;
    *size = known ? (int64_t)((uint64_t)s.f_blocks * s.f_frsize) : -1;
}

svs_code svi_fail_full(svs_error *err, const char *dir, const char *name, uint64_t wanted, int error) {
    if (no_descriptor(error))
        return svi_fail_file(err, SVS_DISK_FULL, dir, name, "cannot be opened: %s; raise that limit",
                             svi_errno_text(error));
    char left[40] = "";
    const bool limit = error == EFBIG;
    int64_t free = -1;
    /* With a quota or a file size limit, the free bytes of the file system would mislead. */
    if (!limit && error != EDQUOT)
        free = svi_free_bytes(dir);
    if (free >= 0)
        snprintf(left, sizeof left, ", %lld are free", (long long)free);
    return svi_fail_file(err, SVS_DISK_FULL, dir, name, "cannot grow by %llu bytes%s: %s; %s",
                         (unsigned long long)wanted, left, svi_errno_text(error),
                         limit ? "raise ulimit -f, or set a smaller journal.segment"
                               : "free some space there");
}

svs_code svi_fail_write(svs_error *err, const char *dir, const char *name, uint64_t wanted, const char *what,
                        int error) {
    return svi_no_space(error) ? svi_fail_full(err, dir, name, wanted, error)
                               : svi_fail_io(err, dir, name, what, error);
}
