/* powercut.c: for LD_PRELOAD: cuts the power, or makes a system call fail, at the n-th call that changes
 * files under one folder (the folder itself included). Everything outside of it is passed on untouched.
 *
 *   FAULT_DIR     the folder; without it nothing happens at all
 *   FAULT_MODE    cut (default): at call FAULT_AT the power is cut: before it, behind it, or with part of a
 *                 write done; the process ends with 137.
 *                 error: call FAULT_AT fails
 *   FAULT_AT      1, 2, ...; 0 = never: calls are only counted
 *   FAULT_SEED    of the lots (writeback.h)
 *   FAULT_AFTER   a file (outside the folder): calls are counted from when it is there
 *   FAULT_SYNC_TIME  an fsync takes up to so many microseconds (below 1,000,000), by lot; other threads'
 * calls go on meanwhile, and a cut may come FAULT_CALL    error: any (default), or of write fsync rename
 * unlink open truncate mkdir FAULT_ERRNO   error: EIO (default), ENOSPC, ..., or a number FAULT_TIMES error:
 * how many calls fail from FAULT_AT on: 1; 0 = all (FAULT_STICKY=1 says the same) FAULT_SHORT   error: 1 =
 * the first write that is to fail takes half of its bytes, and the next one fails FAULT_CUT_AT_EXIT  1 = a
 * process that ends by itself loses power then. What was in the file when an fsync failed is lost, whatever a
 * later one returns FAULT_LIE     1 = fsync does nothing: a disk that lies FAULT_LOG     file (outside the
 * folder) to which a line is appended at the end
 *
 * In mode cut only calls that change something count; in mode error every call of the kind. An fsync is not
 * really made: the system stays up. Many threads may call; calls under the folder go one at a time, so that a
 * cut stops all of them. Links and truncating by name under the folder are not simulated: they end the
 * process with 99. What goes past the intercepted functions (stdio, shared mappings, what children do after
 * fork) is not seen. */
#include "fault/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PARTS  16 /* of a writev that are looked at */

/* ---- opening and closing */

static void opened(int fd, int flags, bool created, const char *name) {
    if (fd < 0)
        return;
    int saved = errno;
    if ((flags & O_ACCMODE) != O_RDONLY)
        wb_follow(fd);
    if (created)
        wb_changed(WB_CREATED, name, NULL, -1);
    plan_note(fd, flags & O_DSYNC);
    plan_owes_failure(fd, true);
    errno = saved;
}

/* A file that is emptied by opening: what it held may come back. */
static void before_emptying(const char *name) {
    int saved = errno;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0);
    if (fd >= 0) {
        wb_follow(fd);
        wb_before_truncate(fd, 0);
        syscall(SYS_close, fd);
    }
    errno = saved;
}

static int open_at(int at, const char *path, int flags, mode_t mode) {
    char name[WB_PATH];
    struct stat s;
    if ((flags & O_PATH) || !plan_path(at, path, name))
        return (int)syscall(SYS_openat, at, path, flags, mode);
    int saved = errno;
    plan_lock();
    bool there = lstat(name, &s) == 0;
    errno = saved;
    bool creates = !there && (flags & O_CREAT), empties = there && (flags & O_TRUNC) && S_ISREG(s.st_mode);
    enum verdict v = plan_judge(OPEN, creates || empties);
    if (v == FAIL)
        return plan_fail();
    if (empties)
        before_emptying(name);
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    opened(fd, flags, creates, name);
    plan_leave(v, OPEN);
    return fd;
}

#define MODE(flags)                                                                                          \
    mode_t mode = 0;                                                                                         \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                 \
        va_list more;                                                                                        \
        va_start(more, flags);                                                                               \
        mode = va_arg(more, mode_t);                                                                         \
        va_end(more);                                                                                        \
    }

EXPORT int open(const char *path, int flags, ...) {
    MODE(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}
EXPORT int openat(int at, const char *path, int flags, ...) {
    MODE(flags)
    return open_at(at, path, flags, mode);
}
EXPORT int creat(const char *path, mode_t mode) {
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
EXPORT int __open_2(const char *path, int flags) {
    return open_at(AT_FDCWD, path, flags, 0);
}
EXPORT int __openat_2(int at, const char *path, int flags) {
    return open_at(at, path, flags, 0);
}

EXPORT int close(int fd) {
    plan_forget(fd);
    return (int)syscall(SYS_close, fd);
}

/* ---- writing */

#define AT_POSITION (-1) /* offset of a write at the file's own position */

static int64_t place_of(int fd, int64_t offset) {
    if (offset != AT_POSITION)
        return offset;
    struct stat s;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_APPEND) && fstat(fd, &s) == 0)
        return (int64_t)s.st_size;
    return (int64_t)syscall(SYS_lseek, fd, (off_t)0, SEEK_CUR);
}

