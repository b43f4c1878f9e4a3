/* kafka_conf.h: how this program speaks to the brokers: the user's settings of librdkafka, those that are
 * ours, and errors of the brokers as sentences that name the remedy. */
#ifndef KAFKA_CONF_H
#define KAFKA_CONF_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>

#include "svmstream/error.h"

#define KAFKA_SETTINGS_MAX 100
#define KAFKA_ERRORS       8

/* The user's settings: pairs in the order in which they were given; a later one replaces an earlier one. */
struct kafka_settings {
    char *key[KAFKA_SETTINGS_MAX], *value[KAFKA_SETTINGS_MAX]; /* owned */
    int count;
    struct {
        int code;
        double at;         /* svi_monotonic */
    } error[KAFKA_ERRORS]; /* reported last: the same one is reported again after a pause only */
};

/* The opaque pointer of a client; callbacks find their owner by it. Must outlive the client. */
struct kafka_origin {
    struct kafka_settings *settings;
    void *user;
};

/* Adds "KEY=VALUE". `from_file`: it may be a secret; on the command line those are refused. SVS_SETTING: no
 * such setting of librdkafka, a value that it does not take, or a setting that this program makes itself. */
svs_code kafka_settings_add(struct kafka_settings *s, const char *pair, bool from_file, svs_error *err);

/* Adds the lines KEY=VALUE of a file; blank lines and those that begin with # are skipped. SVS_IO,
 * SVS_SETTING with file and line. */
svs_code kafka_settings_load(struct kafka_settings *s, const char *path, svs_error *err);

/* Did the user set it? */
bool kafka_settings_has(const struct kafka_settings *s, const char *key);

/* Frees; values are overwritten first. */
void kafka_settings_clear(struct kafka_settings *s);

/* A configuration with the user's settings, then ours: pairs of texts up to NULL. `s` must outlive its
 * clients. Ends the program where librdkafka does not know one of ours: it is another library than the one we
 * were built for. */
rd_kafka_conf_t *kafka_conf_new(struct kafka_origin *origin, const char *const *ours);

/* A client of `conf`, which it owns. NULL: SVS_SETTING, with the reason (settings that contradict each other,
 * a certificate that cannot be read). */
rd_kafka_t *kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, svs_error *err);

/* What an error of librdkafka means for a person, and what helps. Returns `out`. */
const char *kafka_error_text(rd_kafka_resp_err_t code, const char *reason, char *out, size_t size);

/* Logs an error of the brokers, which repeats with every attempt: each code once in ten seconds. */
void kafka_error_report(struct kafka_settings *s, rd_kafka_resp_err_t code, const char *reason);

/* The number of partitions of a topic. Blocks for at most `seconds`. 0: `err` states why: no broker answers,
 * or the topic does not exist (SVS_IO). */
int kafka_partitions(rd_kafka_t *client, const char *topic, double seconds, svs_error *err);

#endif
