/* The command lines of svmstream-kafka: words of argv in, a complete struct kafka_options out.
 *
 * The first word is the command. Each command has one table of options; the first rows of all tables are the
 * same. `run` takes, after `--`, arguments of `svmstream run` as they are: what a model is has its settings
 * there, and this program adds no second names for them. `feed` takes files and the settings that say what
 * their columns are. Settings of librdkafka pass through by --kafka and --kafka-file (kafka_conf.c).
 *
 * The difficulty is the order. Defaults are set before the words are read, because the parser only replaces
 * values. Values that follow from others (topic, group, folder, brokers) are set after all words, whatever
 * order the user has chosen. Mistakes are reported before anything connects, with exit code 2; 1 where a file
 * cannot be read.
 *
 * Texts stay in argv; the settings are owned. Read kafka_options_read first, then kafka_options_complete. */
#include "kafka_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <svmstream/svmstream.h>

#include "../common/adapter_options.h"
#include "../common/feed_entries.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "kafka_log.h"
#include "wire/event.h"

#define PROGRAM        "svmstream-kafka"
#define AT(field)      offsetof(struct kafka_options, field)
#define COUNT_OF(rows) ((int)(sizeof(rows) / sizeof *(rows)))

#define kafka_options_wrong(...) adapter_options_wrong(PROGRAM, __VA_ARGS__)

/* The tables are aligned by hand, and stay so. The field of a row must have the type that the row names: the
 * parser writes through the offset without a check. The defaults in parentheses are those that
 * kafka_options_read sets, and change with them. */
/* clang-format off */
/* A macro, because C cannot put the rows of one array into another. */
#define BROKER_ROWS                                                                                          \
    {.text = "Kafka:"},                                                                                      \
    {"brokers", "HOST:PORT,...", "addresses of some brokers (localhost:9092)",                               \
     OPTION_TEXT, AT(brokers), 0, 0},                                                                        \
    {"stream", "NAME", "name of the stream; topics STREAM, STREAM.state, STREAM.sums, STREAM.out (default)", \
     OPTION_TEXT, AT(stream), 0, 0},                                                                         \
    {"topic", "NAME", "topic of the entries, if it is not STREAM", OPTION_TEXT, AT(topic), 0, 0},            \
    {"kafka", "KEY=VALUE", "setting of librdkafka (SASL, TLS, buffers, ...); may be repeated", OPTION_OWN,   \
     0, 0, 0},                                                                                               \
    {"kafka-file", "FILE", "file of such settings, one a line; put secrets here", OPTION_TEXT, AT(file), 0, 0}

static const struct adapter_option run_rows[] = {
    BROKER_ROWS,
    {"group", "NAME", "consumer group: its workers share the partitions (svmstream-STREAM)", OPTION_TEXT,
     AT(group), 0, 0},
    {"strategy", "WORD", "how partitions are shared: cooperative-sticky, range or roundrobin "
     "(cooperative-sticky)", OPTION_TEXT, AT(strategy), 0, 0},
    {"transactional", "yes|no",
     "publish in transactions, which also stop a worker that counts as dead (yes)", OPTION_OWN, 0, 0, 0},
    {.text = "The models:"},
    {"folder", "DIR",
     "working folder of this worker alone; the state is in STREAM.state (svmstream-kafka-STREAM)",
     OPTION_TEXT, AT(folder), 0, 0},
    {"save", "SECONDS", "time between two checkpoints of a partition (60)", OPTION_REAL, AT(save), 0.1, 1e6},
    {"publish", "KINDS",
     "events to publish in STREAM.out: score, alert, model, bank, stats, error, or none (score,alert,model)",
     OPTION_TEXT, AT(publish), 0, 0},
    {"handover", "SECONDS", "time for a last checkpoint when a partition goes to another worker (10)",
     OPTION_REAL, AT(handover), 0, 3600},
    {"program", "FILE",
     "svmstream program to run (the one next to this program, or in PATH)", OPTION_TEXT, AT(program), 0, 0},
    {"stats", "SECONDS", "log the counters every SECONDS; 0: at the end only (60)", OPTION_REAL, AT(stats), 0,
     1e9}};

