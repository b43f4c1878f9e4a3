/* eval: the whole engine on a file, without sockets: test, then train, row by row. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "engine/intake.h"
#include "wire/json.h"

#define CLOCK_ROWS 1024 /* the clock and the progress line are looked at after so many rows */
#define TOLD       5    /* refused rows told in full */

struct eval {
    const struct cli_args *args;
    svi_engine *engine;
    svi_reader *reader;
    int64_t row, every, refused;
    bool located; /* the refusal names its line itself */
    double now;
    struct cli_progress progress;
};

/* Nobody listens but for refusals. */
static void sink(void *user, const struct svi_event *event) {
    struct eval *e = user;
    const char *bytes;
    size_t length;
    if (event->topic != SVI_TOPIC_ERROR || e->refused++ >= TOLD)
        return;
    if (e->located)
        fprintf(stderr, "svmstream eval: %s\n", event->as.error.reason);
    else
        fprintf(stderr, "svmstream eval: line %" PRId64 ": %s\n", svi_reader_line(e->reader, &bytes, &length),
                event->as.error.reason);
}

static double figure(const struct svi_figure *f, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(f[i].name, name) == 0 && f[i].type != SVI_TEXT)
            return f[i].type == SVI_COUNT ? (double)f[i].as.count : f[i].as.number;
    return NAN;
}

static const char *const classify[] = {"accuracy", "kappa", "kappa_t", "f1", "auc", "logloss", NULL};
static const char *const regress[] = {"rmse", "mae", "r2", NULL};

static const char *const *quality_names(const struct eval *e) {
    return e->args->settings.task == SVS_REGRESS ? regress : classify;
}

/* "accuracy" -> its figure over the window as well, "accuracy.w". */
static void print_progress_row(struct eval *e) {
    const struct svi_figure *f;
    const char *const *names = quality_names(e);
    double seconds = cli_clock() - e->progress.start;
    int count = svi_engine_figures(e->engine, e->now, &f);
    char windowed[32];
    snprintf(windowed, sizeof windowed, "%s.w", names[0]);
    if (e->row == e->every)
        printf("%12s %10s %10s %10s %10s %12s\n", "rows", names[0], windowed, names[1], names[2], "rows/s");
    printf("%12" PRId64 " %10.4f %10.4f %10.4f %10.4f %12.0f\n", e->row, figure(f, count, names[0]),
           figure(f, count, windowed), figure(f, count, names[1]), figure(f, count, names[2]),
           seconds > 0 ? (double)e->row / seconds : 0);
    fflush(stdout);
}

static void look_up(struct eval *e) {
    int64_t size, at = svi_reader_position(e->reader, &size);
    e->now = cli_now();
    cli_progress_show(&e->progress, e->row, (double)at, (double)size, NULL);
}

/* A refit runs between two rows, so that the result depends on the file alone. */
static void take_row(struct eval *e, const struct svi_message *m, const char *bytes, size_t length) {
    svi_engine_message(e->engine, m, bytes, length, e->now, NULL);
    struct svi_refit *job = svi_engine_refit_take(e->engine);
    if (job) {
        svi_refit_run(job);
        svi_engine_refit_give(e->engine);
    }
}

static void take(struct eval *e, enum svi_read what, const struct svi_message *m, const svs_error *why) {
    const char *bytes;
    size_t length;
    svi_reader_line(e->reader, &bytes, &length);
    e->located = what == SVI_READ_BAD;
    if (what == SVI_READ_ROW)
        take_row(e, m, bytes, length);
    else
        svi_engine_refuse(e->engine, why->code, why->text, bytes, length, e->now);
    e->row++;
    if (e->row % CLOCK_ROWS == 0)
        look_up(e);
    if (e->every > 0 && e->row % e->every == 0 && !cli_has(e->args, "json"))
        print_progress_row(e);
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
        take(e, what, &m, &why);
    }
}

static void print_table(struct eval *e, double seconds) {
    const struct svi_figure *f;
    const char *const *names = quality_names(e);
    int count = svi_engine_figures(e->engine, e->now, &f);
    printf("%-10s %" PRId64 "\n%-10s %" PRId64 "\n%-10s %.3f\n%-10s %.0f\n", "rows", e->row, "refused",
           svi_engine_errors(e->engine), "seconds", seconds, "rows/s",
           seconds > 0 ? (double)e->row / seconds : 0);
    for (int i = 1; names[i]; i++)
        if (!isnan(figure(f, count, names[i])))
            printf("%-10s %.4f\n", names[i], figure(f, count, names[i]));
    if (!isnan(figure(f, count, names[0])))
        printf("%s %.3f\n", names[0], figure(f, count, names[0]));
}

