/* fetch.h: loads memory that is needed soon into the caches while other work continues. A hint: no result
 * depends on it. */
#ifndef SVI_FETCH_H
#define SVI_FETCH_H

#include <stddef.h>

static inline void svi_fetch(const void *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i);
}

#endif