static const struct adapter_option feed_rows[] = {
    BROKER_ROWS,
    {.text = "The rows:"},
    {"partition", "COLUMN",
     "column whose value selects the partition (the key; without keys, entries are spread evenly)",
     OPTION_TEXT, AT(column), 0, 0},
    {"batch", "N", "maximum number of samples in an entry (64)", OPTION_WHOLE, AT(batch), 1, 4096},
    {"entry-bytes", "N",
     "maximum size of an entry in bytes, unless one sample is larger (524288)", OPTION_WHOLE,
     AT(entry_bytes), 256, 1 << 30},
    {"packed", NULL, "send rows of numbers as packed doubles", OPTION_FLAG, AT(packed), 0, 0},
    {"quiet", NULL, "report failures only", OPTION_FLAG, AT(quiet), 0, 0},
    FEED_ENTRIES_ROWS};

static const struct adapter_option sums_rows[] = {
    BROKER_ROWS,
    {"once", NULL, "end after writing all records, instead of waiting for more", OPTION_FLAG, AT(once), 0,
     0}};
/* clang-format on */

/* The help of a command: the lines before and after its options. COMMAND finds these texts by their names. */
static const char run_before[] =
    "usage: svmstream-kafka run [options] [-- arguments of `svmstream run`]\n"
    "\n"
    "Learns partitions of the topic STREAM. The consumer group assigns them, and this worker runs a\n"
    "`svmstream run` for each. Checkpoints are kept in STREAM.state; a worker that takes a partition over\n"
    "continues there. Scores, alerts and models go to STREAM.out, sums of `svmstream merge` to "
    "STREAM.sums.\n";
static const char run_after[] =
    "\n"
    "Examples:\n"
    "  svmstream-kafka run --brokers kafka1:9092 --stream plant -- --key machine --publish.sums 10\n"
    "  svmstream-kafka run --kafka security.protocol=sasl_ssl --kafka-file secret.conf --stream plant\n"
    "\n"
    "The four topics have the same number of partitions, STREAM.state with cleanup.policy=compact:\n"
    "  kafka-topics.sh --create --topic plant.state --partitions 4 --config cleanup.policy=compact\n"
    "Ends on SIGINT and SIGTERM after a last checkpoint. See `svmstream help cluster`.\n"
    "Exit codes: 0 ended by a signal, 1 failed, 2 usage.\n";
static const char feed_before[] =
    "usage: svmstream-kafka feed [options] FILE...\n"
    "\n"
    "Sends rows of files (CSV, LIBSVM, JSON lines; - is standard input) to the topic STREAM, as entries of\n"
    "up to 64 samples. All samples of a key go to one partition.\n";
static const char feed_after[] = "\n"
                                 "Examples:\n"
                                 "  svmstream-kafka feed --stream plant --key machine plant.csv\n"
                                 "  svmstream-kafka feed --brokers kafka1:9092 --label rain weather.csv.gz\n"
                                 "\n"
                                 "Exit codes: 0 all rows are in the log, 1 some are not, 2 usage.\n";
static const char sums_before[] = "usage: svmstream-kafka sums [options] | svmstream merge -\n"
                                  "\n"
                                  "Writes the records of STREAM.sums to standard output.\n";
static const char sums_after[] = "\n"
                                 "Exit codes: 0 ended, 1 failed, 2 usage.\n";

/* The values that need more than a pointer or a number. Rows of `feed` for columns are named like the
 * settings of svmstream, so the name of the row is the key of the setting, and svi_settings_set checks the
 * value. */
static int kafka_options_own(void *options, const struct adapter_option *row, const char *value) {
    struct kafka_options *o = options;
    svs_error err;
    svs_code code = SVS_OK;
    if (strcmp(row->name, "kafka") == 0)
        /* `false`: the pair is from the command line, where a secret is refused. */
        code = kafka_settings_add(&o->kafka, value, false, &err);
    else if (strcmp(row->name, "transactional") != 0)
        code = svi_settings_set(o->settings, row->name, value, &err);
    else if (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0)
        o->transactional = value[0] == 'y';
    else
        return kafka_options_wrong("--transactional must be yes or no");
    return code == SVS_OK ? 0 : kafka_options_wrong("--%s: %s", row->name, err.text);
}

