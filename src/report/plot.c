/* A plot is a gnuplot script that contains its data. gnuplot is started without a shell and without a file
 * name: it reads the script from a pipe and writes to the descriptor that it inherits. All text in the script
 * is quoted, so no name in the data can execute anything.
 *
 * The data is one block, a line for each point: x, the columns, and whether the point is marked. A run of
 * points becomes two lines, its lowest and its highest values; only the second can be marked, so that a dot
 * sits on a peak. Panels refer to columns of the block by number. A panel with points of its own has a block
 * of its own, as have its dots and its boxes. The x axis covers all of them. */
#include "report/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/text.h"
#include "formats/file_io.h"

#define POINTS_MAX 4000
#define BOX_WIDTH  400 /* a box is at least this part of the x axis wide, so that it can be seen */
#define BLOCK_NAME 24
#define NAME_BYTES 80
#define TICKS_MAX  7 /* most ticks of a time axis; a date takes a ninth of the width */
#define MARK       "#d62728"

extern char **environ;

struct plot_file {
    const struct svi_plot *plot;
    bool png;
    bool bands[SVI_PLOT_COLUMNS]; /* columns shown as bands */
};

bool svi_plot_takes(const char *path) {
    const size_t length = strlen(path);
    return svi_ends_with(path, length, ".svg") || svi_ends_with(path, length, ".png");
}

/* ---- the script */

/* Writes text in single quotes, in which gnuplot interprets only the quote itself: that is doubled. */
static void plot_put_quoted(FILE *to, const char *text) {
    char plain[NAME_BYTES];
    svi_escape(plain, sizeof plain, text, strlen(text));
    fputc('\'', to);
    for (const char *c = plain; *c; c++)
        fputs(*c == '\'' ? "''" : (char[2]){*c, '\0'}, to);
    fputc('\'', to);
}

static void plot_put_point(const struct svi_plot *p, FILE *to, double x, const double *v, bool marked) {
    if (isnan(x))
        return;
    fprintf(to, "%.15g", x);
    for (int j = 0; j < p->columns; j++)
        fprintf(to, " %.9g", v[j]);
    fprintf(to, " %d\n", marked);
}

/* Writes points first .. end - 1 as one line or as two, their lowest and their highest values. The two get
 * different x, the run's first and its middle, so that the line does not jump back. A band has no lowest
 * value: a run that touches it is in it. */
static void plot_put_run(const struct plot_file *f, FILE *to, const void *user, int64_t first, int64_t end) {
    const struct svi_plot *p = f->plot;
    double low[SVI_PLOT_COLUMNS], high[SVI_PLOT_COLUMNS], v[SVI_PLOT_COLUMNS], x, begin, middle = 0;
    p->point(user, first, &begin, low);
    memcpy(high, low, sizeof high);
    for (int64_t i = first; i < end; i++) {
        p->point(user, i, &x, v);
        middle = i == first + (end - first) / 2 ? x : middle;
        for (int j = 0; j < p->columns; j++) {
            low[j] = fmin(low[j], v[j]);
            high[j] = fmax(high[j], v[j]);
        }
    }
    for (int j = 0; j < p->columns; j++)
        low[j] = f->bands[j] ? high[j] : low[j];
    if (end - first > 1)
        plot_put_point(p, to, begin, low, false);
    plot_put_point(p, to, middle, high, high[p->marked] > p->mark_above);
}

/* The name of a block: `$data` of the plot, or of the panel of that number. */
static const char *plot_block(char out[BLOCK_NAME], const struct svi_plot *p, const char *what, int panel) {
    if (panel < 0 || (strcmp(what, "data") == 0 && p->panels[panel].n == 0))
        snprintf(out, BLOCK_NAME, "$%s", what);
    else
        snprintf(out, BLOCK_NAME, "$%s%d", what, panel);
    return out;
}

