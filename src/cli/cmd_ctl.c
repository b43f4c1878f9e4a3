/* ctl: one control request, its reply as JSON.
 *
 * The words KEY=VALUE become a map of keys of the request itself. With `config` they are the
 * settings, with `score` the sample. A request `load FILE` has no pairs: it carries the model of
 * the file, in the form in which it would be published. The reply goes to standard output
 * unchanged. Changed settings and the result of tune are printed again for people, on standard
 * error. The timeout depends on the request: some build a model or write a checkpoint.
 *
 * In order of reading: values and pairs, the request, the reply, cmd_ctl_run. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "client/request.h"
#include "cli/command.h"
#include "cli/object.h"
#include "formats/model_file.h"
#include "report/bank_report.h"
#include "report/tuning_report.h"
#include "wire/control_command.h"
#include "wire/json_value.h"
#include "wire/pack.h"

#define STOP_SECONDS   60  /* the last checkpoint may be large */
#define CONFIG_SECONDS 600 /* the model may be rebuilt from millions of samples */

/* True when the word begins with this key and an equals sign. */
static bool names_key(const char *word, const char *key) {
    const size_t n = strlen(key);
    return strncmp(word, key, n) == 0 && word[n] == '=';
}

/* Packs a value by its form: 7 is an integer, 0.5 a number, [1, 2] and {"a": 1} are JSON; "7" (with the
 * quotes) and everything else is a string. */
static void pack_word(struct svi_pack *p, const char *word) {
    char *end;
    if ((*word == '[' || *word == '{') && svi_pack_json(p, word, NULL) == SVS_OK)
        return;
    size_t n = strlen(word);
    errno = 0;
    long long i = strtoll(word, &end, 10);
    if (n > 0 && *end == 0 && errno == 0) {
        svi_pack_int(p, i);
        return;
    }
    double r = strtod(word, &end);
    bool quoted = n >= 2 && word[0] == '"' && word[n - 1] == '"';
    if (n > 0 && *end == 0 && isfinite(r))
        svi_pack_real(p, r);
    else
        svi_pack_string(p, word + quoted, quoted ? n - 2 : n);
}

/* The key of the inner map that receives all KEY=VALUE except key=..., which is about the request; NULL: the
 * pairs are keys of the request itself. */
static const char *cmd_ctl_inner(const struct cli_args *a) {
    int others = 0;
    for (int i = 1; i < a->positional_count; i++) {
        others += !names_key(a->positional[i], "key");
        if (names_key(a->positional[i], "sample") && strcmp(a->positional[0], "config") != 0)
            return NULL;
    }
    return others == 0                               ? NULL
           : strcmp(a->positional[0], "config") == 0 ? "set"
           : strcmp(a->positional[0], "score") == 0  ? "sample"
                                                     : NULL;
}

/* Adds the switches of the command line to a request. */
static void cmd_ctl_switches(const struct cli_args *a, struct svi_pack *p) {
    if (cli_has(a, "yes"))
        svi_put_bool(p, "yes", true);
    if (cli_has(a, "relearn"))
        svi_put_bool(p, "relearn", true);
    if (cli_has(a, "without-src"))
        svi_put_text(p, "without", cli_value(a, "without-src"));
}

/* Stream keys, and parts of them, are always text: 007 is not 7. So are the texts of a mute, and the name of
 * a part of a merge. */
static void cmd_ctl_pair(struct svi_pack *p, const char *word) {
    static const char *const texts[] = {"key",    "like", "prefix", "by",  "sensor",
                                        "reason", "who",  "for",    "part"};
    const char *sign = strchr(word, '=');
    bool text = false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text = text || names_key(word, texts[i]);
    svi_pack_name(p, word, (size_t)(sign - word));
    const bool flag = names_key(word, "open") || names_key(word, "yes") || names_key(word, "loo");
    if (text && sign[1] != '"')
        svi_pack_text(p, sign + 1);
    else if (flag && (strcmp(sign, "=true") == 0 || strcmp(sign, "=false") == 0))
        svi_pack_bool(p, sign[1] == 't');
    else
        pack_word(p, sign + 1);
}

