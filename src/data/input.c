#include "data/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/foreign.h"

#define GZIP_FIRST  0x1f
#define GZIP_SECOND 0x8b

static svs_code fail_io(const struct svi_input *s, const char *what, svs_error *err) {
    return svi_fail(err, SVS_IO, "cannot %s '%s': %s", what, s->name, strerror(errno));
}

static svs_code open_file(struct svi_input *s, const char *path, svs_error *err) {
    if (strcmp(path, "-") == 0) {
        s->name = "standard input";
        s->fd = STDIN_FILENO;
    } else {
        s->fd = open(path, O_RDONLY | O_CLOEXEC);
        s->opened = s->fd >= 0;
    }
    struct stat about;
    if (s->fd < 0 || fstat(s->fd, &about) != 0)
        return fail_io(s, "open", err);
    if (S_ISDIR(about.st_mode))
        return svi_fail(err, SVS_IO, "cannot read '%s': it is a directory", s->name);
    s->size = S_ISREG(about.st_mode) ? (int64_t)about.st_size : -1;
    s->buffer = svi_alloc_plain(s->capacity + SVI_INPUT_PAD); /* of which short lines touch little */
    return s->buffer ? SVS_OK : svi_fail_memory(err, "the line buffer");
}

svs_code svi_input_open(struct svi_input *s, const char *path, size_t longest, svs_error *err) {
    *s = (struct svi_input){.fd = -1, .name = path, .size = -1, .capacity = longest + SVI_INPUT_CHUNK};
    svs_code code = open_file(s, path, err);
    if (code != SVS_OK)
        svi_input_close(s);
    return code;
}

void svi_input_close(struct svi_input *s) {
    if (s->opened)
        close(s->fd);
    if (s->z)
        inflateEnd(s->z);
    svi_free(s->z);
    svi_free(s->packed);
    svi_free(s->buffer);
    *s = (struct svi_input){.fd = -1, .ended = true};
}

static void *zlib_alloc(void *unused, unsigned count, unsigned size) {
    (void)unused;
    return svi_alloc_array(count, size);
}

static void zlib_free(void *unused, void *block) {
    (void)unused;
    svi_free(block);
}

/* The bytes read so far turn out to be packed: they move to the other side of inflate. */
static svs_code start_gzip(struct svi_input *s, svs_error *err) {
    s->packed = svi_alloc(SVI_INPUT_CHUNK);
    z_stream *z = svi_alloc(sizeof *z);
    if (z) {
        z->zalloc = zlib_alloc;
        z->zfree = zlib_free;
    }
    if (!z || !s->packed || inflateInit2(z, 15 + 16) != Z_OK) {
        svi_free(z);
        return svi_fail_memory(err, "unpacking gzip");
    }
    s->z = z;
    z->next_in = s->packed;
    z->avail_in = (unsigned)(s->end - s->at);
    memcpy(s->packed, s->buffer + s->at, s->end - s->at);
    s->at = s->end = 0;
    s->packing = SVI_PACKING_GZIP;
    return SVS_OK;
}

/* A member is followed by another one, or by the zeros that fill up the last block of a tape. */
static svs_code input_unpack(struct svi_input *s, svs_error *err) {
    if (s->between && s->z->next_in[0] == 0) {
        s->z->avail_in = 0;
        return SVS_OK;
    }
    if (s->between && (s->z->next_in[0] != GZIP_FIRST || inflateReset(s->z) != Z_OK))
        return svi_fail(err, SVS_IO, "'%s': the gzip data are followed by bytes that are not gzip", s->name);
    s->between = false;
    s->z->next_out = (unsigned char *)s->buffer + s->end;
    s->z->avail_out = (unsigned)SVI_INPUT_CHUNK;
    int result = inflate(s->z, Z_NO_FLUSH);
    s->end += SVI_INPUT_CHUNK - s->z->avail_out;
    if (result == Z_MEM_ERROR)
        return svi_fail_memory(err, "unpacking gzip");
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return svi_fail(err, SVS_IO, "'%s': damaged gzip data (%s)", s->name,
                        s->z->msg ? s->z->msg : "no reason known");
    s->between = result == Z_STREAM_END;
    return SVS_OK;
}

bool svi_input_pending(const struct svi_input *s) {
    if (s->packing != SVI_PACKING_GZIP)
        return false;
    /* Output that filled its room exactly may have left more inside inflate. */
    return s->z->avail_in > 0 || (s->z->avail_out == 0 && !s->between);
}

static svs_code read_once(struct svi_input *s, svs_error *err) {
    bool gzip = s->packing == SVI_PACKING_GZIP;
    void *to = gzip ? (void *)s->packed : s->buffer + s->end;
    ssize_t got = read(s->fd, to, SVI_INPUT_CHUNK);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN ? SVS_OK : fail_io(s, "read", err);
    s->taken += got;
    s->ended = got == 0;
    if (gzip) {
        s->z->next_in = s->packed;
        s->z->avail_in = (unsigned)got;
        if (s->ended && !s->between)
            return svi_fail(err, SVS_IO, "'%s': the gzip data end too early; the file is cut", s->name);
        return SVS_OK;
    }
    s->end += (size_t)got;
    const unsigned char *first = (const unsigned char *)s->buffer + s->at;
    size_t count = s->packing == SVI_PACKING_UNKNOWN ? s->end - s->at : 0;
    if (count >= 2 && first[0] == GZIP_FIRST && first[1] == GZIP_SECOND)
        return start_gzip(s, err);
    if (count >= 2 && svi_foreign_refuse(s->fd == STDIN_FILENO ? NULL : s->name, first, count, err) != SVS_OK)
        return err->code;
    if (count > 1 || (count == 1 && (first[0] != GZIP_FIRST || s->ended)))
        s->packing = SVI_PACKING_NONE;
    return SVS_OK;
}

svs_code svi_input_fill(struct svi_input *s, svs_error *err) {
    if (s->at > 0)
        memmove(s->buffer, s->buffer + s->at, s->end - s->at);
    s->end -= s->at;
    s->at = 0;
    svs_code code = svi_input_pending(s) || s->ended ? SVS_OK : read_once(s, err);
    return code == SVS_OK && svi_input_pending(s) ? input_unpack(s, err) : code;
}
