/* The MQTT side, on libmosquitto without its thread: the loop in main.c polls the socket, and
 * mqtt_broker_turn does what is due.
 *
 * Without a socket it connects when the pause is over (mqtt_broker_attempt); with one it reads and
 * writes, and a connection that is lost starts the next pause (try_later), twice as long unless
 * it had lasted. The library calls back what happened: on_connect says online and subscribes, unless the
 * broker has kept our session; on_message hands messages on that are not our own; on_publish counts what the
 * broker has taken. A refusal that no second attempt can change, before the first success, ends the program
 * (hopeless). */
#include "broker.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

#define QOS             1
#define KEEPALIVE       30  /* seconds */
#define CONNECT_SECONDS 10  /* until connected, and from there until welcome */
#define PAUSE           0.1 /* seconds before the next attempt, doubled up to */
#define PAUSE_MAX       30.0
#define STEADY          10.0 /* a connection that lasted this long was a good one */
#define SHORT_MAX       3    /* shorter ones in a row before the log names the likely cause */
#define OUTSTANDING_MAX 1000 /* messages that the broker has not taken yet */
#define INFLIGHT        100  /* of these on the wire */
#define REFUSED         0x80 /* instead of a granted QoS */

/* CONNACK codes of MQTT 3.1.1 that no second attempt will change. */
static const char *const hopeless[] = {
    [1] = "it does not speak MQTT 3.1.1",
    [2] = "it does not take this --client-id",
    [4] = "user name or password is wrong (--user, --password-file)",
    [5] = "not authorised: user name, password or rights are missing (--user, --password-file)"};

/* The library calls this for every CONNACK, a refusal included. It closes the socket after a refusal
 * itself, so this only decides whether another attempt makes sense. */
static void on_connect(struct mosquitto *client, void *context, int code, int flags) {
    struct broker *b = context;
    const struct options *o = b->options;
    /* `again` counts from the first answered subscriptions, not from the first connection: a connection
     * that broke before that must subscribe once more. */
    bool again = b->subscribed;
    (void)client;
    if (code != 0) {
        const char *why = (unsigned)code < sizeof hopeless / sizeof hopeless[0] ? hopeless[code] : NULL;
        /* After a first success the same code can pass, as when the broker reloads its users: keep trying. */
        b->hopeless = why && !again;
        mqtt_log_few(b->hopeless ? 1 : ++b->failures, "the broker at %s:%d refuses: %s", o->host,
                     (int)o->port, why ? why : mosquitto_connack_string(code));
        return;
    }
    b->connected = true;
    b->failures = 0;
    b->since = svi_monotonic();
    b->counters->reconnects += again;
    mqtt_log("%sconnected to the broker at %s:%d as %s%s", again ? "re" : "", o->host, (int)o->port,
             o->client_id, flags & 1 ? "; it has kept the session" : "");
    /* The broker publishes the will "offline" when a connection breaks. Each new one must overwrite that
     * retained text. */
    mqtt_broker_publish_own(b, "status", "online", 6, true);
    /* A kept session has our filters; asking again would bring all retained messages again. The first time it
     * may have those of an earlier run with other options. */
    if (again && flags & 1)
        return;
    b->unanswered = 0;
    for (int i = 0; i < o->topics; i++) {
        int rc = mosquitto_subscribe(b->client, &b->subscriptions[i], o->topic[i], QOS);
        if (rc == MOSQ_ERR_SUCCESS)
            b->unanswered++;
        else
            mqtt_log("cannot subscribe to %s: %s", o->topic[i], mosquitto_strerror(rc));
    }
}

static void on_subscribe(struct mosquitto *client, void *context, int mid, int count, const int *granted) {
    struct broker *b = context;
    (void)client;
    /* A SUBACK repeats the message id, not the filter. One request carries one filter, so granted[0] is
     * its answer. */
    for (int i = 0; i < b->options->topics; i++) {
        if (b->subscriptions[i] != mid)
            continue;
        b->subscriptions[i] = 0;
        b->unanswered--;
        if (count < 1 || granted[0] >= REFUSED)
            mqtt_log("the broker refuses the subscription to %s: has this user the right to read it?",
                     b->options->topic[i]);
        else
            mqtt_log("subscribed to %s", b->options->topic[i]);
    }
    b->subscribed = b->subscribed || b->unanswered == 0;
}

/* With QoS 1 the library calls this at PUBACK. Reconnects do not disturb the count: the library keeps and
 * resends what has no PUBACK. */
