/* A picture of a feed and its scores, drawn by gnuplot.
 *
 * gnuplot is started without a shell and without a file name: it reads the script from a pipe and writes to
 * the descriptor that it is given, and all names in the script are quoted. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "cli/novelty.h"
#include "wire/envelope.h"

#define PANELS_MAX 3 /* features drawn */
#define POINTS_MAX                                                                                           \
    4000 /* rows drawn one by one; of more, runs are drawn by their lowest and highest values */
#define NAME_ROOM 80
#define LINE      "#1f77b4"
#define ALERT     "#d62728"

extern char **environ;

struct plot {
    const struct cli_novelty_rows *rows;
    const double *novelty;
    double threshold;
    bool png;
    int panels;
};

static bool ends_in(const char *path, const char *ending) {
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

bool cli_novelty_plots(const char *path) {
    return ends_in(path, ".svg") || ends_in(path, ".png");
}

/* ---- the script */

/* 'text' as gnuplot reads it: a quote is doubled, nothing else has a meaning between single ones. */
static void put_quoted(FILE *to, const char *text) {
    char plain[NAME_ROOM];
    svi_escape(plain, sizeof plain, text, strlen(text));
    fputc('\'', to);
    for (const char *c = plain; *c; c++)
        fputs(*c == '\'' ? "''" : (char[2]){*c, '\0'}, to);
    fputc('\'', to);
}

static double time_of(const struct plot *p, int64_t i) {
    return p->rows->ts ? p->rows->ts[i] : (double)(i + p->rows->skipped + 1);
}

/* The features drawn and the novelty of row i. */
static void values_of(const struct plot *p, int64_t i, double *v) {
    const svs_rows *rows = &p->rows->rows;
    for (int j = 0; j < p->panels; j++)
        v[j] = 0;
    if (rows->dense)
        memcpy(v, rows->dense + i * rows->stride, (size_t)p->panels * sizeof *v);
    else
        for (int64_t k = rows->start[i]; k < rows->start[i + 1] && rows->column[k] < p->panels; k++)
            v[rows->column[k]] = rows->value[k];
    v[p->panels] = p->novelty[i];
}

static void put_line(const struct plot *p, FILE *to, double time, const double *v, bool alert,
                     bool anomalous) {
    if (isnan(time))
        return;
    fprintf(to, "%.15g", time);
    for (int j = 0; j <= p->panels; j++)
        fprintf(to, " %.9g", v[j]);
    fprintf(to, " %d %d\n", alert, anomalous);
}

/* Rows first .. end - 1 as one line, or as two: their lowest and their highest values. */
static void put_run(const struct plot *p, FILE *to, int64_t first, int64_t end) {
    double low[PANELS_MAX + 1], high[PANELS_MAX + 1], v[PANELS_MAX + 1];
    bool anomalous = false;
    values_of(p, first, low);
    memcpy(high, low, sizeof high);
    for (int64_t i = first; i < end; i++) {
        values_of(p, i, v);
        anomalous = anomalous || p->rows->anomaly[i] == 1;
        for (int j = 0; j <= p->panels; j++) {
            low[j] = fmin(low[j], v[j]);
            high[j] = fmax(high[j], v[j]);
        }
    }
    if (end - first > 1)
        put_line(p, to, time_of(p, first), low, false, anomalous);
    put_line(p, to, time_of(p, first + (end - first) / 2), high, high[p->panels] > p->threshold, anomalous);
}

static void put_data(const struct plot *p, FILE *to) {
    const int64_t n = p->rows->rows.n, run = (n + POINTS_MAX - 1) / POINTS_MAX;
    fputs("$feed << END\n", to);
    for (int64_t i = 0; i < n; i += run)
        put_run(p, to, i, i + run < n ? i + run : n);
    fputs("END\n", to);
}

static void put_times(const struct plot *p, FILE *to) {
    const struct cli_novelty_rows *r = p->rows;
    if (!r->ts)
        return;
    const double span = r->ts[r->rows.n - 1] - r->ts[0];
    fprintf(to, "set xdata time\nset timefmt '%%s'\nset format x '%s'\n",
            span > 2 * 86400 ? "%Y-%m-%d" : "%H:%M:%S");
}

static void put_panel(const struct plot *p, FILE *to, int j) {
    char number[16];
    snprintf(number, sizeof number, "x%d", j + 1);
    fputs("set ylabel ", to);
    put_quoted(to, p->rows->names ? p->rows->names[j] : number);
    fprintf(to,
            " noenhanced\nplot $feed using 1:%d with lines lc rgb '" LINE "' notitle, "
            "$feed using 1:($%d > 0 ? $%d : NaN) with points pt 7 ps 0.5 lc rgb '" ALERT "' notitle\n",
            j + 2, p->panels + 3, j + 2);
}

static void put_scores(const struct plot *p, FILE *to) {
    const int novelty = p->panels + 2;
    fprintf(to, "set ylabel 'novelty'\nset yrange [0:1.05]\nset key above\nplot ");
    if (p->rows->anomalous > 0)
        fprintf(to, "$feed using 1:%d with filledcurves y1=0 lc rgb '#dddddd' title 'labelled', ",
                novelty + 2);
    fprintf(to,
            "$feed using 1:%d with lines lc rgb '" LINE "' notitle, "
            "$feed using 1:(%.9g) with lines dt 2 lc rgb '#555555' title 'threshold %.4g', "
            "$feed using 1:($%d > 0 ? $%d : NaN) with points pt 7 ps 0.5 lc rgb '" ALERT
            "' title 'above it'\n",
            novelty, p->threshold, p->threshold, novelty + 1, novelty);
}

static void put_script(const struct plot *p, FILE *to) {
    fprintf(to, "set terminal %s size 1000,%d background '#ffffff'\n", p->png ? "pngcairo" : "svg",
            200 * (p->panels + 1));
    put_data(p, to);
    fprintf(to,
            "set multiplot layout %d,1\nset lmargin 12\nset rmargin 4\nset tics nomirror\n"
            "set autoscale xfix\n",
            p->panels + 1);
    put_times(p, to);
    for (int j = 0; j < p->panels; j++)
        put_panel(p, to, j);
    put_scores(p, to);
    fputs("unset multiplot\n", to);
}

/* ---- the process */

/* Starts gnuplot with its standard output on `out`; *in is where the script goes. Returns an errno. */
static int start(int out, pid_t *child, int *in) {
    static char *const words[] = {"gnuplot", "-d", "-", NULL}; /* -d: no settings of the user's */
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
    close(ends[0]);
    *in = ends[1];
    if (failure != 0)
        close(ends[1]);
    return failure;
}

static svs_code finish(pid_t child, svs_error *err) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return SVS_OK;
    return svi_fail(err, SVS_IO, "gnuplot could not draw the plot: see what it said");
}