/* Packs the pair key=... (`outside`), which names the stream key of the request, or all other pairs. */
static void cmd_ctl_pairs(const struct cli_args *a, struct svi_pack *p, bool outside) {
    for (int i = 1; i < a->positional_count; i++)
        if (names_key(a->positional[i], "key") == outside && strchr(a->positional[i], '='))
            cmd_ctl_pair(p, a->positional[i]);
}

static bool cmd_ctl_is(const struct cli_args *a, const char *operation) {
    return strcmp(a->positional[0], operation) == 0;
}

static bool cmd_ctl_has(const struct cli_args *a, const char *key) {
    for (int i = 1; i < a->positional_count; i++)
        if (names_key(a->positional[i], key))
            return true;
    return false;
}

/* Words without a sign that an operation takes: mute KEY SENSOR, less those that are written key=... and
 * sensor=...; unmute ID. */
static int cmd_ctl_bare_words(const struct cli_args *a) {
    if (cmd_ctl_is(a, "mute"))
        return 2 - cmd_ctl_has(a, "key") - cmd_ctl_has(a, "sensor");
    return cmd_ctl_is(a, "unmute") && !cmd_ctl_has(a, "mute") ? 1 : 0;
}

/* Packs these words. The first one of a mute is the key in a stream with keys, else the sensor, which the
 * process knows (`name`); after key=..., it is the sensor. A mute also states the user. */
static void cmd_ctl_bare(const struct cli_args *a, struct svi_pack *p) {
    const char *user = getenv("LOGNAME") ? getenv("LOGNAME") : getenv("USER");
    const bool keyed = cmd_ctl_has(a, "key");
    for (int i = 1, bare = 0; i < a->positional_count; i++) {
        const char *word = a->positional[i];
        if (strchr(word, '='))
            continue;
        const char *name = cmd_ctl_is(a, "unmute") ? "mute" : bare++ > 0 || keyed ? "sensor" : "name";
        svi_pack_key(p, name);
        if (cmd_ctl_is(a, "unmute"))
            pack_word(p, word);
        else
            svi_pack_text(p, word);
    }
    if (cmd_ctl_is(a, "mute") && !cmd_ctl_has(a, "who") && user && strlen(user) <= SVS_NAME_MAX)
        svi_put_text(p, "who", user);
}

/* {op, switches, key, ...}: pairs that are settings or a sample go into a map of their own (cmd_ctl_inner),
 * the stream key never does, since it selects what the request is about. */
static svs_code cmd_ctl_build(const struct cli_args *a, struct svi_bytes *request) {
    struct svi_pack p;
    const char *inner = cmd_ctl_inner(a);
    svi_pack_begin(&p, request);
    const struct svi_open_map map = svi_pack_open(&p);
    cmd_ctl_switches(a, &p);
    svi_put_text(&p, "op", a->positional[0]);
    cmd_ctl_pairs(a, &p, true);
    cmd_ctl_bare(a, &p);
    if (inner) {
        svi_pack_key(&p, inner);
        const struct svi_open_map within = svi_pack_open(&p);
        cmd_ctl_pairs(a, &p, false);
        svi_pack_close(&p, within);
    } else {
        cmd_ctl_pairs(a, &p, false);
    }
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}

/* load FILE: the model goes with the request. */
static svs_code cmd_ctl_build_model(const char *path, struct svi_bytes *request, svs_error *err) {
    struct svi_bytes bytes = {0};
    svs_model *model = NULL;
    struct svi_pack p;
    svs_code code = svi_model_any_read(path, &bytes, &model, err);
    if (code == SVS_OK) {
        svi_pack_begin(&p, request);
        svi_pack_map(&p, 2);
        svi_put_text(&p, "op", "load");
        svi_pack_key(&p, "model");
        svi_pack_raw(&p, bytes.data, bytes.size);
        code = svi_pack_end(&p);
    }
    svs_model_free(&model);
    svi_bytes_clear(&bytes);
    return code;
}

