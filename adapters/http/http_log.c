#include "http_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

#define LINE_BYTES      1024
#define LINES_IN_SECOND 3

void http_log_limited(struct http_log_limit *limit, const char *format, ...) {
    char text[LINE_BYTES], more[64] = "";
    va_list arguments;
    if (limit && svi_monotonic() - limit->second >= 1) {
        limit->second = svi_monotonic();
        limit->lines = 0;
    }
    if (limit && limit->lines++ >= LINES_IN_SECOND) {
        limit->left_out++;
        return;
    }
    if (limit && limit->left_out > 0) {
        snprintf(more, sizeof more, " (and %" PRId64 " more of this kind)", limit->left_out);
        limit->left_out = 0;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "svmstream-http: %s%s\n", text, more);
}

void *http_log_need(size_t count, size_t size) {
    void *memory = svi_alloc_array(count ? count : 1, size);
    if (memory)
        return memory;
    http_log("no memory for %zu bytes", count * size);
    exit(1);
}
