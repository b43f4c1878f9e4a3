/* eval: the whole engine on a file, without sockets: test, then train, row by row.
 *
 * The engine is that of `run`. Of its events only refusals are printed, the first ones with their
 * lines. Refits run between two rows, so that the result depends on the file alone; the clock is
 * read every CLOCK_ROWS rows. All printed figures are the engine's own. A table or one JSON object
 * is printed at the end, and lines on the way (report/live_figures.h). These go to standard error
 * at rows 1, 2, 4, 8, ..., or on request to standard output every N rows. With --alerts the file is
 * read once per alert budget, each time by a new engine.
 *
 * In order of reading: take_all (one pass over the file), cmd_eval_finish (figures), cmd_eval_pass (alerts).
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrival_clock.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/preview_options.h"
#include "cli/object.h"
#include "fleet/fleet.h"
#include "report/key_quality.h"
#include "report/quality_report.h"
#include "report/progress.h"
#include "report/quality_plot.h"
#include "features/cells.h"
#include "formats/file_io.h"
#include "report/plot.h"
#include "report/live_figures.h"
#include "report/verdict.h"

#define CLOCK_ROWS 1024 /* rows between two updates of the clock and the progress line */
#define REPORTED   5    /* refused rows, and notices, that are reported in full */

struct eval {
    const struct cli_args *args;
    struct svi_settings s;
    svi_stream *stream;
    svi_reader *reader;
    int64_t row, refused, noticed, reasons[SVS_CODE_COUNT];
    bool located; /* the text of a refusal names its line already */
    struct svi_arrival_clock clock;
    double now;
    struct svi_progress progress;
    struct svi_live_figures live;
    struct svi_quality_plot *plot; /* NULL: no plot */
    struct svi_quality_row last;   /* results of the current row */
    bool accepted;                 /* the current row was accepted */
    struct svi_alert_log *log;     /* with --alerts, else NULL */
    bool silent;                   /* a later pass: refusals were reported by the first */
    double latest;                 /* with `log`: the latest time stamp, -INFINITY = none so far */
    char note[60];                 /* appended to the progress line */
};

static void cmd_eval_refused(struct eval *e, const struct svi_event *event) {
    const char *bytes;
    size_t length;
    if (svi_code_is_notice(event->as.error.code)) {
        const svs_code code = event->as.error.code;
        const bool of_row = code == SVS_NEW_CLASS || code == SVS_AMBIGUOUS_CLASS;
        if (e->silent || e->noticed++ >= REPORTED)
            return;
        if (of_row && !e->located)
            cli_fail(e->args, "line %" PRId64 ": %s", svi_reader_line(e->reader, &bytes, &length),
                     event->as.error.reason);
        else
            cli_fail(e->args, "%s", event->as.error.reason);
        return;
    }
    e->reasons[event->as.error.code]++;
    if (e->refused++ >= REPORTED || e->silent)
        return;
    if (e->located)
        cli_fail(e->args, "%s", event->as.error.reason);
    else
        cli_fail(e->args, "line %" PRId64 ": %s", svi_reader_line(e->reader, &bytes, &length),
                 event->as.error.reason);
}

/* Events of one row arrive in this order: its score, which shows that it was accepted, then its alert. */
static void cmd_eval_sink(void *user, const struct svi_event *event) {
    struct eval *e = user;
    if (e->log)
        svi_alert_log_take(e->log, event);
    if (event->topic == SVI_TOPIC_ERROR)
        cmd_eval_refused(e, event);
    if (event->topic == SVI_TOPIC_SCORE) {
        e->last = (struct svi_quality_row){.novelty = event->as.score.judged ? event->as.score.novelty : NAN};
        e->accepted = true;
    }
    if (event->topic == SVI_TOPIC_ALERT && !event->as.alert.measure) /* a novelty alert: a dot in the plot */
        e->last.alert = e->last.alert || strcmp(event->as.alert.state, "open") == 0;
}

/* Clears the progress line first, or both would share a line of the terminal. */
static void cmd_eval_show_figures(struct eval *e) {
    svi_progress_clear(&e->progress);
    svi_live_figures_show(&e->live);
}

