/* The command line: one table (rows) makes the parser, the ranges and the help (adapter_options).
 *
 * A row says where in struct options a value goes and what it may be; --topic adds to a list. What depends on
 * more than one option is checked after the last word, in mqtt_options_complete: kinds of events, how to
 * join, template and pattern, names, keys, password. Every failure is one line and exit code 2, or 1 when a
 * file cannot be read.
 *
 * Invariants: a mistake is reported before anything connects; options are valid together once
 * mqtt_options_read has returned 0; texts belong to argv, and only what is made here (password, filter,
 * own_id, identity) is freed. Read rows, mqtt_options_topic and mqtt_options_complete in this order. */
#include "mqtt_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mosquitto.h>

#include "../common/adapter_options.h"
#include "base/alloc.h"
#include "log.h"
#include "naming.h"

#define AT(field) offsetof(struct options, field)

static const struct adapter_option rows[] = {
    {.text = "The broker:"},
    {"host", "NAME", "address of the broker (localhost)", OPTION_TEXT, AT(host), 0, 0},
    {"port", "N", "its port (1883, with TLS 8883)", OPTION_WHOLE, AT(port), 1, 65535},
    {"client-id", "ID",
     "fixed name of this adapter for the broker, and its `src` for svmstream (svmstream-mqtt-PREFIX)",
     OPTION_TEXT, AT(client_id), 0, 0},
    {"user", "NAME", "user name", OPTION_TEXT, AT(user), 0, 0},
    {"password-file", "FILE", "file whose first line is the password", OPTION_TEXT, AT(password_file), 0, 0},
    {"tls", NULL, "encrypt, and trust the certificates of this system", OPTION_FLAG, AT(tls), 0, 0},
    {"cafile", "FILE", "encrypt, and trust the certificates in FILE", OPTION_TEXT, AT(cafile), 0, 0},
    {"capath", "FOLDER", "encrypt, and trust the certificates in FOLDER", OPTION_TEXT, AT(capath), 0, 0},
    {"cert", "FILE", "own certificate, with --cert-key", OPTION_TEXT, AT(cert), 0, 0},
    {"cert-key", "FILE", "its key, without pass phrase (`--cert FILE --key FILE` is the same)", OPTION_TEXT,
     AT(cert_key), 0, 0},
    {"insecure", NULL, "do not check that the certificate names the host", OPTION_FLAG, AT(insecure), 0, 0},
    {.text = "From topics to samples:"},
    {"topic", "FILTER", "topics to subscribe to, with + and #; may be repeated; QoS 1", OPTION_OWN, 0, 0, 0},
    {"template", "LEVELS", "names of the topic's levels: 'plant/{machine}/{sensor}'; + and # skip levels",
     OPTION_TEXT, AT(template), 0, 0},
    {"feature", "PATTERN",
     "name of the feature: '{machine}.{sensor}'; {key} is the key in a JSON object, {topic} "
     "the topic with dots",
     OPTION_TEXT, AT(feature), 0, 0},
    {"key", "PATTERN",
     "key of the sample, if svmstream runs with --key (a model for each): '{machine}'; tokens of the "
     "template, {topic}, or members of the JSON object (none)",
     OPTION_TEXT, AT(key), 0, 0},
    {"keys", "N", "maximum number of keys; samples of further keys are counted and dropped (100000)",
     OPTION_WHOLE, AT(keys), 1, 1e8},
    {"features", "A,B,...", "the features of every sample, in this order; others are counted and dropped",
     OPTION_TEXT, AT(features), 0, 0},
    {"join", "HOW",
     "each: a sample for each message, with the last values of the other sensors; all: one when "
     "every sensor has a new value; SECONDS: one a period (each)",
     OPTION_TEXT, AT(join), 0, 0},
    {"stale", "SECONDS", "a value older than this is sent as missing; 0: never (0)", OPTION_REAL, AT(stale),
     0, 1e9},
    {"ts", "KEY",
     "key of the time stamp in JSON objects: seconds, milliseconds or ISO 8601 (time of arrival)",
     OPTION_TEXT, AT(ts_key), 0, 0},
    {"id", "KEY", "key of the sample's id in JSON objects (none)", OPTION_TEXT, AT(id_key), 0, 0},
    {.text = "svmstream:"},
    {"in", "ADDRESS", "its `in` (tcp://127.0.0.1:5555)", OPTION_TEXT, AT(in), 0, 0},
    {"out", "ADDRESS", "its `out` (tcp://127.0.0.1:5556)", OPTION_TEXT, AT(out), 0, 0},
    {"curve", "FILE", "own CURVE keys (`svmstream curve new FILE`), if svmstream runs with --curve",
     OPTION_TEXT, AT(curve), 0, 0},
    {"curve.server", "KEY", "its public key, or the file that holds it", OPTION_TEXT, AT(curve_server), 0, 0},
    {"no-ack", NULL, "push to `in.mode pull`: nothing is acknowledged or sent again", OPTION_FLAG, AT(no_ack),
     0, 0},
    {"buffer", "N", "up to N samples wait for svmstream; then the oldest is dropped (10000)", OPTION_WHOLE,
     AT(buffer), 2, 1e8},
    {"publish", "KINDS",
     "events to publish: score, alert, model, bank, stats, error, sums, prior, or none (alert,model)",
     OPTION_TEXT, AT(publish), 0, 0},
    {"stream", "NAME", "only the events of this stream (all at that address)", OPTION_TEXT, AT(stream), 0, 0},
    {"prefix", "TOPIC",
     "topic of published events: PREFIX/STREAM/alert, for a key PREFIX/STREAM/alert/KEY (svmstream)",
     OPTION_TEXT, AT(prefix), 0, 0},
    {.text = "Other options:"},
    {"stats", "SECONDS",
     "log the counters every SECONDS, here and on PREFIX/adapter; 0: at the end only (60)", OPTION_REAL,
     AT(stats), 0, 1e9},
};

