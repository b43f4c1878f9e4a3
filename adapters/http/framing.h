/* framing.h: how the headers delimit a request. What two programs could read in two ways is refused: a proxy
 * in front of us might see another request than we do. */
#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <microhttpd.h>

#define HTTP_HEADERS_BYTES (16 * 1024)

struct http_framing {
    const char *problem; /* NULL: the framing is good */
    bool has_body, chunked;
    uint64_t length; /* Content-Length; 0: absent */
    size_t bytes;    /* of all names and values */
};

void http_framing_read(struct http_framing *f, struct MHD_Connection *mhd, const char *version);

#endif
