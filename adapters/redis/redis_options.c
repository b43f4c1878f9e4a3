/* The command line: a table of rows for each command makes the parser, the ranges and the help
 * (adapter_options). All commands share the rows of SERVER_ROWS.
 *
 * The first word chooses the command; without one it is the worker, as with `run`. What follows `--` belongs
 * to the `svmstream run` of each partition. Where Redis is found and the password come from the options or
 * the environment (read_server); a password is never taken from the command line.
 *
 * Read redis_options_read first, which has the order: defaults, the command, its rows one by one, and last
 * what needs several options or the environment (options_complete). Only --partitions is read later, because
 * the number of partitions is in Redis. Texts are pointers into argv and are not copied.
 *
 * Every mistake is one line and exit code 2, or 1 where a file cannot be read, before anything connects. */
#include "redis_options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/adapter_options.h"
#include "../common/feed_entries.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "redis_log.h"
#include "redis_scripts.h"
#include "wire/event.h"

#define AT(field) offsetof(struct redis_options, field)

/* The default in parentheses must match the code, mostly redis_options_read: the help is made of
 * these texts alone. There --count is 0, so that a worker without it takes the number that the
 * stream has. Only a new stream gets 16. The bound of --count is the number of slots of a cluster:
 * a partition uses one. */
#define SERVER_ROWS                                                                                          \
    {.text = "Redis:"},                                                                                      \
        {"redis",                                                                                            \
         "URL",                                                                                              \
         "address redis://USER@HOST:PORT/DATABASE, of any node of a cluster; else the variable "             \
         "SVMSTREAM_REDIS "                                                                                  \
         "(redis://localhost:6379)",                                                                         \
         OPTION_TEXT,                                                                                        \
         AT(redis),                                                                                          \
         0,                                                                                                  \
         0},                                                                                                 \
        {"password-file",                                                                                    \
         "FILE",                                                                                             \
         "file whose first line is the password; else the variable SVMSTREAM_REDIS_PASSWORD",                \
         OPTION_TEXT,                                                                                        \
         AT(password_file),                                                                                  \
         0,                                                                                                  \
         0},                                                                                                 \
        {"stream", "NAME", "name of the stream (default)", OPTION_TEXT, AT(stream), 0, 0},                   \
        {"count",      "N",       "number of its partitions, fixed by its first worker or feed (16)",        \
         OPTION_WHOLE, AT(count), 1,                                                                         \
         16384},                                                                                             \
    {                                                                                                        \
        "timeout", "SECONDS", "treat a server as lost after this time without an answer (10)", OPTION_REAL,  \
            AT(timeout), 1, 3600                                                                             \
    }

static const struct adapter_option worker_rows[] = {
    SERVER_ROWS,
    {.text = "Partitions:"},
    {"partitions", "LIST",
     "hold these partitions, as in 0-3,7; without it, workers share all partitions fairly", OPTION_TEXT,
     AT(partitions), 0, 0},
    {"lease", "SECONDS", "let another worker take over after this time without a renewal (5)", OPTION_REAL,
     AT(lease), 0.2, 3600},
    {"wait", "N",
     "learn an entry when N replicas have it: with `feed --wait N`, a failover changes nothing (0)",
     OPTION_WHOLE, AT(wait), 0, 100},
    {"save", "SECONDS", "time between checkpoints, below which the log is trimmed (10)", OPTION_REAL,
     AT(save), 0.1, 86400},
    {"keep-log", NULL, "do not trim the log", OPTION_FLAG, AT(keep_log), 0, 0},
    {"folder", "DIR", "folder of the processes; nothing in it is needed afterwards (a new one in /tmp)",
     OPTION_TEXT, AT(folder), 0, 0},
    {"program", "FILE", "svmstream program to run (the one in the folder of this program)", OPTION_TEXT,
     AT(program), 0, 0},
    {.text = "Events:"},
    {"publish", "KINDS",
     "events to publish in :out: score, alert, model, bank, stats, error, sums, or none "
     "(score,alert,model,sums)",
     OPTION_TEXT, AT(publish), 0, 0},
    {"keep", "N", "keep about this many newest entries in :out (100000)", OPTION_WHOLE, AT(keep), 1, 1e9},
    {.text = "Other options:"},
    {"stats", "SECONDS", "log the counters every SECONDS; 0: at the end only (60)", OPTION_REAL, AT(stats), 0,
     1e9},
};

/* --wait is the field of the worker's --wait: a process has one command, and both promises together make a
 * failover harmless. The columns are settings of svmstream, with its names and rules (options_column). */
static const struct adapter_option feed_rows[] = {
    SERVER_ROWS,
    {.text = "Samples:"},
    {"partition", "COLUMN",
     "column whose value selects the partition (the key; without keys, entries are spread evenly)",
     OPTION_TEXT, AT(column), 0, 0},
    {"src", "NAME", "name under which the log counts these rows (made from the files' names)", OPTION_TEXT,
     AT(src), 0, 0},
    {"batch", "N", "samples in an entry (64)", OPTION_WHOLE, AT(batch), 1, 65536},
    {"packed", NULL, "send rows of numbers as packed doubles", OPTION_FLAG, AT(packed), 0, 0},
    {"wait", "N", "treat rows as taken when N replicas have them: a failover then loses none (0)",
     OPTION_WHOLE, AT(wait), 0, 100},
    {"quiet", NULL, "report failures only", OPTION_FLAG, AT(quiet), 0, 0},
    {.text = "Columns:"},
    FEED_ENTRIES_ROWS,
};

