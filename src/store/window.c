#define XXH_STATIC_LINKING_ONLY /* the state on the stack: no memory beside the gate */
#include "store/window.h"

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

#define SECTOR 4096 /* what a disk loses at a time, at least as a page cache sees it */

static void reset(struct svi_window *w, const char *name) {
    svi_window_close(w);
    w->start = w->size = w->filled = w->hidden = 0;
    w->memory = NULL;
    snprintf(w->name, sizeof w->name, "%s", name);
}

svs_code svi_window_open(struct svi_window *w, const struct svi_folder *f, const char *name, svs_error *err) {
    struct stat s;
    reset(w, name);
    w->folder = f;
    w->fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (w->fd < 0)
        return svi_fail_io(err, f, name, "opened", errno);
    /* Locked, and by its name still: nothing of it has gone, nor will. */
    if ((flock(w->fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
        faccessat(f->fd, name, F_OK, 0) != 0)
        return svi_fail_file(err, SVS_IO, f, name, "is just being removed by another process");
    if (fstat(w->fd, &s) != 0)
        return svi_fail_io(err, f, name, "read", errno);
    if (!S_ISREG(s.st_mode))
        return svi_fail_file(err, SVS_IO, f, name, "is not a regular file");
    w->size = (uint64_t)s.st_size;
    return SVS_OK;
}

void svi_window_memory(struct svi_window *w, const uint8_t *bytes, size_t size, const char *name) {
    reset(w, name);
    w->memory = bytes;
    w->size = size;
}

void svi_window_close(struct svi_window *w) {
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

void svi_window_clear(struct svi_window *w) {
    svi_window_close(w);
    svi_free(w->room);
    *w = (struct svi_window){.fd = -1};
}

/* What is in the buffer from `offset` on moves to its beginning. */
static svs_code make_room(struct svi_window *w, uint64_t offset, size_t need, svs_error *err) {
    size_t skip = (size_t)(offset - w->start);
    bool kept = offset >= w->start && offset - w->start < w->filled;
    if (kept)
        memmove(w->room, w->room + skip, w->filled - skip);
    w->filled = kept ? w->filled - skip : 0;
    w->start = offset;
    if (need <= w->capacity)
        return SVS_OK;
    void *grown = svi_realloc(w->room, w->filled, need + SVI_WINDOW);
    if (!grown)
        return svi_fail_memory(err, "the buffer for reading a file");
    w->room = grown;
    w->capacity = need + SVI_WINDOW;
    return SVS_OK;
}

/* Zeros as far as the sector goes in which reading failed. */
static void skip_sector(struct svi_window *w) {
    const uint64_t at = w->start + w->filled;
    size_t n = SECTOR - (size_t)(at % SECTOR), room = w->capacity - w->filled;
    if (n > room)
        n = room;
    if (n > w->size - at)
        n = (size_t)(w->size - at);
    memset(w->room + w->filled, 0, n);
    w->filled += n;
    w->hidden += n;
}

/* Reads on until `need` bytes are there. */
static svs_code fill(struct svi_window *w, size_t need, svs_error *err) {
    while (w->filled < need) {
        size_t got = 0;
        const int error =
            svi_read_at(w->fd, w->room + w->filled, w->capacity - w->filled, w->start + w->filled, &got);
        w->filled += got;
        if (!error && w->filled < need)
            return svi_fail_file(err, SVS_IO, w->folder, w->name, "became shorter while it was read");
        if (!error || w->filled >= need)
            return SVS_OK;
        if (error != EIO)
            return svi_fail_io(err, w->folder, w->name, "read", error);
        if (!w->lossy)
            return svi_fail_file(err, SVS_DAMAGED, w->folder, w->name, "cannot be read at byte %llu: %s%s%s",
                                 (unsigned long long)(w->start + w->filled), svi_errno_text(error),
                                 w->advice ? "; " : "", w->advice ? w->advice : "");
        skip_sector(w);
    }
    return SVS_OK;
}

svs_code svi_window_at(struct svi_window *w, uint64_t offset, size_t need, const uint8_t **at,
                       svs_error *err) {
    if (w->memory) {
        *at = w->memory + offset;
        return SVS_OK;
    }
    if (offset < w->start || offset + need > w->start + w->filled) {
        if (make_room(w, offset, need, err) != SVS_OK)
            return SVS_NO_MEMORY;
        svs_code code = fill(w, need, err);
        if (code != SVS_OK)
            return code;
    }
    *at = w->room + (offset - w->start);
    return SVS_OK;
}

svs_code svi_window_check(struct svi_window *w, uint64_t offset, uint64_t size, uint64_t seed,
                          uint64_t *check, svs_error *err) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, seed);
    for (uint64_t done = 0; done < size;) {
        const uint8_t *at;
        size_t n = size - done < SVI_WINDOW ? (size_t)(size - done) : SVI_WINDOW;
        svs_code code = svi_window_at(w, offset + done, n, &at, err);
        if (code != SVS_OK)
            return code;
        XXH3_64bits_update(&state, at, n);
        done += n;
    }
    *check = XXH3_64bits_digest(&state);
    return SVS_OK;
}
