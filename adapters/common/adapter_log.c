#include "adapter_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

#define LINE_BYTES 1400

void adapter_log_few(const char *program, int64_t count, const char *format, ...) {
    char text[LINE_BYTES];
    va_list arguments;
    if (count > ADAPTER_LOGGED)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s%s\n", program, text,
            count == ADAPTER_LOGGED ? " (further ones are only counted)" : "");
}

void *adapter_need(const char *program, size_t count, size_t size) {
    void *memory = svi_alloc_plain_array(count ? count : 1, size);
    if (!memory)
        adapter_no_memory(program, count * size);
    return memory;
}

void adapter_no_memory(const char *program, size_t size) {
    adapter_log_few(program, 0, "no memory for %zu bytes", size);
    exit(1);
}