/* Updates the clock, the live figures and the progress line. */
static void cmd_eval_update(struct eval *e) {
    int64_t size, at = svi_reader_position(e->reader, &size);
    e->now = svi_arrival_clock_now(&e->clock);
    if (svi_live_figures_wait(&e->live) <= 0)
        cmd_eval_show_figures(e);
    if (e->log && !e->silent)
        snprintf(e->note, sizeof e->note, "%" PRId64 " alerts", e->log->alerts);
    svi_progress_show(&e->progress, e->row, (double)at, (double)size, e->log ? e->note : NULL);
}

static double cmd_eval_row_seconds(const struct eval *e) {
    return e->s.alert_interval > 0 ? e->s.alert_interval : SVI_FILE_INTERVAL;
}

/* The arrival time of a row. Alerts must be a function of the file: without time stamps, alert.interval
 * passes from row to row; a single row without one gets the latest so far. The clock then serves only to
 * refuse time stamps in the future. */
static double cmd_eval_time(struct eval *e, const struct svi_message *m) {
    if (!e->log)
        return e->now;
    e->latest = isnan(m->ts) ? e->latest : fmax(e->latest, m->ts);
    if (e->log->by_rows && isnan(m->ts))
        return (double)(e->row + 1) * cmd_eval_row_seconds(e);
    return isnan(m->ts) ? e->latest : e->now;
}

/* Passes one row to the engine, readable or not: the engine refuses unreadable rows, too, so that all
 * refusals are counted by code and in the order of the file. */
static void cmd_eval_take(struct eval *e, enum svi_read what, struct svi_message *m, const svs_error *why) {
    const char *bytes;
    size_t length;
    svi_reader_line(e->reader, &bytes, &length);
    const double now = what == SVI_READ_BAD ? e->now : cmd_eval_time(e, m);
    e->accepted = false;
    e->located = what == SVI_READ_BAD;
    if (what == SVI_READ_BAD)
        svi_stream_refuse(e->stream, why->code, why->text, bytes, length, now);
    else if (e->args->settings.calendar[0] && isnan(m->ts)) /* today's time would be a wrong feature */
        svi_stream_refuse(e->stream, SVS_SETTING,
                          "calendar needs the time of each row: name its column with --ts", bytes, length,
                          now);
    else
        svi_stream_message(e->stream, m, bytes, length, now, NULL);
    svi_engine_refit_here(
        svi_stream_root(e->stream)); /* between two rows: the result depends on the file alone */
    e->row++;
    if (e->plot) /* waits for the events of this row: novelty may run in a second thread */
        svi_stream_settle(e->stream);
    if (e->plot && e->accepted) {
        e->last.row = (double)e->row;
        e->last.time = m->ts;
        svi_quality_plot_add(e->plot, &e->last, e->stream);
    }
    if (svi_live_figures_due(&e->live, e->row))
        cmd_eval_show_figures(e);
    if (e->row % CLOCK_ROWS == 0)
        cmd_eval_update(e);
}

static svs_code take_all(struct eval *e, svs_error *err) {
    struct svi_message m;
    svs_error why;
    for (bool first = e->log != NULL;;) {
        enum svi_read what = svi_reader_row(e->reader, &m, &why);
        if (what == SVI_READ_END)
            return SVS_OK;
        if (what == SVI_READ_FAIL)
            return svi_fail(err, why.code, "%s: %s", e->args->positional[0], why.text);
        if (first && what == SVI_READ_ROW) { /* the first row decides whether the log counts rows or time */
            first = false;
            if (isnan(m.ts) && svi_preview_without_times(e->log, err) != SVS_OK)
                return err->code;
        }
        cmd_eval_take(e, what, &m, &why);
    }
}

/* Prints one JSON object; `keys`: figures of a stream with keys, else NULL; of keys with at least `rows`. */
static svs_code print_json(const struct svi_quality_report *r, const struct svi_key_quality *keys,
                           int64_t rows, svs_error *err) {
    struct svi_bytes map = {0};
    svs_code code =
        keys ? svi_key_quality_pack(keys, rows, &map, err) : svi_quality_report_pack(r, &map, err);
    if (code == SVS_OK)
        code = cli_show_json(map.data, map.size, err);
    svi_bytes_clear(&map);
    return code;
}

/* Writes the model at the end of the file, because only then is it known which columns were never used;
 * `predict` needs that to read the same log. */