static const char before[] = "usage: svmstream-mqtt --topic FILTER [options]\n"
                             "\n"
                             "Connects an MQTT broker to `svmstream run --in.mode router`: values of sensors "
                             "become samples, alerts and\n"
                             "models become MQTT messages. A payload is a number (21.5, \"21.5\", true, off) "
                             "or a JSON object of numbers;\n"
                             "nested keys are joined by dots. {\"value\": 21.5} is the same as 21.5.\n";

static const char after[] =
    "\n"
    "Examples:\n"
    "  svmstream-mqtt --topic 'room/+'\n"
    "  svmstream-mqtt --template 'plant/{machine}/{sensor}' --feature '{machine}.{sensor}' --join 1 --stale "
    "60\n"
    "  svmstream-mqtt --template 'plant/{machine}/{sensor}' --key '{machine}' --join 1 --stale 60\n"
    "  svmstream-mqtt --host broker.example --cafile ca.pem --user meter --password-file secret \\\n"
    "      --topic 'zigbee2mqtt/+' --feature '{topic}.{key}' --ts last_seen --publish alert,score\n"
    "  mosquitto_sub -t 'svmstream/+/alert/#'\n"
    "\n"
    "PREFIX/status is \"online\" or \"offline\" (retained, last will). Values not seen yet (with --features) "
    "and stale\n"
    "values are sent as missing: svmstream's setting `missing` decides. A retained message sets a value, but "
    "makes\n"
    "no sample. While svmstream is down, samples wait (--buffer); while this adapter is down, the broker "
    "keeps\n"
    "messages with QoS 1, up to its own limits. Ends on SIGINT and SIGTERM, within 2 s.\n"
    "Exit codes: 0 ended by a signal, 1 failed or samples were left over, 2 usage.\n";

/* The mistakes in a command line all end in exit code 2. */
#define mqtt_options_wrong(...) adapter_options_wrong(MQTT_PROGRAM, __VA_ARGS__)

