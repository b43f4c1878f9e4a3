/* feed: sends rows of files to a running process, as fast as it accepts them or at a given rate.
 *
 * Rows are read (cmd_feed_next_row), encoded and put into a delivery (client/delivery.h), which sends them
 * and, with --ack, keeps them until the process has answered. `row` counts the rows read; the delivery knows
 * which row the process wants. Rows below it are skipped: the process has them from an earlier run. When it
 * wants an earlier row again, because it was restarted, the files are read again from their beginning
 * (cmd_feed_all). Standard input cannot be, so its rows are kept until they are on the process's disk.
 *
 * In order of reading: one row, the files, the summary, the name of the source, start and end. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "base/human.h"
#include "cli/command.h"
#include "cli/object.h"
#include "report/progress.h"
#include "client/delivery.h"
#include "client/request.h"
#include "features/cells.h"
#include "wire/event.h"
#include "wire/pack.h"

#define SHOWN      5 /* unreadable rows that are reported in full */
#define AN_HOUR    3600.0
#define PIPE_ROWS  1e6  /* capacity for rows that cannot be read again and wait for the process's disk */
#define NAME_SHOWN 40   /* bytes of the file's name in the name of the source */
#define HEAD_BYTES 4096 /* bytes of a file in which its first two lines are searched */

struct feed {
    const struct cli_args *args;
    struct delivery delivery;
    struct svi_identity identity;
    bool acked;   /* acknowledged input (router); else pushed */
    bool replay;  /* acked: the files can be read again from the beginning */
    bool durable; /* acked: only to a process that keeps its state */
    struct svi_shape shape;
    struct svi_bytes message; /* one row */
    int64_t batch, in_flight, limit, repeat;
    double rate, timeout;
    bool packed, unlabelled;
    struct svi_bytes score; /* a line of --scores */
    int64_t unprinted;      /* of these, for lack of memory */
    struct svi_bytes named; /* names of columns, sent with each message */
    struct svi_cells cells;
    int64_t row;                     /* rows taken from the files: their sequence number */
    int64_t sent, bad;               /* rows */
    int64_t reasons[SVS_CODE_COUNT]; /* of the bad ones, by code */
    int64_t there;                   /* acked: rows that the process had before this run */
    bool rewound;                    /* acked: the process wants earlier rows */
    bool again;                      /* ... and the files are read once more */
    bool on_disk;                    /* acked: at the end nothing waits for the disk */
    bool passing;                    /* acked: the source name is for this run only */
    char src[SVS_NAME_MAX + 1];
    struct svi_progress progress;
};

static svs_code cmd_feed_encode(struct feed *f, struct svi_message *m, svs_error *err) {
    svs_code code = svi_cells_choose(&f->cells, &f->shape, m, err);
    if (code == SVS_OK)
        code = delivery_columns(f->delivery.link.box, m, &f->named, err);
    if (code == SVS_OK && m->listed && f->row == 0 && !f->acked)
        code = client_ask_columns(&f->args->settings, m, err);
    if (code != SVS_OK)
        return code;
    if (f->unlabelled)
        m->y = svs_none();
    m->src = svs_none();
    m->n = -1;
    f->message.size = 0;
    code = svi_message_encode(m, f->shape.names, f->packed && m->missing == 0, &f->message);
    return code == SVS_OK
               ? SVS_OK
               : svi_fail(err, code, "row %" PRId64 " cannot be sent: %s", f->row + 1, svs_code_text(code));
}

/* Waits until the next row is due at the given rate; rows already batched are sent meanwhile. */
static svs_code cmd_feed_pace(struct feed *f, svs_error *err) {
    double left = f->rate > 0 ? f->progress.start + (double)f->sent / f->rate - svi_monotonic() : 0;
    return left > 0 ? delivery_wait(&f->delivery, left, -1, err) : SVS_OK;
}