static svs_code append_figure(struct svi_bytes *line, const struct svi_figure *f) {
    svs_code code = svi_json_text(line, ",");
    if (code == SVS_OK)
        code = svi_json_string(line, f->name, strlen(f->name));
    if (code == SVS_OK)
        code = svi_json_text(line, ":");
    if (code != SVS_OK)
        return code;
    if (f->type == SVI_COUNT)
        return svi_json_integer(line, f->as.count);
    return f->type == SVI_NUMBER ? svi_json_number(line, f->as.number)
                                 : svi_json_string(line, f->as.text, strlen(f->as.text));
}

static svs_code print_json(struct eval *e, double seconds, svs_error *err) {
    const struct svi_figure *f;
    struct svi_bytes line = {0};
    svs_code code = SVS_OK;
    int count = svi_engine_figures(e->engine, e->now, &f);
    for (int i = 0; i < count && code == SVS_OK; i++)
        code = append_figure(&line, &f[i]);
    if (code == SVS_OK)
        printf("{\"rows\":%" PRId64 ",\"seconds\":%.6f%.*s}\n", e->row, seconds, (int)line.size,
               line.data ? (const char *)line.data : "");
    svi_bytes_clear(&line);
    return code == SVS_OK ? SVS_OK : svi_fail_memory(err, "the result");
}

static svs_code write_model(struct eval *e, const char *path, svs_error *err) {
    svs_model m;
    const struct svi_figure *quality;
    int count;
    struct svi_bytes bytes = {0};
    svs_code code = svi_engine_model(e->engine, &m, &quality, &count, err);
    if (code == SVS_OK && (code = svi_model_encode(&m, quality, count, &bytes)) != SVS_OK)
        svi_fail_memory(err, "the model");
    FILE *to = code == SVS_OK ? fopen(path, "wb") : NULL;
    if (code == SVS_OK && (!to || fwrite(bytes.data, 1, bytes.size, to) != bytes.size))
        code = svi_fail(err, SVS_IO, "cannot write the model to %.150s", path);
    if (to && fclose(to) != 0 && code == SVS_OK)
        code = svi_fail(err, SVS_IO, "cannot write the model to %.150s", path);
    svi_bytes_clear(&bytes);
    return code;
}

static svs_code evaluate(struct eval *e, svs_error *err) {
    svs_code code = take_all(e, err);
    double seconds = cli_progress_end(&e->progress);
    if (e->refused > TOLD)
        fprintf(stderr, "svmstream eval: %" PRId64 " rows were refused\n", e->refused);
    if (code == SVS_OK && cli_has(e->args, "model-out"))
        code = write_model(e, cli_value(e->args, "model-out"), err);
    if (code == SVS_OK && cli_has(e->args, "json"))
        return print_json(e, seconds, err);
    if (code == SVS_OK)
        print_table(e, seconds);
    return code;
}

static int run(const struct cli_args *a) {
    struct eval e = {.args = a, .now = cli_now()};
    struct svi_settings s = a->settings;
    svs_error err = {0};
    if (!cli_integer(a, "every", 0, INT64_MAX, &e.every))
        return CLI_USAGE;
    s.scores = 0; /* no events but errors: they would only cost time */
    s.publish_every = 0;
    s.publish_seconds = 0;
    const struct svi_reader_options o = svi_intake_options(&s);
    e.engine = svi_engine_new(&s, 0, sink, &e, &err);
    if (e.engine)
        e.reader = svi_reader_open(a->positional[0], &o, svi_engine_shape(e.engine), &err);
    cli_progress_begin(&e.progress, a->quiet);
    svs_code code = e.reader ? evaluate(&e, &err) : err.code;
    svi_reader_close(&e.reader);
    svi_engine_free(&e.engine);
    return code == SVS_OK ? CLI_OK : cli_error(a, &err);
}

static const struct cli_option options[] = {
    {"every", 0, "N", "0", "print a line of figures after every N rows"},
    {"json", 0, NULL, NULL, "print the result as one JSON object"},
    {"model-out", 0, "FILE", NULL, "write the last model here, for `svmstream model`"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_eval = {
    .name = "eval",
    .text = "measure the engine on a file: each row is predicted, then learned",
    .usage = "FILE",
    .help = "Runs the engine of `run` over a file without sockets and prints its prequential quality; the "
            "last line\n"
            "is the accuracy (or the rmse with --task regress).\n"
            "\n"
            "  svmstream eval --label rain weather.csv.gz\n"
            "  svmstream eval --window 500 --every 5000 --model-out m.msgpack a9a.svm",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .run = run};
