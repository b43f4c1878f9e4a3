#include "kafka_log.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 1200

void kafka_log_few(int64_t count, const char *format, ...) {
    char text[LINE_BYTES];
    va_list arguments;
    if (count > KAFKA_LOGGED)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "svmstream-kafka: %s%s\n", text,
            count == KAFKA_LOGGED ? " (further ones are only counted)" : "");
}