/* The row that the process wants next; replies may change it while rows are sent. */
static int64_t cmd_feed_wanted(const struct feed *f) {
    return f->replay ? svs_outbox_wanted(f->delivery.link.box) : f->row;
}

/* Sends a row, or skips it when the process does not want it. Pacing may process replies, so the wanted row
 * is compared again afterwards: only now is it certain whether this row, or an earlier one, is due. Skipped
 * rows still commit their columns, or later rows would get other column numbers than in a run that sends all.
 */
static svs_code cmd_feed_take_row(struct feed *f, struct svi_message *m, svs_error *err) {
    svs_code code = cmd_feed_wanted(f) <= f->row ? cmd_feed_pace(f, err) : SVS_OK;
    f->rewound = cmd_feed_wanted(f) < f->row;
    if (code == SVS_OK && cmd_feed_wanted(f) == f->row) {
        code = cmd_feed_encode(f, m, err);
        if (code == SVS_OK)
            code = delivery_put(&f->delivery, f->message.data, f->message.size, (int)f->batch, err);
        f->sent += code == SVS_OK;
    }
    svi_shape_commit(&f->shape, m);
    f->row++;
    return code;
}

static void report_bad(struct feed *f, const char *path, const svs_error *why) {
    svi_shape_restore(&f->shape);
    f->reasons[why->code]++;
    if (f->bad++ < SHOWN && !f->again)
        cli_fail(f->args, "%s: %s", path, why->text);
}

static void cmd_feed_show_progress(struct feed *f, const svi_reader *r, int pass) {
    char note[96] = "";
    int64_t size, at = svi_reader_position(r, &size);
    double files = (double)f->args->positional_count;
    bool whole = f->repeat > 0 && size > 0;
    double position = whole ? (double)pass + (double)at / (double)size : 0;
    if (f->acked) {
        svs_outbox_figures figures;
        svs_outbox_status(f->delivery.link.box, &figures);
        int n = snprintf(note, sizeof note, "%" PRId64 " acked, %" PRId64 " waiting", figures.acked,
                         figures.kept);
        if (figures.durable >= 0)
            snprintf(note + n, sizeof note - (size_t)n, ", %" PRId64 " on disk", figures.durable);
    }
    if (f->limit > 0)
        svi_progress_show(&f->progress, f->row, (double)f->row, (double)f->limit, f->acked ? note : NULL);
    else
        svi_progress_show(&f->progress, f->row, position, whole ? files * (double)f->repeat : -1,
                          f->acked ? note : NULL);
}

/* Reads the next row. While a pipe has none, the delivery is served: replies, repeats, questions about the
 * disk. */
static svs_code cmd_feed_next_row(struct feed *f, svi_reader *r, const char *path, struct svi_message *m,
                                  enum svi_read *what, svs_error *err) {
    svs_error why;
    *what = svi_reader_next(r, m, &why);
    while (*what == SVI_READ_MORE) {
        const double wait = fmin(AN_HOUR, svi_reader_wait(r));
        svs_code code = delivery_wait(&f->delivery, wait, svi_reader_fd(r), err);
        if (code != SVS_OK)
            return code;
        const bool silent = svi_reader_wait(r) <= 0; /* the reader decides by the rows it has */
        *what = silent || svi_reader_fill(r, &why) == SVS_OK ? svi_reader_next(r, m, &why) : SVI_READ_FAIL;
    }
    if (*what == SVI_READ_FAIL)
        return svi_fail(err, why.code, "%s: %s", path, why.text);
    if (*what == SVI_READ_BAD)
        report_bad(f, path, &why);
    return SVS_OK;
}

static svs_code feed_rows(struct feed *f, svi_reader *r, const char *path, int pass, svs_error *err) {
    struct svi_message m;
    svs_code code = SVS_OK;
    while (code == SVS_OK && !f->rewound && (f->limit == 0 || f->row < f->limit)) {
        enum svi_read what;
        code = cmd_feed_next_row(f, r, path, &m, &what, err);
        if (code != SVS_OK || what == SVI_READ_END)
            break;
        if (what == SVI_READ_ROW)
            code = cmd_feed_take_row(f, &m, err);
        if (f->progress.on && f->row % 256 == 0)
            cmd_feed_show_progress(f, r, pass);
    }
    return code;
}

