#include "route.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define PATTERNS_MAX 64

bool http_route_fits(const char *pattern, char *const *segment, int segments, const char **named) {
    const char *at = pattern + 1; /* behind the first slash */
    int n = 0, i = 0;
    for (; i < segments && at; i++) {
        const size_t length = strcspn(at, "/");
        if (*at == '{')
            named[n++] = segment[i];
        else if (strlen(segment[i]) != length || memcmp(segment[i], at, length) != 0)
            return false;
        at = at[length] ? at + length + 1 : NULL;
    }
    return i == segments && !at;
}

const struct http_route *http_route_find(const struct http_route *table, const char *method,
                                         char *const *segment, int segments, const char **named, char *allow,
                                         size_t size) {
    size_t n = 0;
    allow[0] = '\0';
    for (const struct http_route *r = table; r->method; r++) {
        if (!http_route_fits(r->path, segment, segments, named))
            continue;
        if (strcmp(r->method, method) == 0)
            return r;
        n += (size_t)snprintf(allow + n, n < size ? size - n : 0, "%s%s%s", n ? ", " : "", r->method,
                              strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
    }
    if (n > 0 && n < size)
        snprintf(allow + n, size - n, ", OPTIONS");
    return NULL;
}

const char *http_route_nearest(const struct http_route *table, const char *path) {
    const char *patterns[PATTERNS_MAX + 1];
    int n = 0;
    for (const struct http_route *r = table; r->method && n < PATTERNS_MAX; r++)
        patterns[n++] = r->path;
    patterns[n] = NULL;
    return svi_nearest(path, patterns);
}