static svs_code write_model(struct eval *e, const char *path, svs_error *err) {
    svs_model m;
    const struct svi_figure *quality;
    int count;
    struct svi_bytes bytes = {0};
    svs_code code = svi_cells_note_unused(svi_engine_schema(svi_stream_root(e->stream)), e->reader, err);
    if (code == SVS_OK)
        code = svi_engine_model(svi_stream_root(e->stream), &m, &quality, &count, err);
    if (code == SVS_OK && (code = svi_model_encode(&m, quality, count, &bytes)) != SVS_OK)
        svi_fail_memory(err, "the model");
    if (code == SVS_OK)
        code = svi_file_write_bytes(path, &bytes, err);
    svi_bytes_clear(&bytes);
    return code;
}

/* Fails when every row was refused. A few refused rows are reported here; many, at the very end
 * (cmd_eval_end). */
static svs_code cmd_eval_taken(struct eval *e, svs_error *err) {
    char reasons[SVS_ERROR_TEXT];
    svs_code most;
    if (svi_reader_headers(e->reader) > 0 && !e->args->quiet && !e->silent)
        fprintf(stderr, "%" PRId64 " repeated header lines were skipped\n", svi_reader_headers(e->reader));
    svi_code_counts(e->reasons, reasons, sizeof reasons, &most);
    if (e->row > 0 && e->refused == e->row)
        return svi_fail(err, most, "all %" PRId64 " rows were refused: %.180s", e->row, reasons);
    if (e->refused > 0 && !e->silent && !svi_refused_many(e->refused, e->row))
        cli_fail(e->args, "%" PRId64 " of %" PRId64 " rows were refused: %s", e->refused, e->row, reasons);
    return SVS_OK;
}

/* Many refused rows are reported by the last line of output, where nobody overlooks it; if most were refused,
 * the command fails. */
static int cmd_eval_end(const struct eval *e, svs_code code, svs_error *err) {
    char reasons[SVS_ERROR_TEXT];
    svs_code most;
    if (code != SVS_OK || !svi_refused_many(e->refused, e->row))
        return cli_end(e->args, code, err);
    svi_code_counts(e->reasons, reasons, sizeof reasons, &most);
    fflush(stdout);
    cli_fail(e->args, "%" PRId64 " of %" PRId64 " rows were refused: %s", e->refused, e->row, reasons);
    return svi_refused_most(e->refused, e->row) ? CLI_FAILED : CLI_OK;
}

/* The engine settles before anything is read from it: figures of the last rows may still be in its second
 * thread. The verdict goes to standard error before the table, which then ends the output. */
static svs_code cmd_eval_finish(struct eval *e, svs_error *err) {
    svs_code code = take_all(e, err);
    svi_stream_settle(e->stream);
    const struct svi_quality_report report = {e->stream, e->row, svi_progress_end(&e->progress), e->now};
    if (code == SVS_OK)
        code = cmd_eval_taken(e, err);
    if (code == SVS_OK && cli_has(e->args, "model-out"))
        code = write_model(e, cli_value(e->args, "model-out"), err);
    if (code == SVS_OK && e->plot)
        code = svi_quality_plot_write(e->plot, cli_value(e->args, "plot"), e->stream, err);
    struct svi_key_quality *keys = NULL;
    if (code == SVS_OK && svi_settings_keyed(&e->s) && !(keys = svi_key_quality_new(&report, err)))
        code = err->code;
    if (code == SVS_OK && !e->args->quiet) {
        fflush(stdout);
        if (keys)
            svi_key_quality_verdict(keys, stderr);
        else
            svi_verdict_write(e->stream, e->now, stderr);
    }
    if (code == SVS_OK && cli_has(e->args, "json"))
        code = print_json(&report, keys, cli_integer(e->args, "rows"), err);
    else if (code == SVS_OK && keys)
        svi_key_quality_print(keys, cli_integer(e->args, "limit"), cli_integer(e->args, "rows"));
    else if (code == SVS_OK)
        svi_quality_report_print(&report, stdout);
    svi_key_quality_free(&keys);
    return code;
}

