#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define LINE 1024

/* Lines that may come with every message are bounded: after LOGGED of a kind they are only counted. */
void mqtt_log_few(int64_t count, const char *format, ...) {
    char text[LINE];
    va_list arguments;
    if (count > LOGGED)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "svmstream-mqtt: %s%s\n", text,
            count == LOGGED ? " (further ones are only counted)" : "");
}

/* One list (COUNTERS) for the log line and for the JSON object that is published. */
char *mqtt_counters_text(const struct counters *c, int64_t waiting, bool json, char out[COUNTERS_BYTES]) {
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
#define X(name, text) {#name, c->name},
        COUNTERS(X)
#undef X
            {"waiting", waiting}};
    char *at = out;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *before = i > 0 ? json ? "," : ", " : json ? "{" : "";
        at += sprintf(at, json ? "%s\"%s\":%" PRId64 : "%s%s %" PRId64, before, rows[i].name, rows[i].value);
    }
    strcpy(at, json ? "}" : "");
    return out;
}

/* An adapter without memory has nothing to save: it ends, and the broker keeps what it has for the next run.
 */
void *mqtt_need(size_t count, size_t size) {
    void *memory = svi_alloc_array(count ? count : 1, size);
    if (!memory)
        mqtt_no_memory(count * size);
    return memory;
}

void mqtt_no_memory(size_t size) {
    mqtt_log("no memory for %zu bytes", size);
    exit(1);
}
