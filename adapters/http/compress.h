/* compress.h: answers as gzip, by zlib, and what a client accepts. */
#ifndef HTTP_COMPRESS_H
#define HTTP_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Is an answer of this media type and size worth the time? */
bool http_compress_pays(const char *type, size_t size);

/* Does the header Accept-Encoding (NULL: absent) take gzip? */
bool http_compress_accepted(const char *header);

/* A gzip file of the bytes, to be freed with svi_free; NULL: no memory. */
void *http_compress(const void *bytes, size_t size, size_t *packed);

/* The quality (0 to 1) that an Accept header gives to the media type or coding; -1: it does not name it. A
 * media type falls back to a type with a * and then to any. */
double http_accept_quality(const char *header, const char *word);

/* The one of the media types "a/b, c/d" that the header (NULL or "": absent) prefers, the first of equals, in
 * `out` (`size` bytes). False: it accepts none. */
bool http_accept_choose(const char *header, const char *types, char *out, size_t size);

#endif
