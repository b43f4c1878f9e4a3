/* The line is overwritten in place with a carriage return and padded to the previous width, so that no rest
 * of a longer line remains. */
#include "base/clock.h"
#include "base/human.h"
#include "report/progress.h"

#include <stdio.h>
#include <unistd.h>

void svi_progress_begin(struct svi_progress *p, bool quiet) {
    *p = (struct svi_progress){.on = !quiet && isatty(STDERR_FILENO), .start = svi_monotonic()};
}

static void progress_draw(struct svi_progress *p, const char *line) {
    int width = fprintf(stderr, "\r%s", line) - 1;
    for (int i = width; i < p->width; i++)
        fputc(' ', stderr);
    fputc('\r', stderr);
    p->width = width;
    fflush(stderr);
}

/* The clock is read only where a line would be shown. */
static bool progress_is_due(struct svi_progress *p) {
    const double time = p->on ? svi_monotonic() : 0;
    const bool due = p->on && time - p->shown >= 0.2;
    if (due)
        p->shown = time;
    return due;
}

void svi_progress_line(struct svi_progress *p, const char *line) {
    if (progress_is_due(p))
        progress_draw(p, line);
}

void svi_progress_show(struct svi_progress *p, int64_t rows, double position, double size, const char *note) {
    if (!progress_is_due(p))
        return;
    const double elapsed = p->shown - p->start, share = size > 0 ? position / size : 0;
    char line[200], count[SVI_HUMAN], rate[SVI_HUMAN];
    int n = snprintf(line, sizeof line, "%s rows  %s rows/s", svi_human_short(count, (double)rows),
                     svi_human_short(rate, elapsed > 0 ? (double)rows / elapsed : 0));
    /* The remaining time assumes the average rate so far. */
    if (share > 0 && share <= 1)
        n += snprintf(line + n, sizeof line - (size_t)n, "  %.0f %%  ETA %.0f s", 100 * share,
                      elapsed * (1 - share) / share);
    if (note)
        snprintf(line + n, sizeof line - (size_t)n, "  %s", note);
    progress_draw(p, line);
}

void svi_progress_clear(struct svi_progress *p) {
    if (p->on && p->width > 0)
        progress_draw(p, "");
}

double svi_progress_end(struct svi_progress *p) {
    svi_progress_clear(p);
    return svi_monotonic() - p->start;
}