static void on_publish(struct mosquitto *client, void *context, int mid) {
    struct broker *b = context;
    (void)client;
    (void)mid;
    b->outstanding--;
    b->counters->published++;
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *m) {
    struct broker *b = context;
    size_t n = strlen(b->options->prefix);
    (void)client;
    b->counters->received++;
    /* A filter such as # also matches what this adapter publishes, and MQTT 3.1.1 has no option against
     * that echo. Taking it in would turn alerts and counters into samples. */
    if (strncmp(m->topic, b->options->prefix, n) == 0 && m->topic[n] == '/')
        b->counters->own++;
    else
        b->message(b->context, m);
}

static void on_log(struct mosquitto *client, void *context, int level, const char *text) {
    struct broker *b = context;
    char safe[300];
    (void)client;
    if (level == MOSQ_LOG_ERR)
        mqtt_log_few(++b->complaints, "%s", svi_escape(safe, sizeof safe, text, strlen(text)));
}

/* All of this must precede the first connect: the will and the credentials are part of the CONNECT packet,
 * which the library repeats from here at every reconnect. */
static int mqtt_broker_configure(struct broker *b) {
    const struct options *o = b->options;
    char topic[300];
    snprintf(topic, sizeof topic, "%s/status", o->prefix);
    mosquitto_connect_with_flags_callback_set(b->client, on_connect);
    mosquitto_subscribe_callback_set(b->client, on_subscribe);
    mosquitto_publish_callback_set(b->client, on_publish);
    mosquitto_message_callback_set(b->client, on_message);
    mosquitto_log_callback_set(b->client, on_log);
    /* The will covers every end without DISCONNECT: kill -9, a lost network, a missed keepalive. It is
     * retained, so a later subscriber sees it. */
    int rc = mosquitto_will_set(b->client, topic, 7, "offline", QOS, true);
    if (rc == MOSQ_ERR_SUCCESS && o->user)
        rc = mosquitto_username_pw_set(b->client, o->user, b->options->password);
    if (rc == MOSQ_ERR_SUCCESS)
        rc = mosquitto_max_inflight_messages_set(b->client, INFLIGHT);
    if (rc == MOSQ_ERR_SUCCESS && o->tls && !o->cafile && !o->capath)
        rc = mosquitto_int_option(b->client, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
    if (rc == MOSQ_ERR_SUCCESS && o->tls)
        rc = mosquitto_tls_set(b->client, o->cafile, o->capath, o->cert, o->cert_key, NULL);
    if (rc == MOSQ_ERR_SUCCESS && o->tls && o->insecure)
        rc = mosquitto_tls_insecure_set(b->client, true);
    return rc;
}

int mqtt_broker_open(struct broker *b, const struct options *o, struct counters *c, broker_message *message,
                     void *context) {
    *b = (struct broker){.options = o,
                         .counters = c,
                         .message = message,
                         .context = context,
                         .pause = PAUSE,
                         .reads = true,
                         .again = svi_monotonic()};
    /* mosquitto_tls_set answers an unreadable file with a bare "invalid". This check names the file and
     * the reason. */
    const char *const files[] = {o->cafile, o->capath, o->cert, o->cert_key};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] && access(files[i], R_OK) != 0) {
            mqtt_log("%s cannot be read: %s", files[i], strerror(errno));
            return 1;
        }
    /* false: no clean session. The broker keeps subscriptions and unread QoS 1 messages under this client
     * id. */
    b->client = mosquitto_new(o->client_id, false, b);
    int rc = b->client ? mqtt_broker_configure(b) : MOSQ_ERR_NOMEM;
    if (rc == MOSQ_ERR_SUCCESS)
        return 0;
    mqtt_log("the connection to the broker cannot be set up: %s", mosquitto_strerror(rc));
    return 1;
}

/* events.c stops reading svmstream's events while this is false. That bounds what the library holds in
 * memory for the broker. */
bool mqtt_broker_ready(const struct broker *b) {
    return b->connected && b->outstanding < OUTSTANDING_MAX;
}

void mqtt_broker_publish(struct broker *b, const char *topic, const void *payload, size_t length,
                         bool retain) {
    int rc = mosquitto_publish(b->client, NULL, topic, (int)length, payload, QOS, retain);
    /* Without connection the library keeps it, and says so by an error. */
    if (rc == MOSQ_ERR_SUCCESS || rc == MOSQ_ERR_NO_CONN || rc == MOSQ_ERR_CONN_LOST)
        b->outstanding++;
    else
        mqtt_log_few(++b->complaints, "%s is not published: %s", topic, mosquitto_strerror(rc));
}

void mqtt_broker_publish_own(struct broker *b, const char *name, const void *payload, size_t length,
                             bool retain) {
    char topic[300];
    snprintf(topic, sizeof topic, "%s/%s", b->options->prefix, name);
    mqtt_broker_publish(b, topic, payload, length, retain);
}

