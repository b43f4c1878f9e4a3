#include "framing.h"

#include <string.h>
#include <strings.h>

#define LENGTH_DIGITS 15 /* of a Content-Length: 999 TB */

/* Characters of a token, the name of a header (RFC 9110). */
static const char token_characters[] =
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Headers of which two would leave open which one counts. */
static const char *const single[] = {"Host",         "Content-Length",   "Transfer-Encoding",
                                     "Content-Type", "Content-Encoding", "Authorization",
                                     "Origin",       "Sec-Fetch-Site"};
enum { SINGLE = sizeof single / sizeof single[0] };

struct http_framing_scan {
    struct http_framing *f;
    int count[SINGLE];
};

static void http_framing_length(struct http_framing *f, const char *value, size_t size) {
    f->length = 0;
    if (size == 0 || size > LENGTH_DIGITS || strspn(value, "0123456789") != size) {
        f->problem = "the Content-Length is not a number";
        return;
    }
    for (size_t i = 0; i < size; i++)
        f->length = 10 * f->length + (uint64_t)(value[i] - '0');
    f->has_body = f->length > 0;
}

static enum MHD_Result http_framing_header(void *context, enum MHD_ValueKind kind, const char *name,
                                           size_t name_size, const char *value, size_t size) {
    struct http_framing_scan *scan = context;
    struct http_framing *f = scan->f;
    (void)kind;
    f->bytes += name_size + size;
    if (name_size == 0 || strspn(name, token_characters) != name_size)
        f->problem = "a header has a name that is not valid";
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
            f->problem = "a header has a control character in its value";
    for (int i = 0; i < SINGLE; i++)
        if (strcasecmp(name, single[i]) == 0 && ++scan->count[i] > 1)
            f->problem = "it repeats a header that may occur only once";
    if (strcasecmp(name, "Content-Length") == 0)
        http_framing_length(f, value ? value : "", size);
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->chunked = f->has_body = true;
        if (size != 7 || strncasecmp(value, "chunked", 7) != 0)
            f->problem = "the only Transfer-Encoding is chunked";
    }
    return f->problem ? MHD_NO : MHD_YES;
}

void http_framing_read(struct http_framing *f, struct MHD_Connection *mhd, const char *version) {
    struct http_framing_scan scan = {.f = f};
    const bool old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    *f = (struct http_framing){0};
    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, http_framing_header, &scan);
    if (f->problem)
        return;
    if (scan.count[0] == 0 && !old)
        f->problem = "the header Host is missing";
    else if (scan.count[1] && scan.count[2])
        f->problem = "it has both a Content-Length and a Transfer-Encoding";
    else if (scan.count[2] && old)
        f->problem = "HTTP/1.0 knows no Transfer-Encoding";
}
