/* Lines are due at row numbers (powers of two, or every N) and on a terminal also by time. The test for a due
 * line is one comparison (in the header), because it is made for every row; all costs arise when a line is
 * printed. */
#include "report/live_figures.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/human.h"

#define LINE_BYTES 160
#define INTERVAL   1.0 /* seconds between two lines on a terminal */

void svi_live_figures_begin(struct svi_live_figures *l, FILE *to, svi_stream *stream, int64_t every) {
    *l = (struct svi_live_figures){.to = to,
                                   .stream = stream,
                                   .every = every,
                                   .next = !to         ? -1
                                           : every > 0 ? every
                                                       : 1,
                                   .shown_at = svi_monotonic(),
                                   .seconds = to && every == 0 && isatty(fileno(to))};
    svi_stream_progress(stream, &l->before);
}

double svi_live_figures_wait(const struct svi_live_figures *l) {
    if (!l->seconds || l->row == l->shown)
        return INFINITY;
    return fmax(0, l->shown_at + INTERVAL - svi_monotonic());
}

/* Resident memory of the process in bytes; NAN = not known. */
static double live_figures_memory(void) {
    double pages = NAN, all;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%lf %lf", &all, &pages) != 2)
        pages = NAN;
    if (f)
        fclose(f);
    return pages * (double)sysconf(_SC_PAGESIZE);
}

static void live_figures_add(char *line, const char *cell) {
    const size_t length = strlen(line);
    snprintf(line + length, LINE_BYTES - length, " %10s", cell);
}

/* The main figure over the rows since the previous line, from differences of exact sums. If the sums have
 * started over since (a reset), they count from zero. */
static double live_figures_since(const struct svi_live_figures *l, const struct svi_stream_progress *now,
                                 bool regress) {
    static const struct svi_metrics_sums none;
    const struct svi_metrics_sums *a = &l->before.sums, *b = &now->sums;
    if (a->began != b->began)
        a = &none;
    /* Only labelled samples are counted. */
    const double n = (double)(b->judged - a->judged);
    if (regress)
        return sqrt(fmax(0, b->squares - a->squares) / n);
    return (double)(b->right - a->right) / n; /* 0 / 0: not known */
}

static void live_figures_put_header(const struct svi_settings *s, FILE *to) {
    const bool regress = s->task == SVS_REGRESS;
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof line, "%10s", "rows");
    if (s->method != SVI_METHOD_NONE)
        n += snprintf(line + n, sizeof line - (size_t)n, " %10s %10s %10s", regress ? "rmse" : "accuracy",
                      "since_last", regress ? "mae" : "kappa");
    if (s->novelty != SVI_NOVELTY_NONE)
        n += snprintf(line + n, sizeof line - (size_t)n, " %10s", "alerts");
    fprintf(to, "%s %10s %10s\n", line, "rows/s", "memory");
}

/* The columns must match those of live_figures_put_header. */
static void live_figures_put_row(const struct svi_live_figures *l, const struct svi_stream_progress *now,
                                 double seconds) {
    const struct svi_settings *s = svi_stream_settings(l->stream);
    const bool regress = s->task == SVS_REGRESS;
    char line[LINE_BYTES], cell[SVI_HUMAN];
    snprintf(line, sizeof line, "%10" PRId64, l->row);
    if (s->method != SVI_METHOD_NONE) {
        const struct svi_figure *f = now->quality;
        const int count = now->quality_count;
        const double values[] = {svi_figure_value(f, count, regress ? "rmse" : "accuracy"),
                                 live_figures_since(l, now, regress),
                                 svi_figure_value(f, count, regress ? "mae" : "kappa")};
        for (int i = 0; i < 3; i++)
            live_figures_add(line, regress ? svi_human_digits(cell, values[i], 5)
                                           : svi_human_places(cell, values[i], 4));
    }
    if (s->novelty != SVI_NOVELTY_NONE)
        live_figures_add(line, svi_human_places(cell, (double)now->alerts, 0));
    live_figures_add(line,
                     svi_human_places(cell, seconds > 0 ? (double)(l->row - l->shown) / seconds : NAN, 0));
    /* Resident memory, since that is what a limit of the system counts. */
    const double memory = live_figures_memory();
    svi_human_places(cell, memory / SVI_MIB, 1);
    live_figures_add(line, strcat(cell, isnan(memory) ? "" : "M"));
    fprintf(l->to, "%s\n", line);
    fflush(l->to);
}

void svi_live_figures_show(struct svi_live_figures *l) {
    /* The next line is scheduled even if this one prints nothing: before the first accepted row there is
     * nothing to show. */
    struct svi_stream_progress now;
    const double time = svi_monotonic();
    if (l->row >= l->next)
        l->next = l->every > 0 ? l->next + l->every : 2 * l->next;
    svi_stream_progress(l->stream, &now);
    if (now.seen > 0) {
        if (!l->headed)
            live_figures_put_header(svi_stream_settings(l->stream), l->to);
        l->headed = true;
        live_figures_put_row(l, &now, time - l->shown_at);
    }
    l->before = now;
    l->shown = l->row;
    l->shown_at = time;
}
