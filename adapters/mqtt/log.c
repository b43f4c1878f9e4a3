#include "log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
