/* feed: rows of files to a running process, as fast as it takes them or at a given rate. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/sender.h"
#include "engine/intake.h"

#define BATCH_HEADER 5      /* array 32: one byte, then the count */
#define BATCH_BYTES  262144 /* a batch this large is sent, whatever its count */
#define TOLD         5      /* refused rows told in full */

struct feed {
    const struct cli_args *args;
    struct sender sender;
    struct svi_identity identity;
    struct svi_shape shape;
    struct svi_bytes message; /* being filled */
    int64_t in_message;       /* rows in it */
    int64_t batch, limit, repeat;
    double rate;
    bool packed, unlabelled;
    int64_t row;       /* rows taken from the files: their sequence number */
    int64_t sent, bad; /* rows */
    char src[SVS_NAME_MAX + 1];
    struct cli_progress progress;
};

static svs_code flush(struct feed *f, svs_error *err) {
    uint8_t *b = f->message.data;
    if (f->in_message == 0)
        return SVS_OK;
    if (f->batch > 1) {
        const uint64_t n = (uint64_t)f->in_message;
        const uint8_t header[BATCH_HEADER] = {0xdd, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                                              (uint8_t)n};
        memcpy(b, header, sizeof header);
    }
    svs_code code = sender_send(&f->sender, b, f->message.size, err);
    if (code == SVS_OK)
        f->sent += f->in_message;
    f->message.size = 0;
    f->in_message = 0;
    return code;
}

/* Waits until the row's time has come; what was gathered before is sent first. */
static svs_code pace(struct feed *f, svs_error *err) {
    double due = f->progress.start + (double)f->row / f->rate, left = due - cli_clock();
    if (left <= 0)
        return SVS_OK;
    svs_code code = flush(f, err);
    struct timespec t = {(time_t)left, (long)(1e9 * (left - floor(left)))};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
    return code;
}

static svs_code add(struct feed *f, struct svi_message *m, svs_error *err) {
    svs_code code = f->rate > 0 ? pace(f, err) : SVS_OK;
    if (code != SVS_OK)
        return code;
    if (f->batch > 1 && f->in_message == 0 &&
        svi_bytes_append(&f->message, (uint8_t[BATCH_HEADER]){0}, BATCH_HEADER) != SVS_OK)
        return svi_fail_memory(err, "a message");
    if (f->unlabelled)
        m->y = svs_none();
    if (f->sender.acknowledged && f->in_message == 0) {
        m->src = svs_str(f->src);
        m->n = f->row;
    }
    code = svi_message_encode(m, f->shape.names, f->packed && m->missing == 0, &f->message);
    if (code != SVS_OK)
        return svi_fail(err, code, "row %" PRId64 " cannot be sent: %s", f->row + 1, svs_code_text(code));
    f->in_message++;
    return f->in_message >= f->batch || f->message.size >= BATCH_BYTES ? flush(f, err) : SVS_OK;
}

static svs_code take_row(struct feed *f, struct svi_message *m, svs_error *err) {
    svs_code code = SVS_OK;
    if (f->row >= f->sender.next) /* else the other end has it from an earlier run */
        code = add(f, m, err);
    svi_shape_commit(&f->shape, m);
    f->row++;
    return code;
}

static void tell_bad(struct feed *f, const char *path, const svs_error *why) {
    svi_shape_restore(&f->shape);
    if (f->bad++ < TOLD)
        fprintf(stderr, "svmstream feed: %s: %s\n", path, why->text);
}

static void show_progress(struct feed *f, const svi_reader *r, int pass) {
    char note[64];
    int64_t size, at = svi_reader_position(r, &size);
    double files = (double)f->args->positional_count;
    bool whole = f->repeat > 0 && size > 0;
    double position = whole ? (double)pass + (double)at / (double)size : 0;
    snprintf(note, sizeof note, "%" PRId64 " acked", f->sender.acked);
    if (f->limit > 0)
        cli_progress_show(&f->progress, f->row, (double)f->row, (double)f->limit,
                          f->sender.acknowledged ? note : NULL);
    else
        cli_progress_show(&f->progress, f->row, position, whole ? files * (double)f->repeat : -1,
                          f->sender.acknowledged ? note : NULL);
}

static svs_code feed_rows(struct feed *f, svi_reader *r, const char *path, int pass, svs_error *err) {
    struct svi_message m;
    svs_error why;
    svs_code code = SVS_OK;
    while (code == SVS_OK && (f->limit == 0 || f->row < f->limit)) {
        enum svi_read what = svi_reader_row(r, &m, &why);
        if (what == SVI_READ_END)
            break;
        if (what == SVI_READ_ROW)
            code = take_row(f, &m, err);
        else if (what == SVI_READ_BAD)
            tell_bad(f, path, &why);
        else
            code = svi_fail(err, why.code, "%s: %s", path, why.text);
        if (f->progress.on && f->row % 256 == 0)
            show_progress(f, r, pass);
    }
    return code;
}

static svs_code feed_file(struct feed *f, const char *path, int pass, svs_error *err) {
    const struct svi_reader_options o = svi_intake_options(&f->args->settings);
    svi_reader *r = svi_reader_open(path, &o, &f->shape, err);
    svs_code code = r ? feed_rows(f, r, path, pass, err) : err->code;
    svi_reader_close(&r);
    return code;
}

