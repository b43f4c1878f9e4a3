#include "broker.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QOS             1
#define KEEPALIVE       30  /* seconds */
#define CONNECT_SECONDS 10  /* until connected, and from there until welcome */
#define PAUSE           0.1 /* seconds before the next attempt, doubled up to */
#define PAUSE_MAX       30.0
#define STEADY          10.0 /* a connection that lasted so long was a good one */
#define OUTSTANDING_MAX 1000 /* messages that the broker has not taken yet */
#define INFLIGHT        100  /* of these on the wire */
#define REFUSED         0x80 /* instead of a granted QoS */

/* CONNACK codes of MQTT 3.1.1 that no second attempt will change. */
static const char *hopeless_text(int code) {
    switch (code) {
    case 1:
        return "it does not speak MQTT 3.1.1";
    case 2:
        return "it does not take this --client-id";
    case 4:
        return "user name or password is wrong (--user, --password-file)";
    case 5:
        return "not authorised: user name, password or rights are missing (--user, --password-file)";
    default:
        return NULL;
    }
}

static void subscribe_all(struct broker *b) {
    const struct options *o = b->options;
    b->unanswered = 0;
    for (int i = 0; i < o->topics; i++) {
        int rc = mosquitto_subscribe(b->client, &b->subscriptions[i], o->topic[i], QOS);
        if (rc == MOSQ_ERR_SUCCESS)
            b->unanswered++;
        else
            say("cannot subscribe to %s: %s", o->topic[i], mosquitto_strerror(rc));
    }
}

static void welcome(struct broker *b, int flags) {
    bool again = b->subscribed;
    b->connected = true;
    b->failures = 0;
    b->since = clock_steady();
    b->counters->reconnects += again;
    say("%sconnected to the broker at %s:%d as %s%s", again ? "again " : "", b->options->host,
        (int)b->options->port, b->options->client_id, flags & 1 ? "; it has kept the session" : "");
    broker_publish_own(b, "status", "online", 6, true);
    /* A kept session has our filters; asking again would bring all retained messages again. The first time it
     * may have those of an earlier run with other options. */
    if (!again || !(flags & 1))
        subscribe_all(b);
}

static void on_connect(struct mosquitto *client, void *context, int code, int flags) {
    struct broker *b = context;
    (void)client;
    if (code == 0) {
        welcome(b, flags);
        return;
    }
    const char *why = hopeless_text(code);
    b->hopeless = why && !b->subscribed;
    say_few(b->hopeless ? 1 : ++b->failures, "the broker at %s:%d refuses: %s", b->options->host,
            (int)b->options->port, why ? why : mosquitto_connack_string(code));
}

static void on_subscribe(struct mosquitto *client, void *context, int mid, int count, const int *granted) {
    struct broker *b = context;
    (void)client;
    for (int i = 0; i < b->options->topics; i++) {
        if (b->subscriptions[i] != mid)
            continue;
        b->subscriptions[i] = 0;
        b->unanswered--;
        if (count < 1 || granted[0] >= REFUSED)
            say("the broker refuses the subscription to %s: has this user the right to read it?",
                b->options->topic[i]);
        else
            say("subscribed to %s", b->options->topic[i]);
    }
    b->subscribed = b->subscribed || b->unanswered == 0;
}

static void on_publish(struct mosquitto *client, void *context, int mid) {
    struct broker *b = context;
    (void)client;
    (void)mid;
    b->outstanding--;
    b->counters->published++;
}

static bool is_own(const struct broker *b, const char *topic) {
    size_t n = strlen(b->options->prefix);
    return strncmp(topic, b->options->prefix, n) == 0 && topic[n] == '/';
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *m) {
    struct broker *b = context;
    (void)client;
    b->counters->received++;
    if (is_own(b, m->topic))
        b->counters->own++;
    else
        b->message(b->context, m);
}

static void on_log(struct mosquitto *client, void *context, int level, const char *text) {
    struct broker *b = context;
    char safe[300];
    (void)client;
    if (level == MOSQ_LOG_ERR)
        say_few(++b->complaints, "%s", shown(safe, sizeof safe, text, strlen(text)));
}

static int configure_tls(struct broker *b) {
    const struct options *o = b->options;
    int rc = MOSQ_ERR_SUCCESS;
    if (!o->tls)
        return rc;
    if (!o->cafile && !o->capath)
        rc = mosquitto_int_option(b->client, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
    if (rc == MOSQ_ERR_SUCCESS)
        rc = mosquitto_tls_set(b->client, o->cafile, o->capath, o->cert, o->key, NULL);
    if (rc == MOSQ_ERR_SUCCESS && o->insecure)
        rc = mosquitto_tls_insecure_set(b->client, true);
    return rc;
}

static int configure(struct broker *b) {
    const struct options *o = b->options;
    char topic[300];
    snprintf(topic, sizeof topic, "%s/status", o->prefix);
    mosquitto_connect_with_flags_callback_set(b->client, on_connect);
    mosquitto_subscribe_callback_set(b->client, on_subscribe);
    mosquitto_publish_callback_set(b->client, on_publish);
    mosquitto_message_callback_set(b->client, on_message);
    mosquitto_log_callback_set(b->client, on_log);
    int rc = mosquitto_will_set(b->client, topic, 7, "offline", QOS, true);
    if (rc == MOSQ_ERR_SUCCESS && o->user)
        rc = mosquitto_username_pw_set(b->client, o->user, b->options->password);
    if (rc == MOSQ_ERR_SUCCESS)
        rc = mosquitto_max_inflight_messages_set(b->client, INFLIGHT);
    return rc == MOSQ_ERR_SUCCESS ? configure_tls(b) : rc;
}

static const char *unreadable(const struct options *o) {
    const char *const files[] = {o->cafile, o->capath, o->cert, o->key};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] && access(files[i], R_OK) != 0)
            return files[i];
    return NULL;
}

