/* progress.h: one line on a terminal that shows how far a long job is; nothing in a pipe or with --quiet. */
#ifndef SVI_PROGRESS_H
#define SVI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct svi_progress {
    bool on;
    double start, shown; /* by svi_monotonic */
    int width;           /* of the line on the screen */
};

void svi_progress_begin(struct svi_progress *p, bool quiet);

/* `position` of `size` (size <= 0: not known). Draws five times a second at most; call it as often as is
 * convenient. `note` (may be NULL) ends the line. */
void svi_progress_show(struct svi_progress *p, int64_t rows, double position, double size, const char *note);

/* Any line, five times a second at most. */
void svi_progress_line(struct svi_progress *p, const char *line);

/* Takes the line from the screen, for another text; it comes back when it is due. */
void svi_progress_clear(struct svi_progress *p);

/* Takes the line from the screen. Returns the seconds since the beginning. */
double svi_progress_end(struct svi_progress *p);

#endif