/* Each --topic adds to those given before. */
static int mqtt_options_topic(void *options, const struct adapter_option *row, const char *value) {
    struct options *o = options;
    (void)row;
    /* The library's check lets an empty filter pass; MQTT demands at least one character. */
    if (mosquitto_sub_topic_check(value) != MOSQ_ERR_SUCCESS || !*value)
        return mqtt_options_wrong("--topic %s is not a topic filter: use + for a whole level, and # at the "
                                  "end for all further levels",
                                  value);
    if (o->topics == TOPICS_MAX)
        return mqtt_options_wrong("--topic is given more than %d times: leave some out", TOPICS_MAX);
    o->topic[o->topics++] = value;
    return 0;
}

static const struct adapter_command mqtt_command = {
    .program = "svmstream-mqtt",
    .options = rows,
    .count = sizeof rows / sizeof rows[0],
    .column = 22,
    .before = before,
    .after = after,
    .letter = "-t",
    .letter_name = "topic",
    .secret = "password",
    .secret_text = "a password on the command line is visible to every user: put it into a file and name "
                   "that with --password-file",
    .own = mqtt_options_topic};

/* The range test rejects nan as well. join_seconds has a meaning for JOIN_PERIOD only. */
static int read_join(struct options *o) {
    char *end;
    double seconds = strtod(o->join, &end);
    if (strcmp(o->join, "each") == 0)
        o->join_mode = JOIN_EACH;
    else if (strcmp(o->join, "all") == 0)
        o->join_mode = JOIN_ALL;
    else if (end != o->join && !*end && seconds >= 0.001 && seconds <= 1e9)
        o->join_mode = JOIN_PERIOD;
    else
        return mqtt_options_wrong("--join %s: give each, all, or a period from 0.001 to 1e9 seconds",
                                  o->join);
    o->join_seconds = seconds;
    return 0;
}

/* A template alone says which topics there are. */
static int read_naming(struct options *o) {
    char why[300];
    /* This naming only proves that the texts are good; main.c builds the one that works. A mistake thus
     * ends in exit code 2 before any connection. */
    struct naming *n = mqtt_naming_new(o->template, o->feature, o->key, why, sizeof why);
    if (!n)
        return mqtt_options_wrong("%s", why);
    if (o->topics == 0 && o->template) {
        o->filter = mqtt_naming_filter(o->template);
        o->topic[o->topics++] = o->filter;
    }
    svi_free(n);
    return o->topics ? 0 : mqtt_options_wrong("missing option: --topic FILTER or --template");
}

static int read_password(struct options *o) {
    char line[1024] = "";
    if (!o->password_file)
        return 0;
    FILE *f = fopen(o->password_file, "re");
    bool read = f && fgets(line, sizeof line, f);
    if (f)
        fclose(f);
    /* A file with CR LF line ends must not add the CR to the password. */
    line[strcspn(line, "\r\n")] = '\0';
    if (!read || !line[0]) {
        mqtt_log("no password in %s: %s", o->password_file, f ? "its first line is empty" : strerror(errno));
        return 1;
    }
    o->password = mqtt_need(strlen(line) + 1, 1);
    strcpy(o->password, line);
    return 0;
}

/* The same loader as the program's: settings with --curve and its server key, as a client. */
static int read_keys(struct options *o) {
    struct svi_settings s = {.curve = "off"};
    svs_error err;
    if ((o->curve && strlen(o->curve) >= sizeof s.curve) ||
        (o->curve_server && strlen(o->curve_server) >= sizeof s.curve_server))
        return mqtt_options_wrong("the name of a key file is too long");
    if (o->curve)
        strcpy(s.curve, o->curve);
    if (o->curve_server)
        strcpy(s.curve_server, o->curve_server);
    svs_code code = svi_identity_load(&s, true, &o->identity, &err);
    if (code == SVS_SETTING)
        return mqtt_options_wrong("%s", err.text);
    if (code != SVS_OK)
        mqtt_log("%s", err.text);
    return code == SVS_OK ? 0 : 1;
}