/* Words of `feed` that are not options. The other commands have no such callback, and refuse them. */
static int kafka_options_file(void *options, const char *word) {
    struct kafka_options *o = options;
    if (o->file_count == KAFKA_FILES_MAX)
        return kafka_options_wrong("more than %d files", KAFKA_FILES_MAX);
    o->files[o->file_count++] = word;
    return 0;
}

/* What the commands share. `-q` is in all of them: where the table has no row `quiet`, the parser reports an
 * unknown option. An unknown --password... gets the advice on secrets instead of a similar name. */
#define COMMAND(name, more_word)                                                                             \
    {                                                                                                        \
        .program = PROGRAM, .options = name##_rows, .count = COUNT_OF(name##_rows), .column = 25,            \
        .before = name##_before, .after = name##_after, .letter = "-q", .letter_name = "quiet",              \
        .secret = "password",                                                                                \
        .secret_text = "a password on the command line is visible to every user: put sasl.password=... into" \
                       " a file and name that with --kafka-file",                                            \
        .own = kafka_options_own, .word = more_word                                                          \
    }

/* The order is that of enum kafka_command: the place in this table becomes `command`. The words of the
 * overview are here too, so a new command cannot be absent from it. */
static const struct {
    const char *word, *text;
    struct adapter_command line;
} commands[] = {
    [KAFKA_RUN] = {"run", "learns the partitions that its consumer group assigns (a worker)",
                   COMMAND(run, NULL)},
    [KAFKA_FEED] = {"feed", "sends files to the log", COMMAND(feed, kafka_options_file)},
    [KAFKA_SUMS] = {"sums", "writes the sums of all partitions to standard output, for `svmstream merge -`",
                    COMMAND(sums, NULL)}};

static void kafka_options_overview(void) {
    puts("usage: svmstream-kafka COMMAND [options]\n"
         "\n"
         "Runs svmstream over the partitions of a Kafka topic.\n");
    for (int i = 0; i < COUNT_OF(commands); i++)
        printf("  %-6s %s\n", commands[i].word, commands[i].text);
    puts("\n`svmstream-kafka COMMAND --help` lists the options. See `svmstream help cluster`.");
}

/* Names of the stream are those of svmstream: they are part of its topics, of a file's and of Kafka's. */
static int kafka_options_names(struct kafka_options *o) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t n = strlen(o->stream);
    if (n > SVI_STREAM_MAX || strspn(o->stream, letters) != n)
        return kafka_options_wrong("--stream: a name has 1 to %d letters, digits, _ or -", SVI_STREAM_MAX);
    /* These follow from the stream, so they wait until its name is known to be valid and short. The names
     * that are made here lie in the options themselves, which live as long as the pointers to them. */
    o->topic = o->topic ? o->topic : o->stream;
    if (!o->group) {
        snprintf(o->own_group, sizeof o->own_group, "svmstream-%s", o->stream);
        o->group = o->own_group;
    }
    if (!o->folder) {
        snprintf(o->own_folder, sizeof o->own_folder, "svmstream-kafka-%s", o->stream);
        o->folder = o->own_folder;
    }
    /* Without a file `feed` does not read standard input by itself: a forgotten name would be a program that
     * hangs. */
    if (o->command == KAFKA_FEED && o->file_count == 0)
        return kafka_options_wrong("feed needs a FILE; - is standard input");
    return 0;
}

