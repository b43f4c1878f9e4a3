/* human.h: numbers, spans of time and moments as people read them: in alerts, reports and log lines.
 *
 * Each function writes a text that fits into SVI_HUMAN bytes, the NUL included, and returns `out`. A NAN
 * is "-" but where another text is named. */
#ifndef SVI_HUMAN_H
#define SVI_HUMAN_H

#include <stdbool.h>
#include <stdint.h>

#define SVI_HUMAN      40
#define SVI_HUMAN_UNIT 24

#define SVI_KIB 1024.0
#define SVI_MIB (1024 * SVI_KIB)
#define SVI_GIB (1024 * SVI_MIB)

/* A measured value: at least `digits` digits, as many as show differences of `spread` (0: not known) in two
 * digits, at most 9. Whole numbers are not rounded; NAN is "unknown". */
char *svi_human_number(char out[SVI_HUMAN], double v, double spread, int digits);

/* A figure of a table: with so many significant digits, or so many places after the point. */
char *svi_human_digits(char out[SVI_HUMAN], double v, int digits);
char *svi_human_places(char out[SVI_HUMAN], double v, int places);

/* "41,230"; "1.2M", "345k", "78": three digits. */
char *svi_human_count(char out[SVI_HUMAN], int64_t n);
char *svi_human_short(char out[SVI_HUMAN], double v);

/* "0 s", "less than 0.1 s", "12 s", "35 min", "2 h 10 min", "3 d 4 h"; what is not above 0 is "0 s", NAN too.
 */
char *svi_human_duration(char out[SVI_HUMAN], double seconds);

/* Seconds since 1970 from 1973 to 9999; a stream that counts from 0 does not get there. */
bool svi_human_is_date(double seconds);

/* When something began, in UTC: "10:42 UTC" on the day of `now`, else "2026-11-22 10:42 UTC"; what is no date
 * is "350 s". */
char *svi_human_since(char out[SVI_HUMAN], double since, double now);

/* To the second, in UTC: "2026-11-22 10:05:30", with milliseconds where there are some; likewise "350 s". */
char *svi_human_moment(char out[SVI_HUMAN], double seconds);

/* A moment and a span of a log that may count rows instead of seconds: "row 17", "3 rows". A span below 0 is
 * shown: "-5 s". */
char *svi_human_place(char out[SVI_HUMAN], bool by_rows, double at);
char *svi_human_span(char out[SVI_HUMAN], bool by_rows, double span);

/* A unit as it follows a value: escaped, with a blank before it; NULL and "" are "". */
char *svi_human_unit(char out[SVI_HUMAN_UNIT], const char *unit);

#endif
