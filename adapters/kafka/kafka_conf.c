/* Settings of librdkafka and errors of the brokers.
 *
 * Whatever librdkafka can be set to passes through: SASL, TLS, buffers, timeouts. Three kinds are refused.
 * Secrets are read from a file alone, since a command line is visible to every user. Settings on which the
 * promises of this program rest (offsets, transactions, what is read) are made by it. And what librdkafka
 * does not know, or a value that it does not take, is an error at the start rather than a line in a log.
 *
 * kafka_settings_add comes first and once a pair: it checks and keeps texts. kafka_conf_new then makes a
 * configuration of them for each client, and relies on that check. Read these two first.
 *
 * librdkafka logs each attempt of each broker. Those lines are dropped unless the user sets `debug`: what
 * matters arrives as an error as well (kafka_error_report), and is reported once in a while in words that
 * name the remedy. */
#include "kafka_conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "kafka_log.h"

#define LINE_BYTES   65536 /* of a file: a certificate may be given in one line */
#define PAUSE        10.0  /* seconds between two lines about the same error */
#define RETRY_MS     200
#define REASON_BYTES 400

/* Substrings of the names of settings whose values are secret. One of them covers a family of names:
 * sasl.password, ssl.key.password. */
static const char *const secret_words[] = {"password", "secret", "ssl.key.pem", "ssl_key", "sasl.jaas"};

/* Settings that this program makes itself, with what to use instead. Each would break a promise
 * without an error. The offset is in the checkpoint, so an offset of the group would contradict it.
 * The end of a topic (partition.eof) is the only sign that a takeover has read all of it. */
static const struct {
    const char *key, *instead;
} own_settings[] = {{"group.id", "--group names the group"},
                    {"transactional.id", "--transactional chooses, and each partition has an id of its own"},
                    {"enable.idempotence", "producers here are always idempotent"},
                    {"enable.auto.commit", "offsets are kept with the model"},
                    {"enable.auto.offset.store", "offsets are kept with the model"},
                    {"auto.offset.reset", "reading begins at the offset that is kept with the model"},
                    {"isolation.level", "what was not committed is never read"},
                    {"enable.partition.eof", "this program needs it"},
                    {"partition.assignment.strategy", "--strategy chooses"},
                    {"acks", "an idempotent producer waits for all replicas"}};

/* The block is zeroed, so the copy ends with a NUL. */
static char *settings_copy(const char *text, size_t length) {
    char *copy = svi_alloc_plain(length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

/* Is librdkafka willing to take it? A scratch configuration is asked: the real ones are made with their
 * clients, long after the command line was read. */
static svs_code settings_try(const char *key, const char *value, bool secret, svs_error *err) {
    char why[512], shown[600];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, key, value, why, sizeof why);
    rd_kafka_conf_destroy(conf);
    if (result == RD_KAFKA_CONF_OK)
        return SVS_OK;
    if (secret && result == RD_KAFKA_CONF_INVALID) /* librdkafka's reason repeats the value */
        return svi_fail(err, SVS_SETTING, "librdkafka does not take this value of %s", key);
    return svi_fail(err, SVS_SETTING, "%s", svi_escape(shown, sizeof shown, why, strlen(why)));
}

svs_code kafka_settings_add(struct kafka_settings *s, const char *pair, bool from_file, svs_error *err) {
    char key[128];
    const char *equals = strchr(pair, '='), *value = equals ? equals + 1 + strspn(equals + 1, " \t") : "";
    size_t length = equals ? (size_t)(equals - pair) : 0;
    bool secret = false;
    /* Files of Java's clients have blanks around the sign. */
    while (length > 0 && (pair[length - 1] == ' ' || pair[length - 1] == '\t'))
        length--;
    if (length == 0 || length >= sizeof key)
        return svi_fail(err, SVS_SETTING, "a setting of librdkafka has the form KEY=VALUE");
    memcpy(key, pair, length);
    key[length] = '\0';
    for (size_t i = 0; i < sizeof secret_words / sizeof *secret_words; i++)
        secret = secret || strstr(key, secret_words[i]);
    /* A secret is refused before librdkafka is asked: every other user can read it already, whether the value
     * is good or not. */
    if (secret && !from_file)
        return svi_fail(
            err, SVS_SETTING,
            "%s on the command line is visible to every user: put the line %s=... into a file and "
            "name that with --kafka-file",
            key, key);
    /* librdkafka would accept these, so the trial below cannot find them. */
    for (size_t i = 0; i < sizeof own_settings / sizeof *own_settings; i++)
        if (strcmp(key, own_settings[i].key) == 0)
            return svi_fail(err, SVS_SETTING, "%s is not yours to set: %s", key, own_settings[i].instead);
    /* The trial comes before the pair is kept: kafka_conf_new ignores what librdkafka answers to it. */
    SVI_TRY(settings_try(key, value, secret, err));
    if (s->count == KAFKA_SETTINGS_MAX)
        return svi_fail(err, SVS_SETTING, "more than %d settings of librdkafka", KAFKA_SETTINGS_MAX);
    s->key[s->count] = settings_copy(key, length);
    s->value[s->count] = settings_copy(value, strlen(value));
    /* `count` stays, but kafka_settings_clear visits every place: half a pair is freed too. */
    if (!s->key[s->count] || !s->value[s->count])
        return svi_fail_memory(err, "the settings of librdkafka");
    s->count++;
    return SVS_OK;
}

svs_code kafka_settings_load(struct kafka_settings *s, const char *path, svs_error *err) {
    FILE *f = fopen(path, "re");
    char *line = f ? svi_alloc_plain(LINE_BYTES) : NULL;
    svs_error why; /* its text becomes part of `err`, so the two must differ */
    svs_code code = SVS_OK;
    /* The first bad line ends the reading, since the program does not start: that line is reported alone. */
    for (int number = 1; line && code == SVS_OK && fgets(line, LINE_BYTES, f); number++) {
        const char *first = line + strspn(line, " \t");
        line[strcspn(line, "\r\n")] = '\0';
        if (*first && *first != '#' && kafka_settings_add(s, first, true, &why) != SVS_OK)
            code = svi_fail(err, why.code, "%.150s, line %d: %.400s", path, number, why.text);
    }
    if (!f)
        code = svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
    else if (!line)
        code = svi_fail_memory(err, "the settings of librdkafka");
    /* The buffer has held passwords. */
    if (line)
        explicit_bzero(line, LINE_BYTES);
    svi_free(line);
    if (f)
        fclose(f);
    return code;
}

/* For defaults of ours that the user may change: ours are set last (kafka_conf_new), so a caller leaves such
 * a default out where the user has one. */
bool kafka_settings_has(const struct kafka_settings *s, const char *key) {
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->key[i], key) == 0)
            return true;
    return false;
}