static svs_code feed_file(struct feed *f, const char *path, int pass, svs_error *err) {
    struct svi_reader_options o = svi_settings_reader(&f->args->settings);
    o.placed = o.placed && !f->unlabelled;
    svi_reader *r = svi_reader_open(path, &o, &f->shape, err);
    svs_code code = r ? feed_rows(f, r, path, pass, err) : err->code;
    const char *note = r ? svi_reader_note(r) : NULL;
    if (note && !f->args->quiet && !f->unlabelled && pass == 0 && !f->again)
        fprintf(stderr, "%s: %s\n", path, note);
    svi_reader_close(&r);
    return code;
}

/* Reads all files from their beginning, `repeat` times. */
static svs_code feed_files(struct feed *f, svs_error *err) {
    svs_code code = SVS_OK;
    int files = f->args->positional_count;
    f->row = f->bad = 0;
    memset(f->reasons, 0, sizeof f->reasons);
    for (int64_t i = 0; code == SVS_OK && !f->rewound && (f->repeat == 0 || i < f->repeat * files); i++) {
        int64_t before = f->row;
        code = feed_file(f, f->args->positional[i % files], (int)i, err);
        if ((f->limit > 0 && f->row >= f->limit) || (f->repeat == 0 && f->row == before))
            break; /* the limit is reached; or the file is empty, and would be repeated for ever */
    }
    return code;
}

/* Starts again from the beginning when the process lacks earlier rows: it was restarted. That can show at any
 * moment up to the last acknowledgement, so it is checked again after the delivery has finished. */
static svs_code cmd_feed_all(struct feed *f, svs_error *err) {
    svs_code code;
    do {
        f->rewound = false;
        code = feed_files(f, err);
        if (code == SVS_OK && !f->rewound)
            code = delivery_finish(&f->delivery, err);
        f->rewound = f->rewound || cmd_feed_wanted(f) < f->row;
        f->again = true;
        f->there = f->rewound && cmd_feed_wanted(f) < f->there ? cmd_feed_wanted(f) : f->there;
    } while (code == SVS_OK && f->rewound);
    f->there = f->there < f->row ? f->there : f->row;
    return code;
}

/* ---- the summary */

static void report_refusals(const struct feed *f) {
    const struct delivery *d = &f->delivery;
    for (int i = 0; i < d->shown; i++)
        cli_fail(f->args, "refused: %s", d->refusal[i].text);
    char reasons[SVS_ERROR_TEXT];
    if (d->refused > d->shown)
        cli_fail(f->args, "%" PRId64 " rows were refused: %s", d->refused,
                 svi_code_counts(d->reasons, reasons, sizeof reasons, NULL));
}

static void report_restarts(const struct feed *f) {
    const struct delivery *d = &f->delivery;
    const char *fate = f->replay ? "were sent again" : "are lost";
    if (d->restarts > 0 && !f->args->quiet)
        fprintf(stderr, "the process was restarted: %" PRId64 " rows that it had acknowledged %s\n",
                d->forgotten[0], fate);
    if (d->forgotten[1] > 0)
        cli_fail(f->args,
                 "after a power cut the process lacks %" PRId64
                 " acknowledged rows that were not yet on its disk; they %s%s",
                 d->forgotten[1], fate,
                 f->replay ? ""
                           : ": to prevent this, give --durable, or set delivery durable in the process");
}

static void report_unread(const struct feed *f) {
    char reasons[SVS_ERROR_TEXT];
    cli_fail(f->args, "%s%" PRId64 " rows could not be read: %s", f->row > 0 ? "" : "all ", f->bad,
             svi_code_counts(f->reasons, reasons, sizeof reasons, NULL));
}