static const struct adapter_option sums_rows[] = {
    SERVER_ROWS,
    {.text = "Sums:"},
    {"follow", NULL, "keep running, and write each record again when it changes", OPTION_FLAG, AT(follow), 0,
     0},
};

static const struct adapter_option status_rows[] = {SERVER_ROWS};

/* The answer to any unknown option that begins with `password`. It does not repeat the value. */
static const char secret_text[] =
    "a password on the command line is visible to every user: put it into a file "
    "and name that with --password-file, or into SVMSTREAM_REDIS_PASSWORD";

static const char after_text[] =
    "\n"
    "`svmstream help cluster` describes partitions, leases, failures and permissions.\n"
    "Exit codes: 0 done or ended by a signal, 1 failed, 2 usage.\n";

/* Rows of OPTION_OWN, which are those of FEED_ENTRIES_ROWS: svi_settings checks their values, as it does for
 * svmstream itself. */
static int options_column(void *options, const struct adapter_option *row, const char *value) {
    struct redis_options *o = options;
    svs_error err;
    return svi_settings_set(&o->settings, row->name, value, &err) == SVS_OK
               ? 0
               : redis_options_wrong("%s", err.text);
}

/* `path` has a place for each word of argv, so it cannot overflow. */
static int options_path(void *options, const char *word) {
    struct redis_options *o = options;
    o->path[o->paths++] = word;
    return 0;
}

/* The size of a table is known only where its name is still an array, hence a macro. --password-file is a row
 * and is found by its name, before the test for a secret. */
#define COMMAND(table, usage, extra)                                                                         \
    {                                                                                                        \
        .program = "svmstream-redis", .options = table, .count = sizeof table / sizeof *table, .column = 22, \
        .before = usage, .after = extra, .letter = "-q", .letter_name = "quiet", .secret = "password",       \
        .secret_text = secret_text, .own = options_column                                                    \
    }

static struct adapter_command options_command(enum redis_command which) {
    const struct adapter_command commands[] = {
        [REDIS_COMMAND_WORKER] = COMMAND(
            worker_rows,
            "usage: svmstream-redis [run] [options] [-- settings of svmstream run]\n"
            "       svmstream-redis feed [options] FILE...\n"
            "       svmstream-redis sums [options]\n"
            "       svmstream-redis status [options]\n"
            "\n"
            "Learns partitions of a stream whose log is in Redis. This worker runs a `svmstream run` for "
            "each partition.\n"
            "Scores, alerts and models go to {STREAM:P}:out, checkpoints to {STREAM:P}:state. When a worker "
            "dies, another\n"
            "one continues its partitions from there. Nothing is lost and nothing is applied twice.\n",
            after_text),
        [REDIS_COMMAND_FEED] = COMMAND(feed_rows,
                                       "usage: svmstream-redis feed [options] FILE...\n"
                                       "\n"
                                       "Adds rows of files (CSV, JSON lines, LIBSVM or VW text, plain or "
                                       ".gz; - is standard input) to the log. The same\n"
                                       "command again adds only the missing rows.\n",
                                       after_text),
        [REDIS_COMMAND_SUMS] = COMMAND(sums_rows,
                                       "usage: svmstream-redis sums [options] | svmstream merge -\n"
                                       "\n"
                                       "Writes the sums records of all partitions to standard output. The "
                                       "workers need `-- --publish.sums SECONDS`.\n",
                                       after_text),
        [REDIS_COMMAND_STATUS] = COMMAND(status_rows,
                                         "usage: svmstream-redis status [options]\n"
                                         "\n"
                                         "Prints a line for each partition: owner, log, checkpoint.\n",
                                         after_text)};
    /* Other commands have no words of their own: a file after `sums` is a mistake and is reported. */
    struct adapter_command c = commands[which];
    c.word = which == REDIS_COMMAND_FEED ? options_path : NULL;
    return c;
}

/* The address: the option, else the variable, else this machine. The password: the file, else the variable,
 * else that in the address of the variable. An empty variable counts as absent. */
