#include "store/folder.h"

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
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/io.h"

#define LOCK   "lock"
#define DIGITS 16
#define PIECE  (256 * 1024) /* that a file shrinks by at once: 0.1 ms of another's sync; 16 MiB took 10 */

struct svi_folder_names {
    pthread_mutex_t lock;
    int error; /* of the first sync that failed */
};

static const char *const prefixes[] = {"journal", "checkpoint"};

char *svi_folder_name(char name[SVI_FILE_NAME], const char *prefix, uint64_t number) {
    snprintf(name, SVI_FILE_NAME, "%s-%016" PRIx64, prefix, number);
    return name;
}

/* PREFIX-<16 hex>`suffix`, exactly as svi_folder_name writes it. */
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

/* Calls `visit` for each name until it fails. A second descriptor, because the position in the directory
 * belongs to it. */
static svs_code each_name(const struct svi_folder *f,
                          svs_code (*visit)(const struct svi_folder *f, const char *name, void *user,
                                            svs_error *err),
                          void *user, svs_error *err) {
    int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return svi_no_room(error) ? svi_fail_full(err, f, "", 0, error)
                                  : svi_fail_io(err, f, "", "listed", error);
    }
    svs_code code = SVS_OK;
    struct dirent *entry = NULL;
    do {
        errno = 0;
        entry = readdir(directory);
        if (entry)
            code = visit(f, entry->d_name, user, err);
        else if (errno)
            code = svi_fail_io(err, f, "", "listed", errno);
    } while (entry && code == SVS_OK);
    closedir(directory);
    return code;
}

/* ---- opening */

/* Another process has the lock; it wrote its id into the file. */
static svs_code fail_locked(struct svi_folder *f, svs_error *err) {
    char id[24];
    size_t got = 0;
    if (svi_read_at(f->lock, id, sizeof id - 1, 0, &got) != 0)
        got = 0;
    id[got] = '\0';
    long process = strtol(id, NULL, 10);
    if (process > 0)
        return svi_fail_file(err, SVS_IO, f, "",
                             "is in use by process %ld: end it first, or give another folder", process);
    return svi_fail_file(err, SVS_IO, f, "",
                         "is in use by another process: end it first, or give another folder");
}

/* What the one who gave the path can do about it. */
static const char *what_to_do(bool write, int error) {
    if (error == ENOENT)
        return write ? ": make the folder first that it is to lie in" : ": name the folder of a kept state";
    if (error == ENOTDIR)
        return ": name a folder";
    return error == EACCES ? ": run as the user whose state it is, or give this one access" : "";
}

static svs_code fail_open(struct svi_folder *f, const char *name, const char *what, bool write, int error,
                          svs_error *err) {
    return svi_fail_file(err, SVS_IO, f, name, "cannot be %s: %s%s", what, svi_errno_text(error),
                         what_to_do(write, error));
}