void kafka_settings_clear(struct kafka_settings *s) {
    for (int i = 0; i < KAFKA_SETTINGS_MAX; i++) { /* not up to `count`: see the end of kafka_settings_add */
        if (s->value[i])
            explicit_bzero(s->value[i], strlen(s->value[i]));
        svi_free(s->key[i]);
        svi_free(s->value[i]);
    }
    *s = (struct kafka_settings){0};
}

/* ---- clients */

/* Several codes may alternate while brokers are away. Each keeps a time of its own: with one time for all,
 * every change of the code would be a line. The table belongs to the settings, which all clients share, so
 * the same error of several clients is one line. */
void kafka_error_report(struct kafka_settings *s, rd_kafka_resp_err_t code, const char *reason) {
    char text[REASON_BYTES + 300];
    int place = 0;
    for (int i = 0; i < KAFKA_ERRORS; i++) {
        if (s->error[i].code == code && svi_monotonic() - s->error[i].at < PAUSE)
            return;
        /* The oldest gives way; an unused place has the time 0. */
        place = s->error[i].at < s->error[place].at ? i : place;
    }
    s->error[place].code = code;
    s->error[place].at = svi_monotonic();
    kafka_log("%s", kafka_error_text(code, reason, text, sizeof text));
}

/* Callbacks for errors run where we poll, in our one thread: the table needs no lock. */
static void conf_error(rd_kafka_t *client, int code, const char *reason, void *origin) {
    (void)client;
    kafka_error_report(((struct kafka_origin *)origin)->settings, (rd_kafka_resp_err_t)code, reason);
}

/* librdkafka calls this one from threads of its own, so it touches nothing. */
static void conf_drop_log(const rd_kafka_t *client, int level, const char *what, const char *text) {
    (void)client;
    (void)level;
    (void)what;
    (void)text;
}

rd_kafka_conf_t *kafka_conf_new(struct kafka_origin *origin, const char *const *ours) {
    const struct kafka_settings *s = origin->settings;
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (int i = 0; i < s->count; i++)
        rd_kafka_conf_set(conf, s->key[i], s->value[i], why, sizeof why); /* tried before */
    /* Ours come last, since a later value replaces an earlier one: whatever the user has set, they hold. */
    for (int i = 0; ours[i]; i += 2)
        if (rd_kafka_conf_set(conf, ours[i], ours[i + 1], why, sizeof why) != RD_KAFKA_CONF_OK) {
            kafka_log("this librdkafka (%s) cannot be used: %s", rd_kafka_version_str(), why);
            exit(1);
        }
    /* A user who sets `debug` wants the lines, and librdkafka's own way of writing them stays. */
    if (!kafka_settings_has(s, "debug"))
        rd_kafka_conf_set_log_cb(conf, conf_drop_log);
    rd_kafka_conf_set_opaque(conf, origin);
    rd_kafka_conf_set_error_cb(conf, conf_error);
    return conf;
}

