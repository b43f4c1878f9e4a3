/* eval: the whole engine on a file, without sockets: test, then train, row by row.
 *
 * The engine is that of `run`. It sends no events but refusals, of which the first are reported with their
 * lines; refits run between two rows, so that the result depends on the file alone; the clock is read every
 * CLOCK_ROWS rows. What is printed are the engine's own figures: a table or one JSON object at the end, and
 * lines on the way (server/live_figures.h): to standard error at rows 1, 2, 4, 8, ..., or to standard output
 * every N rows on request. Read take_all first, then cmd_eval_finish. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrival_clock.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/object.h"
#include "report/class_report.h"
#include "report/progress.h"
#include "report/quality_plot.h"
#include "features/cells.h"
#include "formats/file_io.h"
#include "formats/plot.h"
#include "server/ingest_stdin.h"
#include "server/live_figures.h"
#include "server/verdict.h"
#include "wire/pack.h"

#define CLOCK_ROWS 1024 /* rows between two looks at the clock and the progress line */
#define REPORTED   5    /* refused rows reported in full */

struct eval {
    const struct cli_args *args;
    svi_engine *engine;
    svi_reader *reader;
    int64_t row, refused;
    bool located; /* the refusal names its line itself */
    bool regress; /* what is learned is a number */
    struct svi_arrival_clock clock;
    double now;
    struct svi_progress progress;
    struct svi_live_figures live;
    struct svi_quality_plot *plot; /* NULL = none is asked for */
    struct svi_quality_row last;   /* what the engine said of the row in hand */
    bool accepted;                 /* with `plot`: it was */
};

static void cmd_eval_refused(struct eval *e, const struct svi_event *event) {
    const char *bytes;
    size_t length;
    if (e->refused++ >= REPORTED)
        return;
    if (e->located)
        cli_fail(e->args, "%s", event->as.error.reason);
    else
        cli_fail(e->args, "line %" PRId64 ": %s", svi_reader_line(e->reader, &bytes, &length),
                 event->as.error.reason);
}

/* A score comes when the row is accepted, before its alert. */
static void cmd_eval_sink(void *user, const struct svi_event *event) {
    struct eval *e = user;
    if (event->topic == SVI_TOPIC_ERROR)
        cmd_eval_refused(e, event);
    if (event->topic == SVI_TOPIC_SCORE) {
        e->last = (struct svi_quality_row){.novelty = event->as.score.judged ? event->as.score.novelty : NAN};
        e->accepted = true;
    }
    if (event->topic == SVI_TOPIC_ALERT && !event->as.alert.measure) /* of novelty: a dot on its line */
        e->last.alert = e->last.alert || strcmp(event->as.alert.state, "open") == 0;
}

static const char *const classify[] = {"accuracy",      "balanced_accuracy",
                                       "gmean",         "accuracy_commonest",
                                       "accuracy_same", "kappa",
                                       "kappa_t",       "f1",
                                       "auc",           "ap",
                                       "logloss",       "brier",
                                       "ece",           NULL};
static const char *const regress[] = {"rmse", "rmse_same", "rmse_mean",      "mae",
                                      "r2",   "coverage",  "interval_width", NULL};

static const char *const *quality_names(const struct eval *e) {
    return e->regress ? regress : classify;
}

static double cmd_eval_rate(const struct eval *e, double seconds) {
    return seconds > 0 ? (double)e->row / seconds : 0;
}

/* The progress line makes way for it. */
static void cmd_eval_show_figures(struct eval *e) {
    svi_progress_clear(&e->progress);
    svi_live_figures_show(&e->live);
}

static void look_up(struct eval *e) {
    int64_t size, at = svi_reader_position(e->reader, &size);
    e->now = svi_arrival_clock_now(&e->clock);
    if (svi_live_figures_wait(&e->live) <= 0)
        cmd_eval_show_figures(e);
    svi_progress_show(&e->progress, e->row, (double)at, (double)size, NULL);
}

/* One row, whether it was readable or not: what cannot be read is refused by the engine too, so that it is
 * counted by its code and in the order of the file. */
static void cmd_eval_take(struct eval *e, enum svi_read what, struct svi_message *m, const svs_error *why) {
    const char *bytes;
    size_t length;
    svi_reader_line(e->reader, &bytes, &length);
    e->accepted = false;
    e->located = what == SVI_READ_BAD;
    if (what == SVI_READ_BAD)
        svi_engine_refuse(e->engine, why->code, why->text, bytes, length, e->now);
    else if (e->args->settings.calendar[0] && isnan(m->ts)) /* the time of today says nothing about the row */
        svi_engine_refuse(e->engine, SVS_SETTING,
                          "the setting calendar needs the row's time: name its column by --ts", bytes, length,
                          e->now);
    else
        svi_engine_message(e->engine, m, bytes, length, e->now, NULL);
    svi_engine_refit_here(e->engine); /* between two rows: the result depends on the file alone */
    e->row++;
    if (e->plot)
        svi_engine_settle(e->engine);
    if (e->plot && e->accepted) {
        e->last.row = (double)e->row;
        e->last.time = m->ts;
        svi_quality_plot_add(e->plot, &e->last, e->engine);
    }
    if (svi_live_figures_due(&e->live, e->row))
        cmd_eval_show_figures(e);
    if (e->row % CLOCK_ROWS == 0)
        look_up(e);
}