int mqtt_broker_socket(const struct broker *b) {
    return mosquitto_socket(b->client);
}

/* With a connection, mosquitto_loop_misc must run about once a second: it alone sends the pings of the
 * keepalive. */
double mqtt_broker_wait(const struct broker *b) {
    return mqtt_broker_socket(b) < 0 ? fmax(0, b->again - svi_monotonic()) : 1;
}

/* The pause resets only after a connection that lasted. A broker that welcomes and drops us at once would
 * otherwise see ten attempts a second. */
static void try_later(struct broker *b) {
    if (b->connected && svi_monotonic() - b->since >= STEADY) {
        b->pause = PAUSE;
        b->short_lived = 0;
    } else if (b->connected)
        b->short_lived++;
    b->connected = false;
    b->again = svi_monotonic() + b->pause;
    b->pause = fmin(2 * b->pause, PAUSE_MAX);
}

static const char *mqtt_broker_reason(int rc, int error) {
    if (rc == MOSQ_ERR_TLS || (rc == MOSQ_ERR_ERRNO && error == EPROTO))
        return "the TLS handshake failed: one side does not accept the other's certificate (--cafile, "
               "--cert, "
               "--host)";
    if (rc == MOSQ_ERR_ERRNO)
        return error == EINTR ? "no answer" : strerror(error);
    return mosquitto_strerror(rc);
}

static void mqtt_broker_attempt(struct broker *b) {
    const struct options *o = b->options;
    if (svi_monotonic() < b->again)
        return;
    b->since = svi_monotonic();
    alarm(CONNECT_SECONDS); /* the library has no limit of its own for this; the signal interrupts it */
    /* mosquitto_connect stores host and port before it tries, so mosquitto_reconnect works even when the
     * first attempt failed. */
    int rc = b->attempted ? mosquitto_reconnect(b->client)
                          : mosquitto_connect(b->client, o->host, (int)o->port, KEEPALIVE);
    int error = errno;
    alarm(0);
    b->attempted = true;
    if (rc == MOSQ_ERR_SUCCESS)
        return;
    try_later(b);
    mqtt_log_few(++b->failures, "cannot reach the broker at %s:%d: %s; trying again", o->host, (int)o->port,
                 mqtt_broker_reason(rc, error));
}

void mqtt_broker_turn(struct broker *b, bool readable, bool writable) {
    const char *host = b->options->host;
    const int port = (int)b->options->port;
    if (mqtt_broker_socket(b) < 0) {
        if (!b->hopeless)
            mqtt_broker_attempt(b);
        return;
    }
    /* mqtt_broker_reason must see what these calls set, not a leftover of the poll. */
    errno = 0;
    /* Each step runs only if the one before it succeeded: after an error the library has closed the socket
     * already. */
    int rc = readable && b->reads ? mosquitto_loop_read(b->client, 1) : MOSQ_ERR_SUCCESS;
    if (rc == MOSQ_ERR_SUCCESS && (writable || mosquitto_want_write(b->client)))
        rc = mosquitto_loop_write(b->client, 1);
    if (rc == MOSQ_ERR_SUCCESS)
        rc = mosquitto_loop_misc(b->client);
    const char *reason = mqtt_broker_reason(rc, errno);
    if (mqtt_broker_socket(b) < 0) {
        const bool connected = b->connected;
        try_later(b);
        /* MQTT 3.1.1 gives no reason when a second client with the same id takes over the connection. */
        if (connected && !b->hopeless && b->short_lived == SHORT_MAX)
            mqtt_log("the broker has ended %d connections within %.0f s of their start: if another client is "
                     "called %s, give each a --client-id of its own; trying again",
                     SHORT_MAX, STEADY, b->options->client_id);
        else if (connected && !b->hopeless)
            mqtt_log_few(b->short_lived < SHORT_MAX ? 1 : b->short_lived,
                         "the connection to the broker is lost: %s; trying again", reason);
        else if (!b->hopeless && rc != MOSQ_ERR_CONN_REFUSED)
            mqtt_log_few(++b->failures, "the broker at %s:%d ends the connection: %s; trying again", host,
                         port, reason);
    } else if (!b->connected && svi_monotonic() - b->since > CONNECT_SECONDS) {
        mqtt_log_few(++b->failures, "the process at %s:%d does not answer as a broker does; trying again",
                     host, port);
        /* The library closes the old socket itself. `since` restarts the limit; otherwise every turn from
         * here on would reconnect. */
        b->again = b->since = svi_monotonic();
        mosquitto_reconnect(b->client);
    }
}

void mqtt_broker_leave(struct broker *b) {
    mosquitto_disconnect(b->client);
    mosquitto_loop_write(b->client, 1);
}
