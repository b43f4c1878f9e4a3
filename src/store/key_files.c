/* Append-only files of key records, removed as a whole.
 *
 * The list is in the order of file numbers, and each entry has the length that counts. Bytes after it, left
 * by a failed write, are truncated; if that fails too, the file is not appended to again. A new file begins
 * when the current one is long enough, with a number that no file in the directory has: bytes of an earlier
 * process are never appended to. Every listed file is open and locked (shared), because removal takes the
 * exclusive lock (state_dir.c).
 *
 * Reading verifies the check of every record. Only svi_key_files_sync syncs, and a checkpoint waits for it
 * before it lists the lengths. */
#include "store/key_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/checkpoint_file.h"
#include "store/io.h"
#include "wire/archive_file.h"

#define PIECE ((size_t)4 << 20) /* bytes of one read */

struct key_file {
    uint32_t number;
    int fd;          /* locked (shared), so that no process truncates the file */
    uint64_t length; /* bytes that count */
    bool unsynced;   /* appended to since the last sync */
};

struct svi_key_files {
    struct svi_state_dir dir; /* its own descriptor and path; no lock */
    struct key_file *file;    /* ascending by number; owned */
    int count;
    int64_t capacity;
    int current;    /* index of the file that is appended to; -1: the next append begins a new one */
    uint64_t bytes; /* of all files */
    bool new_names; /* files were begun since the last sync of the directory */
};

svi_key_files *svi_key_files_new(const struct svi_state_dir *dir, svs_error *err) {
    svi_key_files *f = svi_alloc(sizeof *f);
    if (!f) {
        svi_fail_memory(err, "the files of keys");
        return NULL;
    }
    f->current = -1;
    /* A descriptor of its own: the caller may close the directory, and its lock, before the files. */
    f->dir =
        (struct svi_state_dir){.fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), .lock = -1};
    const size_t length = strlen(dir->path) + 1;
    f->dir.path = svi_alloc(length);
    if (f->dir.path)
        memcpy(f->dir.path, dir->path, length);
    if (f->dir.fd < 0 || !f->dir.path) {
        svi_fail(err, f->dir.fd < 0 ? SVS_IO : SVS_NO_MEMORY, "cannot open the folder of keys");
        svi_key_files_free(&f);
    }
    return f;
}

void svi_key_files_free(svi_key_files **f) {
    if (!*f)
        return;
    for (int i = 0; i < (*f)->count; i++)
        if ((*f)->file[i].fd >= 0)
            close((*f)->file[i].fd);
    if ((*f)->dir.fd >= 0)
        close((*f)->dir.fd);
    svi_free((*f)->dir.path);
    svi_free((*f)->file);
    svi_free(*f);
    *f = NULL;
}

static struct key_file *files_add(svi_key_files *f) {
    if (f->count == SVI_KEY_FILES_MAX)
        return NULL;
    if (!svi_grow(&f->file, f->count, &f->capacity, 16, sizeof *f->file))
        return NULL;
    return &f->file[f->count++];
}

static struct key_file *files_find(const svi_key_files *f, uint64_t number) {
    for (int i = f->count - 1; i >= 0; i--)
        if (f->file[i].number == number)
            return &f->file[i];
    return NULL;
}

bool svi_key_files_has(const svi_key_files *f, uint64_t number) {
    return files_find(f, number);
}