static svs_code feed_files(struct feed *f, svs_error *err) {
    svs_code code = SVS_OK;
    int files = f->args->positional_count;
    for (int64_t i = 0; code == SVS_OK && (f->repeat == 0 || i < f->repeat * files); i++) {
        int64_t before = f->row;
        code = feed_file(f, f->args->positional[i % files], (int)i, err);
        if ((f->limit > 0 && f->row >= f->limit) || (f->repeat == 0 && f->row == before))
            break; /* enough; or nothing in the file, for ever */
    }
    if (code == SVS_OK)
        code = flush(f, err);
    return code == SVS_OK ? sender_finish(&f->sender, err) : code;
}

static void summarise(const struct feed *f, double seconds) {
    char rate[32];
    if (f->bad > TOLD)
        fprintf(stderr, "svmstream feed: %" PRId64 " rows could not be read\n", f->bad);
    if (f->sender.refused > 0)
        fprintf(stderr, "svmstream feed: %" PRId64 " messages were refused, the last one: %s\n",
                f->sender.refused, f->sender.refusal.text);
    if (!f->args->quiet)
        fprintf(stderr, "sent %" PRId64 " rows in %.2f s, %s rows/s\n", f->sent, seconds,
                cli_short(seconds > 0 ? (double)f->sent / seconds : 0, rate, sizeof rate));
}

static bool read_options(struct feed *f) {
    const struct cli_args *a = f->args;
    f->packed = cli_has(a, "packed");
    f->unlabelled = cli_has(a, "no-label");
    f->sender =
        (struct sender){.address = a->settings.in, .acknowledged = a->settings.in_mode == SVI_IN_ROUTER};
    if (cli_value(a, "src"))
        snprintf(f->src, sizeof f->src, "%s", cli_value(a, "src"));
    else
        snprintf(f->src, sizeof f->src, "feed-%ld-%.0f", (long)getpid(), 1000 * cli_now());
    f->sender.src = f->src;
    f->sender.identity = &f->identity;
    return cli_number(a, "rate", 0, 1e9, &f->rate) && cli_integer(a, "batch", 1, 1000000, &f->batch) &&
           cli_integer(a, "limit", 0, INT64_MAX, &f->limit) &&
           cli_integer(a, "repeat", 0, 1000000000, &f->repeat) &&
           cli_number(a, "timeout", 0.001, 1e6, &f->sender.timeout);
}

static int run(const struct cli_args *a) {
    struct feed f = {.args = a};
    svs_error err = {0};
    if (!read_options(&f))
        return CLI_USAGE;
    if (a->settings.in_mode == SVI_IN_SUB || strcmp(a->settings.in, "-") == 0)
        return cli_usage(a, "`in` must be the address of a process with in.mode pull or router");
    svs_code code = svi_shape_init(&f.shape, (int)a->settings.max_features, a->settings.features, &err);
    if (code == SVS_OK)
        code = svi_identity_load(&a->settings, true, &f.identity, &err);
    if (code == SVS_OK)
        code = sender_open(&f.sender, &err);
    svi_identity_wipe(&f.identity);
    cli_progress_begin(&f.progress, a->quiet);
    if (code == SVS_OK)
        code = feed_files(&f, &err);
    double seconds = cli_progress_end(&f.progress);
    svs_error late;
    if (sender_close(&f.sender, &late) != SVS_OK && code == SVS_OK) {
        code = late.code;
        err = late;
    }
    svi_shape_clear(&f.shape);
    svi_bytes_clear(&f.message);
    if (code != SVS_OK)
        return cli_error(a, &err);
    summarise(&f, seconds);
    return f.sender.refused > 0 ? CLI_FAILED : CLI_OK;
}

static const struct cli_option options[] = {
    {"rate", 0, "ROWS/S", "0", "rows a second; 0 is flat out"},
    {"batch", 0, "N", "1", "rows in one message"},
    {"packed", 0, NULL, NULL, "features as packed doubles rather than an array of numbers"},
    {"limit", 'n', "N", "0", "stop after so many rows; 0 sends all"},
    {"repeat", 0, "N", "1", "send the files so many times; 0 never stops"},
    {"no-label", 0, NULL, NULL, "leave the labels out: the samples are scored only"},
    {"src", 0, "NAME", NULL,
     "with in.mode router: name of this producer; the same name again goes on where it stopped"},
    {"timeout", 0, "SECONDS", "10", "give up when nobody listens or answers for so long"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_feed = {
    .name = "feed",
    .text = "send files to a running process",
    .usage = "FILE...",
    .help = "Reads CSV, LIBSVM or JSON lines, plain or .gz (- is standard input), and sends each row to the "
            "address\n"
            "`in`. With --in.mode router every message is acknowledged and nothing is lost or taken twice.\n"
            "\n"
            "  svmstream feed --label rain weather.csv.gz\n"
            "  svmstream feed --batch 64 --packed --rate 1000 a9a.svm\n"
            "  svmstream feed --in.mode router --src plant1 log.jsonl",
    .keys = "in in.mode in.format label id ts weight features max.features curve curve.server",
    .options = options,
    .positional_min = 1,
    .positional_max = -1,
    .run = run};
