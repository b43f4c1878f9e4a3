/* progress.h: a progress line of a long job on a terminal; nothing in a pipe or with --quiet. */
#ifndef SVI_PROGRESS_H
#define SVI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct svi_progress {
    bool on;
    double start, shown; /* by svi_monotonic */
    int width;           /* characters of the line on the screen */
};

void svi_progress_begin(struct svi_progress *p, bool quiet);

/* Shows `rows` and `position` of `size` (size <= 0: not known), with `note` (may be NULL) at the end. Draws
 * at most five times a second; call it as often as convenient. */
void svi_progress_show(struct svi_progress *p, int64_t rows, double position, double size, const char *note);

/* Shows any line, at most five times a second. */
void svi_progress_line(struct svi_progress *p, const char *line);

/* Clears the line to make way for other text; the next update draws it again. */
void svi_progress_clear(struct svi_progress *p);

/* Clears the line. Returns the seconds since the beginning. */
double svi_progress_end(struct svi_progress *p);

#endif
