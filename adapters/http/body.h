/* body.h: the body of a request as it arrives, inflated where it is compressed.
 *
 * One body and all bodies in flight have a limit; both count what the inflated bytes occupy, so a small body
 * that inflates to a large one is refused as soon as it exceeds a limit. */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

/* Of all bodies in flight. */
struct http_body_budget {
    size_t used, limit; /* bytes */
};

struct http_body {
    uint8_t *data;
    size_t size, capacity, limit;
    struct http_body_budget *budget;
    bool gzip, inside; /* `inside`: a gzip member has begun and not ended */
    z_stream *stream;  /* owned; NULL until the first byte of a gzip body */
};

enum http_body_state {
    HTTP_BODY_GOOD,
    HTTP_BODY_TOO_LARGE, /* beyond its own limit */
    HTTP_BODY_BUSY,      /* beyond the limit of all bodies, or no memory */
    HTTP_BODY_DAMAGED    /* it is not gzip */
};

void http_body_begin(struct http_body *b, struct http_body_budget *budget, size_t limit, bool gzip);
enum http_body_state http_body_add(struct http_body *b, const void *bytes, size_t size);

/* Call after the last byte: HTTP_BODY_DAMAGED if a gzip body is cut. */
enum http_body_state http_body_end(struct http_body *b);

/* Gives all of its memory back. */
void http_body_clear(struct http_body *b);

#endif