/* Prints the changed settings for people, in addition to the reply, and how many samples were relearned. */
static void cmd_ctl_print_changes(struct svi_view reply) {
    char key[80], from[80], to[80];
    const struct svi_view changed = svi_view_key(reply, "changed"),
                          samples = svi_view_key(reply, "relearned");
    const struct svi_item map = svi_view_item(changed);
    const uint8_t *at = map.body;
    if (map.type != SVI_MAP)
        return;
    /* Key, then {from, to}; each is walked over to reach the next. */
    for (uint32_t i = 0; i < map.length; i++) {
        cli_scalar((struct svi_view){at, changed.end}, key, sizeof key);
        svi_walk(&at, changed.end, SVI_WALK_MAX);
        const struct svi_view pair = {at, changed.end};
        svi_walk(&at, changed.end, SVI_WALK_MAX);
        fprintf(stderr, "%s: %s -> %s\n", key, cli_key_text(pair, "from", from, sizeof from),
                cli_key_text(pair, "to", to, sizeof to));
    }
    if (map.length == 0)
        fprintf(stderr, "nothing has changed\n");
    if (samples.at && svi_view_item(svi_view_key(svi_view_key(reply, "config"), "key")).length > 0)
        fprintf(stderr, "the model of each key is rebuilt at its next sample\n");
    else if (samples.at)
        fprintf(stderr, "the model was rebuilt from %s samples\n", cli_scalar(samples, to, sizeof to));
}

/* What the process remarks about a request that it has carried out. */
static void cmd_ctl_print_note(struct svi_view reply) {
    char note[200];
    if (svi_view_key(reply, "note").at)
        fprintf(stderr, "%s\n", cli_key_text(reply, "note", note, sizeof note));
}

/* Prints the alert events of the reply for people, a line each, and what the answer leaves out. */
static void cmd_ctl_print_alerts(struct svi_view reply) {
    char number[40], state[40], text[800], since[40];
    const int64_t lost = svi_view_integer(reply, "lost", 0);
    struct svi_view next = svi_view_key(reply, "alerts"), event;
    int64_t left = -1;
    if (svi_view_item(next).type != SVI_ARRAY)
        return;
    if (svi_view_true(reply, "reset"))
        fprintf(stderr, "the alert numbers are of another state than since: all alerts are listed\n");
    if (lost > 0)
        fprintf(stderr, "lost %lld alert events: they are no longer kept (see alert.keep)\n",
                (long long)lost);
    while (svi_view_next(&next, &left, &event))
        fprintf(stderr, "%s %s: %s\n", cli_key_text(event, "number", number, sizeof number),
                cli_key_text(event, "state", state, sizeof state),
                cli_key_text(event, "text", text, sizeof text));
    if (svi_view_true(reply, "more"))
        fprintf(stderr, "for more: svmstream ctl alerts since=%s\n",
                cli_key_text(reply, "next", since, sizeof since));
}

/* The reply as it is on standard output, for programs; what people want to read of it on standard error,
 * after it. An error of the process is a reply too: it is printed the same way and makes the exit code 1. */
static int cmd_ctl_show(const struct cli_args *a, const struct svi_bytes *reply) {
    svs_error err;
    const int result = cli_end(a, cli_show_json(reply->data, reply->size, &err), &err);
    const struct svi_view map = svi_view_of(reply->data, reply->size);
    fflush(stdout);
    if (result == CLI_OK && !a->quiet) {
        cmd_ctl_print_changes(map);
        cmd_ctl_print_note(map);
    }
    if (result == CLI_OK && !a->quiet && strcmp(a->positional[0], "tune") == 0)
        svi_tuning_report(stderr, map.at, map.end);
    if (result == CLI_OK && !a->quiet && svi_view_key(map, "bank").at &&
        strcmp(a->positional[0], "bank") == 0)
        svi_bank_report(stderr, svi_view_key(map, "bank").at, map.end);
    if (result == CLI_OK && !a->quiet && strcmp(a->positional[0], "alerts") == 0)
        cmd_ctl_print_alerts(map);
    return result == CLI_OK && svi_view_key(map, "error").at ? CLI_FAILED : result;
}

/* The names that pairs of a request may have: those of control_command.c, and `part` of a merge. */
static const char *const pair_names[] = {
    "alert", "by",   "checkpoint", "epoch", "for",     "id",     "key",    "learn",   "like",   "limit",
    "loo",   "mute", "name",       "open",  "part",    "prefix", "reason", "rows",    "sensor", "silent",
    "since", "sort", "verdict",    "who",   "without", "y",      "yes",    "relearn", NULL};

/* 0, or CLI_USAGE for a pair with another name. A process passes over what it does not know, so a misspelt
 * name would widen the request: reset kye=m1 drops the model of the stream. config and score take names of
 * settings and of a sample. */