static void plot_put_data(const struct plot_file *f, FILE *to, int panel) {
    const struct svi_plot *p = f->plot;
    const void *user = panel < 0 ? p->user : p->panels[panel].user;
    char block[BLOCK_NAME];
    /* At most POINTS_MAX runs, of equal length but the last. */
    const int64_t n = panel < 0 ? p->n : p->panels[panel].n, run = (n + POINTS_MAX - 1) / POINTS_MAX;
    if (n == 0)
        return;
    fprintf(to, "%s << END\n", plot_block(block, p, "data", panel));
    for (int64_t i = 0; i < n; i += run)
        plot_put_run(f, to, user, i, i + run < n ? i + run : n);
    fputs("END\n", to);
}

/* The ends of the x axis. Points are in order, so the first and the last give their range. */
static void plot_extend(const struct svi_plot *p, const void *user, int64_t n, double *first, double *last) {
    double x, v[SVI_PLOT_COLUMNS];
    for (int64_t i = 0; i<n; i += n> 1 ? n - 1 : 1) {
        p->point(user, i, &x, v);
        *first = fmin(*first, x);
        *last = fmax(*last, x);
    }
}

static void plot_ends(const struct svi_plot *p, double *first, double *last) {
    *first = INFINITY;
    *last = -INFINITY;
    plot_extend(p, p->user, p->n, first, last);
    for (int k = 0; k < p->panel_count; k++) {
        const struct svi_plot_panel *panel = &p->panels[k];
        plot_extend(p, panel->user, panel->n, first, last);
        for (int i = 0; i < panel->dot_count; i++) {
            *first = fmin(*first, panel->dots[i].x);
            *last = fmax(*last, panel->dots[i].x);
        }
    }
}

/* The dots and boxes of a panel, within its range. */
static void plot_put_extras(const struct svi_plot *p, FILE *to, int k, double first, double last) {
    const struct svi_plot_panel *panel = &p->panels[k];
    char block[BLOCK_NAME];
    if (panel->dot_count > 0)
        fprintf(to, "%s << END\n", plot_block(block, p, "dots", k));
    for (int i = 0; i < panel->dot_count; i++) {
        const double y = isnan(panel->dots[i].y) ? panel->low : panel->dots[i].y;
        fprintf(to, "%.15g %.9g\n", panel->dots[i].x, fmax(panel->low, fmin(y, panel->high)));
    }
    fputs(panel->dot_count > 0 ? "END\n" : "", to);
    if (panel->box_count > 0)
        fprintf(to, "%s << END\n", plot_block(block, p, "boxes", k));
    for (int i = 0; i < panel->box_count; i++) {
        const struct svi_plot_box *b = &panel->boxes[i];
        const double from = fmax(first, b->first), to_x = fmin(last, b->last);
        const double width = fmax(to_x - from, (last - first) / BOX_WIDTH);
        fprintf(to, "%.15g %.15g %.9g %.9g\n", from, fmin(last, from + width),
                fmax(panel->low, fmin(b->low, panel->high)), fmax(panel->low, fmin(b->high, panel->high)));
    }
    fputs(panel->box_count > 0 ? "END\n" : "", to);
}

/* Sets up the x axis. Steps of a time axis divide a day or are whole days; the smallest one that gives at
 * most TICKS_MAX ticks is used, and labels contain only what distinguishes them. If all points share one x,
 * the range is widened. */
static void plot_put_axis(const struct svi_plot *p, FILE *to, double first, double last) {
    static const struct {
        double step; /* seconds */
        const char *format;
    } ticks[] = {
        {1, "%H:%M:%S"},        {2, "%H:%M:%S"},        {5, "%H:%M:%S"},       {10, "%H:%M:%S"},
        {30, "%H:%M:%S"},       {60, "%H:%M"},          {120, "%H:%M"},        {300, "%H:%M"},
        {600, "%H:%M"},         {1800, "%H:%M"},        {3600, "%H:%M"},       {7200, "%H:%M"},
        {14400, "%m-%d %H:%M"}, {43200, "%m-%d %H:%M"}, {86400, "%Y-%m-%d"},   {172800, "%Y-%m-%d"},
        {604800, "%Y-%m-%d"},   {1209600, "%Y-%m-%d"},  {2592000, "%Y-%m-%d"}, {7776000, "%Y-%m-%d"}};
    const size_t count = sizeof ticks / sizeof *ticks;
    const char *const quote = p->times ? "'" : "";
    const double wide = first == last ? 1 : 0;
    size_t i = 0;
    while (i < count && fabs(last - first) > TICKS_MAX * ticks[i].step)
        i++;
    if (p->times)
        fprintf(to, "set xdata time\nset timefmt '%%s'\nset format x '%s'\n",
                i < count ? ticks[i].format : "%Y-%m");
    if (p->times && i < count)
        fprintf(to, "set xtics %.0f\n", ticks[i].step);
    fprintf(to, "set xrange [%s%.15g%s:%s%.15g%s]\n", quote, first - wide, quote, quote, last + wide, quote);
}

