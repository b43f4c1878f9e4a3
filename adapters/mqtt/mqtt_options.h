/* mqtt_options.h: the command line. One table makes parser, defaults and help. */
#ifndef MQTT_OPTIONS_H
#define MQTT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "net/keys.h"
#include "wire/event.h"

#define TOPICS_MAX   64                   /* filters */
#define FEATURES_MAX SVI_FEATURES_DEFAULT /* features in one sample */
#define NAME_BYTES   SVS_NAME_MAX         /* longest feature name, id, source or stream on the wire */

enum join_mode { JOIN_EACH, JOIN_ALL, JOIN_PERIOD };

/* Texts belong to argv or are constants, but for those marked as owned. */
struct options {
    const char *host;
    int64_t port; /* 0: 1883, or 8883 with TLS */
    const char *client_id, *user, *password_file, *cafile, *capath, *cert, *cert_key;
    bool tls, insecure;
    const char *topic[TOPICS_MAX];
    int topics;
    const char *template, *feature; /* NULL: the topic itself */
    const char *key;                /* of samples; NULL: none */
    int64_t keys;                   /* of which values are held */
    const char *join, *features, *ts_key, *id_key;
    double stale; /* seconds; 0: values never get old */
    const char *in, *out, *curve, *curve_server, *stream, *publish, *prefix;
    bool no_ack;
    int64_t buffer;
    double stats; /* seconds; 0: only at the end */
    /* made of the above */
    enum join_mode join_mode;
    double join_seconds;
    unsigned kinds;               /* bit SVI_TOPIC_...: published */
    char *password;               /* owned; NULL: none */
    char *filter;                 /* owned: made from the template */
    char *own_id;                 /* owned: made from the prefix */
    struct svi_identity identity; /* for both sockets; off without --curve */
};

/* 0; 2: the command line is wrong; 1: a file cannot be read; both are reported. mqtt_options_clear in any
 * case. *done: --help or --version was answered, and nothing is to be run. */
int mqtt_options_read(struct options *o, int argc, char *const *argv, bool *done);
void mqtt_options_clear(struct options *o);

#endif