/* Opens the reader before the engine: the label column may decide the task. */
static svs_code cmd_eval_open(struct eval *e, struct svi_settings *s, svs_error *err) {
    struct svi_reader_options o = svi_settings_reader(s);
    o.task_follows = true;
    e->reader = svi_reader_open(e->args->positional[0], &o, NULL, err);
    if (!e->reader || svi_reader_settle(e->reader, err) != SVS_OK)
        return err->code;
    if (!o.task_given)
        s->task = (int)svi_reader_task(e->reader);
    if (svi_reader_note(e->reader) && !e->args->quiet && !e->silent)
        fprintf(stderr, "%s\n", svi_reader_note(e->reader));
    s->keys_quota =
        s->keys_quota > 0 ? s->keys_quota : s->keys_max; /* all rows of a file are of one source */
    e->stream = svi_stream_new(s, 0, cmd_eval_sink, e, err);
    if (!e->stream)
        return err->code;
    svi_reader_shape(e->reader, &svi_engine_schema(svi_stream_root(e->stream))->shape);
    if (svi_settings_two_threads(s))
        svi_stream_use_threads(e->stream);
    svi_stream_leave_open(e->stream, true);
    svi_stream_score_all(e->stream, e->log != NULL);
    return svi_cells_note_units(svi_engine_schema(svi_stream_root(e->stream)), e->reader, err);
}

/* ---- the alerts that would have been */

/* One pass over the file with an engine of its own; `budget` replaces alert.budget, NULL: as set. */
static svs_code cmd_eval_pass(void *user, const char *budget, struct svi_alert_log *log, svs_error *err) {
    struct eval *e = user;
    struct svi_settings s = e->s;
    e->log = log;
    e->silent = budget || log->silent;
    e->row = e->refused = 0;
    memset(e->reasons, 0, sizeof e->reasons);
    e->latest = -INFINITY;
    if (budget)
        snprintf(e->note, sizeof e->note, "budget %s", budget);
    svi_progress_begin(&e->progress, e->args->quiet);
    svs_code code = budget ? svi_settings_set(&s, "alert.budget", budget, err) : SVS_OK;
    if (code == SVS_OK)
        code = cmd_eval_open(e, &s, err);
    if (code == SVS_OK)
        code = take_all(e, err);
    if (e->stream)
        svi_stream_settle(e->stream);
    if (code == SVS_OK)
        svi_preview_end_pass(log, e->stream);
    if (code == SVS_OK)
        code = cmd_eval_taken(e, err);
    if (code == SVS_OK && !e->silent && cli_has(e->args, "model-out"))
        code = write_model(e, cli_value(e->args, "model-out"), err);
    svi_reader_close(&e->reader);
    svi_stream_free(&e->stream);
    return code;
}

static int cmd_eval_alerts(struct eval *e) {
    const struct cli_args *a = e->args;
    svs_error err = {0};
    const int result = cli_preview(a, &e->s, strcmp(a->positional[0], "-") == 0, cmd_eval_row_seconds(e),
                                   cmd_eval_pass, e, &e->progress);
    svi_progress_end(&e->progress);
    return result == CLI_OK ? cmd_eval_end(e, SVS_OK, &err) : result;
}

/* Refuses options that make sense for one model only, or only for the table of keys. A plot of alerts is of
 * the worst keys. */
static int check_keyed(const struct cli_args *a) {
    static const char *const single[] = {"plot", "model-out"};
    for (int i = cli_has(a, "alerts"); i < 2; i++)
        if (svi_settings_keyed(&a->settings) && cli_has(a, single[i]))
            return cli_usage(
                a, "--%s needs a single model, but --key makes one for each key: leave one of them out%s",
                single[i], i == 0 ? ", or give --alerts for a plot of the worst keys" : "");
    const char *const of_keys = cli_has(a, "limit") ? "limit" : cli_has(a, "rows") ? "rows" : NULL;
    if (of_keys && !svi_settings_keyed(&a->settings))
        return cli_usage(a, "--%s applies to the table of keys: give --key COLUMN too", of_keys);
    return CLI_OK;
}