static int cmd_ctl_check_names(const struct cli_args *a) {
    char name[80];
    if (strcmp(a->positional[0], "config") == 0 || strcmp(a->positional[0], "score") == 0)
        return CLI_OK;
    for (int i = 1; i < a->positional_count; i++) {
        const char *word = a->positional[i], *sign = strchr(word, '=');
        bool known = !sign;
        for (const char *const *of = pair_names; *of && !known; of++)
            known = names_key(word, *of);
        if (known)
            continue;
        svi_escape(name, sizeof name, word, (size_t)(sign - word));
        const char *nearest = svi_nearest(name, pair_names);
        return cli_usage(a, "no request takes '%s'%s%s", name, nearest ? ", the nearest known name is " : "",
                         nearest ? nearest : "");
    }
    return CLI_OK;
}

static int cmd_ctl_run(const struct cli_args *a) {
    struct svi_bytes request = {0}, reply = {0};
    svs_error err = {0};
    const bool load = strcmp(a->positional[0], "load") == 0,
               file = load && a->positional_count == 2 && strncmp(a->positional[1], "checkpoint=", 11) != 0;
    /* Mistakes of the command line are found before anything is sent: a process would answer them, but
     * without naming the word. */
    for (int i = 1, bare = cmd_ctl_bare_words(a); i < a->positional_count && !file; i++)
        if (!strchr(a->positional[i], '=') && bare-- < 1)
            return cli_usage(a, "'%s' is not of the form key=value", a->positional[i]);
    if (!file && cmd_ctl_check_names(a) != CLI_OK)
        return CLI_USAGE;
    if ((cli_has(a, "relearn") || cli_has(a, "without-src")) && (!load || file))
        return cli_usage(a, "--relearn and --without-src apply to load checkpoint=N only: leave them out");
    const bool stop = strcmp(a->positional[0], "stop") == 0, tune = strcmp(a->positional[0], "tune") == 0;
    if (cli_has(a, "yes") && strcmp(a->positional[0], "reset") != 0)
        return cli_usage(a, "--yes applies to reset only, and %s needs no consent: leave it out",
                         a->positional[0]);
    const bool sets = a->positional_count > 1 && strcmp(a->positional[0], "config") == 0;
    /* A timeout that is given holds for every request; else those that build or write something get more,
     * once a process is there to do so. */
    const double timeout = cli_has(a, "timeout")  ? cli_number(a, "timeout")
                           : stop || load || tune ? STOP_SECONDS
                           : sets                 ? CONFIG_SECONDS
                                                  : cli_number(a, "timeout");
    svs_code code = file ? cmd_ctl_build_model(a->positional[1], &request, &err) : cmd_ctl_build(a, &request);
    if (code == SVS_OK)
        code = client_ask(&a->settings,
                          &(struct client_question){&request, timeout, stop, cli_waiting, (void *)a,
                                                    cli_number(a, "timeout")},
                          &reply, &err);
    int result = code == SVS_OK ? cmd_ctl_show(a, &reply)
                 : err.text[0]  ? cli_error(a, &err)
                                : cli_fail(a, "%s", svs_code_text(code));
    svi_bytes_clear(&request);
    svi_bytes_clear(&reply);
    return result;
}

static const struct cli_option options[] = {
    CLI_NUMBER(
        "timeout", 0, "SECONDS", "5", 0.001, 1e6,
        "wait this long for the reply; for stop, load and tune 60, for config with settings 600, but 5 while "
        "no process listens"),
    CLI_SWITCH("yes", 0, "with reset: confirm that the model kept in state.dir is dropped"),
    CLI_SWITCH("relearn", 0, "with load checkpoint=N: learn the samples after it again"),
    CLI_OPTION("without-src", 0, "NAME", NULL, "with --relearn: except samples of this source"), CLI_END};

/* What it does; after `config`, what a running process takes. */
static const char *cmd_ctl_word(bool config, int i) {
    const struct svi_setting *row = svi_settings_table;
    static const char *const of_merge[] = {"parts", "restore", "stats"}; /* and some of the others */
    if (!config)
        return i < SVI_COMMAND_COUNT       ? svi_command_name((enum svi_command_op)i)
               : i < SVI_COMMAND_COUNT + 3 ? of_merge[i - SVI_COMMAND_COUNT]
                                           : NULL;
    for (; row->key; row++)
        if (svi_change_any_time(row->change) && i-- == 0)
            break;
    return row->key;
}