static ssize_t really_write(int fd, const struct iovec *parts, int count, int64_t offset) {
    if (offset == AT_POSITION)
        return (ssize_t)syscall(SYS_writev, fd, parts, (long)count);
    return (ssize_t)syscall(SYS_pwritev, fd, parts, (long)count, (long)offset, 0L);
}

/* The first `length` bytes of the parts. */
static int shorten(struct iovec *out, const struct iovec *parts, int count, size_t length) {
    int n = 0;
    for (; n < count && n < PARTS && length > 0; n++) {
        out[n] = parts[n];
        if (out[n].iov_len > length)
            out[n].iov_len = length;
        length -= out[n].iov_len;
    }
    return n;
}

static ssize_t write_ours(int fd, const struct iovec *parts, int count, int64_t offset) {
    struct iovec some[PARTS];
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += parts[i].iov_len;
    enum verdict v = plan_enter(WRITE, true);
    if (v == FAIL)
        return plan_fail();
    if (v == PART) {
        length = plan_part(length);
        count = shorten(some, parts, count, length);
        parts = some;
    }
    wb_before_write(fd, place_of(fd, offset), (int64_t)length);
    ssize_t n = count ? really_write(fd, parts, count, offset) : 0;
    if (n > 0 && plan_writes_synced(fd) && !plan_lies())
        wb_synced(fd, &(struct wb_mark){0});
    plan_leave(v, WRITE);
    return n;
}

EXPORT ssize_t write(int fd, const void *bytes, size_t size) {
    if (!plan_descriptor(fd))
        return (ssize_t)syscall(SYS_write, fd, bytes, size);
    return write_ours(fd, &(struct iovec){(void *)bytes, size}, 1, AT_POSITION);
}
EXPORT ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    if (!plan_descriptor(fd))
        return (ssize_t)syscall(SYS_pwrite64, fd, bytes, size, offset);
    return write_ours(fd, &(struct iovec){(void *)bytes, size}, 1, offset);
}
EXPORT ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!plan_descriptor(fd))
        return (ssize_t)syscall(SYS_writev, fd, parts, (long)count);
    return write_ours(fd, parts, count, AT_POSITION);
}
EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    if (!plan_descriptor(fd))
        return (ssize_t)syscall(SYS_pwritev, fd, parts, (long)count, (long)offset, 0L);
    return write_ours(fd, parts, count, offset);
}

EXPORT int ftruncate(int fd, off_t size) {
    if (!plan_descriptor(fd))
        return (int)syscall(SYS_ftruncate, fd, size);
    enum verdict v = plan_enter(TRUNCATE, true);
    if (v == FAIL)
        return plan_fail();
    wb_before_truncate(fd, size);
    int result = (int)syscall(SYS_ftruncate, fd, size);
    plan_leave(v, TRUNCATE);
    return result;
}

/* Reserving room counts as a write; no byte that is there changes. */
EXPORT int fallocate(int fd, int mode, off_t offset, off_t length) {
    if (!plan_descriptor(fd))
        return (int)syscall(SYS_fallocate, fd, mode, offset, length);
    enum verdict v = plan_enter(WRITE, true);
    if (v == FAIL)
        return plan_fail();
    int result = (int)syscall(SYS_fallocate, fd, mode, offset, length);
    plan_leave(v, WRITE);
    return result;
}
EXPORT int posix_fallocate(int fd, off_t offset, off_t length) {
    int saved = errno, result = fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
    errno = saved;
    return result;
}

/* ---- syncing */

static int sync_ours(int fd) {
    char name[WB_PATH];
    struct stat s;
    enum verdict v = plan_enter(FSYNC, true);
    if (v == FAIL) {
        if (errno != EINTR)
            wb_lost(fd);
        plan_owes_failure(fd, true);
        return plan_fail();
    }
    if (plan_owes_failure(fd, false)) {
        plan_leave(v, FSYNC);
        return -1;
    }
    if (fstat(fd, &s) == 0 && !plan_lies()) {
        const struct wb_mark mark = wb_sync_begin(fd);
        plan_pause();
        if (S_ISDIR(s.st_mode) && plan_name(fd, name))
            wb_synced_folder(name, &mark);
        else
            wb_synced(fd, &mark);
    }
    plan_leave(v, FSYNC);
    return 0;
}

