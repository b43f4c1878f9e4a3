/* The bytes of a file or pipe. svi_input_fill does at most one read, so it never blocks after a poll.
 *
 * The first bytes decide the rest (read_once): gzip is inflated from there on, another packed or binary
 * format is refused with the command that converts it, anything else is text. A single byte that may begin
 * gzip decides nothing; the next read does.
 *
 * Invariants: buffer[at .. end) holds the bytes not yet taken; inflated output is appended at `end`, packed
 * input waits in `packed`. One call inflates one chunk; when it filled the chunk, inflate may hold more
 * (svi_input_pending), and nothing is read until that is drained.
 *
 * Order: files that are refused, opening, gzip, reading. */
#include "data/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"

#define GZIP_FIRST  0x1f
#define GZIP_SECOND 0x8b
#define NAME_SHOWN  40 /* longest name that is shown in an error text */
#define BZIP2_PLACE 4  /* offset of the first block's magic number */
#define BZIP2_BLOCK "1AY&SY"
#define ZIP_HEAD    2048 /* leading bytes in which a spreadsheet names its parts */

/* ---- files that are not text: refused with the command that converts them */

/* Binary formats that users pass by mistake, recognised by their first bytes, each with the command that
 * converts it. */
static const struct foreign_kind {
    const char *magic;
    size_t length;
    const char *what, *command; /* %s: its name */
} foreign[] = {
    {"\xfd"
     "7zXZ\0",
     6, "is packed with xz", "xz -dk %s"},
    {"\x28\xb5\x2f\xfd", 4, "is packed with zstd", "zstd -d %s"},
    {"BZh", 3, "is packed with bzip2", "bzip2 -dk %s"},
    {"PK\3\4", 4, "is a zip archive", "unzip %s"},
    {"PAR1\x15", 5, "is a Parquet file",
     "python3 -c 'import pandas, sys; print(pandas.read_parquet(sys.argv[1]).to_csv(index=False))' %s"},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8, "is an Excel file", "libreoffice --convert-to csv %s"}};

static bool foreign_begins(const struct foreign_kind *f, const unsigned char *first, size_t count) {
    if (count < f->length || memcmp(first, f->magic, f->length) != 0)
        return false;
    /* BZh may also begin a line of text, so the magic number of the first block must follow. */
    return strcmp(f->magic, "BZh") != 0 ||
           (count >= BZIP2_PLACE + strlen(BZIP2_BLOCK) &&
            memcmp(first + BZIP2_PLACE, BZIP2_BLOCK, strlen(BZIP2_BLOCK)) == 0);
}

/* A spreadsheet is a zip archive whose first entries have well-known names. */
static bool foreign_is_sheet(const unsigned char *first, size_t count) {
    const size_t look = count < ZIP_HEAD ? count : ZIP_HEAD;
    return memmem(first, look, "[Content_Types].xml", 19) || memmem(first, look, "opendocument", 12);
}

/* Refuses a binary file (SVS_SETTING) with its format and the command that converts it. `first`: the first
 * bytes of the file, `count` of them; `file`: its name, NULL for standard input. */
static svs_code foreign_refuse(const char *file, const unsigned char *first, size_t count, svs_error *err) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        char command[2 * SVS_ERROR_TEXT], name[SVS_ERROR_TEXT / 2];
        const struct foreign_kind *f = &foreign[i];
        if (!foreign_begins(f, first, count))
            continue;
        /* The command names the file, unless its name is long or it is standard input. */
        const bool sheet = strstr(f->what, "zip") && foreign_is_sheet(first, count);
        svi_escape(name, sizeof name, file ? file : "", file ? strlen(file) : 0);
        snprintf(command, sizeof command, sheet ? "libreoffice --convert-to csv %s" : f->command,
                 name[0] == '\0' || strlen(name) > NAME_SHOWN ? "FILE" : name);
        return svi_fail(err, SVS_SETTING, "the file %s, not text: convert it with %s",
                        sheet ? "is a spreadsheet" : f->what, command);
    }
    return SVS_OK;
}

/* ---- the bytes of a file or pipe */