static svs_code take_all(struct eval *e, svs_error *err) {
    struct svi_message m;
    svs_error why;
    for (;;) {
        enum svi_read what = svi_reader_row(e->reader, &m, &why);
        if (what == SVI_READ_END)
            return SVS_OK;
        if (what == SVI_READ_FAIL)
            return svi_fail(err, why.code, "%s: %s", e->args->positional[0], why.text);
        cmd_eval_take(e, what, &m, &why);
    }
}

/* The figure that counts most comes last. The classes are asked for before the figures: both are lists of the
 * engine, and the second ends the first. */
static void print_table(struct eval *e, double seconds) {
    const struct svi_figure *f;
    const char *const *names = quality_names(e);
    struct svi_class_table classes;
    printf("%-18s %" PRId64 "\n%-18s %" PRId64 "\n%-18s %.3f\n%-18s %.0f\n", "rows", e->row, "refused",
           svi_engine_errors(e->engine), "seconds", seconds, "rows/s", cmd_eval_rate(e, seconds));
    svi_engine_class_table(e->engine, false, &classes);
    svi_class_report_write(stdout, &classes, classes.count == 2 ? 1 : -1);
    const int count = svi_engine_figures(e->engine, e->now, &f);
    const double alarms = svi_figure_value(f, count, "quality_alerts");
    if (alarms > 0)
        printf("%-18s %.0f\n", "quality_alerts", alarms);
    for (int i = 1; names[i]; i++)
        if (!isnan(svi_figure_value(f, count, names[i])))
            printf("%-18s %.4f\n", names[i], svi_figure_value(f, count, names[i]));
    if (!isnan(svi_figure_value(f, count, names[0])))
        printf("%s %.3f\n", names[0], svi_figure_value(f, count, names[0]));
}

/* All that the stats have, and what is too long for them: every class, and how each was taken for which. */
static svs_code print_json(struct eval *e, double seconds, svs_error *err) {
    const struct svi_figure *f;
    const int count = svi_engine_figures(e->engine, e->now, &f);
    struct svi_class_table classes;
    struct svi_bytes map = {0};
    struct svi_pack p;
    svi_engine_class_table(e->engine, true, &classes);
    svi_pack_begin(&p, &map);
    svi_pack_map(&p, (size_t)(count + svi_class_table_keys(&classes)) + 2);
    svi_put_int(&p, "rows", e->row);
    svi_put_real(&p, "seconds", round(seconds * 1e6) / 1e6);
    for (int i = 0; i < count; i++)
        svi_put_figure(&p, &f[i]);
    svi_put_class_table(&p, &classes);
    svs_code code = svi_pack_end(&p);
    code = code == SVS_OK ? cli_show_json(map.data, map.size, err) : svi_fail_memory(err, "the result");
    svi_bytes_clear(&map);
    return code;
}

/* With what `predict` needs to read the same log: which of its columns were passed over is known by now. */
static svs_code write_model(struct eval *e, const char *path, svs_error *err) {
    svs_model m;
    const struct svi_figure *quality;
    int count;
    struct svi_bytes bytes = {0};
    svs_code code = svi_cells_note_unused(svi_engine_schema(e->engine), e->reader, err);
    if (code == SVS_OK)
        code = svi_engine_model(e->engine, &m, &quality, &count, err);
    if (code == SVS_OK && (code = svi_model_encode(&m, quality, count, &bytes)) != SVS_OK)
        svi_fail_memory(err, "the model");
    if (code == SVS_OK)
        code = svi_file_write_bytes(path, &bytes, err);
    svi_bytes_clear(&bytes);
    return code;
}

/* A file of which no row was taken is a failure; one with some refused rows is not, but it is said how many.
 */
static svs_code cmd_eval_finish(struct eval *e, svs_error *err) {
    svs_code code = take_all(e, err);
    svi_engine_settle(e->engine);
    double seconds = svi_progress_end(&e->progress);
    if (svi_reader_headers(e->reader) > 0 && !e->args->quiet)
        fprintf(stderr, "%" PRId64 " lines repeat the header: passed over\n", svi_reader_headers(e->reader));
    char reasons[SVS_ERROR_TEXT];
    svs_code most;
    svi_code_counts(svi_engine_refusals(e->engine), reasons, sizeof reasons, &most);
    if (code == SVS_OK && e->row > 0 && e->refused == e->row)
        return svi_fail(err, most, "all %" PRId64 " rows were refused: %.180s", e->row, reasons);
    if (e->refused > 0)
        cli_fail(e->args, "%" PRId64 " of %" PRId64 " rows were refused: %s", e->refused, e->row, reasons);
    if (code == SVS_OK && cli_has(e->args, "model-out"))
        code = write_model(e, cli_value(e->args, "model-out"), err);
    if (code == SVS_OK && e->plot)
        code = svi_quality_plot_write(e->plot, cli_value(e->args, "plot"), e->engine, err);
    if (code == SVS_OK && !e->args->quiet) {
        fflush(stdout);
        svi_verdict_write(e->engine, e->now, stderr);
    }
    if (code == SVS_OK && cli_has(e->args, "json"))
        return print_json(e, seconds, err);
    if (code == SVS_OK)
        print_table(e, seconds);
    return code;
}