static svs_code take_lock(struct svi_folder *f, svs_error *err) {
    char id[24];
    f->lock = openat(f->fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->lock < 0)
        return fail_open(f, LOCK, "opened", true, errno, err);
    if (flock(f->lock, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? fail_locked(f, err) : svi_fail_io(err, f, LOCK, "locked", errno);
    /* The id serves a text alone: a full disk is no reason to refuse. */
    int length = snprintf(id, sizeof id, "%ld\n", (long)getpid());
    if (svi_truncate(f->lock, 0) == 0)
        (void)svi_write_all(f->lock, id, (size_t)length);
    return SVS_OK;
}

static char *unfinished_name(char name[SVI_FILE_NAME + sizeof SVI_UNFINISHED], const char *prefix,
                             uint64_t number) {
    svi_folder_name(name, prefix, number);
    return strcat(name, SVI_UNFINISHED);
}

static svs_code remove_unfinished(const struct svi_folder *f, const char *name, void *user, svs_error *err) {
    uint64_t number;
    (void)user;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (name_is(name, prefixes[i], SVI_UNFINISHED, &number) && unlinkat(f->fd, name, 0) != 0 &&
            errno != ENOENT)
            return svi_fail_io(err, f, name, "removed", errno);
    return SVS_OK;
}

/* The folder's own name must outlive a power cut as well. Who made the folder does not tell whether it is:
 * the process that did may have ended before it came here. A parent that may not be read is synced with all
 * of its file system, and one that cannot be synced by its nature has nothing to lose. */
static svs_code sync_parent(const struct svi_folder *f, svs_error *err) {
    int parent = openat(f->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = parent < 0 ? errno : svi_sync_file(parent);
    if (parent >= 0)
        close(parent);
    else if (error == EACCES)
        error = svi_sync_system(f->fd);
    return error && error != EINVAL && error != EROFS ? svi_fail_io(err, f, "", "made durable", error)
                                                      : SVS_OK;
}

static svs_code open_directory(struct svi_folder *f, bool write, svs_error *err) {
    if (write && mkdir(f->path, 0700) != 0 && errno != EEXIST)
        return fail_open(f, "", "made", write, errno, err);
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->fd < 0)
        return fail_open(f, "", "opened", write, errno, err);
    return write ? sync_parent(f, err) : SVS_OK;
}

static svs_code make_names(struct svi_folder *f, svs_error *err) {
    f->names = svi_alloc(sizeof *f->names);
    if (!f->names)
        return svi_fail_memory(err, "the folder's names");
    pthread_mutex_init(&f->names->lock, NULL);
    return SVS_OK;
}

svs_code svi_folder_open(struct svi_folder *f, const char *path, bool write, svs_error *err) {
    size_t length = strlen(path);
    *f = (struct svi_folder){.fd = -1, .lock = -1, .path = svi_alloc(length + 1)};
    if (!f->path)
        return svi_fail_memory(err, "the folder's path");
    memcpy(f->path, path, length);
    svs_code code = write ? make_names(f, err) : SVS_OK;
    if (code == SVS_OK)
        code = open_directory(f, write, err);
    if (code == SVS_OK && write)
        code = take_lock(f, err);
    if (code == SVS_OK && write)
        code = each_name(f, remove_unfinished, NULL, err);
    if (code != SVS_OK)
        svi_folder_close(f);
    return code;
}

void svi_folder_close(struct svi_folder *f) {
    if (f->lock >= 0)
        close(f->lock);
    if (f->fd >= 0)
        close(f->fd);
    svi_free(f->path);
    if (f->names)
        pthread_mutex_destroy(&f->names->lock);
    svi_free(f->names);
    *f = (struct svi_folder){.fd = -1, .lock = -1};
}

/* ---- its files */

struct listing {
    const char *prefix;
    uint64_t *numbers;
    int count, room;
};

static svs_code note(const struct svi_folder *f, const char *name, void *user, svs_error *err) {
    struct listing *l = user;
    uint64_t number;
    (void)f;
    if (!name_is(name, l->prefix, "", &number))
        return SVS_OK;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * (size_t)l->room : 16;
        void *grown =
            svi_realloc(l->numbers, (size_t)l->room * sizeof *l->numbers, room * sizeof *l->numbers);
        if (!grown)
            return svi_fail_memory(err, "the list of the folder's files");
        l->numbers = grown;
        l->room = (int)room;
    }
    l->numbers[l->count++] = number;
    return SVS_OK;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

svs_code svi_folder_list(const struct svi_folder *f, const char *prefix, uint64_t **numbers, int *count,
                         svs_error *err) {
    struct listing l = {.prefix = prefix};
    svs_code code = each_name(f, note, &l, err);
    if (code != SVS_OK) {
        svi_free(l.numbers);
        l = (struct listing){0};
    }
    if (l.count > 1)
        qsort(l.numbers, (size_t)l.count, sizeof *l.numbers, ascending);
    *numbers = l.numbers;
    *count = l.count;
    return code;
}

int svi_folder_flush(const struct svi_folder *f) {
    if (!f->names)
        return svi_sync_file(f->fd);
    pthread_mutex_lock(&f->names->lock);
    if (!f->names->error)
        f->names->error = svi_sync_file(f->fd);
    const int error = f->names->error;
    pthread_mutex_unlock(&f->names->lock);
    return error;
}

svs_code svi_folder_sync(const struct svi_folder *f, svs_error *err) {
    int error = svi_folder_flush(f);
    return error ? svi_fail_io(err, f, "", "made durable", error) : SVS_OK;
}

svs_code svi_folder_remove(const struct svi_folder *f, const char *prefix, uint64_t number, svs_error *err) {
    char name[SVI_FILE_NAME];
    svi_folder_name(name, prefix, number);
    if (unlinkat(f->fd, name, 0) != 0 && errno != ENOENT)
        return svi_fail_io(err, f, name, "removed", errno);
    return SVS_OK;
}

/* Not what somebody reads (svi_window_open), nor what has another name somewhere, as in a copy by links. */
static void shrink(int fd) {
    struct stat s;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &s) != 0 || s.st_nlink > 1)
        return;
    for (off_t left = s.st_size; left > 0;) {
        left = left > PIECE ? left - PIECE : 0;
        if (svi_truncate(fd, (uint64_t)left) != 0)
            return;
    }
}

/* That it cannot be made small first is no reason to let it stand. The lock is held until the name is gone:
 * nobody begins to read what is left. */
static svs_code discard(const struct svi_folder *f, const char *name, svs_error *err) {
    const int fd = openat(f->fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0)
        shrink(fd);
    const int error = unlinkat(f->fd, name, 0) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error && error != ENOENT ? svi_fail_io(err, f, name, "removed", error) : SVS_OK;
}

svs_code svi_folder_clear(const struct svi_folder *f, const char *prefix, const uint64_t *numbers, int count,
                          svs_error *err) {
    char name[SVI_FILE_NAME], gone[SVI_FILE_NAME + sizeof SVI_UNFINISHED];
    svs_code code = SVS_OK;
    for (int i = 0; i < count && code == SVS_OK; i++) {
        svi_folder_name(name, prefix, numbers[i]);
        if (renameat(f->fd, name, f->fd, unfinished_name(gone, prefix, numbers[i])) == 0 || errno == ENOENT)
            continue;
        code = svi_no_room(errno) ? svi_folder_remove(f, prefix, numbers[i], err)
                                  : svi_fail_io(err, f, name, "removed", errno);
    }
    if (code == SVS_OK && count > 0)
        code = svi_folder_sync(f, err);
    for (int i = 0; i < count && code == SVS_OK; i++)
        code = discard(f, unfinished_name(gone, prefix, numbers[i]), err);
    return code;
}

svs_code svi_folder_set_aside(const struct svi_folder *f, const char *prefix, uint64_t number,
                              svs_error *err) {
    char name[SVI_FILE_NAME], aside[SVI_FILE_NAME + 8];
    svi_folder_name(name, prefix, number);
    snprintf(aside, sizeof aside, "%s.damaged", name);
    if (renameat(f->fd, name, f->fd, aside) != 0)
        return errno == ENOENT ? SVS_OK : svi_fail_io(err, f, name, "set aside", errno);
    return svi_folder_sync(f, err);
}

int64_t svi_folder_free(const struct svi_folder *f) {
    struct statvfs s;
    if (!f || fstatvfs(f->fd, &s) != 0)
        return -1;
    return (int64_t)((uint64_t)s.f_bavail * s.f_frsize);
}