static void report_sent(const struct feed *f, const svs_outbox_figures *figures, double seconds) {
    char rate[SVI_HUMAN];
    const int64_t sent = figures->acked + figures->refused;
    if (f->there > 0)
        fprintf(stderr, "%" PRId64 " rows had arrived in an earlier run as %s\n", f->there, f->src);
    fprintf(stderr, "sent %" PRId64 " rows in %.2f s, %s rows/s", sent, seconds,
            svi_human_short(rate, seconds > 0 ? (double)sent / seconds : 0));
    if (f->acked)
        fprintf(stderr, ": %" PRId64 " acknowledged, %" PRId64 " refused, %" PRId64 " sent again",
                figures->acked, figures->refused, figures->resent);
    if (figures->acked + f->there > 0 && figures->durable >= 0 && figures->kept == 0 && f->on_disk)
        fputs(", all on disk", stderr);
    fputc('\n', stderr);
}

/* The last lines of output. The very last one reports unreadable rows if there were many. */
static void cmd_feed_summarise(const struct feed *f, const svs_outbox_figures *figures, double seconds) {
    const bool many = svi_refused_many(f->bad, f->bad + f->row);
    if (f->bad > 0 && !many)
        report_unread(f);
    report_refusals(f);
    if (f->acked)
        report_restarts(f);
    if (!f->args->quiet)
        report_sent(f, figures, seconds);
    if (many)
        report_unread(f);
}

/* ---- the source name under which a process with acknowledged input counts the rows */

/* True when all can be read again from the beginning: regular files. */
static bool source_replays(const char *const *paths, int count) {
    struct stat s;
    for (int i = 0; i < count; i++)
        if (strcmp(paths[i], "-") == 0 || stat(paths[i], &s) != 0 || !S_ISREG(s.st_mode))
            return false;
    return true;
}

/* Adds the bytes and their length, so that "ab", "c" and "a", "bc" differ. */
static uint64_t source_add(uint64_t h, const char *bytes, size_t length) {
    return (svi_fnv(h, bytes, length) ^ length) * SVI_FNV_PRIME;
}

/* The bytes of the first two lines. */
static size_t source_head(const char *bytes, size_t length) {
    const char *first = memchr(bytes, '\n', length);
    const char *second = first ? memchr(first + 1, '\n', length - (size_t)(first + 1 - bytes)) : NULL;
    return second ? (size_t)(second + 1 - bytes) : length;
}

static uint64_t source_add_file(uint64_t h, const char *path) {
    char head[HEAD_BYTES], whole[PATH_MAX];
    const char *known = realpath(path, whole) ? whole : path;
    FILE *f = fopen(path, "rb");
    size_t length = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        fclose(f);
    return source_add(source_add(h, known, strlen(known)), head, source_head(head, length));
}

/* A name for these files that the next run finds again: the name of the first file and a hash of the host's
 * name, all paths and the first two lines of each. So another file in the same place is another source, and
 * a file that grows is the same. */
static void source_name(const char *const *paths, int count, char name[SVS_NAME_MAX + 1]) {
    char host[256] = "";
    const char *slash = strrchr(paths[0], '/'), *file = slash ? slash + 1 : paths[0];
    gethostname(host, sizeof host - 1);
    uint64_t h = source_add(SVI_FNV_SEED, host, strlen(host));
    for (int i = 0; i < count; i++)
        h = source_add_file(h, paths[i]);
    snprintf(name, SVS_NAME_MAX + 1, "%.*s-%012" PRIx64, NAME_SHOWN, file, h & 0xffffffffffffu);
    for (char *c = name; *c; c++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *c))
            *c = '_';
}

/* ---- start and end */

