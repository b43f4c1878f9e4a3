#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cli_clock(void) {
    return read_clock(CLOCK_MONOTONIC);
}

double cli_now(void) {
    return read_clock(CLOCK_REALTIME);
}

char *cli_short(double value, char *out, int size) {
    static const struct {
        double unit;
        const char *letter;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (int i = 0; i < 3; i++)
        if (value >= units[i].unit) {
            snprintf(out, (size_t)size, "%.3g%s", value / units[i].unit, units[i].letter);
            return out;
        }
    snprintf(out, (size_t)size, "%.3g", value);
    return out;
}

void cli_progress_begin(struct cli_progress *p, bool quiet) {
    *p = (struct cli_progress){.on = !quiet && isatty(STDERR_FILENO), .start = cli_clock()};
}

static void draw(struct cli_progress *p, const char *line) {
    int width = fprintf(stderr, "\r%s", line) - 1;
    for (int i = width; i < p->width; i++)
        fputc(' ', stderr);
    fputc('\r', stderr);
    p->width = width;
    fflush(stderr);
}

void cli_progress_line(struct cli_progress *p, const char *line) {
    double time = p->on ? cli_clock() : 0;
    if (!p->on || time - p->shown < 0.2)
        return;
    p->shown = time;
    draw(p, line);
}

void cli_progress_show(struct cli_progress *p, int64_t rows, double position, double size, const char *note) {
    double time = p->on ? cli_clock() : 0;
    if (!p->on || time - p->shown < 0.2)
        return;
    p->shown = time;
    double elapsed = time - p->start, share = size > 0 ? position / size : 0;
    char line[200], count[32], rate[32];
    cli_short((double)rows, count, sizeof count);
    cli_short(elapsed > 0 ? (double)rows / elapsed : 0, rate, sizeof rate);
    int n = snprintf(line, sizeof line, "%s rows  %s rows/s", count, rate);
    if (share > 0 && share <= 1)
        n += snprintf(line + n, sizeof line - (size_t)n, "  %.0f %%  ETA %.0f s", 100 * share,
                      elapsed * (1 - share) / share);
    if (note)
        snprintf(line + n, sizeof line - (size_t)n, "  %s", note);
    draw(p, line);
}

double cli_progress_end(struct cli_progress *p) {
    if (p->on && p->width > 0)
        draw(p, "");
    return cli_clock() - p->start;
}