static svs_code file_open(svi_key_files *f, struct key_file *k, svs_error *err) {
    char name[SVI_FILE_NAME];
    struct stat s;
    svi_state_dir_name(name, SVI_KEYS, k->number);
    k->fd = openat(f->dir.fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (k->fd < 0 && errno == ENOENT)
        return svi_fail_file(err, SVS_DAMAGED, f->dir.path, name, "is missing: a checkpoint needs it");
    if (k->fd < 0)
        return svi_fail_io(err, f->dir.path, name, "opened", errno);
    if (svi_state_dir_hold(&f->dir, name, k->fd, &s, err) != SVS_OK)
        return SVS_IO;
    /* Longer is normal: records that were appended after the checkpoint do not count. */
    if (!S_ISREG(s.st_mode) || (uint64_t)s.st_size < k->length)
        return svi_fail_file(err, SVS_DAMAGED, f->dir.path, name,
                             "has %llu bytes, but the checkpoint needs %llu", (unsigned long long)s.st_size,
                             (unsigned long long)k->length);
    return SVS_OK;
}

void svi_key_files_archive(struct svi_archive *a, svi_key_files *f) {
    int count = f->count;
    svi_archive_int(a, "files", &count, 0, SVI_KEY_FILES_MAX);
    for (int i = 0; i < count && svi_archive_ok(a); i++) {
        char key[SVI_KEY_MAX];
        struct key_file *k = svi_archive_loading(a) ? files_add(f) : &f->file[i];
        if (!k) {
            svi_archive_fail(a, SVS_NO_MEMORY, "out of memory for the key files");
            return;
        }
        int64_t number = k->number, length = (int64_t)k->length;
        svi_archive_int64(a, svi_archive_key(key, "file", i), &number, 1, UINT32_MAX);
        svi_archive_int64(a, svi_archive_key(key, "length", i), &length, 0, INT64_MAX / 4);
        if (!svi_archive_loading(a))
            continue;
        /* Set even after a failure: svi_key_files_free closes every fd of the list that is not -1. */
        *k = (struct key_file){.number = (uint32_t)number, .fd = -1, .length = (uint64_t)length};
        f->bytes += k->length;
        if (!svi_archive_ok(a) ||
            !svi_archive_check(a, i == 0 || k->number > k[-1].number, "the key files are out of order"))
            return;
        file_open(f, k, a->err);
    }
}

svs_code svi_key_files_of(svi_key_files *f, const struct svi_checkpoint *c, svs_error *err) {
    const struct svi_section *s = svi_checkpoint_find(c, SVI_KEY_FILES);
    struct svi_archive_in in;
    if (!s)
        return SVS_OK;
    svi_archive_in_begin(&in, c->bodies.data + s->offset, s->size, SVI_KEY_FILES, err);
    svi_key_files_archive(&in.archive, f);
    return svi_archive_in_end(&in);
}

/* ---- reading */

/* Adds file and byte to the error of a record. The text is copied first, because svi_fail_file writes to err.
 */
static svs_code fail_record(const svi_key_files *f, const struct key_file *k, uint64_t offset,
                            svs_error *err) {
    char name[SVI_FILE_NAME], why[SVS_ERROR_TEXT];
    snprintf(why, sizeof why, "%s", err->text);
    return svi_fail_file(err, err->code, f->dir.path, svi_state_dir_name(name, SVI_KEYS, k->number),
                         "is damaged at byte %llu: %s", (unsigned long long)offset, why);
}

static svs_code files_read_at(const svi_key_files *f, const struct key_file *k, void *to, size_t size,
                              uint64_t offset, svs_error *err) {
    char name[SVI_FILE_NAME];
    size_t got = 0;
    const int error = svi_read_at(k->fd, to, size, offset, &got);
    svi_state_dir_name(name, SVI_KEYS, k->number);
    if (error)
        return svi_fail_io(err, f->dir.path, name, "read", error);
    return got == size ? SVS_OK : svi_fail_file(err, SVS_DAMAGED, f->dir.path, name, "became shorter");
}

/* Visits the records of a file from *offset on until `budget` bytes were visited. Invariant of the loop: byte
 * 0 of `buffer` is byte `start` of the file, and the next record begins at buffer byte `at`. A record that is
 * not whole in the buffer is moved to its beginning, and reading continues after it; *offset only ever moves
 * past records that were visited. */
static svs_code visit_file(svi_key_files *f, const struct key_file *k, struct svi_bytes *buffer,
                           uint64_t *offset, uint64_t budget, svi_key_visitor *visit, void *user,
                           svs_error *err) {
    svs_code code = SVS_OK;
    uint64_t start = *offset; /* file offset of the buffer's first byte */
    const uint64_t end = budget < k->length - start ? start + budget : k->length;
    /* The budget may end inside of a record, which is still visited whole. The 4 bytes more are for its
     * length, so that `wanted` is above 0 while the length is unknown. */
    const size_t piece = budget < PIECE ? (size_t)budget + sizeof(uint32_t) : PIECE;
    size_t at = 0;
    buffer->size = 0;
    while (code == SVS_OK && start + at < end) {
        struct svi_key_record r;
        uint32_t need = 0;
        size_t length;
        const uint64_t left = k->length - start - at;
        /* A record begins with its length, in bytes, which counts these 4 too. A length too small to be
         * true is refused by svi_key_record_read, so `at` always moves on. */
        if (buffer->size - at >= sizeof need)
            memcpy(&need, buffer->data + at, sizeof need);
        if (buffer->size - at < sizeof need || buffer->size - at < need) { /* read the rest, and read ahead */
            const size_t kept = buffer->size - at, wanted = (need > piece ? need : piece) - kept;
            const size_t size = left - kept < wanted ? (size_t)(left - kept) : wanted;
            if (kept > 0) /* data is NULL before the first reservation */
                memmove(buffer->data, buffer->data + at, kept);
            start += at;
            at = 0;
            buffer->size = kept;
            /* The length is not verified yet: compared with what is left before it is reserved. */
            if (size == 0 || need > left)
                code = svi_fail(err, SVS_DAMAGED, "the record of a key is truncated");
            else if (svi_bytes_reserve(buffer, size) != SVS_OK)
                return svi_fail_memory(err, "the records of keys");
            else if ((code = files_read_at(f, k, buffer->data + kept, size, start + kept, err)) != SVS_OK)
                return code;
            buffer->size += size;
            if (code == SVS_OK)
                continue;
        }
        if (code == SVS_OK)
            code = svi_key_record_read(buffer->data + at, buffer->size - at, &r, &length, err);
        if (code != SVS_OK)
            return fail_record(f, k, start + at, err);
        const struct svi_key_place place = {k->number, (uint32_t)length, start + at};
        code = visit(user, &r, &place, err);
        at += length;
        *offset = start + at;
    }
    return code;
}

svs_code svi_key_files_visit(svi_key_files *f, svi_key_visitor *visit, void *user, svs_error *err) {
    struct svi_bytes buffer = {0};
    svs_code code =
        svi_bytes_reserve(&buffer, PIECE) == SVS_OK ? SVS_OK : svi_fail_memory(err, "the records of keys");
    for (int i = 0; i < f->count && code == SVS_OK; i++) {
        uint64_t offset = 0;
        const struct key_file k = f->file[i];
        code = visit_file(f, &k, &buffer, &offset, UINT64_MAX, visit, user, err);
    }
    svi_bytes_clear(&buffer);
    return code;
}

svs_code svi_key_files_visit_oldest(svi_key_files *f, uint64_t *offset, uint64_t budget,
                                    svi_key_visitor *visit, void *user, svs_error *err) {
    struct svi_bytes buffer = {0};
    const struct key_file k = f->file[0]; /* a copy: the visitor may append, and the list may move */
    svs_code code = visit_file(f, &k, &buffer, offset, budget, visit, user, err);
    svi_bytes_clear(&buffer);
    return code;
}

svs_code svi_key_files_read(svi_key_files *f, const struct svi_key_place *at, struct svi_bytes *buffer,
                            struct svi_key_record *r, svs_error *err) {
    const struct key_file *k = files_find(f, at->file);
    size_t length;
    if (!k || at->offset + at->size > k->length)
        return svi_fail(err, SVS_IO, "the state of a key is at the wrong position");
    buffer->size = 0;
    if (svi_bytes_reserve(buffer, at->size) != SVS_OK)
        return svi_fail_memory(err, "the record of a key");
    svs_code code = files_read_at(f, k, buffer->data, at->size, at->offset, err);
    buffer->size = at->size;
    if (code == SVS_OK && svi_key_record_read(buffer->data, at->size, r, &length, err) != SVS_OK)
        code = fail_record(f, k, at->offset, err);
    return code;
}

bool svi_key_files_extent(const svi_key_files *f, int i, struct svi_key_extent *part) {
    if (i >= f->count)
        return false;
    *part = (struct svi_key_extent){f->file[i].number, f->file[i].length};
    return true;
}

svs_code svi_key_files_copy(const svi_key_files *f, int i, uint64_t offset, void *to, size_t size,
                            svs_error *err) {
    return files_read_at(f, &f->file[i], to, size, offset, err);
}

/* ---- writing */

/* Begins a file with a number above every listed one and every one in the directory: a checkpoint may still
 * refer to a file that this list does not have. */
static svs_code files_begin(svi_key_files *f, svs_error *err) {
    struct svi_state_dir_ends there;
    char name[SVI_FILE_NAME];
    const svs_code code = svi_state_dir_find(&f->dir, SVI_KEYS, &there, err);
    const uint64_t named = svi_key_files_newest(f), last = there.last > named ? there.last : named;
    if (code != SVS_OK)
        return code;
    struct key_file *k = files_add(f);
    if (!k)
        return svi_fail(err, SVS_NO_MEMORY, "there are too many key files");
    *k = (struct key_file){.number = (uint32_t)last + 1};
    svi_state_dir_name(name, SVI_KEYS, k->number);
    k->fd = openat(f->dir.fd, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->fd < 0) {
        const int error = errno;
        f->count--;
        return svi_fail_write(err, f->dir.path, name, 0, "opened", error);
    }
    (void)flock(k->fd, LOCK_SH | LOCK_NB); /* cannot be taken: nobody else knows this file yet */
    f->current = f->count - 1;
    f->new_names = true;
    return SVS_OK;
}

svs_code svi_key_files_append(svi_key_files *f, const struct svi_bytes *records, uint64_t max_length,
                              struct svi_key_place *at, svs_error *err) {
    char name[SVI_FILE_NAME];
    if (f->current < 0 || f->file[f->current].length >= max_length) {
        const svs_code code = files_begin(f, err);
        if (code != SVS_OK)
            return code;
    }
    struct key_file *k = &f->file[f->current];
    int error = svi_write_all(k->fd, records->data, records->size);
    svi_state_dir_name(name, SVI_KEYS, k->number);
    if (error) { /* part of it may be in the file, and the next record must begin at k->length */
        if (svi_truncate(k->fd, k->length) != 0)
            f->current = -1;
        return svi_fail_write(err, f->dir.path, name, records->size, "written", error);
    }
    *at = (struct svi_key_place){.file = k->number, .offset = k->length};
    k->length += records->size;
    k->unsynced = true;
    f->bytes += records->size;
    return SVS_OK;
}

svs_code svi_key_files_sync(svi_key_files *f, svs_error *err) {
    char name[SVI_FILE_NAME];
    for (int i = 0; i < f->count; i++) {
        struct key_file *k = &f->file[i];
        if (!k->unsynced)
            continue;
        const int error = svi_sync_file(k->fd);
        if (error)
            return svi_fail_io(err, f->dir.path, svi_state_dir_name(name, SVI_KEYS, k->number), "synced",
                               error);
        k->unsynced = false;
    }
    /* Files before their names: a name on disk then never refers to content that is not. */
    const int error = f->new_names ? svi_sync_file(f->dir.fd) : 0;
    if (error)
        return svi_fail_io(err, f->dir.path, "", "made durable", error);
    f->new_names = false;
    return SVS_OK;
}

uint64_t svi_key_files_bytes(const svi_key_files *f) {
    return f->bytes;
}

uint32_t svi_key_files_newest(const svi_key_files *f) {
    return f->count ? f->file[f->count - 1].number : 0;
}

uint32_t svi_key_files_oldest(const svi_key_files *f, uint64_t *length) {
    if (f->count == 0 || f->current == 0)
        return 0;
    *length = f->file[0].length;
    return f->file[0].number;
}

void svi_key_files_leave_oldest(svi_key_files *f) {
    if (f->file[0].fd >= 0)
        close(f->file[0].fd);
    f->bytes -= f->file[0].length;
    memmove(f->file, f->file + 1, (size_t)--f->count * sizeof *f->file);
    f->current -= f->current >= 0; /* the indices have moved by one; -1 stays */
}