/* Unreadable files are reported before a process is contacted. */
static svs_code cmd_feed_check_files(const struct cli_args *a, svs_error *err) {
    for (int i = 0; i < a->positional_count; i++)
        if (strstr(a->positional[i], "://"))
            return svi_fail(err, SVS_SETTING, "%.150s is an address, not a file: name it with --in",
                            a->positional[i]);
    for (int i = 0; i < a->positional_count; i++)
        if (strcmp(a->positional[i], "-") != 0 && access(a->positional[i], R_OK) != 0)
            return svi_fail(err, SVS_IO, "%.150s: %s", a->positional[i], strerror(errno));
    return SVS_OK;
}

/* Prints the delivery's warnings while rows wait for the process. */
static void cmd_feed_warn(void *user, const char *text) {
    struct feed *f = user;
    if (!f->args->quiet)
        cli_fail(f->args, "%s", text);
}

/* Prints the score of a row as a line of JSON. Without memory, or where nobody reads the output, the rows
 * are delivered all the same; the exit code shows it. */
static void cmd_feed_score(void *user, int64_t sample, const void *map, size_t size) {
    struct feed *f = ((struct delivery *)user)->user;
    struct svi_pack p;
    struct svi_item item;
    svs_error err;
    const uint8_t *pairs = svi_item_read(map, &item), *end = (const uint8_t *)map + size;
    f->score.size = 0;
    svi_pack_begin(&p, &f->score);
    const struct svi_open_map line = svi_pack_open(&p);
    svi_put_int(&p, "row", sample + 1);
    svi_pack_pairs(&p, pairs, (size_t)(end - pairs), item.length);
    svi_pack_close(&p, line);
    f->unprinted += svi_pack_end(&p) != SVS_OK || cli_show_json(f->score.data, f->score.size, &err) != SVS_OK;
}

/* The outbox holds twice the rows that may be unacknowledged, so that reading continues while replies arrive.
 * Rows that can be read again are released when they are taken; others wait for the disk (PIPE_ROWS). */
static svs_code cmd_feed_open(struct feed *f, svs_error *err) {
    svs_outbox_options o;
    const double capacity = 2.0 * (double)f->in_flight * (double)f->batch,
                 minimum = f->acked && !f->replay ? PIPE_ROWS : 1024;
    f->delivery = (struct delivery){.address = f->args->settings.in,
                                    .timeout = f->timeout,
                                    .identity = &f->identity,
                                    .warn = cmd_feed_warn,
                                    .user = f};
    svs_outbox_defaults(&o);
    o.src = f->src;
    o.score = cli_has(f->args, "scores") ? cmd_feed_score : NULL;
    o.replay = f->replay;
    o.batch = (int)f->batch;
    o.window = (int)f->in_flight;
    o.samples = (int64_t)fmin(fmax(capacity, minimum), 1e8);
    o.release = !f->acked ? SVS_OUTBOX_SENT : f->durable ? SVS_OUTBOX_DURABLE : SVS_OUTBOX_SAFEST;
    o.bytes = INT64_C(1) << 30;
    o.message = f->args->settings.max_message;
    svs_code code = delivery_open(&f->delivery, &o, err);
    f->there = code == SVS_OK && f->replay ? svs_outbox_wanted(f->delivery.link.box) : 0;
    return code;
}

/* Files get a name that the next run finds again. A source that can be read only once gets a name for this
 * run only, whose slot in the process is freed at the end (send_bye). */
static void choose_name(struct feed *f) {
    const struct cli_args *a = f->args;
    f->replay = f->acked && source_replays(a->positional, a->positional_count);
    if (cli_value(a, "src"))
        snprintf(f->src, sizeof f->src, "%s", cli_value(a, "src"));
    else if (f->replay && (cli_has(a, "ack") || cli_has(a, "durable")))
        source_name(a->positional, a->positional_count, f->src);
    else {
        snprintf(f->src, sizeof f->src, "feed-%ld-%.0f", (long)getpid(), 1000 * svi_wall_clock());
        f->passing = f->acked;
    }
}

