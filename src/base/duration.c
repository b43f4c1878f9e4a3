#include "base/duration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT    40  /* bytes, the NUL included */
#define MAX_SECONDS 1e9 /* about 31 years */

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
    /* The digits are split off first, because strtod also takes signs, exponents, hexadecimals and NaN. */
    const size_t digits = strspn(copy, "0123456789.");
    char number[MAX_TEXT];
    memcpy(number, copy, digits);
    number[digits] = '\0';
    *seconds = strtod(number, &end);
    if (digits == 0 || *end != '\0')
        return false;
    const char *unit = copy + digits;
    unit += *unit == ' ' && unit[1] != '\0';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0) {
            *seconds *= units[i].seconds;
            return *seconds <= MAX_SECONDS;
        }
    return false;
}