static int read_server(struct redis_options *o) {
    const char *url = getenv("SVMSTREAM_REDIS"), *password = getenv("SVMSTREAM_REDIS_PASSWORD");
    const bool environment = !o->redis && url && *url;
    svs_error err;
    const char *text = o->redis ? o->redis : environment ? url : "redis://localhost:6379";
    /* A password in the address is accepted from the environment alone: a command line is visible to every
     * user. */
    if (redis_url_read(&o->url, text, environment, &err) != SVS_OK)
        return redis_options_wrong("%s%s", environment ? "SVMSTREAM_REDIS: " : "--redis: ", err.text);
    /* A file that is named wins. The variable then has no effect, so an old one in the environment does no
     * harm. */
    if (o->password_file) {
        const svs_code code = redis_url_password(&o->url, o->password_file, &err);
        if (code == SVS_SETTING)
            return redis_options_wrong("%s", err.text);
        /* The words were right and the file is not there: that is no mistake in the usage. */
        if (code != SVS_OK)
            redis_log("%s", err.text);
        return code == SVS_OK ? 0 : 1;
    }
    if (password && strlen(password) >= sizeof o->url.password)
        return redis_options_wrong("SVMSTREAM_REDIS_PASSWORD is too long");
    if (password && *password)
        strcpy(o->url.password, password);
    /* Last, when all places of a password have been asked. */
    if (o->url.user[0] && !o->url.password[0])
        return redis_options_wrong("the address names the user %s, but no password is given: give "
                                   "--password-file FILE, or set SVMSTREAM_REDIS_PASSWORD",
                                   o->url.user);
    return 0;
}

/* A stream's name is part of keys and topics. The rule is that of the process, asked before a key is made. A
 * longer name would be truncated in the keys (redis_names_make), and two streams would share them. */
static int read_stream(const struct redis_options *o) {
    svs_error err;
    struct svi_settings s;
    svi_settings_default(&s);
    if (strlen(o->stream) > REDIS_NAME_BYTES || svi_settings_set(&s, "stream", o->stream, &err) != SVS_OK)
        return redis_options_wrong("--stream %s: a name has 1 to 64 letters, digits, _ or -", o->stream);
    return 0;
}

/* The worker calls this once Redis has answered how many partitions there are. */
int redis_options_partitions(const struct redis_options *o, int count, bool *wanted) {
    const char *at = o->partitions;
    char *end;
    while (*at) {
        const long first = strtol(at, &end, 10);
        const bool range = end != at && *end == '-';
        const char *second = end + 1;
        const long last = range ? strtol(second, &end, 10) : first;
        if (end == at || (range && end == second) || first < 0 || last < first || (*end && *end != ','))
            return redis_options_wrong("--partitions %s: give numbers and ranges, as in 0-3,7",
                                       o->partitions);
        /* Before the marks are set: `wanted` has `count` places. A number too large for strtol is also found
         * here, as it is then the largest one. */
        if (last >= count)
            return redis_options_wrong("--partitions %s: stream %s has the partitions 0 to %d", o->partitions,
                                       o->stream, count - 1);
        for (long i = first; i <= last; i++)
            wanted[i] = true;
        at = *end ? end + 1 : end;
    }
    return 0;
}

/* What a single row cannot check. The server comes last: it alone reads a file and holds a secret. */
static int options_complete(struct redis_options *o) {
    if (o->command == REDIS_COMMAND_FEED && o->paths == 0)
        return redis_options_wrong("feed needs a FILE; - is standard input");
    if (o->src && strlen(o->src) > SVS_NAME_MAX)
        return redis_options_wrong("--src %s is longer than %d bytes", o->src, SVS_NAME_MAX);
    const char *publish = o->publish ? o->publish : "score,alert,model,sums";
    int code = adapter_options_kinds(REDIS_PROGRAM, publish, &o->topics);
    code = code ? code : read_stream(o);
    return code ? code : read_server(o);
}

int redis_options_read(struct redis_options *o, int argc, char *const *argv, bool *done) {
    /* In the order of enum redis_command, which the functions in main.c have too. */
    static const char *const words[] = {"run", "feed", "sums", "status"};
    int end = 1;
    /* Set before anything can fail: the caller clears `o` in any case. */
    *done = false;
    *o = (struct redis_options){.stream = "default",
                                .timeout = 10,
                                .lease = 5,
                                .save = 10,
                                .stats = 60,
                                .keep = 100000,
                                .batch = FEED_ENTRY_BATCH};
    svi_settings_default(&o->settings);
    o->path = redis_need((size_t)argc, sizeof *o->path);
    /* A first word that is an option belongs to the worker: `svmstream-redis --stream x` needs no `run`. */
    bool chosen = false;
    for (int i = 0; argc > 1 && i < 4 && !chosen; i++)
        if ((chosen = strcmp(argv[1], words[i]) == 0))
            o->command = (enum redis_command)i;
    if (argc > 1 && !chosen && argv[1][0] != '-')
        return redis_options_wrong("%.80s is not a command: use run, feed, sums or status", argv[1]);
    /* Only a worker starts processes, so only for it does `--` end our options. */
    const struct adapter_command c = options_command(o->command);
    while (end < argc && (o->command != REDIS_COMMAND_WORKER || strcmp(argv[end], "--") != 0))
        end++;
    o->arguments = (const char *const *)argv + end + (end < argc);
    o->argument_count = end < argc ? argc - end - 1 : 0;
    /* The parser skips its first word: the command stands where the name of the program would. */
    const int code = adapter_options_read(&c, o, end - chosen, argv + chosen, done);
    return code || *done ? code : options_complete(o);
}

/* The password is overwritten first; the settings own no memory. */
void redis_options_clear(struct redis_options *o) {
    redis_url_wipe(&o->url);
    svi_free(o->path);
    *o = (struct redis_options){0};
}
