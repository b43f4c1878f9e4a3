/* Reading and writing files that security depends on. Trust is decided on the open descriptor, and writing
 * goes through a synced temporary file in the same directory: a crash leaves the old file or the new one. */
#include "net/guarded_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "store/io.h"

svs_code svi_fail_path(svs_error *err, svs_code code, const char *path, const char *format, ...) {
    char shown[120], reason[SVS_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return svi_fail(err, code, "%s: %s", svi_escape(shown, sizeof shown, path, strlen(path)), reason);
}

/* Both kinds of files are created by commands of this program, which the error names. */
static svs_code refuse_unopened(const char *path, bool secret, int error, svs_error *err) {
    const char *maker = secret ? "; `svmstream curve new` creates a key file"
                               : "; `svmstream curve allow` creates it with its first client";
    return svi_fail_path(err, SVS_IO, path, "%s%s", strerror(error), error == ENOENT ? maker : "");
}

/* Why the file must not be trusted; NULL: it may. Asked of the open descriptor: the path could be exchanged
 * between a check and the opening. */
static const char *distrust_file(int fd, bool secret, size_t size, svs_code *code) {
    struct stat s;
    *code = SVS_IO;
    if (fstat(fd, &s) != 0)
        return strerror(errno);
    if (!S_ISREG(s.st_mode))
        return "not a regular file";
    if (s.st_uid != geteuid() && s.st_uid != 0 && geteuid() != 0)
        return "owned by another user: chown it, or run as that user";
    if (secret && (s.st_mode & 077) != 0)
        return "other users can read this secret key: chmod 600 it, and make a new key if somebody may have "
               "read it";
    if (!secret && (s.st_mode & 022) != 0)
        return "other users can write it: chmod go-w it";
    *code = SVS_TOO_LARGE;
    return (uint64_t)s.st_size >= size ? "too large for this kind of file" : NULL;
}

/* The size is checked first, and at most `size` is read, whatever happens to the file meanwhile. O_NONBLOCK,
 * so that a FIFO in its place cannot block. */
svs_code svi_guarded_read(const char *path, bool secret, char *out, size_t size, size_t *length,
                          svs_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    svs_code code;
    *length = 0;
    if (fd < 0)
        return refuse_unopened(path, secret, errno, err);
    const char *why = distrust_file(fd, secret, size, &code);
    int error = why ? 0 : svi_read_at(fd, out, size - 1, 0, length);
    close(fd);
    out[*length] = '\0';
    if (error)
        return svi_fail_path(err, SVS_IO, path, "%s", strerror(error));
    return why ? svi_fail_path(err, code, path, "%s", why) : SVS_OK;
}

/* Makes the new name durable; if it fails, the file is still complete under one name or the other. */
static void sync_folder_of(const char *path) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* Synced before it is moved into place: otherwise a crash could leave the new name with no content. */
static int write_temporary(int fd, const char *text, size_t length, int mode) {
    int error = fchmod(fd, (mode_t)mode) == 0 ? svi_write_all(fd, text, length) : errno;
    if (!error)
        error = svi_sync_file(fd);
    return close(fd) == 0 || error ? error : errno;
}

svs_code svi_guarded_write(const char *path, const char *text, size_t length, int mode, bool fresh,
                           svs_error *err) {
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    if (n < 0 || n >= (int)sizeof temporary)
        return svi_fail_path(err, SVS_IO, path, "the name is too long");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return svi_fail_path(err, SVS_IO, temporary, "%s", strerror(errno));
    int error = write_temporary(fd, text, length, mode);
    if (!error &&
        (fresh ? link(temporary, path) : rename(temporary, path)) != 0) /* link never replaces a file */
        error = errno;
    if (fresh || error)
        unlink(temporary);
    if (error)
        return svi_fail_path(err, SVS_IO, path, "%s",
                             error == EEXIST ? "already exists and is not replaced: name another file"
                                             : strerror(error));
    sync_folder_of(path);
    return SVS_OK;
}
