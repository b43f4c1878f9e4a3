/* GET /: the page. It is embedded compressed, and sent like that to every browser. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "compress.h"
#include "handlers.h"

#define TYPE        "text/html; charset=utf-8"
#define GZIP_WINDOW (15 + 16)

/* The document as it is, for a client that takes no gzip. */
static void page_plain(struct exchange *x) {
    z_stream z = {.next_in = (Bytef *)(uintptr_t)http_page_packed, .avail_in = (uInt)http_page_packed_size};
    unsigned char *text = svi_alloc_plain(http_page_size);
    int rc = text ? inflateInit2(&z, GZIP_WINDOW) : Z_MEM_ERROR;
    if (rc == Z_OK) {
        z.next_out = text;
        z.avail_out = (uInt)http_page_size;
        rc = inflate(&z, Z_FINISH);
        inflateEnd(&z);
    }
    if (rc == Z_STREAM_END)
        http_exchange_answer(x, 200, TYPE, text, http_page_size);
    else
        http_exchange_problem(x, 503, "memory", "there is no memory for the page: ask again later");
    svi_free(text);
}

void http_page_get(struct exchange *x, struct http_app *app) {
    const char *known = http_exchange_header(x, "If-None-Match");
    (void)app;
    http_exchange_add(x, "Content-Security-Policy", http_page_policy);
    http_exchange_add(x, "ETag", http_page_tag);
    http_exchange_add(x, "Cache-Control",
                      "no-cache"); /* kept, and asked for again: another version has another tag */
    http_exchange_add(x, "Vary", "Accept-Encoding");
    if (known && strstr(known, http_page_tag))
        http_exchange_answer(x, 304, NULL, "", 0);
    else if (http_compress_accepted(http_exchange_header(x, "Accept-Encoding"))) {
        http_exchange_add(x, "Content-Encoding", "gzip");
        http_exchange_answer(x, 200, TYPE, http_page_packed, http_page_packed_size);
    } else
        page_plain(x);
}
