#include "redis_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

#define LINE 1400

void redis_log_few(int64_t count, const char *format, ...) {
    char text[LINE];
    va_list arguments;
    if (count > REDIS_LOGGED)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "svmstream-redis: %s%s\n", text,
            count == REDIS_LOGGED ? " (further ones are only counted)" : "");
}

void *redis_need(size_t count, size_t size) {
    void *memory = svi_alloc_plain_array(count ? count : 1, size);
    if (!memory)
        redis_no_memory(count * size);
    return memory;
}

void redis_no_memory(size_t size) {
    redis_log("no memory for %zu bytes", size);
    exit(1);
}
