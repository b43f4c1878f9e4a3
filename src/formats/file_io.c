#include "formats/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/number.h"

#define AFTER          (SVI_NUMBER_PAD + 1) /* bytes that follow the file's own in memory */
#define FILE_MAX       ((size_t)1 << 31)
#define FIRST_CAPACITY ((size_t)1 << 16)

static svs_code file_io_fail(const char *path, svs_error *err) {
    return svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
}

/* ---- writing */

/* True for a plain file, and where nothing exists yet. */
static bool is_plain_file(const char *path) {
    struct stat about;
    return stat(path, &about) != 0 || S_ISREG(about.st_mode);
}

static svs_code write_body(FILE *to, const char *path, svi_file_body *body, void *user, svs_error *err) {
    SVI_TRY(body(user, to, err));
    /* stdio remembers a failed write, so `body` need not check each one. */
    if (ferror(to))
        return svi_fail(err, SVS_IO, "%.150s cannot be written: is the disk full?", path);
    return SVS_OK;
}

static svs_code write_stdout(svi_file_body *body, void *user, svs_error *err) {
    svs_code code = write_body(stdout, "standard output", body, user, err);
    return code != SVS_OK || fflush(stdout) == 0 ? code : file_io_fail("standard output", err);
}

/* Writes and closes `to`; NULL is the failure to open it, with errno. sync: the content is on disk before
 * this returns. */
static svs_code write_file(FILE *to, const char *path, bool sync, svi_file_body *body, void *user,
                           svs_error *err) {
    if (!to)
        return file_io_fail(path, err);
    svs_code code = write_body(to, path, body, user, err);
    bool written = !sync || (fflush(to) == 0 && fsync(fileno(to)) == 0);
    /* fclose also when syncing failed; its own failure may be the first sign of a full disk. */
    if (fclose(to) != 0)
        written = false;
    return code != SVS_OK || written ? code : file_io_fail(path, err);
}

/* Opens a new file next to `path` and stores its name in `name` (size bytes). The name is random: a user
 * with write access to the folder could otherwise put a link there first, through which another file would
 * be overwritten. NULL and errno on failure. */
static FILE *open_unfinished(const char *path, char *name, size_t size) {
    uint64_t mark;
    if (getrandom(&mark, sizeof mark, 0) != sizeof mark)
        return NULL;
    if (snprintf(name, size, "%s.%016" PRIx64 ".tmp", path, mark) >= (int)size) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && !to)
        close(fd);
    return to;
}

svs_code svi_file_write(const char *path, svi_file_body *body, void *user, svs_error *err) {
    char unfinished[4096];
    if (strcmp(path, "-") == 0)
        return write_stdout(body, user, err);
    if (!is_plain_file(path)) /* a rename would replace the device by a file */
        return write_file(fopen(path, "wb"), path, false, body, user, err);
    FILE *to = open_unfinished(path, unfinished, sizeof unfinished);
    const bool ours = to != NULL; /* a file that we did not create is not removed */
    svs_code code = write_file(to, path, true, body, user, err);
    if (code == SVS_OK && rename(unfinished, path) != 0)
        code = file_io_fail(path, err);
    if (code != SVS_OK && ours)
        unlink(unfinished);
    return code;
}

static svs_code write_ready(void *user, FILE *to, svs_error *err) {
    const struct svi_bytes *bytes = user;
    (void)err;
    fwrite(bytes->data, 1, bytes->size, to);
    return SVS_OK;
}

svs_code svi_file_write_bytes(const char *path, const struct svi_bytes *bytes, svs_error *err) {
    return svi_file_write(path, write_ready, (void *)bytes, err);
}

/* ---- reading */

/* Capacity for all of a plain file and one byte more, so that its end is noticed without growing; for
 * pipes, a first piece. */
static size_t first_capacity(FILE *from) {
    struct stat about;
    const bool known = fstat(fileno(from), &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
    const size_t size = known && (size_t)about.st_size < FILE_MAX ? (size_t)about.st_size : 0;
    return size + AFTER + 1 > FIRST_CAPACITY ? size + AFTER + 1 : FIRST_CAPACITY;
}

static svs_code read_whole(FILE *from, char **bytes, size_t *size, svs_error *err) {
    /* AFTER bytes of the capacity stay free for the zeros that follow the content. */
    size_t capacity = first_capacity(from);
    *bytes = svi_alloc_plain(capacity);
    *size = 0;
    while (*bytes) {
        *size += fread(*bytes + *size, 1, capacity - AFTER - *size, from);
        if (ferror(from))
            return svi_fail(err, SVS_IO, "%s", strerror(errno));
        if (feof(from)) {
            memset(*bytes + *size, 0, AFTER);
            return SVS_OK;
        }
        /* Not at the end, so the buffer is full: double it. */
        if (capacity >= FILE_MAX)
            return svi_fail(err, SVS_TOO_LARGE, "the file is larger than 2 GiB");
        char *more = svi_realloc_plain(*bytes, capacity, 2 * capacity);
        if (!more)
            break;
        *bytes = more;
        capacity *= 2;
    }
    return svi_fail_memory(err, "a model file");
}

svs_code svi_file_read(const char *path, char **bytes, size_t *size, svs_error *err) {
    *bytes = NULL;
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!from)
        return svi_fail(err, SVS_IO, "%.150s", strerror(errno));
    svs_code code = read_whole(from, bytes, size, err);
    if (from != stdin)
        fclose(from);
    return code == SVS_OK && *size == 0 ? svi_fail(err, SVS_EMPTY, "the file is empty") : code;
}
