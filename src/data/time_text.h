/* time_text.h: points in time as they stand in logs: ISO 8601 text, or a count of seconds, milliseconds,
 * microseconds or nanoseconds since 1970. No locale, no allocation. */
#ifndef SVI_TIME_TEXT_H
#define SVI_TIME_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds since 1970 (UTC) of a whole text:
 *
 *     2026-11-22   2026-11-22T10:05   2026-11-22 10:05:30.25   2026-11-22T10:05:30Z   ... 10:05:30,25 +0100
 *
 * A date; after a T or a blank the time of day, whose seconds and their fraction (point or comma; nine digits
 * count, further ones are passed over) may be absent; then the zone: Z, +01:00, +0100 or +01, with a blank in
 * front of it or not. Without a zone the text is in the one that is `zone` seconds east of UTC. Years are
 * 0001 to 9999. Second 60 is the start of the next second, fraction or not; hour 24 is refused. False, with
 * *seconds as it was: something else, or no such day or hour. */
bool svi_time_of_text(const char *text, size_t length, int zone, double *seconds);

/* What a column of numbers counts. A column begins unknown, and its first value decides by its size, which
 * tells them apart for all times from 1973 to 5138: below 1e11 it is seconds, below 1e14 milliseconds, below
 * 1e17 microseconds, else nanoseconds. */
enum svi_time_unit {
    SVI_TIME_UNKNOWN = 0,
    SVI_TIME_SECONDS,
    SVI_TIME_MILLISECONDS,
    SVI_TIME_MICROSECONDS,
    SVI_TIME_NANOSECONDS
};

/* Seconds since 1970 of a finite number; an unknown *unit is decided. */
double svi_time_of_number(double v, enum svi_time_unit *unit);

/* "milliseconds", for messages. */
const char *svi_time_unit_name(enum svi_time_unit unit);

#endif
