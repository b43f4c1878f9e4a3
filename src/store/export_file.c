/* A state as one stream of bytes: writing, then reading.
 *
 * The stream may come from anywhere, so nothing in it is believed before its check. An object is
 * first read until it is whole; a limit on its size bounds that. Then its check is compared, which
 * continues that of the object before it. Only then are its items looked at. A stream that is
 * truncated, has a bit turned, or ends without the end is refused, with the byte at which that
 * shows. So is one with a piece left out, repeated or moved. */
#include "store/export_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/fail.h"
#include "store/checksum.h"
#include "store/io.h"
#include "svmstream/svmstream.h"

#define FORMAT     "svmstream-state"
#define ITEMS      4
#define KEYS       "keys"
#define CHECKPOINT "checkpoint"
#define END        "end"
#define HEADER_MAX 512
#define OBJECT_MAX (SVI_EXPORT_PIECE + HEADER_MAX)
#define NAME       "the state"
#define READ_SIZE  65536

/* ---- writing */

static svs_code export_file_write(struct svi_export_writer *w, struct svi_pack *p, svs_error *err) {
    w->check = svi_check_append(p, 0, w->check);
    if (svi_pack_end(p) != SVS_OK)
        return svi_fail_memory(err, "a piece of the state");
    const int error = svi_write_all(w->fd, w->object.data, w->object.size);
    if (error)
        return svi_fail_write(err, NULL, "standard output", w->object.size, "written", error);
    w->bytes += (int64_t)w->object.size;
    w->object.size = 0;
    return SVS_OK;
}

svs_code svi_export_writer_begin(struct svi_export_writer *w, svs_error *err) {
    struct svi_pack p;
    svi_pack_begin(&p, &w->object);
    svi_pack_map(&p, 4);
    svi_put_text(&p, "format", FORMAT);
    svi_put_uint(&p, "v", SVI_STATE_LAYOUT);
    svi_put_text(&p, "program", SVS_VERSION);
    svi_pack_key(&p, "check");
    return export_file_write(w, &p, err);
}

static svs_code export_file_put_piece(struct svi_export_writer *w, const char *kind, uint64_t number,
                                      const void *bytes, size_t size, svs_error *err) {
    struct svi_pack p;
    svi_pack_begin(&p, &w->object);
    svi_pack_array(&p, ITEMS);
    svi_pack_text(&p, kind);
    svi_pack_uint(&p, number);
    svi_pack_bin(&p, bytes, size);
    w->pieces++;
    return export_file_write(w, &p, err);
}

svs_code svi_export_writer_put(struct svi_export_writer *w, const char *kind, uint64_t number,
                               const void *bytes, size_t size, svs_error *err) {
    for (size_t done = 0; done < size; done += SVI_EXPORT_PIECE) {
        const size_t n = size - done < SVI_EXPORT_PIECE ? size - done : SVI_EXPORT_PIECE;
        SVI_TRY(export_file_put_piece(w, kind, number, (const uint8_t *)bytes + done, n, err));
    }
    return SVS_OK;
}

svs_code svi_export_writer_end(struct svi_export_writer *w, svs_error *err) {
    return export_file_put_piece(w, END, w->pieces, "", 0, err);
}

/* ---- reading */

static svs_code export_file_damaged(const struct svi_export_reader *r, const char *what, svs_error *err) {
    return svi_fail_file(err, SVS_DAMAGED, NULL, NAME, "is damaged at byte %llu: %s",
                         (unsigned long long)(r->start + r->at), what);
}

