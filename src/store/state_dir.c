/* The directory of a kept state: opening and locking; listing, naming and removing files.
 *
 * Two things need care. Names: a file is on disk only when its directory has been synced too. Once a sync of
 * the directory has failed, no later sync is trusted (svi_state_dir_flush), because the kernel reports a lost
 * write to one caller only. Removal: a file system frees a large file in one step, and syncs of other files
 * wait for it. So files are first renamed to *.tmp durably and then shrink piece by piece
 * (svi_state_dir_clear); the next start removes what a crash in between leaves.
 *
 * Locks: a process that writes holds exclusive locks of the directory and of the file `lock`. Each data file
 * has a lock of its own: shared by readers (svi_state_dir_hold), exclusive while it shrinks. */
#include "store/state_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/io.h"

#define LOCK   "lock"
#define DIGITS 16
#define PIECE  (256 * 1024) /* bytes of one truncation: delays another sync by 0.1 ms; 16 MiB took 10 ms */

struct svi_state_dir_names {
    pthread_mutex_t lock;
    int error; /* errno of the first failed sync, which stays; 0: none */
};

char *svi_state_dir_name(char name[SVI_FILE_NAME], const char *prefix, uint64_t number) {
    snprintf(name, SVI_FILE_NAME, "%s-%016" PRIx64, prefix, number);
    return name;
}

/* Is `name` PREFIX-<16 hex>SUFFIX, exactly as svi_state_dir_name writes it? Strict, because files are removed
 * by this test. */
static bool name_is(const char *name, const char *prefix, const char *suffix, uint64_t *number) {
    static const char digits[] = "0123456789abcdef";
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0 || name[n] != '-')
        return false;
    name += n + 1;
    *number = 0;
    for (int i = 0; i < DIGITS; i++) {
        const char *digit = *name ? strchr(digits, *name++) : NULL;
        if (!digit)
            return false;
        *number = *number << 4 | (uint64_t)(digit - digits);
    }
    return strcmp(name, suffix) == 0;
}

/* Opens a second descriptor for reading the directory: two listings must not share a read position, and
 * closedir closes it. */
static svs_code open_names(const struct svi_state_dir *dir, DIR **names, svs_error *err) {
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *names = fd >= 0 ? fdopendir(fd) : NULL;
    if (*names)
        return SVS_OK;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return svi_fail_write(err, dir->path, "", 0, "listed", error);
}

/* The next name while *code is SVS_OK; NULL at the end, and after a failure (*code), which ends the loop of
 * the caller as well. */
static const char *next_name(const struct svi_state_dir *dir, DIR *names, svs_code *code, svs_error *err) {
    if (*code != SVS_OK)
        return NULL;
    errno = 0;
    struct dirent *entry = readdir(names);
    if (!entry && errno)
        *code = svi_fail_io(err, dir->path, "", "listed", errno);
    return entry ? entry->d_name : NULL;
}

/* Appends a number to a list. Its capacity follows from its count: 16, doubled whenever it is full (16, 32,
 * 64,
 * ...), so it needs no field. */
