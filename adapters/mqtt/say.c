#include "say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#define LINE 1024

static void line(const char *format, va_list arguments, const char *behind) {
    char text[LINE];
    vsnprintf(text, sizeof text, format, arguments);
    fprintf(stderr, "svmstream-mqtt: %s%s\n", text, behind);
}

void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line(format, arguments, "");
    va_end(arguments);
}

void say_few(int64_t count, const char *format, ...) {
    va_list arguments;
    if (count > TOLD)
        return;
    va_start(arguments, format);
    line(format, arguments, count == TOLD ? " (further ones are only counted)" : "");
    va_end(arguments);
}

const char *shown(char *out, size_t size, const void *bytes, size_t length) {
    const unsigned char *b = bytes;
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        if (at + 8 > size) {
            snprintf(out + at, size - at, "...");
            return out;
        }
        at += (size_t)snprintf(out + at, size - at, b[i] >= 0x20 && b[i] < 0x7f ? "%c" : "\\x%02x", b[i]);
    }
    out[at] = '\0';
    return out;
}

void counters_text(const struct counters *c, int64_t waiting, FILE *to) {
#define X(name, text) fprintf(to, #name " %" PRId64 ", ", c->name);
    COUNTERS(X)
#undef X
    fprintf(to, "waiting %" PRId64, waiting);
}

void counters_json(const struct counters *c, int64_t waiting, FILE *to) {
    fputc('{', to);
#define X(name, text) fprintf(to, "\"" #name "\":%" PRId64 ",", c->name);
    COUNTERS(X)
#undef X
    fprintf(to, "\"waiting\":%" PRId64 "}", waiting);
}

void *need(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        say("no memory for %zu bytes", count * size);
        exit(1);
    }
    return memory;
}

static double seconds(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_wall(void) {
    return seconds(CLOCK_REALTIME);
}

double clock_steady(void) {
    return seconds(CLOCK_MONOTONIC);
}