const struct cli_command cli_ctl = {
    .name = "ctl",
    .word = cmd_ctl_word,
    .text = "send one request to a running process",
    .usage = "OPERATION [KEY=VALUE...]",
    .help =
        "Sends one request to `ctl` and prints the reply as JSON. The exit code is 1 if the reply is an\n"
        "error. Values that look like numbers are sent as numbers, [...] and {...} as JSON, and \"7\" with\n"
        "its quotes as a string.\n"
        "\n"
        "  status               prints all figures\n"
        "  config [KEY=VALUE..] prints the settings, or changes some of the running process, all or none:\n"
        "                       C, window, forget, scale, method and class.weight rebuild the model from\n"
        "                       the samples held; standard error lists the changes\n"
        "  model                prints the current model\n"
        "  bank                 prints the bank of method auto, with a table of members on standard error\n"
        "  columns              prints the kinds of the columns, and their numbers of missing values\n"
        "  publish              publishes model and stats now\n"
        "  tune                 evaluates C: leaves out each held sample once, for C from 2^-10 to 2^10;\n"
        "                       changes nothing; standard error reports whether another C is clearly better\n"
        "  score x=...          scores a sample without learning it; sample='[{\"x\": ...}, ...]': many\n"
        "  label id=... y=...   adds the label of a sample that waits for it\n"
        "  forget id=...        removes a sample\n"
        "  alert alert=N verdict=false|true [by=NAME]\n"
        "                       confirms (true) or rejects (false) an alert: rejected rows are learned as\n"
        "                       normal, confirmed ones are not\n"
        "  mute [KEY] [SENSOR] for=2h [reason=TEXT] [learn=yes]\n"
        "                       holds back alerts for that time; KEY may have * for any bytes; rows under "
        "it\n"
        "                       are learned as normal with learn=yes only\n"
        "  mutes                lists the mutes; unmute ID ends one\n"
        "  alerts [since=N] [key=NAME] [limit=L]\n"
        "                       lists the alert events after number N, verdicts included, of all keys or\n"
        "                       of one; standard error shows a line for each: its number, state and text\n"
        "  refit                solves the window again in the background\n"
        "  save                 writes a checkpoint now, and prints its hash\n"
        "  reset                drops everything that was learned; a kept state needs --yes\n"
        "  keys                 lists the keys of a stream (svmstream keys prints a table); drop key=NAME\n"
        "                       removes one\n"
        "  prune                drops classes and features that no held sample has\n"
        "  stop                 ends the process\n"
        "  load checkpoint=N    restores the state after record N (`state show` lists them)\n"
        "  load FILE            serves the model of a file\n"
        "  parts                lists the parts of svmstream merge; drop part=NAME removes one, and\n"
        "                       restore part=NAME adds it again; a merge also takes status, stats, model,\n"
        "                       publish and stop\n"
        "\n"
        "In a stream with keys, key=NAME selects a key for status, model, columns, score, tune, label,\n"
        "forget, alert, publish, reset, prune, and config without changes. label and forget need it.\n"
        "\n"
        "Examples:\n"
        "  svmstream ctl status\n"
        "  svmstream ctl status key=press-03\n"
        "  svmstream ctl label id=17 y=spam\n"
        "  svmstream ctl alerts since=17 | jq .alerts            # the missed ones since event 17\n"
        "  svmstream ctl forget id='\"7\"'\n"
        "  svmstream ctl score x='[21.5, 40]'                    # or x='{\"temp\": 21.5}'\n"
        "  svmstream ctl score sample='[{\"x\": [21.5, 40]}, {\"x\": [19, 55]}]'\n"
        "  svmstream ctl config C=10 window=5000                 # of a running process\n"
        "  svmstream ctl mute press-1 temp for=2h reason=service # key and sensor\n"
        "  svmstream ctl save                                    # a checkpoint now, with its hash\n"
        "  svmstream ctl reset --yes                             # of a kept state\n"
        "  svmstream ctl load checkpoint=5120 --relearn          # undoes a reset\n"
        "  svmstream ctl stop                                    # returns when the addresses are free",
    .keys = "ctl curve curve.server",
    .options = options,
    .run = cmd_ctl_run};
