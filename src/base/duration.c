#include "base/duration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT    40  /* bytes, the NUL included */
#define MAX_SECONDS 1e9 /* some 31 years */

bool svi_duration_read(const char *text, size_t length, double *seconds) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    char copy[MAX_TEXT], *end;
    if (length == 0 || length >= sizeof copy || memchr(text, '\0', length))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    /* The digits are counted first, because strtod also takes signs, hexadecimals, NaN and infinities. */
    if (strspn(copy, "0123456789.") == 0)
        return false;
    *seconds = strtod(copy, &end);
    end += *end == ' ' && end[1] != '\0';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].name) == 0) {
            *seconds *= units[i].seconds;
            return *seconds <= MAX_SECONDS;
        }
    return false;
}
