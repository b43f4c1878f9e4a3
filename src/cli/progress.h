/* progress.h: one line on a terminal that shows how far a long job is; nothing in a pipe or with --quiet. */
#ifndef SVI_PROGRESS_H
#define SVI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    bool on;
    double start, shown; /* by svi_monotonic */
    int width;           /* of the line on the screen */
};

void cli_progress_begin(struct cli_progress *p, bool quiet);

/* `position` of `size` (size <= 0: not known). Draws five times a second at most; call it as often as is
 * convenient. `note` (may be NULL) ends the line. */
void cli_progress_show(struct cli_progress *p, int64_t rows, double position, double size, const char *note);

/* Any line, five times a second at most. */
void cli_progress_line(struct cli_progress *p, const char *line);

/* Takes the line from the screen, for another text; it comes back when it is due. */
void cli_progress_clear(struct cli_progress *p);

/* Takes the line from the screen. Returns the seconds since the beginning. */
double cli_progress_end(struct cli_progress *p);

/* "1.2M", "345k", "78": three digits for people. Returns out. */
char *cli_short(double value, char *out, int size);

#endif