static int read_options(struct feed *f) {
    const struct cli_args *a = f->args;
    const char *src = cli_value(a, "src");
    const bool wants_ack = cli_has(a, "durable") || cli_has(a, "ack");
    f->packed = cli_has(a, "packed");
    f->unlabelled = cli_has(a, "no-label");
    f->durable = cli_has(a, "durable");
    f->acked = wants_ack || a->settings.in_mode == SVI_IN_ROUTER;
    f->rate = cli_number(a, "rate");
    f->batch = cli_integer(a, "batch");
    f->in_flight = cli_integer(a, "in-flight");
    f->limit = cli_integer(a, "limit");
    f->repeat = cli_integer(a, "repeat");
    f->timeout = cli_number(a, "timeout");
    choose_name(f);
    if (src && (!src[0] || strlen(src) > SVS_NAME_MAX))
        return cli_usage(a, "--src: a name has 1 to %d bytes", SVS_NAME_MAX);
    if (f->acked && cli_flagged(a, "ctl"))
        return cli_usage(a, "--ctl has no effect with --ack, whose replies arrive on `in`: leave it out");
    if (!f->acked && (src || cli_has(a, "in-flight") || cli_has(a, "scores")))
        return cli_usage(a, "--%s needs --ack", src ? "src" : cli_has(a, "scores") ? "scores" : "in-flight");
    if (a->settings.in_mode == SVI_IN_SUB || strcmp(a->settings.in, "-") == 0)
        return cli_usage(a, "feed needs a process with in.mode pull or router: set `in` to its address");
    if (wants_ack && cli_given(a, "in.mode") && a->settings.in_mode != SVI_IN_ROUTER)
        return cli_usage(
            a, "--ack and --durable need a process with in.mode router: in.mode pull does not acknowledge");
    return CLI_OK;
}

/* Frees the name's slot in the process. All rows are delivered, so a failure here is ignored: the process
 * forgets a silent name by itself. */
static void send_bye(struct feed *f) {
    svs_error late;
    svs_outbox_leave(f->delivery.link.box);
    (void)delivery_finish(&f->delivery, &late);
}

static int cmd_feed_run(const struct cli_args *a) {
    struct feed f = {.args = a};
    svs_error err = {0}, late;
    svs_outbox_figures figures = {0};
    if (read_options(&f) != CLI_OK)
        return CLI_USAGE;
    svs_code code = cmd_feed_check_files(a, &err);
    if (code == SVS_OK)
        code = svi_shape_init(&f.shape, (int)a->settings.max_features, a->settings.features, &err);
    if (code == SVS_OK)
        code = svi_identity_load(&a->settings, true, &f.identity, &err);
    if (code == SVS_OK)
        code = cmd_feed_open(&f, &err);
    svi_identity_wipe(&f.identity); /* the secret key is in the socket now */
    svi_progress_begin(&f.progress, a->quiet);
    if (code == SVS_OK)
        code = cmd_feed_all(&f, &err);
    double seconds = svi_progress_end(&f.progress);
    /* The figures are read before bye and close, which change or free them. */
    if (f.delivery.link.box) {
        svs_outbox_status(f.delivery.link.box, &figures);
        f.on_disk = svs_outbox_done(f.delivery.link.box);
        if (code == SVS_OK && f.passing)
            send_bye(&f);
    }
    if (delivery_close(&f.delivery, &late) != SVS_OK && code == SVS_OK) {
        code = late.code;
        err = late;
    }
    svi_shape_clear(&f.shape);
    svi_bytes_clear(&f.message);
    svi_bytes_clear(&f.named);
    svi_bytes_clear(&f.score);
    svi_cells_clear(&f.cells);
    /* The close frees the link only: refusals and restarts stay in f.delivery for the summary. */
    if (code == SVS_OK || (f.acked && figures.put > 0))
        cmd_feed_summarise(&f, &figures, seconds);
    /* Wrong columns are refused for good: the same command again would not send what is missing. */
    if (f.acked && figures.kept > 0 && code != SVS_OK && code != SVS_WRONG_COLUMNS)
        return cli_fail(a, "%s; %s", err.text,
                        f.replay ? "run the same command again to send the missing rows"
                                 : "these rows are lost");
    if (code != SVS_OK)
        return cli_error(a, &err);
    if (f.unprinted > 0)
        return cli_fail(a, "%" PRId64 " scores were not printed: out of memory", f.unprinted);
    const bool unread = f.bad > 0 && (f.acked || svi_refused_most(f.bad, f.bad + f.row));
    return figures.refused > 0 || figures.lost > 0 || unread ? CLI_FAILED : CLI_OK;
}

