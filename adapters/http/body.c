#include "body.h"

#include <string.h>

#include "base/alloc.h"

#define FIRST_BYTES  4096
#define WINDOW_GZIP  (15 + 16)   /* of zlib: the largest window, gzip only */
#define STREAM_BYTES (64 * 1024) /* zlib's memory for one stream, rounded up */

void http_body_begin(struct http_body *b, struct http_body_budget *budget, size_t limit, bool gzip) {
    *b = (struct http_body){.budget = budget, .limit = limit, .gzip = gzip};
}

/* Charged before it is allocated, so that many bodies that grow at once stay below the limit together. */
static bool http_body_charge(struct http_body *b, size_t bytes) {
    if (bytes > b->budget->limit - b->budget->used)
        return false;
    b->budget->used += bytes;
    return true;
}

/* Capacity for one more byte at least. */
static enum http_body_state http_body_grow(struct http_body *b) {
    if (b->size < b->capacity)
        return HTTP_BODY_GOOD;
    /* One byte above the limit: the body that fills it is known to be too large. */
    const size_t most = b->limit + 1, wider = b->capacity ? 2 * b->capacity : FIRST_BYTES,
                 next = wider < most ? wider : most;
    if (b->capacity >= most)
        return HTTP_BODY_TOO_LARGE;
    if (!http_body_charge(b, next - b->capacity))
        return HTTP_BODY_BUSY;
    void *more = svi_realloc_plain(b->data, b->capacity, next);
    if (!more) {
        b->budget->used -= next - b->capacity;
        return HTTP_BODY_BUSY;
    }
    b->data = more;
    b->capacity = next;
    return HTTP_BODY_GOOD;
}

static enum http_body_state http_body_plain(struct http_body *b, const uint8_t *bytes, size_t size) {
    while (size > 0) {
        const enum http_body_state state = http_body_grow(b);
        if (state != HTTP_BODY_GOOD)
            return state;
        const size_t left = b->capacity - b->size, n = size < left ? size : left;
        memcpy(b->data + b->size, bytes, n);
        b->size += n;
        bytes += n;
        size -= n;
    }
    return b->size > b->limit ? HTTP_BODY_TOO_LARGE : HTTP_BODY_GOOD;
}

static enum http_body_state http_body_open(struct http_body *b) {
    if (b->stream)
        return HTTP_BODY_GOOD;
    if (!http_body_charge(b, STREAM_BYTES))
        return HTTP_BODY_BUSY;
    b->stream = svi_alloc_plain(sizeof *b->stream);
    if (b->stream && inflateInit2(b->stream, WINDOW_GZIP) == Z_OK)
        return HTTP_BODY_GOOD;
    svi_free(b->stream);
    b->stream = NULL;
    b->budget->used -= STREAM_BYTES;
    return HTTP_BODY_BUSY;
}

/* Inflates straight into the body, piece by piece: a bomb is noticed when it has filled the limit. gzip files
 * may follow each other in one body (RFC 1952). */
static enum http_body_state http_body_inflate(struct http_body *b, const uint8_t *bytes, size_t size) {
    enum http_body_state state = http_body_open(b);
    if (state != HTTP_BODY_GOOD)
        return state;
    z_stream *z = b->stream;
    z->next_in = (Bytef *)(uintptr_t)bytes;
    z->avail_in = (uInt)size;
    int code = Z_OK;
    /* A full output may leave bytes inside zlib, which needs no input to hand them over. */
    while (z->avail_in > 0 || (b->inside && z->avail_out == 0)) {
        if ((state = http_body_grow(b)) != HTTP_BODY_GOOD)
            return state;
        if (!b->inside && inflateReset(z) != Z_OK)
            return HTTP_BODY_DAMAGED;
        b->inside = true;
        z->next_out = b->data + b->size;
        z->avail_out = (uInt)(b->capacity - b->size);
        code = inflate(z, Z_NO_FLUSH);
        b->size = (size_t)(z->next_out - b->data);
        b->inside = code != Z_STREAM_END;
        if (code == Z_MEM_ERROR)
            return HTTP_BODY_BUSY;
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return HTTP_BODY_DAMAGED;
        if (b->size > b->limit)
            return HTTP_BODY_TOO_LARGE;
    }
    return HTTP_BODY_GOOD;
}

enum http_body_state http_body_add(struct http_body *b, const void *bytes, size_t size) {
    return b->gzip ? http_body_inflate(b, bytes, size) : http_body_plain(b, bytes, size);
}

enum http_body_state http_body_end(struct http_body *b) {
    return b->inside ? HTTP_BODY_DAMAGED : HTTP_BODY_GOOD;
}

void http_body_clear(struct http_body *b) {
    if (b->stream) {
        inflateEnd(b->stream);
        svi_free(b->stream);
        b->budget->used -= STREAM_BYTES;
    }
    svi_free(b->data);
    if (b->budget)
        b->budget->used -= b->capacity;
    *b = (struct http_body){0};
}
