#include "principal.h"

#include <string.h>

bool http_principal_may_send_as(const struct http_principal *p, const char *src, size_t length) {
    for (const char *at = *p->sources ? p->sources : NULL; at;) {
        const size_t n = strcspn(at, ",");
        const bool prefix = at[n - 1] == '*';
        if (length > 0 && (prefix ? length >= n - 1 : length == n) && memcmp(src, at, n - prefix) == 0)
            return true;
        at = at[n] ? at + n + 1 : NULL;
    }
    /* No list at all means every name. */
    return !*p->sources;
}
