/* moment.h: times, spans of time and rates as people read them. */
#ifndef SVI_MOMENT_H
#define SVI_MOMENT_H

#include <stdbool.h>

#define SVI_MOMENT 40 /* bytes of such a text, the NUL included */

/* Seconds since 1970 as "2026-11-22 10:05:30", in UTC, with milliseconds where there are some; what is not
 * from 1973 to 9999 is "350 s". Returns out. */
char *svi_moment_text(char out[SVI_MOMENT], double seconds);

/* "less than 0.1 s", "12 s", "35 min", "2 h 10 min", "3 d 4 h"; NAN is "-". Returns out. */
char *svi_duration_text(char out[SVI_MOMENT], double seconds);

/* The same of a log, in which `by_rows` the number of a row stands in the place of a time: "row 17", "3
 * rows". */
char *svi_moment_of(char out[SVI_MOMENT], bool by_rows, double at);
char *svi_span_of(char out[SVI_MOMENT], bool by_rows, double span);

#endif
