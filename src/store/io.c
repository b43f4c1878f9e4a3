#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fail.h"

#define INTERRUPTIONS 1000 /* in a row, before they count as a failure */
#define PATH_SHOWN    96   /* bytes of the folder's path in a text */

int svi_write_all(int fd, const void *bytes, size_t size) {
    const char *at = bytes;
    int interrupted = 0;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR && ++interrupted < INTERRUPTIONS)
            continue;
        if (n <= 0)
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
        if (n == 0)
            break;
        *got += (size_t)n;
        interrupted = 0;
    }
    return 0;
}

/* An interrupted sync has reported no lost write, so it may be asked for again; after any other failure it
 * may not. */
static int sync_by(int (*sync)(int), int fd) {
    for (int i = 0; i < INTERRUPTIONS; i++) {
        if (sync(fd) == 0)
            return 0;
        if (errno != EINTR)
            return errno;
    }
    return EINTR;
}

int svi_sync_data(int fd) {
    return sync_by(fdatasync, fd);
}

int svi_sync_file(int fd) {
    return sync_by(fsync, fd);
}

static int write_back(int fd) {
    return sync_file_range(fd, 0, 0,
                           SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

int svi_write_back(int fd) {
    const int error = sync_by(write_back, fd);
    /* not every system has it, and not every sandbox lets it through */
    return error == ENOSYS || error == EPERM || error == EINVAL ? svi_sync_data(fd) : error;
}

int svi_sync_system(int fd) {
    return sync_by(syncfs, fd);
}

int svi_truncate(int fd, uint64_t size) {
    for (int i = 0; i < INTERRUPTIONS; i++) {
        if (ftruncate(fd, (off_t)size) == 0)
            return 0;
        if (errno != EINTR)
            return errno;
    }
    return EINTR;
}

int svi_random(void *bytes, size_t size) {
    for (int i = 0; i < INTERRUPTIONS; i++) {
        ssize_t n = getrandom(bytes, size, 0);
        if (n >= 0)
            return (size_t)n == size ? 0 : EIO;
        if (errno != EINTR)
            return errno;
    }
    return EINTR;
}

static bool no_descriptor(int error) {
    return error == EMFILE || error == ENFILE;
}

bool svi_no_room(int error) {
    return error == ENOSPC || error == EDQUOT || error == EFBIG || no_descriptor(error);
}

const char *svi_errno_text(int error) {
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown reason";
}

svs_code svi_fail_file(svs_error *err, svs_code code, const struct svi_folder *f, const char *name,
                       const char *format, ...) {
    char text[SVS_ERROR_TEXT], path[PATH_SHOWN];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!f || !f->path)
        return svi_fail(err, code, "%s %s", name, text);
    svi_escape(path, sizeof path, f->path, strlen(f->path));
    return svi_fail(err, code, "%s%s%s %s", path, *name ? "/" : "", name, text);
}

svs_code svi_fail_io(svs_error *err, const struct svi_folder *f, const char *name, const char *what,
                     int error) {
    return svi_fail_file(err, SVS_IO, f, name, "cannot be %s: %s", what, svi_errno_text(error));
}

svs_code svi_fail_full(svs_error *err, const struct svi_folder *f, const char *name, uint64_t wanted,
                       int error) {
    if (no_descriptor(error))
        return svi_fail_file(err, SVS_DISK_FULL, f, name, "cannot be opened for now: %s; raise that limit",
                             svi_errno_text(error));
    const unsigned long long bytes = wanted;
    if (error == EFBIG)
        return svi_fail_file(err, SVS_DISK_FULL, f, name,
                             "has no room for %llu bytes: %s; raise ulimit -f, or set a smaller "
                             "journal.segment",
                             bytes, svi_errno_text(error));
    if (error == EDQUOT)
        return svi_fail_file(err, SVS_DISK_FULL, f, name, "has no room for %llu bytes: %s; make room there",
                             bytes, svi_errno_text(error));
    return svi_fail_file(err, SVS_DISK_FULL, f, name,
                         "has no room for %llu bytes, %lld are free: %s; make room there", bytes,
                         (long long)svi_folder_free(f), svi_errno_text(error));
}