/* --brokers is bootstrap.servers; without it the user's settings may have that. */
static int kafka_options_brokers(struct kafka_options *o) {
    char pair[2048];
    svs_error err;
    if (!o->brokers && (kafka_settings_has(&o->kafka, "bootstrap.servers") ||
                        kafka_settings_has(&o->kafka, "metadata.broker.list"))) /* its other name */
        return 0;
    /* --brokers is added after the user's pairs, and librdkafka takes the last value of a key: the option
     * wins over a file. */
    if (snprintf(pair, sizeof pair, "bootstrap.servers=%s", o->brokers ? o->brokers : "localhost:9092") >=
        (int)sizeof pair)
        return kafka_options_wrong("--brokers is too long: give some of the brokers only");
    return kafka_settings_add(&o->kafka, pair, true, &err) == SVS_OK
               ? 0
               : kafka_options_wrong("--brokers: %s", err.text);
}

/* Checks what no single row can check, and sets what follows from several options. The brokers are last:
 * whether the user's settings name them is known only after the file was read. */
static int kafka_options_complete(struct kafka_options *o) {
    svs_error err;
    int code = kafka_options_names(o);
    if (!code && o->command == KAFKA_RUN)
        code = adapter_options_kinds(KAFKA_PROGRAM, o->publish, &o->kinds);
    if (!code && strcmp(o->strategy, "cooperative-sticky") != 0 && strcmp(o->strategy, "range") != 0 &&
        strcmp(o->strategy, "roundrobin") != 0)
        code = kafka_options_wrong("--strategy must be cooperative-sticky, range or roundrobin");
    if (!code && o->file && kafka_settings_load(&o->kafka, o->file, &err) != SVS_OK) {
        /* A bad line in the file is a mistake of usage; a file that cannot be read is a failure. */
        kafka_log("--kafka-file: %s", err.text);
        code = err.code == SVS_SETTING ? 2 : 1;
    }
    return code ? code : kafka_options_brokers(o);
}

int kafka_options_read(struct kafka_options *o, int argc, char **argv, bool *done) {
    *o = (struct kafka_options){.stream = "default",
                                .publish = "score,alert,model",
                                .strategy = "cooperative-sticky",
                                .transactional = true,
                                .save = 60,
                                .stats = 60,
                                .handover = 10,
                                .batch = FEED_ENTRY_BATCH,
                                .entry_bytes = (int64_t)512 << 10};
    /* Without a command the overview is shown, but the code is 2: a script that forgot the command must
     * notice. */
    const char *word = argc > 1 ? argv[1] : "--help";
    /* True for the early returns alone: adapter_options_read sets it again. */
    *done = true;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return kafka_options_overview(), argc > 1 ? 0 : 2;
    if (strcmp(word, "--version") == 0)
        return printf(PROGRAM " %s (librdkafka %s)\n", svs_version(), rd_kafka_version_str()), 0;
    int c = 0;
    while (c < COUNT_OF(commands) && strcmp(word, commands[c].word) != 0)
        c++;
    if (c == COUNT_OF(commands)) {
        /* The word is escaped, because it may hold any bytes, even those that control a terminal. */
        char shown[80];
        return kafka_options_wrong("%s is not a command: use run, feed or sums",
                                   svi_escape(shown, sizeof shown, word, strlen(word)));
    }
    o->command = (enum kafka_command)c;
    /* Every command gets settings, although only `feed` uses them: the callback for values is one for all. */
    o->settings = svi_alloc(sizeof *o->settings);
    if (!o->settings)
        return kafka_log("out of memory"), 1;
    svi_settings_default(o->settings);
    /* The words after `--` belong to `svmstream run`. They are set apart before the parser runs, because it
     * would take them for options of ours. argv ends with NULL, so `arguments` does too. */
    for (int i = 2; i < argc && c == KAFKA_RUN && !o->arguments; i++)
        if (strcmp(argv[i], "--") == 0) {
            o->arguments = (const char *const *)argv + i + 1;
            argc = i;
        }
    /* The parser skips its first word: here that is the command. */
    const int code = adapter_options_read(&commands[c].line, o, argc - 1, argv + 1, done);
    return code || *done ? code : kafka_options_complete(o);
}

/* Safe after every early return of kafka_options_read: what was not made is zero there. */
void kafka_options_clear(struct kafka_options *o) {
    kafka_settings_clear(&o->kafka);
    svi_free(o->settings);
    o->settings = NULL;
}