/* What this adapter is called at the broker, and the topics that must not meet. */
static int read_names(struct options *o) {
    /* n > 0: adapter_options_read refuses an empty value. MQTT reserves topics that begin with $ for the
     * broker. */
    size_t n = strlen(o->prefix);
    if (mosquitto_pub_topic_check(o->prefix) != MOSQ_ERR_SUCCESS || o->prefix[n - 1] == '/' ||
        o->prefix[0] == '$')
        return mqtt_options_wrong(
            "--prefix %s is not a topic to publish to: it must not contain + or #, begin with $ or end in /",
            o->prefix);
    if (!o->client_id) {
        o->own_id = mqtt_need(n + 20, 1);
        sprintf(o->own_id, "svmstream-mqtt-%s", o->prefix);
        o->client_id = o->own_id;
    }
    /* svmstream sets this limit, not MQTT: the client id is also the `src` of the samples (feed.c). */
    if (strlen(o->client_id) > NAME_BYTES)
        return mqtt_options_wrong("--client-id %s is longer than 64 bytes", o->client_id);
    /* This catches the plain mistake. A wildcard filter such as # may cover the prefix legitimately;
     * on_message in broker.c drops that echo. */
    for (int i = 0; i < o->topics; i++)
        if (strncmp(o->topic[i], o->prefix, n) == 0 && o->topic[i][n] == '/')
            return mqtt_options_wrong(
                "--topic %s would receive the events published under --prefix %s: change one of them",
                o->topic[i], o->prefix);
    return 0;
}

/* The order matters: each test below relies on what those above have settled. */
static int mqtt_options_complete(struct options *o) {
    /* MQTT 3.1.1 forbids a password without a user name in CONNECT. */
    if (o->password_file && !o->user)
        return mqtt_options_wrong("--password-file needs --user");
    /* mosquitto's own clients call the key of a certificate --key. Without a brace it cannot be a pattern
     * for samples. This comes first, for the tests below judge both options. */
    if (o->cert && !o->cert_key && o->key && !strchr(o->key, '{')) {
        o->cert_key = o->key;
        o->key = NULL;
    }
    if (o->key && !strchr(o->key, '{'))
        return mqtt_options_wrong("--key %s has no token in braces: name levels of the topic, as in "
                                  "'{machine}' (for the key of a certificate give --cert-key)",
                                  o->key);
    if (!o->cert != !o->cert_key)
        return mqtt_options_wrong("--cert and --cert-key must be given together");
    /* o->tls still means the option --tls here. After these tests it means: encrypt. */
    bool trust = o->cafile || o->capath;
    if ((o->insecure || o->cert) && !trust && !o->tls)
        return mqtt_options_wrong("--insecure and --cert need TLS: give --cafile, --capath or --tls");
    if (trust && o->tls)
        return mqtt_options_wrong(
            "--tls trusts the system's certificates: it cannot be combined with --cafile or --capath");
    o->tls = o->tls || trust;
    /* 0 can stand for "not given", as the range starts at 1. Only now is it known whether TLS applies. */
    o->port = o->port ? o->port : o->tls ? 8883 : 1883;
    /* read_naming precedes read_names, which must see the filter that a template makes. The steps that
     * open files come last. */
    static int (*const steps[])(struct options *) = {read_join, read_naming, read_names, read_keys,
                                                     read_password};
    int code = adapter_options_kinds(MQTT_PROGRAM, o->publish, &o->kinds);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && !code; i++)
        code = steps[i](o);
    return code;
}

int mqtt_options_read(struct options *o, int argc, char *const *argv, bool *done) {
    *o = (struct options){.host = "localhost",
                          .join = "each",
                          .in = "tcp://127.0.0.1:5555",
                          .out = "tcp://127.0.0.1:5556",
                          .publish = "alert,model",
                          .prefix = "svmstream",
                          .keys = 100000,
                          .buffer = 10000,
                          .stats = 60};
    const int code = adapter_options_read(&mqtt_command, o, argc, argv, done);
    return code || *done ? code : mqtt_options_complete(o);
}

/* Safe after any failure: mqtt_options_read starts from zeros, so what was never made is NULL. */
void mqtt_options_clear(struct options *o) {
    svi_free(o->password);
    svi_free(o->filter);
    svi_free(o->own_id);
    svi_identity_wipe(&o->identity);
    *o = (struct options){0};
}
