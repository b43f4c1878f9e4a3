#define XXH_STATIC_LINKING_ONLY  /* the hash state lives on the stack: all memory goes through base/alloc.h  \
                                  */
#include "store/read_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/io.h"

#define SECTOR 4096 /* smallest unit that fails to read: a page, as the page cache sees the disk */

static void reset_buffer(struct svi_read_buffer *b, const char *name) {
    svi_read_buffer_close(b);
    b->start = b->size = b->filled = b->hidden = 0;
    b->memory = NULL;
    snprintf(b->name, sizeof b->name, "%s", name);
}

svs_code svi_read_buffer_open(struct svi_read_buffer *b, const struct svi_state_dir *dir, const char *name,
                              svs_error *err) {
    struct stat s;
    reset_buffer(b, name);
    b->dir = dir->path;
    /* O_NONBLOCK: opening a FIFO of this name must not wait for a writer; it is refused below. */
    b->fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (b->fd < 0)
        return svi_fail_io(err, dir->path, name, "opened", errno);
    if (svi_state_dir_hold(dir, name, b->fd, &s, err) != SVS_OK)
        return SVS_IO;
    /* The size is that of now: records appended later by the process that writes are not read. */
    if (!S_ISREG(s.st_mode))
        return svi_fail_file(err, SVS_IO, dir->path, name, "is not a regular file");
    b->size = (uint64_t)s.st_size;
    return SVS_OK;
}

void svi_read_buffer_memory(struct svi_read_buffer *b, const uint8_t *bytes, size_t size, const char *name) {
    reset_buffer(b, name);
    b->memory = bytes;
    b->size = size;
}

void svi_read_buffer_close(struct svi_read_buffer *b) {
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

void svi_read_buffer_clear(struct svi_read_buffer *b) {
    svi_read_buffer_close(b);
    svi_free(b->buffer);
    *b = (struct svi_read_buffer){.fd = -1};
}

/* Makes `offset` the first byte of the buffer, keeps what is filled from there on, and reserves `need` bytes.
 * An offset outside of the buffer (also before it) empties it. */
static svs_code reserve_buffer(struct svi_read_buffer *b, uint64_t offset, size_t need, svs_error *err) {
    size_t skip = (size_t)(offset - b->start);
    bool kept = offset >= b->start && offset - b->start < b->filled;
    if (kept)
        memmove(b->buffer, b->buffer + skip, b->filled - skip);
    b->filled = kept ? b->filled - skip : 0;
    b->start = offset;
    if (need <= b->capacity)
        return SVS_OK;
    void *grown = svi_realloc(b->buffer, b->filled, need + SVI_READ_BUFFER);
    if (!grown)
        return svi_fail_memory(err, "the buffer for reading a file");
    b->buffer = grown;
    b->capacity = need + SVI_READ_BUFFER;
    return SVS_OK;
}

/* Fills the rest of the sector in which reading failed with zeros, so that reading can continue at the next
 * one. Zeros never pass for a record, because no check fits them. */
static void skip_sector(struct svi_read_buffer *b) {
    const uint64_t at = b->start + b->filled;
    size_t n = SECTOR - (size_t)(at % SECTOR), capacity = b->capacity - b->filled;
    if (n > capacity)
        n = capacity;
    if (n > b->size - at)
        n = (size_t)(b->size - at);
    memset(b->buffer + b->filled, 0, n);
    b->filled += n;
    b->hidden += n;
}

/* Reads until the buffer has `need` bytes. It asks for its whole capacity, so the next calls find their
 * bytes. */
static svs_code fill_buffer(struct svi_read_buffer *b, size_t need, svs_error *err) {
    while (b->filled < need) {
        size_t got = 0;
        const int error =
            svi_read_at(b->fd, b->buffer + b->filled, b->capacity - b->filled, b->start + b->filled, &got);
        b->filled += got;
        if (!error && b->filled < need)
            return svi_fail_file(err, SVS_IO, b->dir, b->name, "became shorter while it was read");
        if (!error || b->filled >= need) /* an error after the needed bytes matters only if they are needed */
            return SVS_OK;
        if (error != EIO)
            return svi_fail_io(err, b->dir, b->name, "read", error);
        if (!b->lossy)
            return svi_fail_file(err, SVS_DAMAGED, b->dir, b->name, "cannot be read at byte %llu: %s%s%s",
                                 (unsigned long long)(b->start + b->filled), svi_errno_text(error),
                                 b->advice ? "; " : "", b->advice ? b->advice : "");
        skip_sector(b);
    }
    return SVS_OK;
}

svs_code svi_read_buffer_at(struct svi_read_buffer *b, uint64_t offset, size_t need, const uint8_t **at,
                            svs_error *err) {
    if (b->memory) {
        *at = b->memory + offset;
        return SVS_OK;
    }
    if (offset < b->start || offset + need > b->start + b->filled) {
        if (reserve_buffer(b, offset, need, err) != SVS_OK)
            return SVS_NO_MEMORY;
        svs_code code = fill_buffer(b, need, err);
        if (code != SVS_OK)
            return code;
    }
    *at = b->buffer + (offset - b->start);
    return SVS_OK;
}

svs_code svi_read_buffer_check(struct svi_read_buffer *b, uint64_t offset, uint64_t size, uint64_t seed,
                               uint64_t *check, svs_error *err) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, seed);
    for (uint64_t done = 0; done < size;) {
        const uint8_t *at;
        size_t n = size - done < SVI_READ_BUFFER ? (size_t)(size - done) : SVI_READ_BUFFER;
        svs_code code = svi_read_buffer_at(b, offset + done, n, &at, err);
        if (code != SVS_OK)
            return code;
        XXH3_64bits_update(&state, at, n);
        done += n;
    }
    *check = XXH3_64bits_digest(&state);
    return SVS_OK;
}