static const struct cli_option options[] = {
    CLI_NUMBER("rate", 0, "ROWS/S", "0", 0, 1e9, "send at this rate, in rows per second; 0 is no limit"),
    CLI_INTEGER("batch", 0, "N", "1", 1, 1000000, "send N rows in one message"),
    CLI_SWITCH("packed", 0, "send features as packed doubles rather than an array of numbers"),
    CLI_INTEGER("limit", 'n', "N", "0", 0, CLI_UNLIMITED, "stop after N rows; 0 sends all"),
    CLI_INTEGER("repeat", 0, "N", "1", 0, 1000000000, "send the files N times; 0 never stops"),
    CLI_SWITCH("no-label", 0, "omit the labels: samples are scored and not learned"),
    CLI_SWITCH("ack", 0,
               "send each row until it is acknowledged (in.mode router); the same command again sends only "
               "the missing rows"),
    CLI_SWITCH("durable", 0,
               "like --ack, for a process with state.dir only: keep every row until it is on the disk of the "
               "process, and end when all are"),
    CLI_OPTION("src", 0, "NAME", NULL,
               "with --ack: name of this producer, under which the process counts its rows (default: made "
               "from the files' names)"),
    CLI_INTEGER("in-flight", 0, "N", "256", 1, 1000000,
                "with --ack: maximum number of unacknowledged messages"),
    CLI_SWITCH("scores", 0,
               "with --ack: print the score of each accepted row, from the replies, as a JSON line"),
    CLI_NUMBER("timeout", 0, "SECONDS", "10", 0.001, 1e6,
               "give up when no process listens, or nothing gets through, for this long"),
    CLI_END};

const struct cli_command cli_feed = {
    .name = "feed",
    .text = "send files to a running process",
    .usage = "FILE...",
    .help =
        "Reads CSV, LIBSVM or JSON lines, plain or .gz (- is standard input), and sends each row to `in`.\n"
        "\n"
        "With --ack (to `svmstream run --in.mode router`) no row is lost or applied twice while the\n"
        "process lives. After a restart the process gets its missing rows, files from their beginning. A\n"
        "process with state.dir continues where it stopped, and feed ends when all rows are on its disk.\n"
        "\n"
        "feed sends the names of CSV columns with the rows. The process matches them with the columns of\n"
        "its stream, in any order, and refuses a header with other names. A process with in.mode pull\n"
        "does not answer. feed then asks `ctl`, if you give `ctl` or leave out `in`.\n"
        "\n"
        "Examples:\n"
        "  svmstream feed --label rain weather.csv.gz\n"
        "  svmstream feed --batch 64 --packed --rate 1000 a9a.svm\n"
        "  svmstream feed --ack --src plant1 log.jsonl\n"
        "  svmstream feed --ack --scores log.jsonl               # learns and predicts: scores on stdout\n"
        "  svmstream feed --key machine plant.csv                # to `svmstream run --key`: a model for "
        "each",
    .keys = "in in.mode in.format ctl label id ts ts.format weight key columns no-header categories numbers "
            "ignore "
            "missing.words features max.features max.message curve curve.server",
    .options = options,
    .run = cmd_feed_run};
