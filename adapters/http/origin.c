#include "origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define HOST_BYTES 256

/* HOST[:PORT] without its port and the brackets of IPv6. False: it is not of this form. */
static bool http_origin_name(const char *text, char out[HOST_BYTES]) {
    const bool six = text[0] == '[';
    const size_t length = six ? strcspn(text, "]") : strcspn(text, ":");
    const char *after = text + length + six;
    if (length - six == 0 || length >= HOST_BYTES || (six && text[length] != ']'))
        return false;
    memcpy(out, text + six, length - six);
    out[length - six] = '\0';
    return *after == '\0' || (*after == ':' && strspn(after + 1, "0123456789") == strlen(after + 1));
}

static bool http_origin_is_address(const char *host) {
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

bool http_origin_is_ours(const struct http_options *o, const char *host) {
    char name[HOST_BYTES];
    if (!http_origin_name(host, name))
        return false;
    for (int i = 0; i < o->names; i++)
        if (strcasecmp(name, o->name[i]) == 0)
            return true;
    if (strcmp(name, o->host) == 0 || strcasecmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
        strcmp(name, "::1") == 0)
        return true;
    /* At all addresses of this machine: a number is no name that somebody could point here. */
    const bool every = strcmp(o->host, "0.0.0.0") == 0 || strcmp(o->host, "::") == 0;
    return every && http_origin_is_address(name);
}

/* "null", or SCHEME://HOST[:PORT], which must be the Host. */
static bool http_origin_is_same(const char *origin, const char *host) {
    const char *at = strstr(origin, "://");
    return at && host && strcasecmp(at + 3, host) == 0;
}

bool http_origin_check(struct exchange *x, const struct http_options *o, const char *method) {
    const char *host = http_exchange_header(x, MHD_HTTP_HEADER_HOST),
               *origin = http_exchange_header(x, MHD_HTTP_HEADER_ORIGIN),
               *site = http_exchange_header(x, "Sec-Fetch-Site");
    const bool reads =
        strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "OPTIONS") == 0;
    if ((host && !http_origin_is_ours(o, host)) ||
        (x->target.authority && !http_origin_is_ours(o, x->target.authority))) {
        http_exchange_add(x, "Connection", "close");
        http_exchange_problem(x, 421, "wrong_host",
                              "this server is not '%.100s'; --name HOST makes it answer to that name",
                              x->target.authority ? x->target.authority : host);
        return false;
    }
    if (origin && !http_origin_is_same(origin, host)) {
        http_exchange_problem(x, 403, "wrong_origin", "requests from pages of %.100s are not answered",
                              origin);
        return false;
    }
    /* A link that somebody follows may lead here; the browser shows the answer and shows no page
     * it. */
    const char *mode = http_exchange_header(x, "Sec-Fetch-Mode");
    const bool follows = reads && mode && strcasecmp(mode, "navigate") == 0;
    if (site && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0 && !follows) {
        http_exchange_problem(x, 403, "wrong_origin", "requests from pages of other sites are not answered");
        return false;
    }
    return true;
}