static void plot_put_title(FILE *to, const char *title) {
    fputs(title ? " title " : " notitle", to);
    if (title)
        plot_put_quoted(to, title);
}

static void plot_put_series(const struct svi_plot *p, int k, FILE *to, const struct svi_plot_series *s,
                            int *line) {
    static const char *const colors[] = {"#1f77b4", "#2ca02c", "#9467bd", "#8c564b"};
    const struct svi_plot_panel *panel = &p->panels[k];
    const int column = s->column + 2, flag = p->columns + 2;
    char block[BLOCK_NAME];
    const bool fixed = panel->low < panel->high; /* a band fills the panel only if its range is known */
    fprintf(to, "%s using 1:", plot_block(block, p, "data", k));
    if (s->kind == SVI_PLOT_BAND && fixed)
        fprintf(to, "($%d > 0 ? %.9g : %.9g) with filledcurves y1=%.9g lc rgb '#dddddd'", column, panel->high,
                panel->low, panel->low);
    else if (s->kind == SVI_PLOT_LINE)
        fprintf(to, "%d with lines lw 1.3 lc rgb '%s'", column, colors[(*line)++ % 4]);
    else if (s->kind == SVI_PLOT_PALE)
        fprintf(to, "%d with lines lw 0.7 lc rgb '#86afd6'", column);
    else if (s->kind == SVI_PLOT_BAND)
        fprintf(to, "%d with filledcurves y1=0 lc rgb '#dddddd'", column);
    else if (s->kind == SVI_PLOT_LEVEL)
        fprintf(to, "(%.9g) with lines dt 2 lc rgb '#555555'", s->level);
    else
        fprintf(to, "($%d > 0 ? $%d : NaN) with points pt 7 ps 0.6 lc rgb '" MARK "'", flag, column);
    plot_put_title(to, s->title);
}

/* What is drawn first lies below: bands of the data, then boxes, then lines, then dots. */
static void plot_put_all(const struct svi_plot *p, FILE *to, int k) {
    const struct svi_plot_panel *panel = &p->panels[k];
    const char *comma = "plot ";
    char block[BLOCK_NAME];
    int lines = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < panel->count; i++) {
            if ((panel->series[i].kind == SVI_PLOT_BAND) != (pass == 0))
                continue;
            fputs(comma, to);
            plot_put_series(p, k, to, &panel->series[i], &lines);
            comma = ", ";
        }
        if (pass == 0 && panel->box_count > 0) {
            fprintf(to, "%s%s using 1:3:1:2:3:4 with boxxyerror fs solid noborder lc rgb '#cfe6cf'", comma,
                    plot_block(block, p, "boxes", k));
            plot_put_title(to, panel->box_title);
            comma = ", ";
        }
    }
    if (panel->dot_count > 0) {
        fprintf(to, "%s%s using 1:2 with points pt 7 ps 0.6 lc rgb '" MARK "'", comma,
                plot_block(block, p, "dots", k));
        plot_put_title(to, panel->dot_title);
    }
    fputc('\n', to);
}