static svs_code draw(void *user, FILE *to, svs_error *err) {
    const struct plot *p = user;
    struct sigaction before, ignore = {.sa_handler = SIG_IGN};
    pid_t child = 0;
    int in = -1;
    const int failure = start(fileno(to), &child, &in);
    if (failure == ENOENT)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "--plot needs gnuplot, which is not there: install it (Debian: apt install gnuplot-nox)");
    if (failure != 0)
        return svi_fail(err, SVS_IO, "gnuplot could not be started: %s", strerror(failure));
    sigaction(SIGPIPE, &ignore, &before); /* a gnuplot that gives up is known by its exit code */
    FILE *script = fdopen(in, "w");
    if (script) {
        put_script(p, script);
        fclose(script);
    } else
        close(in);
    svs_code code = finish(child, err);
    sigaction(SIGPIPE, &before, NULL);
    return code;
}

svs_code cli_novelty_plot(const char *path, const struct cli_novelty_rows *r, const double *novelty,
                          double threshold, svs_error *err) {
    struct plot p = {.rows = r,
                     .novelty = novelty,
                     .threshold = threshold,
                     .png = ends_in(path, ".png"),
                     .panels = r->width < PANELS_MAX ? r->width : PANELS_MAX};
    return svi_file_write(path, draw, &p, err);
}
