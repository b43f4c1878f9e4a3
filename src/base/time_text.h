/* time_text.h: times as logs contain them: ISO 8601 text, dates as people write them, text in a given format,
 * or a count of seconds, milliseconds, microseconds or nanoseconds since 1970. No allocation. */
#ifndef SVI_TIME_TEXT_H
#define SVI_TIME_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds since 1970 (UTC) of a whole text:
 *
 *     2026-11-22   2026-11-22T10:05   2026-11-22 10:05:30.25   2026-11-22T10:05:30Z   ... 10:05:30,25 +0100
 *
 * A date comes first. The time of day follows after a T or a blank. Its seconds and their fraction
 * are optional. A point or a comma begins the fraction: nine digits count, further ones are
 * ignored. A zone may follow the time of day: Z, +01:00, +0100 or +01, with or without a blank
 * before it. A text without a zone is taken as `zone` seconds east of UTC. Years are 0001 to 9999.
 * Second 60 is the start of the next second, with any fraction; hour 24 is refused. False, with
 * *seconds unchanged: another form, or no such day or hour. */
bool svi_time_of_text(const char *text, size_t length, int zone, double *seconds);

/* Which of two numbers before the year is the day. ISO: such dates are refused. */
enum svi_time_order { SVI_TIME_ISO = 0, SVI_TIME_DAY_FIRST, SVI_TIME_MONTH_FIRST };

/* The same for other dates, with or without a time of day:
 *
 *     22.11.2026 10:05   11/22/2026 10:04 PM   22-11-26   2026/11/22 10:05:30.25
 *     22/Nov/2026:10:05:00 +0000   Sun, 22 Nov 2026 10:05:30 GMT   Nov 22, 2026
 *
 * Months have English names; a year of two digits is 1969 to 2068. With the order SVI_TIME_ISO the result is
 * false. *clock (may be NULL): whether the text has a time of day. */
bool svi_time_of_date(const char *text, size_t length, int zone, enum svi_time_order order, double *seconds,
                      bool *clock);

/* Seconds since midnight from a text that is a time of day only: 10:05, 10:05:30.25, 9:05 PM, 18.00.00. */
bool svi_time_of_clock(const char *text, size_t length, double *seconds);

/* Seconds since 1970 from a text in a format of strptime, where %f is the digits of a second's fraction.
 * Without %z the text is taken as `zone` seconds east of UTC. */
bool svi_time_of_format(const char *text, size_t length, const char *format, int zone, double *seconds);

/* The unit of a column of times. A column starts as unknown, and the size of its first value decides: below
 * 1e11 seconds, below 1e14 milliseconds, below 1e17 microseconds, else nanoseconds. That is unambiguous for
 * all times from 1973 to 5138. */
enum svi_time_unit {
    SVI_TIME_UNKNOWN = 0,
    SVI_TIME_SECONDS,
    SVI_TIME_MILLISECONDS,
    SVI_TIME_MICROSECONDS,
    SVI_TIME_NANOSECONDS
};

/* Seconds since 1970 of a finite number; decides *unit if it is unknown. */
double svi_time_of_number(double v, enum svi_time_unit *unit);

/* "milliseconds", for messages. */
const char *svi_time_unit_name(enum svi_time_unit unit);

#endif