static svs_code add_number(uint64_t **numbers, int *count, uint64_t number, svs_error *err) {
    const size_t n = (size_t)*count;
    if (n == 0 || (n >= 16 && (n & (n - 1)) == 0)) {
        void *grown = svi_realloc(*numbers, n * sizeof number, (n ? 2 * n : 16) * sizeof number);
        if (!grown)
            return svi_fail_memory(err, "the list of the files of the state");
        *numbers = grown;
    }
    (*numbers)[(*count)++] = number;
    return SVS_OK;
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

bool svi_state_dir_begun(const char *path) {
    struct svi_state_dir dir;
    struct svi_state_dir_ends journal;
    if (svi_state_dir_open(&dir, path, false, NULL) != SVS_OK)
        return false;
    svi_state_dir_find(&dir, SVI_JOURNAL, &journal, NULL);
    svi_state_dir_close(&dir);
    return journal.any;
}

svs_code svi_state_dir_list(const struct svi_state_dir *dir, const char *prefix, uint64_t **numbers,
                            int *count, svs_error *err) {
    uint64_t number;
    DIR *names;
    *numbers = NULL;
    *count = 0;
    svs_code code = open_names(dir, &names, err);
    if (code != SVS_OK)
        return code;
    for (const char *name; (name = next_name(dir, names, &code, err));)
        if (name_is(name, prefix, "", &number))
            code = add_number(numbers, count, number, err);
    closedir(names);
    if (code != SVS_OK) {
        svi_free(*numbers);
        *numbers = NULL;
        *count = 0;
    } else if (*count > 1)
        qsort(*numbers, (size_t)*count, sizeof **numbers, compare_numbers);
    return code;
}

svs_code svi_state_dir_find(const struct svi_state_dir *dir, const char *prefix,
                            struct svi_state_dir_ends *ends, svs_error *err) {
    uint64_t *numbers;
    int count;
    const svs_code code = svi_state_dir_list(dir, prefix, &numbers, &count, err);
    *ends = (struct svi_state_dir_ends){0};
    if (count > 0)
        *ends = (struct svi_state_dir_ends){numbers[0], numbers[count - 1], true};
    svi_free(numbers);
    return code;
}

/* ---- opening */

/* Reports that another process uses the directory, with the id that it wrote into the lock file, if any. */
static svs_code fail_locked(struct svi_state_dir *dir, svs_error *err) {
    char id[24] = "", owner[40] = "another process";
    size_t got = 0;
    if (dir->lock < 0)
        dir->lock = openat(dir->fd, LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const int error = dir->lock < 0 ? ENOENT : svi_read_at(dir->lock, id, sizeof id - 1, 0, &got);
    const long process = error ? 0 : strtol(id, NULL, 10);
    if (process > 0)
        snprintf(owner, sizeof owner, "process %ld", process);
    return svi_fail_file(err, SVS_IO, dir->path, "",
                         "is in use by %s: end that process, or use another directory", owner);
}

/* Reports a failed call with what the user can do about it. */
static svs_code fail_open(struct svi_state_dir *dir, const char *name, const char *what, bool write,
                          int error, svs_error *err) {
    const char *advice = error == ENOENT && write ? ": its parent directory does not exist: create it"
                         : error == ENOENT        ? ": name the directory of a kept state"
                         : error == ENOTDIR       ? ": name a directory"
                         : error == EACCES ? ": run as the user that owns the state, or give this user access"
                                           : "";
    return svi_fail_file(err, SVS_IO, dir->path, name, "cannot be %s: %s%s", what, svi_errno_text(error),
                         advice);
}

/* Takes two locks. A lock file can be deleted, which would let a second process lock a new one; the lock of
 * the directory itself cannot. Some network file systems cannot lock directories, so failures other than
 * "locked" pass, and the file's lock decides. */
static svs_code take_lock(struct svi_state_dir *dir, svs_error *err) {
    char id[24];
    if (flock(dir->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fail_locked(dir, err);
    dir->lock = openat(dir->fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (dir->lock < 0)
        return fail_open(dir, LOCK, "opened", true, errno, err);
    if (flock(dir->lock, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? fail_locked(dir, err)
                                    : svi_fail_io(err, dir->path, LOCK, "locked", errno);
    /* The id serves an error text only: a full disk is no reason to fail. */
    int length = snprintf(id, sizeof id, "%ld\n", (long)getpid());
    if (svi_truncate(dir->lock, 0) == 0)
        (void)svi_write_all(dir->lock, id, (size_t)length);
    return SVS_OK;
}

static char *unfinished_name(char name[SVI_FILE_NAME + sizeof SVI_UNFINISHED], const char *prefix,
                             uint64_t number) {
    svi_state_dir_name(name, prefix, number);
    return strcat(name, SVI_UNFINISHED);
}

static svs_code remove_unfinished(const struct svi_state_dir *dir, svs_error *err) {
    uint64_t number;
    DIR *names;
    svs_code code = open_names(dir, &names, err);
    if (code != SVS_OK)
        return code;
    for (const char *name; (name = next_name(dir, names, &code, err));)
        if ((name_is(name, SVI_JOURNAL, SVI_UNFINISHED, &number) ||
             name_is(name, SVI_CHECKPOINT, SVI_UNFINISHED, &number) ||
             name_is(name, SVI_KEYS, SVI_UNFINISHED, &number)) &&
            unlinkat(dir->fd, name, 0) != 0 && errno != ENOENT)
            code = svi_fail_io(err, dir->path, name, "removed", errno);
    closedir(names);
    return code;
}

/* Makes the name of the directory itself durable. It is synced even if the directory existed: the process
 * that created it may have ended before this step. If the parent may not be read, its whole file system is
 * synced instead. A parent that does not support syncs (EINVAL, EROFS) has nothing to lose. */
static svs_code sync_parent(const struct svi_state_dir *dir, svs_error *err) {
    int parent = openat(dir->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = parent < 0 ? errno : svi_sync_file(parent);
    if (parent >= 0)
        close(parent);
    else if (error == EACCES)
        error = svi_sync_system(dir->fd);
    return error && error != EINVAL && error != EROFS ? svi_fail_io(err, dir->path, "", "made durable", error)
                                                      : SVS_OK;
}

/* Refuses a directory that another user can change: a user who can write in it could replace the state, and
 * its owner always can. Root, too, writes only in its own directories: elsewhere a link could redirect it. */
static svs_code check_directory(const struct svi_state_dir *dir, svs_error *err) {
    struct stat s;
    if (fstat(dir->fd, &s) != 0)
        return svi_fail_io(err, dir->path, "", "looked at", errno);
    if (s.st_uid != geteuid())
        return svi_fail_file(err, SVS_IO, dir->path, "",
                             "is owned by another user: run as that user, or use another directory");
    if ((s.st_mode & 022) != 0)
        return svi_fail_file(err, SVS_IO, dir->path, "", "is writable by other users: chmod go-w it");
    return SVS_OK;
}

/* Creates (`write`) and opens the directory. Ownership is checked on the descriptor, after opening: a check
 * by path could see another directory. */
static svs_code open_directory(struct svi_state_dir *dir, bool write, svs_error *err) {
    if (write && mkdir(dir->path, 0700) != 0 && errno != EEXIST)
        return fail_open(dir, "", "made", write, errno, err);
    dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0)
        return fail_open(dir, "", "opened", write, errno, err);
    svs_code code = write ? check_directory(dir, err) : SVS_OK;
    return code == SVS_OK && write ? sync_parent(dir, err) : code;
}

svs_code svi_state_dir_open(struct svi_state_dir *dir, const char *path, bool write, svs_error *err) {
    size_t length = strlen(path);
    *dir = (struct svi_state_dir){.fd = -1, .lock = -1, .path = svi_alloc(length + 1)};
    if (dir->path)
        memcpy(dir->path, path, length);
    /* `names` exists only with an initialised lock, so svi_state_dir_close may destroy what it finds. */
    if (dir->path && write && (dir->names = svi_alloc(sizeof *dir->names)))
        pthread_mutex_init(&dir->names->lock, NULL);
    svs_code code = !dir->path || (write && !dir->names) ? svi_fail_memory(err, "the state directory")
                                                         : open_directory(dir, write, err);
    if (code == SVS_OK && write)
        code = take_lock(dir, err);
    /* Only under the lock: before it, an unfinished file may belong to a running process. */
    if (code == SVS_OK && write)
        code = remove_unfinished(dir, err);
    if (code != SVS_OK)
        svi_state_dir_close(dir);
    return code;
}

void svi_state_dir_close(struct svi_state_dir *dir) {
    if (dir->lock >= 0)
        close(dir->lock);
    if (dir->fd >= 0)
        close(dir->fd);
    svi_free(dir->path);
    if (dir->names)
        pthread_mutex_destroy(&dir->names->lock);
    svi_free(dir->names);
    *dir = (struct svi_state_dir){.fd = -1, .lock = -1};
}

/* ---- its files */

int svi_state_dir_flush(const struct svi_state_dir *dir) {
    if (!dir->names)
        return svi_sync_file(dir->fd);
    /* The lock covers the sync too: a second thread must not succeed on an error that the first has consumed.
     */
    pthread_mutex_lock(&dir->names->lock);
    if (!dir->names->error)
        dir->names->error = svi_sync_file(dir->fd);
    const int error = dir->names->error;
    pthread_mutex_unlock(&dir->names->lock);
    return error;
}

svs_code svi_state_dir_sync(const struct svi_state_dir *dir, svs_error *err) {
    int error = svi_state_dir_flush(dir);
    return error ? svi_fail_io(err, dir->path, "", "made durable", error) : SVS_OK;
}

svs_code svi_state_dir_remove(const struct svi_state_dir *dir, const char *prefix, uint64_t number,
                              svs_error *err) {
    char name[SVI_FILE_NAME];
    svi_state_dir_name(name, prefix, number);
    if (unlinkat(dir->fd, name, 0) != 0 && errno != ENOENT)
        return svi_fail_io(err, dir->path, name, "removed", errno);
    return SVS_OK;
}

/* Truncates a file step by step to nothing, unless another process reads it (svi_read_buffer_open), or it has
 * another name: a backup made by hard links must keep its content. */
static void shrink_file(int fd) {
    struct stat s;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &s) != 0 || s.st_nlink > 1)
        return;
    for (off_t left = s.st_size; left > 0;) {
        left = left > PIECE ? left - PIECE : 0;
        if (svi_truncate(fd, (uint64_t)left) != 0)
            return;
    }
}

/* Shrinks and removes a file. It is removed even if it cannot shrink first. The lock is held until the name
 * is removed, so that no process begins to read a shrunken file. */
static svs_code discard_file(const struct svi_state_dir *dir, const char *name, svs_error *err) {
    const int fd = openat(dir->fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0)
        shrink_file(fd);
    const int error = unlinkat(dir->fd, name, 0) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error && error != ENOENT ? svi_fail_io(err, dir->path, name, "removed", error) : SVS_OK;
}

svs_code svi_state_dir_hold(const struct svi_state_dir *dir, const char *name, int fd, struct stat *s,
                            svs_error *err) {
    /* The lock first, then the name: if both succeed, the file was not being shrunk and cannot be from now
     * on. In the other order it could be renamed and shrunk in between. File systems without locks pass. */
    if ((flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) || faccessat(dir->fd, name, F_OK, 0) != 0)
        return svi_fail_file(err, SVS_IO, dir->path, name, "is being removed by another process: try again");
    return fstat(fd, s) == 0 ? SVS_OK : svi_fail_io(err, dir->path, name, "read", errno);
}

svs_code svi_state_dir_clear(const struct svi_state_dir *dir, const char *prefix, const uint64_t *numbers,
                             int count, svs_error *err) {
    char name[SVI_FILE_NAME], unfinished[SVI_FILE_NAME + sizeof SVI_UNFINISHED];
    svs_code code = SVS_OK;
    for (int i = 0; i < count && code == SVS_OK; i++) {
        svi_state_dir_name(name, prefix, numbers[i]);
        if (renameat(dir->fd, name, dir->fd, unfinished_name(unfinished, prefix, numbers[i])) == 0 ||
            errno == ENOENT)
            continue;
        /* On a full disk a rename may need space; a removal frees some, so it is done at once. */
        code = svi_no_space(errno) ? svi_state_dir_remove(dir, prefix, numbers[i], err)
                                   : svi_fail_io(err, dir->path, name, "removed", errno);
    }
    /* Durable before the content is destroyed: after a crash no file with its proper name may be truncated.
     */
    if (code == SVS_OK && count > 0)
        code = svi_state_dir_sync(dir, err);
    for (int i = 0; i < count && code == SVS_OK; i++)
        code = discard_file(dir, unfinished_name(unfinished, prefix, numbers[i]), err);
    return code;
}

svs_code svi_state_dir_set_aside(const struct svi_state_dir *dir, const char *prefix, uint64_t number,
                                 svs_error *err) {
    char name[SVI_FILE_NAME], aside[SVI_FILE_NAME + 8];
    svi_state_dir_name(name, prefix, number);
    snprintf(aside, sizeof aside, "%s.damaged", name);
    if (renameat(dir->fd, name, dir->fd, aside) != 0)
        return errno == ENOENT ? SVS_OK : svi_fail_io(err, dir->path, name, "set aside", errno);
    return svi_state_dir_sync(dir, err);
}