static int cmd_eval_run(const struct cli_args *a) {
    struct eval e = {.args = a, .s = a->settings};
    const int64_t every = cli_integer(a, "every");
    svs_error err = {0};
    e.s.scores = cli_has(a, "plot") ? SVI_SCORES_ALL : SVI_SCORES_NONE; /* others would only cost time */
    e.s.publish_every = 0;
    e.s.publish_seconds = 0;
    e.s.publish_sums = 0;
    if (!svi_settings_given(&e.s, svi_settings_row("alert.interval"))) /* reading times mean nothing here */
        e.s.alert_interval = SVI_FILE_INTERVAL;
    svi_arrival_clock_start(&e.clock);
    e.now = svi_arrival_clock_now(&e.clock);
    if (every > 0 && cli_has(a, "json"))
        return cli_usage(a, "--every has no effect with --json: leave one of them out");
    if (every > 0 && cli_has(a, "alerts"))
        return cli_usage(a, "--every has no effect with --alerts: leave one of them out");
    if (cli_preview_check(a) != CLI_OK || check_keyed(a) != CLI_OK)
        return CLI_USAGE;
    if (cli_has(a, "alerts"))
        return cmd_eval_alerts(&e);
    if (cli_has(a, "plot") && !(e.plot = svi_alloc(sizeof *e.plot)))
        return cli_end(a, svi_fail_memory(&err, "the plot"), &err);
    svs_code code = cmd_eval_open(&e, &e.s, &err);
    svi_progress_begin(&e.progress, a->quiet);
    if (code == SVS_OK)
        svi_live_figures_begin(&e.live,
                               every > 0                        ? stdout
                               : a->quiet || cli_has(a, "json") ? NULL
                                                                : stderr,
                               e.stream, every);
    code = code == SVS_OK ? cmd_eval_finish(&e, &err) : code;
    svi_reader_close(&e.reader);
    svi_stream_free(&e.stream);
    svi_free(e.plot);
    return cmd_eval_end(&e, code, &err);
}

static const struct cli_option options[] = {
    CLI_INTEGER("every", 0, "N", "0", 0, CLI_UNLIMITED,
                "print a line of figures after every N rows, to standard output"),
    CLI_SWITCH("json", 0, "print the result as one JSON object"),
    CLI_INTEGER("limit", 'n', "N", SVI_KEY_QUALITY_SHOWN, 0, CLI_UNLIMITED,
                "with --key: list at most N keys in the table"),
    CLI_INTEGER("rows", 0, "N", "0", 0, CLI_UNLIMITED, "with --key: list only keys with at least N rows"),
    CLI_OPTION("plot", 0, "FILE", NULL,
               "draw quality, novelty and alerts over the rows, or over their times; with --alerts the "
               "features that alerts name, with what was expected, and the incidents; with keys those of the "
               "worst ones (.svg or .png; needs gnuplot)"),
    CLI_OPTION("model-out", 0, "FILE", NULL, "write the last model here, for `svmstream model`"),
    CLI_PREVIEW_OPTIONS,
    CLI_END};

const struct cli_command cli_eval = {
    .name = "eval",
    .text = "measure the engine on a file: predict each row, then learn it",
    .usage = "FILE",
    .help =
        "Runs the engine of `run` over a file without sockets and prints its prequential quality, with a\n"
        "table of classes. The last line is the accuracy (or the rmse with --task regress). A one-line\n"
        "verdict on standard error reports a class that was never found, or a learner no better than\n"
        "always predicting the commonest class. Standard error shows progress at rows 1, 2, 4, 8, ... and\n"
        "on a terminal every second; --every N prints it to standard output instead.\n"
        "\n"
        "--alerts prints, instead of the quality, the alerts that `run` would have reported for these\n"
        "rows, and when. Use it to try settings in advance (alert.*, novelty.*, limits, context). With\n"
        "marked --incidents it also prints which incidents are found, how soon, how many alerts are\n"
        "false, and the effect of other budgets.\n"
        "\n"
        "With --key COLUMN each key has its own model. The table has a line for each key, the worst\n"
        "first, next to the result of \"the same as before\". The error of the worst exceeds that by the\n"
        "most, with 97.5 % confidence, so a few rows are weak evidence.\n"
        "\n"
        "Examples:\n"
        "  svmstream eval --label rain weather.csv.gz\n"
        "  svmstream eval --key machine plant.csv\n"
        "  svmstream eval --plot quality.svg examples/occupancy.csv.gz\n"
        "  svmstream eval --window 500 --every 5000 --model-out m.msgpack a9a.svm\n"
        "  svmstream eval --alerts --alert.budget 1/week --incidents faults.csv --plot alerts.svg pump.csv",
    .keys = "in.format stream task method auto.budget C window window.seconds forget scale class.weight "
            "decision.cost "
            "interval features label id ts ts.format weight key keys.max keys.memory key.prior key.shared "
            "columns no-header "
            "categories numbers ignore missing.words unscaled categories.max hash calendar zone drift. "
            "columns.new missing outlier refit refit. serve novelty novelty. alert. limits context labels. "
            "ts.ahead "
            "max.features max.classes threads seed",
    .options = options,
    .run = cmd_eval_run};
