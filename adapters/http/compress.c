#include "compress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <zlib.h>

#include "base/alloc.h"

#define WORTH_BYTES 1400 /* below, an answer fits one packet anyway */
#define LEVEL       4    /* of zlib: most of the gain, a third of the time of the default */
#define LARGE_BYTES (256 * 1024)
#define MAX_BYTES   (16 << 20) /* above, all other requests would wait for it too long */
#define LEVEL_LARGE                                                                                          \
    1 /* half of the time again; what is large is numbers, of which the others gain 5 % more */
#define GZIP_WINDOW (15 + 16)

bool http_compress_pays(const char *type, size_t size) {
    return size >= WORTH_BYTES && size <= MAX_BYTES && type &&
           (strncmp(type, "text/", 5) == 0 || strstr(type, "json") || strstr(type, "openmetrics"));
}

static const char *http_accept_space(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* The weight of one element [at, end) of an Accept header: q=0.5 among its parameters. */
static double http_accept_weight(const char *at, const char *end) {
    while ((at = memchr(at, ';', (size_t)(end - at)))) {
        at = http_accept_space(at + 1, end);
        if (end - at > 2 && (at[0] == 'q' || at[0] == 'Q') && at[1] == '=') {
            const double q = strtod(at + 2, NULL);
            return q >= 0 && q <= 1 ? q : 0;
        }
    }
    return 1;
}

/* The last element that is exactly this word, as q; -1: it is absent. */
static double http_accept_word(const char *header, const char *word, size_t length) {
    double q = -1;
    for (const char *at = header; at && *at;) {
        const char *end = at + strcspn(at, ","), *name = http_accept_space(at, end);
        size_t n = strcspn(name, ",; \t");
        if (n == length && strncasecmp(name, word, n) == 0)
            q = http_accept_weight(name, end);
        at = *end ? end + 1 : end;
    }
    return q;
}

double http_accept_quality(const char *header, const char *word) {
    char any[64];
    const char *slash = strchr(word, '/');
    double q = http_accept_word(header, word, strlen(word));
    if (q < 0 && slash && slash - word < 60) {
        snprintf(any, sizeof any, "%.*s*", (int)(slash - word) + 1, word);
        q = http_accept_word(header, any, strlen(any));
    }
    if (q < 0)
        q = slash ? http_accept_word(header, "*/*", 3) : http_accept_word(header, "*", 1);
    return q;
}

bool http_accept_choose(const char *header, const char *types, char *out, size_t size) {
    double best = 0;
    char type[64];
    out[0] = '\0';
    for (const char *at = types; *at;) {
        size_t length = strcspn(at, ",");
        snprintf(type, sizeof type, "%.*s", (int)length, at);
        const double q = header && *header ? http_accept_quality(header, type) : 1;
        if (q > best) {
            best = q;
            snprintf(out, size, "%s", type);
        }
        at += length;
        at += strspn(at, ", ");
    }
    return best > 0;
}

bool http_compress_accepted(const char *header) {
    return header && http_accept_quality(header, "gzip") > 0;
}

void *http_compress(const void *bytes, size_t size, size_t *packed) {
    z_stream z = {0};
    const int level = size > LARGE_BYTES ? LEVEL_LARGE : LEVEL;
    if (deflateInit2(&z, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    const size_t bound = deflateBound(&z, size);
    uint8_t *out = svi_alloc_plain(bound);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)bound;
    const bool good = out && deflate(&z, Z_FINISH) == Z_STREAM_END;
    *packed = good ? z.total_out : 0;
    deflateEnd(&z);
    if (good)
        return out;
    svi_free(out);
    return NULL;
}