static svs_code fail_io(const struct svi_input *s, const char *what, svs_error *err) {
    return svi_fail(err, SVS_IO, "cannot %s '%s': %s", what, s->name, strerror(errno));
}

/* Standard input is not opened here, so it is not closed either (`opened`). */
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
    /* open succeeds on a directory; only read would fail, with a text that helps less. */
    if (S_ISDIR(about.st_mode))
        return svi_fail(err, SVS_IO, "cannot read '%s': it is a directory", s->name);
    s->size = S_ISREG(about.st_mode) ? (int64_t)about.st_size : -1;
    /* Pages that short lines never reach take no memory. */
    s->buffer = svi_alloc_plain(s->capacity + SVI_INPUT_PAD);
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

/* The bytes read so far are gzip: they move from the buffer to inflate's input. */
static svs_code start_gzip(struct svi_input *s, svs_error *err) {
    s->packed = svi_alloc(SVI_INPUT_CHUNK);
    z_stream *z = svi_alloc(sizeof *z);
    if (z) {
        /* zlib's memory comes from the program's allocator too, where tests can make it fail. */
        z->zalloc = zlib_alloc;
        z->zfree = zlib_free;
    }
    /* 15 + 16: the largest window, and a gzip header rather than a zlib one. */
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

/* Inflates at most one chunk. After a member another one may follow, or the zeros that pad the last block of
 * a tape; anything else is refused. */
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
    /* Z_BUF_ERROR only means that inflate could not progress without more input or output. */
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return svi_fail(err, SVS_IO, "'%s': damaged gzip data (%s)", s->name,
                        s->z->msg ? s->z->msg : "unknown reason");
    s->between = result == Z_STREAM_END;
    return SVS_OK;
}

bool svi_input_pending(const struct svi_input *s) {
    if (s->packing != SVI_PACKING_GZIP)
        return false;
    /* Output that filled the chunk exactly may have left more inside inflate. */
    return s->z->avail_in > 0 || (s->z->avail_out == 0 && !s->between);
}

static svs_code read_once(struct svi_input *s, svs_error *err) {
    bool gzip = s->packing == SVI_PACKING_GZIP;
    void *to = gzip ? (void *)s->packed : s->buffer + s->end;
    ssize_t got = read(s->fd, to, SVI_INPUT_CHUNK);
    /* A signal or an empty nonblocking descriptor is no error: the caller polls again. */
    if (got < 0)
        return errno == EINTR || errno == EAGAIN ? SVS_OK : fail_io(s, "read", err);
    s->taken += got;
    s->ended = got == 0;
    if (gzip) {
        s->z->next_in = s->packed;
        s->z->avail_in = (unsigned)got;
        /* Only the end of a member is a valid end of the file. */
        if (s->ended && !s->between)
            return svi_fail(err, SVS_IO, "'%s': the gzip data end too early; the file is truncated", s->name);
        return SVS_OK;
    }
    s->end += (size_t)got;
    /* Until the format is known the buffer holds the beginning of the file, since no line is cut before. */
    const unsigned char *first = (const unsigned char *)s->buffer + s->at;
    size_t count = s->packing == SVI_PACKING_UNKNOWN ? s->end - s->at : 0;
    if (count >= 2 && first[0] == GZIP_FIRST && first[1] == GZIP_SECOND)
        return start_gzip(s, err);
    if (count >= 2 && foreign_refuse(s->fd == STDIN_FILENO ? NULL : s->name, first, count, err) != SVS_OK)
        return err->code;
    if (count > 1 || (count == 1 && (first[0] != GZIP_FIRST || s->ended)))
        s->packing = SVI_PACKING_NONE;
    return SVS_OK;
}

svs_code svi_input_fill(struct svi_input *s, svs_error *err) {
    /* Makes space for a chunk after `end`: at most the longest line is left, and capacity covers both. */
    if (s->at > 0)
        memmove(s->buffer, s->buffer + s->at, s->end - s->at);
    s->end -= s->at;
    s->at = 0;
    svs_code code = svi_input_pending(s) || s->ended ? SVS_OK : read_once(s, err);
    return code == SVS_OK && svi_input_pending(s) ? input_unpack(s, err) : code;
}
