/* human.h: numbers, durations and moments as people read them, in alerts, reports and log lines.
 *
 * Each function writes a text of at most SVI_HUMAN bytes, the NUL included, and returns `out`. NAN is "-"
 * unless a comment states another text. */
#ifndef SVI_HUMAN_H
#define SVI_HUMAN_H

#include <stdbool.h>
#include <stdint.h>

#define SVI_HUMAN      40
#define SVI_HUMAN_UNIT 24

#define SVI_KIB 1024.0
#define SVI_MIB (1024 * SVI_KIB)
#define SVI_GIB (1024 * SVI_MIB)

/* A measured value with at least `digits` significant digits; with more, up to 12, where two digits of
 * `spread` (the range of the values; 0: not known) would not show. Whole numbers are not rounded; NAN is
 * "unknown". */
char *svi_human_number(char out[SVI_HUMAN], double v, double spread, int digits);

/* A figure of a table, with this number of significant digits, or of decimal places. */
char *svi_human_digits(char out[SVI_HUMAN], double v, int digits);
char *svi_human_places(char out[SVI_HUMAN], double v, int places);

/* "41,230"; "1.2M", "345k", "78": three digits. */
char *svi_human_count(char out[SVI_HUMAN], int64_t n);
char *svi_human_short(char out[SVI_HUMAN], double v);

/* "0 s", "less than 0.1 s", "12 s", "35 min", "2 h 10 min", "3 d 4 h". Values of 0 or less and NAN are "0 s".
 */
char *svi_human_duration(char out[SVI_HUMAN], double seconds);

/* A duration that is an estimate, to one digit: "40 minutes", "5 hours", "a day", "3 weeks", "2 years". Less
 * than a second is "a second", more than 1000 years "1000 years". down: it is rounded down, not to nearest.
 */
char *svi_human_about(char out[SVI_HUMAN], double seconds, bool down);

/* True for seconds since 1970 that lie in the years 1973 to 9999; a stream that counts from 0 stays below. */
bool svi_human_is_date(double seconds);

/* The begin of something, in UTC: "10:42 UTC" on the day of `now`, else "2026-11-22 10:42 UTC". A number that
 * is not a date is "350 s". */
char *svi_human_since(char out[SVI_HUMAN], double since, double now);

/* To the second, in UTC: "2026-11-22 10:05:30", with milliseconds unless they are 0; likewise "350 s". */
char *svi_human_moment(char out[SVI_HUMAN], double seconds);

/* A moment and a duration in a log that may count rows instead of seconds: "row 17", "3 rows". A negative
 * duration keeps its sign: "-5 s". */
char *svi_human_place(char out[SVI_HUMAN], bool by_rows, double at);
char *svi_human_span(char out[SVI_HUMAN], bool by_rows, double span);

/* A unit to append to a value: escaped, with a leading blank; "" for NULL and "". */
char *svi_human_unit(char out[SVI_HUMAN_UNIT], const char *unit);

#endif