/* The file comes first: what its label is may say what is learned. */
static svs_code cmd_eval_open(struct eval *e, struct svi_settings *s, svs_error *err) {
    struct svi_reader_options o = svi_ingest_stdin_options(s);
    o.task_follows = true;
    e->reader = svi_reader_open(e->args->positional[0], &o, NULL, err);
    if (!e->reader || svi_reader_settle(e->reader, err) != SVS_OK)
        return err->code;
    if (!o.task_given)
        s->task = (int)svi_reader_task(e->reader);
    e->regress = s->task == SVS_REGRESS;
    if (svi_reader_note(e->reader) && !e->args->quiet)
        fprintf(stderr, "%s\n", svi_reader_note(e->reader));
    e->engine = svi_engine_new(s, 0, cmd_eval_sink, e, err);
    if (!e->engine)
        return err->code;
    svi_reader_shape(e->reader, &svi_engine_schema(e->engine)->shape);
    if (svi_settings_two_threads(s))
        svi_engine_second_thread(e->engine);
    svi_engine_leave_open(e->engine, true);
    return SVS_OK;
}

static int cmd_eval_run(const struct cli_args *a) {
    struct eval e = {.args = a};
    const int64_t every = cli_integer(a, "every");
    struct svi_settings s = a->settings;
    svs_error err = {0};
    if (!svi_settings_given(&s, svi_settings_row("alert.interval"))) /* when rows are read tells nothing */
        s.alert_interval = SVI_FILE_INTERVAL;
    svi_arrival_clock_start(&e.clock);
    e.now = svi_arrival_clock_now(&e.clock);
    if (every > 0 && cli_has(a, "json"))
        return cli_usage(a, "--every prints lines of a table: it does nothing with --json");
    if (cli_has(a, "plot") && !svi_plot_takes(cli_value(a, "plot")))
        return cli_usage(a, "--plot takes a file name that ends in .svg or .png, not %s",
                         cli_value(a, "plot"));
    if (cli_has(a, "plot") && !(e.plot = svi_alloc(sizeof *e.plot)))
        return cli_end(a, svi_fail_memory(&err, "the plot"), &err);
    s.scores = e.plot ? SVI_SCORES_ALL : SVI_SCORES_NONE; /* events that nobody reads would only cost time */
    s.publish_every = 0;
    s.publish_seconds = 0;
    svs_code code = cmd_eval_open(&e, &s, &err);
    svi_progress_begin(&e.progress, a->quiet);
    if (code == SVS_OK)
        svi_live_figures_begin(&e.live,
                               every > 0                        ? stdout
                               : a->quiet || cli_has(a, "json") ? NULL
                                                                : stderr,
                               e.engine, every);
    code = code == SVS_OK ? cmd_eval_finish(&e, &err) : code;
    svi_reader_close(&e.reader);
    svi_engine_free(&e.engine);
    svi_free(e.plot);
    return cli_end(a, code, &err);
}

static const struct cli_option options[] = {
    CLI_INTEGER("every", 0, "N", "0", 0, CLI_UNLIMITED,
                "print a line of figures after every N rows, to standard output"),
    CLI_SWITCH("json", 0, "print the result as one JSON object"),
    CLI_OPTION(
        "plot", 0, "FILE", NULL,
        "draw quality, novelty and alerts over the rows, or over their times (.svg or .png; needs gnuplot)"),
    CLI_OPTION("model-out", 0, "FILE", NULL, "write the last model here, for `svmstream model`"), CLI_END};

const struct cli_command cli_eval = {
    .name = "eval",
    .text = "measure the engine on a file: each row is predicted, then learned",
    .usage = "FILE",
    .help =
        "Runs the engine of `run` over a file without sockets and prints its prequential quality, with a\n"
        "table of classes; the last line is the accuracy (or the rmse with --task regress). What the\n"
        "figures come to is said on standard error: a class that was never found, a learner that is no\n"
        "better than always saying the commonest class. Figures on the way go to standard\n"
        "error, at rows 1, 2, 4, 8, ... and on a terminal every second; or with --every N to standard\n"
        "output.\n"
        "\n"
        "  svmstream eval --label rain weather.csv.gz\n"
        "  svmstream eval --plot quality.svg examples/occupancy.csv.gz\n"
        "  svmstream eval --window 500 --every 5000 --model-out m.msgpack a9a.svm",
    .keys = "in.format stream task method C window window.seconds forget scale class.weight decision.cost "
            "interval "
            "features label "
            "id ts weight "
            "columns no-header categories numbers ignore missing.words unscaled categories.max hash calendar "
            "zone drift. "
            "columns.new missing refit refit. serve novelty novelty. alert. labels. ts.ahead max.features "
            "max.classes "
            "threads seed",
    .options = options,
    .run = cmd_eval_run};