static void plot_put_panel(const struct svi_plot *p, FILE *to, int k, bool lowest) {
    const struct svi_plot_panel *panel = &p->panels[k];
    /* Only the lowest panel carries the label of the common axis. */
    if (lowest && p->x_label) {
        fputs("set xlabel ", to);
        plot_put_quoted(to, p->x_label);
        fputs(" noenhanced\n", to);
    }
    if (panel->title) {
        fputs("set title ", to);
        plot_put_quoted(to, panel->title);
        fputs(" noenhanced\n", to);
    }
    fputs("set ylabel ", to);
    plot_put_quoted(to, panel->label);
    fputs(" noenhanced\nset key above\n", to);
    if (panel->low < panel->high)
        fprintf(to, "set yrange [%.9g:%.9g]\n", panel->low, panel->high);
    else
        fputs("set autoscale y\n", to);
    plot_put_all(p, to, k);
    fputs(panel->title ? "unset title\n" : "", to);
}

/* Margins are fixed, so that the x axes of all panels line up. */
static void plot_put_script(const struct plot_file *f, FILE *to) {
    const struct svi_plot *p = f->plot;
    double first, last;
    plot_ends(p, &first, &last);
    fprintf(to, "set terminal %s size 800,%d background '#ffffff' font 'sans,11'\n",
            f->png ? "pngcairo" : "svg", 250 * p->panel_count);
    plot_put_data(f, to, -1);
    for (int k = 0; k < p->panel_count; k++) {
        plot_put_data(f, to, k);
        plot_put_extras(p, to, k, first, last);
    }
    fprintf(to,
            "set multiplot layout %d,1\nset lmargin 12\nset rmargin 4\nset tics nomirror\n"
            "set autoscale xfix\nset border 3 lc rgb '#777777'\nset grid lt 1 lw 0.5 lc rgb '#e4e4e4'\n",
            p->panel_count);
    plot_put_axis(p, to, first, last);
    for (int j = 0; j < p->panel_count; j++)
        plot_put_panel(p, to, j, j == p->panel_count - 1);
    fputs("unset multiplot\n", to);
}

/* ---- the process */

/* Starts gnuplot with its standard output on `out`; *in receives the pipe for the script. Returns an errno, 0
 * on success. The pipe is close-on-exec, so that gnuplot does not hold its own write end and sees the end of
 * the script. */
static int plot_start(int out, pid_t *child, int *in) {
    static char *const words[] = {"gnuplot", "-d", "-", NULL}; /* -d: ignore the user's settings */
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure == 0) {
        failure = posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
        if (failure == 0)
            failure = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (failure == 0)
            failure = posix_spawnp(child, words[0], &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    /* The child has its copy; ours would keep the pipe open after it ends. */
    close(ends[0]);
    *in = ends[1];
    if (failure != 0)
        close(ends[1]);
    return failure;
}

static svs_code plot_finish(pid_t child, svs_error *err) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return SVS_OK;
    return svi_fail(err, SVS_IO, "gnuplot failed: see its message above");
}

static svs_code plot_draw(void *user, FILE *to, svs_error *err) {
    const struct plot_file *f = user;
    struct sigaction before, ignore = {.sa_handler = SIG_IGN};
    pid_t child = 0;
    int in = -1;
    const int failure = plot_start(fileno(to), &child, &in);
    if (failure == ENOENT)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "--plot needs gnuplot, which is not installed (Debian: apt install gnuplot-nox)");
    if (failure != 0)
        return svi_fail(err, SVS_IO, "cannot start gnuplot: %s", strerror(failure));
    /* if gnuplot ends early, its exit code is what counts, not our failed write */
    sigaction(SIGPIPE, &ignore, &before);
    FILE *script = fdopen(in, "w");
    if (script) {
        plot_put_script(f, script);
        fclose(script);
    } else
        close(in);
    /* Waited for in any case, so that no zombie is left. */
    svs_code code = plot_finish(child, err);
    sigaction(SIGPIPE, &before, NULL);
    return code;
}

svs_code svi_plot_write(const char *path, const struct svi_plot *p, svs_error *err) {
    struct plot_file f = {.plot = p, .png = svi_ends_with(path, strlen(path), ".png")};
    /* Bands are marked in advance: the data block is written before the panels. */
    for (int i = 0; i < p->panel_count; i++)
        for (int k = 0; k < p->panels[i].count; k++)
            if (p->panels[i].series[k].kind == SVI_PLOT_BAND)
                f.bands[p->panels[i].series[k].column] = true;
    return svi_file_write(path, plot_draw, &f, err);
}