rd_kafka_t *kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, svs_error *err) {
    char why[512];
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (!client) { /* librdkafka owns the configuration only after a success */
        rd_kafka_conf_destroy(conf);
        svi_fail(err, SVS_SETTING, "librdkafka does not start: %s", why);
    }
    return client;
}

/* ---- errors as sentences */

/* The table has the errors for which a person can do something; others keep librdkafka's words. The reason
 * of this occasion follows in parentheses. */
const char *kafka_error_text(rd_kafka_resp_err_t code, const char *reason, char *out, size_t size) {
    static const struct {
        rd_kafka_resp_err_t code;
        const char *text;
    } known[] = {
        {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN,
         "no broker can be reached: are they up, and is --brokers right?"},
        {RD_KAFKA_RESP_ERR__TRANSPORT, "a connection to a broker failed"},
        {RD_KAFKA_RESP_ERR__RESOLVE, "the name of a broker cannot be resolved: is --brokers right?"},
        {RD_KAFKA_RESP_ERR__AUTHENTICATION,
         "a broker refuses our credentials: check security.protocol, sasl.mechanism, sasl.username and the "
         "password in --kafka-file"},
        {RD_KAFKA_RESP_ERR__SSL,
         "no TLS with a broker: check security.protocol and ssl.ca.location (--kafka or --kafka-file)"},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "the broker's rules deny us a topic"},
        {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, "the broker's rules deny us the group (--group)"},
        {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
         "the broker's rules deny us transactions: allow the ids STREAM-0 and up, or use --transactional no"},
        {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
         "the topic does not exist: create it with kafka-topics.sh, or name another with --stream"},
        {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
         "the topic does not exist: create it with kafka-topics.sh, or name another with --stream"},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
         "a record is larger than a broker takes: raise max.message.bytes of the topic and message.max.bytes "
         "here (--kafka), or send fewer samples in an entry (--batch)"},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, "a record was not taken within message.timeout.ms"},
        {RD_KAFKA_RESP_ERR__FENCED, "another worker owns the partition now"},
        {RD_KAFKA_RESP_ERR_PRODUCER_FENCED, "another worker owns the partition now"},
        {RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE,
         "the broker has no transactions: use --transactional no (each event is then published once by its "
         "number, but a worker that was taken for dead is not fenced)"}};
    char safe[REASON_BYTES];
    const char *text = rd_kafka_err2str(code);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            text = known[i].text;
    reason = reason ? reason : "";
    /* The reason may repeat bytes from outside: escaped, it stays on one line. */
    svi_escape(safe, sizeof safe, reason, strlen(reason));
    snprintf(out, size, "%s%s%s%s", text, *safe ? " (" : "", safe, *safe ? ")" : "");
    return out;
}

/* A topic that a broker creates on demand has no leader for a moment: that is asked again. */
int kafka_partitions(rd_kafka_t *client, const char *topic, double seconds, svs_error *err) {
    const double end = svi_monotonic() + seconds;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    rd_kafka_resp_err_t code = handle ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_last_error();
    char text[700];
    int count = 0;
    while (handle && count == 0 && svi_monotonic() < end) {
        const struct rd_kafka_metadata *data = NULL;
        code = rd_kafka_metadata(client, 0, handle, &data, 2000);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR && data->topic_cnt == 1) {
            code = data->topics[0].err;
            count = code == RD_KAFKA_RESP_ERR_NO_ERROR ? data->topics[0].partition_cnt : 0;
        }
        if (data)
            rd_kafka_metadata_destroy(data);
        /* The pause between two attempts, in which conf_error receives what went wrong. */
        rd_kafka_poll(client, count > 0 ? 0 : RETRY_MS);
        /* These two do not pass by waiting. */
        if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
            code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
            break;
    }
    if (handle)
        rd_kafka_topic_destroy(handle);
    if (count > 0)
        return count;
    /* No answer at all has one likely cause, and that sentence names what to check. */
    const bool silent = code == RD_KAFKA_RESP_ERR__TRANSPORT || code == RD_KAFKA_RESP_ERR__TIMED_OUT;
    svi_fail(err, SVS_IO, "topic %.200s: %s", topic,
             kafka_error_text(silent ? RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN : code, NULL, text, sizeof text));
    return 0;
}
