/* feed: rows of files to a running process, as fast as it takes them or at a given rate. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "cli/command.h"
#include "cli/delivery.h"
#include "cli/feed_source.h"
#include "cli/progress.h"
#include "cli/sender.h"
#include "engine/intake.h"

#define BATCH_HEADER 5      /* array 32: one byte, then the count */
#define BATCH_BYTES  262144 /* a batch this large is sent, whatever its count */
#define TOLD         5      /* rows that cannot be read, told in full */
#define AN_HOUR      3600.0
#define PIPE_ROWS    1e6 /* kept until they are on disk, of what cannot be read again */
#define AGAIN        "the same command again sends what is missing"

struct feed {
    const struct cli_args *args;
    struct sender sender;
    struct delivery delivery;
    struct svi_identity identity;
    bool acked;   /* by delivery, else by sender */
    bool replay;  /* acked: the files can be read again from the beginning */
    bool durable; /* acked: only to a process that keeps its state */
    struct svi_shape shape;
    struct svi_bytes message; /* being filled */
    int64_t in_message;       /* rows in it */
    int64_t batch, in_flight, limit, repeat;
    double rate, timeout;
    bool packed, unlabelled;
    int64_t row;       /* rows taken from the files: their sequence number */
    int64_t sent, bad; /* rows */
    int64_t there;     /* acked: rows that the process had before this run */
    bool rewound;      /* acked: the process wants rows that lie behind */
    bool again;        /* ... and they are read for the second time */
    bool on_disk;      /* acked: in the end nothing waits for the disk */
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

/* Waits until the next row's time has come; what was gathered before is sent first. */
static svs_code pace(struct feed *f, svs_error *err) {
    int64_t rows = f->sent + f->in_message;
    double left = f->rate > 0 ? f->progress.start + (double)rows / f->rate - cli_clock() : 0;
    if (left <= 0)
        return SVS_OK;
    if (f->acked)
        return delivery_wait(&f->delivery, left, -1, err);
    svs_code code = flush(f, err);
    struct timespec t = {(time_t)left, (long)(1e9 * (left - floor(left)))};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
    return code;
}

static svs_code encode(struct feed *f, struct svi_message *m, svs_error *err) {
    if (f->unlabelled)
        m->y = svs_none();
    m->src = svs_none();
    m->n = -1;
    svs_code code = svi_message_encode(m, f->shape.names, f->packed && m->missing == 0, &f->message);
    return code == SVS_OK
               ? SVS_OK
               : svi_fail(err, code, "row %" PRId64 " cannot be sent: %s", f->row + 1, svs_code_text(code));
}

static svs_code push(struct feed *f, struct svi_message *m, svs_error *err) {
    svs_code code = pace(f, err);
    if (code != SVS_OK)
        return code;
    if (f->batch > 1 && f->in_message == 0 &&
        svi_bytes_append(&f->message, (uint8_t[BATCH_HEADER]){0}, BATCH_HEADER) != SVS_OK)
        return svi_fail_memory(err, "a message");
    if (encode(f, m, err) != SVS_OK)
        return err->code;
    f->in_message++;
    return f->in_message >= f->batch || f->message.size >= BATCH_BYTES ? flush(f, err) : SVS_OK;
}

/* The row that the process wants, which may have changed while others were sent. */
static int64_t wanted(const struct feed *f) {
    return f->replay ? svs_outbox_wanted(f->delivery.box) : f->row;
}

static svs_code deliver(struct feed *f, struct svi_message *m, svs_error *err) {
    svs_code code = wanted(f) <= f->row ? pace(f, err) : SVS_OK;
    f->rewound = wanted(f) < f->row;
    if (code != SVS_OK || wanted(f) != f->row)
        return code;
    f->message.size = 0;
    code = encode(f, m, err);
    if (code == SVS_OK)
        code = delivery_put(&f->delivery, f->message.data, f->message.size, (int)f->batch, err);
    f->sent += code == SVS_OK;
    return code;
}

static svs_code take_row(struct feed *f, struct svi_message *m, svs_error *err) {
    svs_code code = f->acked ? deliver(f, m, err) : push(f, m, err);
    svi_shape_commit(&f->shape, m);
    f->row++;
    return code;
}

static void tell_bad(struct feed *f, const char *path, const svs_error *why) {
    svi_shape_restore(&f->shape);
    if (f->bad++ < TOLD && !f->again)
        fprintf(stderr, "svmstream feed: %s: %s\n", path, why->text);
}

static void show_progress(struct feed *f, const svi_reader *r, int pass) {
    char note[96] = "";
    int64_t size, at = svi_reader_position(r, &size);
    double files = (double)f->args->positional_count;
    bool whole = f->repeat > 0 && size > 0;
    double position = whole ? (double)pass + (double)at / (double)size : 0;
    if (f->acked) {
        svs_outbox_figures figures;
        svs_outbox_status(f->delivery.box, &figures);
        int n = snprintf(note, sizeof note, "%" PRId64 " acked, %" PRId64 " waiting", figures.acked,
                         figures.kept);
        if (figures.durable >= 0)
            snprintf(note + n, sizeof note - (size_t)n, ", %" PRId64 " on disk", figures.durable);
    }
    if (f->limit > 0)
        cli_progress_show(&f->progress, f->row, (double)f->row, (double)f->limit, f->acked ? note : NULL);
    else
        cli_progress_show(&f->progress, f->row, position, whole ? files * (double)f->repeat : -1,
                          f->acked ? note : NULL);
}

/* The next row. While none has come in, what was delivered is looked after. */
static svs_code next_row(struct feed *f, svi_reader *r, const char *path, struct svi_message *m,
                         enum svi_read *what, svs_error *err) {
    svs_error why;
    *what = f->acked ? svi_reader_next(r, m, &why) : svi_reader_row(r, m, &why);
    while (*what == SVI_READ_MORE) {
        svs_code code = delivery_wait(&f->delivery, AN_HOUR, svi_reader_fd(r), err);
        if (code != SVS_OK)
            return code;
        *what = svi_reader_fill(r, &why) == SVS_OK ? svi_reader_next(r, m, &why) : SVI_READ_FAIL;
    }
    if (*what == SVI_READ_FAIL)
        return svi_fail(err, why.code, "%s: %s", path, why.text);
    if (*what == SVI_READ_BAD)
        tell_bad(f, path, &why);
    return SVS_OK;
}

static svs_code feed_rows(struct feed *f, svi_reader *r, const char *path, int pass, svs_error *err) {
    struct svi_message m;
    svs_code code = SVS_OK;
    while (code == SVS_OK && !f->rewound && (f->limit == 0 || f->row < f->limit)) {
        enum svi_read what;
        code = next_row(f, r, path, &m, &what, err);
        if (code != SVS_OK || what == SVI_READ_END)
            break;
        if (what == SVI_READ_ROW)
            code = take_row(f, &m, err);
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

/* All files, from their beginning. */
static svs_code feed_files(struct feed *f, svs_error *err) {
    svs_code code = SVS_OK;
    int files = f->args->positional_count;
    f->row = f->bad = 0;
    for (int64_t i = 0; code == SVS_OK && !f->rewound && (f->repeat == 0 || i < f->repeat * files); i++) {
        int64_t before = f->row;
        code = feed_file(f, f->args->positional[i % files], (int)i, err);
        if ((f->limit > 0 && f->row >= f->limit) || (f->repeat == 0 && f->row == before))
            break; /* enough; or nothing in the file, for ever */
    }
    return code;
}

/* Again from the beginning when the process turns out to lack rows that lie behind: it was started anew. */
static svs_code feed_acked(struct feed *f, svs_error *err) {
    svs_code code;
    do {
        f->rewound = false;
        code = feed_files(f, err);
        if (code == SVS_OK && !f->rewound)
            code = delivery_finish(&f->delivery, err);
        f->rewound = f->rewound || wanted(f) < f->row;
        f->again = true;
        f->there = f->rewound && wanted(f) < f->there ? wanted(f) : f->there;
    } while (code == SVS_OK && f->rewound);
    f->there = f->there < f->row ? f->there : f->row;
    return code;
}

static svs_code feed(struct feed *f, svs_error *err) {
    if (f->acked)
        return feed_acked(f, err);
    svs_code code = feed_files(f, err);
    return code == SVS_OK ? flush(f, err) : code;
}

/* ---- what became of it */

static void tell_refusals(const struct delivery *d) {
    for (int i = 0; i < d->told; i++)
        fprintf(stderr, "svmstream feed: refused: %s\n", d->refusal[i].text);
    if (d->refused > d->told)
        fprintf(stderr, "svmstream feed: %" PRId64 " rows were refused\n", d->refused);
}

static void tell_restarts(const struct feed *f) {
    const struct delivery *d = &f->delivery;
    const char *fate = f->replay ? "were sent again" : "are gone with it";
    if (d->restarts > 0 && !f->args->quiet)
        fprintf(stderr, "the process was started anew: %" PRId64 " rows that it had acknowledged %s\n",
                d->forgotten[0], fate);
    if (d->forgotten[1] > 0)
        fprintf(stderr,
                "svmstream feed: a power cut took %" PRId64
                " rows from the process that it had acknowledged, "
                "but not on disk yet; they %s%s\n",
                d->forgotten[1], fate,
                f->replay ? "" : ": with --durable, or delivery durable there, that cannot be");
}

static void summarise(const struct feed *f, const svs_outbox_figures *figures, double seconds) {
    char rate[32];
    int64_t sent = f->acked ? figures->acked + figures->refused : f->sent;
    if (f->bad > TOLD || (f->acked && f->bad > 0))
        fprintf(stderr, "svmstream feed: %" PRId64 " rows could not be read\n", f->bad);
    tell_refusals(&f->delivery);
    if (f->acked)
        tell_restarts(f);
    if (f->args->quiet)
        return;
    if (f->there > 0)
        fprintf(stderr, "%" PRId64 " rows were there already, from an earlier run as %s\n", f->there, f->src);
    fprintf(stderr, "sent %" PRId64 " rows in %.2f s, %s rows/s", sent, seconds,
            cli_short(seconds > 0 ? (double)sent / seconds : 0, rate, sizeof rate));
    if (f->acked)
        fprintf(stderr, ": %" PRId64 " acknowledged, %" PRId64 " refused, %" PRId64 " sent again",
                figures->acked, figures->refused, figures->resent);
    if (figures->acked + f->there > 0 && figures->durable >= 0 && figures->kept == 0 && f->on_disk)
        fputs(", all on disk", stderr);
    fputc('\n', stderr);
}

/* ---- start and end */

/* While rows wait for the process. */
static void warn(void *user, const char *text) {
    struct feed *f = user;
    if (!f->args->quiet)
        fprintf(stderr, "svmstream feed: waiting: %s\n", text);
}

static svs_code open_delivery(struct feed *f, svs_error *err) {
    svs_outbox_options o;
    double room = 2.0 * (double)f->in_flight * (double)f->batch;
    svs_outbox_defaults(&o);
    o.src = f->src;
    o.replay = f->replay;
    o.batch = (int)f->batch;
    o.window = (int)f->in_flight;
    o.samples = (int64_t)fmin(fmax(room, f->replay ? 1024 : PIPE_ROWS), 1e8);
    o.release = f->durable ? SVS_OUTBOX_DURABLE : SVS_OUTBOX_SAFEST;
    o.bytes = INT64_C(1) << 30;
    o.message = f->args->settings.max_message;
    svs_code code = delivery_open(&f->delivery, &o, err);
    f->there = code == SVS_OK && f->replay ? svs_outbox_wanted(f->delivery.box) : 0;
    return code;
}

static svs_code open_way(struct feed *f, svs_error *err) {
    f->sender =
        (struct sender){.address = f->args->settings.in, .timeout = f->timeout, .identity = &f->identity};
    f->delivery = (struct delivery){.address = f->args->settings.in,
                                    .timeout = f->timeout,
                                    .identity = &f->identity,
                                    .warn = warn,
                                    .user = f};
    return f->acked ? open_delivery(f, err) : sender_open(&f->sender, err);
}

static svs_code close_way(struct feed *f, svs_error *err) {
    delivery_close(&f->delivery);
    return f->acked ? SVS_OK : sender_close(&f->sender, err);
}

/* Files have a name that the next run finds again; what comes only once needs one of its own. */
static void choose_name(struct feed *f) {
    const struct cli_args *a = f->args;
    f->replay = feed_source_replays(a->positional, a->positional_count);
    if (cli_value(a, "src"))
        snprintf(f->src, sizeof f->src, "%s", cli_value(a, "src"));
    else if (f->replay && (cli_has(a, "ack") || cli_has(a, "durable")))
        feed_source_name(a->positional, a->positional_count, f->src);
    else
        snprintf(f->src, sizeof f->src, "feed-%ld-%.0f", (long)getpid(), 1000 * cli_now());
}

static bool read_options(struct feed *f) {
    const struct cli_args *a = f->args;
    f->packed = cli_has(a, "packed");
    f->unlabelled = cli_has(a, "no-label");
    f->durable = cli_has(a, "durable");
    f->acked = f->durable || cli_has(a, "ack") || a->settings.in_mode == SVI_IN_ROUTER;
    const char *src = cli_value(a, "src");
    if (src && (!src[0] || strlen(src) > SVS_NAME_MAX))
        return cli_usage(a, "--src: a name has 1 to %d bytes", SVS_NAME_MAX), false;
    if (!f->acked && (src || cli_has(a, "in-flight")))
        return cli_usage(a, "--%s is about acknowledged rows: give --ack too", src ? "src" : "in-flight"),
               false;
    choose_name(f);
    return cli_number(a, "rate", 0, 1e9, &f->rate) && cli_integer(a, "batch", 1, 1000000, &f->batch) &&
           cli_integer(a, "in-flight", 1, 1000000, &f->in_flight) &&
           cli_integer(a, "limit", 0, INT64_MAX, &f->limit) &&
           cli_integer(a, "repeat", 0, 1000000000, &f->repeat) &&
           cli_number(a, "timeout", 0.001, 1e6, &f->timeout);
}

static int check_way(const struct cli_args *a) {
    if (a->settings.in_mode == SVI_IN_SUB || strcmp(a->settings.in, "-") == 0)
        return cli_usage(a, "`in` must be the address of a process with in.mode pull or router");
    const bool acked = cli_has(a, "ack") || cli_has(a, "durable");
    if (acked && cli_given(a, "in.mode") && a->settings.in_mode != SVI_IN_ROUTER)
        return cli_usage(
            a, "--ack and --durable need a process with in.mode router: one with pull acknowledges nothing");
    return CLI_OK;
}

static int run(const struct cli_args *a) {
    struct feed f = {.args = a};
    svs_error err = {0}, late;
    svs_outbox_figures figures = {0};
    if (!read_options(&f) || check_way(a) != CLI_OK)
        return CLI_USAGE;
    svs_code code = svi_shape_init(&f.shape, (int)a->settings.max_features, a->settings.features, &err);
    if (code == SVS_OK)
        code = svi_identity_load(&a->settings, true, &f.identity, &err);
    if (code == SVS_OK)
        code = open_way(&f, &err);
    svi_identity_wipe(&f.identity);
    cli_progress_begin(&f.progress, a->quiet);
    if (code == SVS_OK)
        code = feed(&f, &err);
    double seconds = cli_progress_end(&f.progress);
    if (f.delivery.box) {
        svs_outbox_status(f.delivery.box, &figures);
        f.on_disk = svs_outbox_done(f.delivery.box);
    }
    if (close_way(&f, &late) != SVS_OK && code == SVS_OK) {
        code = late.code;
        err = late;
    }
    svi_shape_clear(&f.shape);
    svi_bytes_clear(&f.message);
    if (code == SVS_OK || figures.put > 0)
        summarise(&f, &figures, seconds);
    if (figures.kept > 0 && code != SVS_OK)
        return cli_fail(a, "%s; %s", err.text, f.replay ? AGAIN : "they are lost with this program");
    if (code != SVS_OK)
        return cli_error(a, &err);
    const bool unread = f.acked && f.bad > 0;
    return figures.refused > 0 || figures.lost > 0 || unread ? CLI_FAILED : CLI_OK;
}

static const struct cli_option options[] = {
    {"rate", 0, "ROWS/S", "0", "rows a second; 0 is flat out"},
    {"batch", 0, "N", "1", "rows in one message"},
    {"packed", 0, NULL, NULL, "features as packed doubles rather than an array of numbers"},
    {"limit", 'n', "N", "0", "stop after so many rows; 0 sends all"},
    {"repeat", 0, "N", "1", "send the files so many times; 0 never stops"},
    {"no-label", 0, NULL, NULL, "leave the labels out: the samples are scored only"},
    {"ack", 0, NULL, NULL,
     "every row is acknowledged, and sent again until it is (in.mode router); the same command again sends "
     "only what is missing"},
    {"durable", 0, NULL, NULL,
     "--ack, and only to a process that keeps its state (state.dir): done when all rows are on its disk, and "
     "until then no row is let go of"},
    {"src", 0, "NAME", NULL,
     "with --ack: name of this producer, under which the process counts its rows; by default made from the "
     "files' names"},
    {"in-flight", 0, "N", "256", "with --ack: messages that may be on the way"},
    {"timeout", 0, "SECONDS", "10", "give up when nobody listens, or nothing gets through for so long"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_feed = {
    .name = "feed",
    .text = "send files to a running process",
    .usage = "FILE...",
    .help =
        "Reads CSV, LIBSVM or JSON lines, plain or .gz (- is standard input), and sends each row to the "
        "address\n"
        "`in`. With --ack (to `svmstream run --in.mode router`) nothing is lost or taken twice while the "
        "process\n"
        "lives; when it is started anew it gets what it lacks, files from their beginning. A process with\n"
        "state.dir goes on where it was; then feed ends when all rows are on its disk.\n"
        "\n"
        "  svmstream feed --label rain weather.csv.gz\n"
        "  svmstream feed --batch 64 --packed --rate 1000 a9a.svm\n"
        "  svmstream feed --ack --src plant1 log.jsonl",
    .keys = "in in.mode in.format label id ts weight features max.features curve curve.server",
    .options = options,
    .positional_min = 1,
    .positional_max = -1,
    .run = run};