EXPORT int fsync(int fd) {
    return plan_descriptor(fd) ? sync_ours(fd) : (int)syscall(SYS_fsync, fd);
}
EXPORT int fdatasync(int fd) {
    return plan_descriptor(fd) ? sync_ours(fd) : (int)syscall(SYS_fdatasync, fd);
}

/* ---- names */

EXPORT int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char old[WB_PATH], new[WB_PATH];
    bool from_ours = plan_path(from_at, from, old), to_ours = plan_path(to_at, to, new);
    if (!from_ours && !to_ours)
        return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    if (from_ours != to_ours)
        plan_refuse("renaming into or out of it", to_ours ? new : old);
    enum verdict v = plan_enter(RENAME, true);
    if (v == FAIL)
        return plan_fail();
    int held = wb_hold(new);
    int result = (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags), saved = errno;
    if (result == 0)
        wb_changed(WB_RENAMED, old, new, held);
    else if (held >= 0)
        syscall(SYS_close, held);
    errno = saved;
    plan_leave(v, RENAME);
    return result;
}
EXPORT int rename(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}
EXPORT int renameat(int from_at, const char *from, int to_at, const char *to) {
    return renameat2(from_at, from, to_at, to, 0);
}

EXPORT int unlinkat(int at, const char *path, int flags) {
    char name[WB_PATH];
    if (!plan_path(at, path, name))
        return (int)syscall(SYS_unlinkat, at, path, flags);
    enum verdict v = plan_enter(UNLINK, true);
    if (v == FAIL)
        return plan_fail();
    int held = wb_hold(name);
    int result = (int)syscall(SYS_unlinkat, at, path, flags), saved = errno;
    if (result == 0)
        wb_changed(flags & AT_REMOVEDIR ? WB_FOLDER_REMOVED : WB_REMOVED, name, NULL, held);
    else if (held >= 0)
        syscall(SYS_close, held);
    errno = saved;
    plan_leave(v, UNLINK);
    return result;
}
EXPORT int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}
EXPORT int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}
EXPORT int remove(const char *path) {
    struct stat s;
    bool folder = lstat(path, &s) == 0 && S_ISDIR(s.st_mode);
    return unlinkat(AT_FDCWD, path, folder ? AT_REMOVEDIR : 0);
}

EXPORT int mkdirat(int at, const char *path, mode_t mode) {
    char name[WB_PATH];
    if (!plan_path(at, path, name))
        return (int)syscall(SYS_mkdirat, at, path, mode);
    enum verdict v = plan_enter(MKDIR, true);
    if (v == FAIL)
        return plan_fail();
    int result = (int)syscall(SYS_mkdirat, at, path, mode);
    if (result == 0)
        wb_changed(WB_FOLDER_MADE, name, NULL, -1);
    plan_leave(v, MKDIR);
    return result;
}
EXPORT int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}

/* ---- what is not simulated */

EXPORT int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    char name[WB_PATH];
    if (plan_path(to_at, to, name))
        plan_refuse("link", name);
    return (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
}
EXPORT int link(const char *from, const char *to) {
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}
EXPORT int symlinkat(const char *target, int at, const char *path) {
    char name[WB_PATH];
    if (plan_path(at, path, name))
        plan_refuse("symlink", name);
    return (int)syscall(SYS_symlinkat, target, at, path);
}
EXPORT int symlink(const char *target, const char *path) {
    return symlinkat(target, AT_FDCWD, path);
}
EXPORT int truncate(const char *path, off_t size) {
    char name[WB_PATH];
    if (plan_path(AT_FDCWD, path, name))
        plan_refuse("truncate", name);
    return (int)syscall(SYS_truncate, path, size);
}

/* ---- the same with 64-bit offsets, which all have here */

_Static_assert(sizeof(off_t) == 8, "offsets have 64 bits");
#define SAME(name, other) extern __typeof__(name) other __attribute__((alias(#name), visibility("default")))
SAME(open, open64);
SAME(openat, openat64);
SAME(creat, creat64);
SAME(__open_2, __open64_2);
SAME(__openat_2, __openat64_2);
SAME(pwrite, pwrite64);
SAME(pwritev, pwritev64);
SAME(ftruncate, ftruncate64);
SAME(truncate, truncate64);
SAME(fallocate, fallocate64);
SAME(posix_fallocate, posix_fallocate64);