/* Reads on. What was parsed leaves the buffer first, so that it holds one object and one read at most. */
static svs_code export_file_fill(struct svi_export_reader *r, svs_error *err) {
    ssize_t n;
    if (r->at > 0) {
        memmove(r->buffer.data, r->buffer.data + r->at, r->buffer.size - r->at);
        r->buffer.size -= r->at;
        r->start += r->at;
        r->at = 0;
    }
    if (svi_bytes_reserve(&r->buffer, READ_SIZE) != SVS_OK)
        return svi_fail_memory(err, "a piece of the state");
    while ((n = read(r->fd, r->buffer.data + r->buffer.size, READ_SIZE)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        return svi_fail_io(err, NULL, NAME, "read", errno);
    r->buffer.size += (size_t)n;
    r->ended = n == 0;
    return SVS_OK;
}

/* Makes the next object whole in the buffer; *end: its end. */
static svs_code export_file_object(struct svi_export_reader *r, size_t largest, const uint8_t **end,
                                   svs_error *err) {
    for (;;) {
        const uint8_t *after = r->buffer.size > 0 ? r->buffer.data + r->at : NULL;
        const size_t left = r->buffer.size - r->at;
        svs_code code = left == 0 ? SVS_TRUNCATED : svi_walk(&after, r->buffer.data + r->buffer.size, 1);
        if (code == SVS_OK) {
            *end = after;
            return SVS_OK;
        }
        if (code != SVS_TRUNCATED || left > largest)
            return export_file_damaged(r, "a piece of the state is invalid", err);
        if (r->ended)
            return export_file_damaged(r, "it ends too early", err);
        SVI_TRY(export_file_fill(r, err));
    }
}

svs_code svi_export_reader_begin(struct svi_export_reader *r, svs_error *err) {
    struct svi_header h;
    const uint8_t *end;
    SVI_TRY(export_file_fill(r, err));
    if (r->buffer.size == 0)
        return svi_fail(err, SVS_EMPTY, "standard input is empty: give a state that `state export` wrote");
    const svs_code code = export_file_object(r, HEADER_MAX, &end, err);
    if (code != SVS_OK && code != SVS_DAMAGED)
        return code;
    if (code != SVS_OK ||
        !svi_header_open(&h, r->buffer.data, (size_t)(end - r->buffer.data), NULL, 0, NULL) ||
        strcmp(h.format, FORMAT) != 0)
        return svi_fail(err, SVS_DAMAGED, "this is not a state that `state export` wrote");
    switch (svi_header_check(&h, FORMAT, 0, &r->check)) {
    case SVI_HEADER_SOUND:
        r->at = h.size;
        return SVS_OK;
    case SVI_HEADER_LAYOUT:
        return svi_fail_layout(err, NULL, NAME, h.v);
    default:
        return export_file_damaged(r, "the checksum of the header is wrong", err);
    }
}

/* After the end nothing may follow. */
static svs_code export_file_finish(struct svi_export_reader *r, svs_error *err) {
    while (!r->ended && r->at == r->buffer.size)
        SVI_TRY(export_file_fill(r, err));
    return r->at == r->buffer.size ? SVS_OK : export_file_damaged(r, "bytes follow the end", err);
}

svs_code svi_export_reader_next(struct svi_export_reader *r, struct svi_export_piece *piece, svs_error *err) {
    struct svi_item array, item[ITEMS];
    const uint8_t *end;
    SVI_TRY(export_file_object(r, OBJECT_MAX, &end, err));
    const uint8_t *begin = r->buffer.data + r->at, *at = svi_item_read(begin, &array);
    if (array.type != SVI_ARRAY || array.length != ITEMS || end - begin <= SVI_CHECK_SIZE)
        return export_file_damaged(r, "a piece of the state is invalid", err);
    const uint8_t *check = end - SVI_CHECK_SIZE;
    const uint64_t sum = XXH3_64bits_withSeed(begin, (size_t)(check - begin), r->check);
    if (!svi_check_is(check, sum))
        return export_file_damaged(r, "the checksum of a piece is wrong", err);
    for (int i = 0; i < ITEMS; i++)
        at = svi_item_read(at, &item[i]);
    *piece =
        (struct svi_export_piece){.end = svi_item_is(&item[0], END), .keys = svi_item_is(&item[0], KEYS)};
    /* A right check only proves that it is as it was written. */
    if ((!piece->end && !piece->keys && !svi_item_is(&item[0], CHECKPOINT)) || item[1].type != SVI_INT ||
        item[1].i < 0 || item[2].type != SVI_BIN || (piece->end ? item[2].length > 0 : item[2].length == 0) ||
        (piece->end && (uint64_t)item[1].i != r->pieces))
        return export_file_damaged(r, "a piece has the wrong form", err);
    piece->number = (uint64_t)item[1].i;
    piece->body = item[2].body;
    piece->size = item[2].length;
    r->check = sum;
    r->pieces++;
    r->at += (size_t)(end - begin);
    return piece->end ? export_file_finish(r, err) : SVS_OK;
}