int broker_open(struct broker *b, const struct options *o, struct counters *c, broker_message *message,
                void *context) {
    *b = (struct broker){.options = o,
                         .counters = c,
                         .message = message,
                         .context = context,
                         .pause = PAUSE,
                         .reads = true,
                         .again = clock_steady()};
    const char *file = unreadable(o);
    if (file) {
        say("%s cannot be read: %s", file, strerror(errno));
        return 1;
    }
    b->client = mosquitto_new(o->client_id, false, b);
    int rc = b->client ? configure(b) : MOSQ_ERR_NOMEM;
    if (rc == MOSQ_ERR_SUCCESS)
        return 0;
    say("the connection to the broker cannot be set up: %s", mosquitto_strerror(rc));
    return 1;
}

void broker_close(struct broker *b) {
    if (b->client)
        mosquitto_destroy(b->client);
    b->client = NULL;
}

bool broker_ready(const struct broker *b) {
    return b->connected && b->outstanding < OUTSTANDING_MAX;
}

void broker_publish(struct broker *b, const char *topic, const void *payload, size_t length, bool retain) {
    int rc = mosquitto_publish(b->client, NULL, topic, (int)length, payload, QOS, retain);
    /* Without connection the library keeps it, and says so by an error. */
    if (rc == MOSQ_ERR_SUCCESS || rc == MOSQ_ERR_NO_CONN || rc == MOSQ_ERR_CONN_LOST)
        b->outstanding++;
    else
        say_few(++b->complaints, "%s is not published: %s", topic, mosquitto_strerror(rc));
}

void broker_publish_own(struct broker *b, const char *name, const void *payload, size_t length, bool retain) {
    char topic[300];
    snprintf(topic, sizeof topic, "%s/%s", b->options->prefix, name);
    broker_publish(b, topic, payload, length, retain);
}

int broker_socket(const struct broker *b) {
    return mosquitto_socket(b->client);
}

bool broker_wants_write(const struct broker *b) {
    return mosquitto_want_write(b->client);
}

double broker_wait(const struct broker *b) {
    return broker_socket(b) < 0 ? fmax(0, b->again - clock_steady()) : 1;
}

static void try_later(struct broker *b) {
    if (b->connected && clock_steady() - b->since >= STEADY)
        b->pause = PAUSE;
    b->connected = false;
    b->again = clock_steady() + b->pause;
    b->pause = fmin(2 * b->pause, PAUSE_MAX);
}

static const char *reason(int rc, int error) {
    if (rc == MOSQ_ERR_TLS || (rc == MOSQ_ERR_ERRNO && error == EPROTO))
        return "no TLS comes about: one side does not accept the other's certificate (--cafile, --cert, "
               "--host)";
    if (rc == MOSQ_ERR_ERRNO)
        return error == EINTR ? "no answer" : strerror(error);
    return mosquitto_strerror(rc);
}

static void attempt(struct broker *b) {
    const struct options *o = b->options;
    if (clock_steady() < b->again)
        return;
    b->since = clock_steady();
    alarm(CONNECT_SECONDS); /* the library has no limit of its own for this; the signal interrupts it */
    int rc = b->attempted ? mosquitto_reconnect(b->client)
                          : mosquitto_connect(b->client, o->host, (int)o->port, KEEPALIVE);
    int error = errno;
    alarm(0);
    b->attempted = true;
    if (rc == MOSQ_ERR_SUCCESS)
        return;
    try_later(b);
    say_few(++b->failures, "cannot reach the broker at %s:%d: %s; trying again", o->host, (int)o->port,
            reason(rc, error));
}

static void lost(struct broker *b, int rc, int error) {
    bool was = b->connected;
    try_later(b);
    if (b->hopeless)
        return;
    if (was)
        say("the connection to the broker is lost: %s; trying again", reason(rc, error));
    else if (rc != MOSQ_ERR_CONN_REFUSED)
        say_few(++b->failures, "the broker at %s:%d ends the connection: %s; trying again", b->options->host,
                (int)b->options->port, reason(rc, error));
}

static int serve(struct broker *b, bool readable, bool writable) {
    int rc = MOSQ_ERR_SUCCESS;
    if (readable)
        rc = mosquitto_loop_read(b->client, 1);
    if (rc == MOSQ_ERR_SUCCESS && (writable || mosquitto_want_write(b->client)))
        rc = mosquitto_loop_write(b->client, 1);
    if (rc == MOSQ_ERR_SUCCESS)
        rc = mosquitto_loop_misc(b->client);
    return rc;
}

void broker_turn(struct broker *b, bool readable, bool writable) {
    if (broker_socket(b) < 0) {
        if (!b->hopeless)
            attempt(b);
        return;
    }
    errno = 0;
    int rc = serve(b, readable && b->reads, writable), error = errno;
    if (broker_socket(b) < 0) {
        lost(b, rc, error);
    } else if (!b->connected && clock_steady() - b->since > CONNECT_SECONDS) {
        say_few(++b->failures, "what listens at %s:%d does not answer as a broker; trying again",
                b->options->host, (int)b->options->port);
        b->again = b->since = clock_steady();
        mosquitto_reconnect(b->client);
    }
}

void broker_leave(struct broker *b) {
    mosquitto_disconnect(b->client);
    mosquitto_loop_write(b->client, 1);
}
