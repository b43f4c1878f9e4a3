/* svmstream-mqtt: a bridge between an MQTT broker and a running svmstream. It speaks only the wire format.
 *
 * One thread, one loop (mqtt_main_turn): a message of the broker is read (payload), its topic becomes names
 * (naming), its values become samples (join), which wait until svmstream has them (feed); what svmstream
 * publishes returns to the broker (events, broker). Everything is counted (log), and nothing blocks but an
 * attempt to connect to the broker. A signal ends the loop through a pipe; mqtt_main_flush then hands over
 * what is left, samples first. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <svmstream/svmstream.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "broker.h"
#include "events.h"
#include "feed.h"
#include "naming.h"
#include "log.h"
#include "missing.h"

#define FLUSH_SECONDS   2.0 /* to hand over what is left, of which */
#define SAMPLES_SECONDS 1.5 /* for the samples alone */
#define LONGEST_WAIT    1.0

struct adapter {
    struct options options;
    struct counters counters;
    struct naming *naming;
    struct joins joins;
    struct feed feed;
    struct broker broker;
    struct events events;
    struct payload payload;
    struct missing missing;
    char (*name)[NAME_BYTES + 1]; /* of the payload's fields */
    double stats_due;             /* svi_monotonic */
};

/* The end of the pipe that a signal writes to: the only thing that a handler can reach. */
static int stop_pipe[2] = {-1, -1};

/* Only async-signal-safe calls may stand here. The pipe is part of every poll, so a signal between two
 * polls is not lost. */
static void on_stop(int number) {
    int saved = errno;
    (void)number;
    if (write(stop_pipe[1], "", 1) < 0)
        errno = saved;
    alarm(1); /* interrupts an attempt to connect that began a moment ago */
    errno = saved;
}

static void on_alarm(int number) {
    (void)number; /* only to interrupt what blocks */
}

/* sigaction without SA_RESTART: a blocked connect must return with EINTR. Neither end of the pipe may
 * block: the handler writes, the loop reads in every round. SIGPIPE is ignored: a write to a closed
 * connection must fail, not end the program. */
static int take_signals(void) {
    struct sigaction stop = {.sa_handler = on_stop}, wake = {.sa_handler = on_alarm},
                     none = {.sa_handler = SIG_IGN};
    bool good = pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) == 0 && sigaction(SIGINT, &stop, NULL) == 0 &&
                sigaction(SIGTERM, &stop, NULL) == 0 && sigaction(SIGALRM, &wake, NULL) == 0 &&
                sigaction(SIGPIPE, &none, NULL) == 0;
    if (!good)
        mqtt_log("signals cannot be waited for: %s", strerror(errno));
    return good ? 0 : 1;
}

static void mqtt_main_bad(struct adapter *a, const struct mosquitto_message *m, const char *why) {
    char topic[200];
    a->counters.bad++;
    mqtt_log_few(a->counters.bad, "a message on %s is left out: %s",
                 svi_escape(topic, sizeof topic, m->topic, strlen(m->topic)), why);
}

static void mqtt_main_unmatched(struct adapter *a, const char *name, const char *why) {
    char safe[200];
    a->counters.unmatched++;
    mqtt_log_few(a->counters.unmatched, "%s %s; left out", svi_escape(safe, sizeof safe, name, strlen(name)),
                 why);
}

/* A kept session may still hold filters of an earlier run. */
static bool is_wanted(const struct options *o, const char *topic) {
    bool match = false;
    for (int i = 0; i < o->topics && !match; i++)
        if (mosquitto_topic_matches_sub(o->topic[i], topic, &match) != MOSQ_ERR_SUCCESS)
            match = false;
    return match;
}

/* All names are made before any value is taken: one bad name rejects the message before it has changed a
 * sensor. */
static bool name_fields(struct adapter *a, const struct mosquitto_message *m, const struct topic_tokens *t) {
    const struct payload *p = &a->payload;
    for (int i = 0; i < p->fields; i++) {
        const char *key = p->object ? p->field[i].key : NULL;
        if (mqtt_naming_feature(a->naming, t, key, a->name[i], sizeof a->name[i]) == 0) {
            mqtt_main_bad(
                a, m,
                "the name of its feature is empty or longer than 64 bytes (--template and --feature shorten "
                "it)");
            return false;
        }
    }
    return true;
}

static void take_fields(struct adapter *a, const struct mosquitto_message *m, struct join *j) {
    const struct payload *p = &a->payload;
    const char *names[FEATURES_MAX], *reason;
    double ts = p->has_ts ? p->ts : svi_wall_clock();
    char topic[150], key[100];
    int taken = 0;
    a->counters.skipped += p->skipped;
    if (p->skipped > 0 && a->counters.skipped == p->skipped) /* devices do the same every time */
        mqtt_log("%s on %s is not a number: left out (further ones are only counted)",
                 svi_escape(key, sizeof key, p->skipped_key, strlen(p->skipped_key)),
                 svi_escape(topic, sizeof topic, m->topic, strlen(m->topic)));
    for (int i = 0; i < p->fields; i++) {
        names[i] = a->name[i];
        a->counters.missing += p->field[i].missing;
        if (p->field[i].missing)
            mqtt_missing_note(&a->missing, m->topic, &p->field[i]);
    }
    /* begin precedes the values: it may have to emit what arrived before, which this message must not
     * overwrite. */
    mqtt_join_begin(j, ts, p->has_ts, m->retain, names, p->fields);
    for (int i = 0; i < p->fields; i++) {
        bool good = mqtt_join_value(j, names[i], &p->field[i], ts, m->retain, &reason);
        taken += good;
        if (!good && reason)
            mqtt_main_bad(a, m, reason);
        else if (!good)
            mqtt_main_unmatched(a, names[i], "is not in --features");
    }
    /* A message whose values were all left out must neither make a sample nor lend its id to the next one. */
    if (taken > 0)
        mqtt_join_end(j, &p->id, ts, m->retain);
    /* Last, since the calls above can start, move or end the period that the clock has to watch. */
    mqtt_joins_note(&a->joins, j);
}

/* The checks run from cheap to costly. The key comes after the payload, whose members may be part of it.
 * The join comes last: a message that is rejected must not take one of the --keys places. */
static void take_message(void *context, const struct mosquitto_message *m) {
    struct adapter *a = context;
    struct topic_tokens tokens;
    char why[300], key[SVS_KEY_MAX + 1];
    struct join *j;
    const struct payload_names names = {a->options.ts_key, a->options.id_key, mqtt_naming_members(a->naming)};
    if (!is_wanted(&a->options, m->topic) || !mqtt_naming_match(a->naming, m->topic, &tokens))
        mqtt_main_unmatched(a, m->topic, "fits no --topic, or not the --template");
    else if (!mqtt_payload_read(&a->payload, m->payload, (size_t)m->payloadlen, &names, why, sizeof why) ||
             !mqtt_naming_key(a->naming, &tokens, &a->payload.key_members, key, why, sizeof why))
        mqtt_main_bad(a, m, why);
    else if (!name_fields(a, m, &tokens))
        return;
    else if (!(j = mqtt_joins_use(&a->joins, key, svi_monotonic())))
        mqtt_main_bad(a, m, "there are as many keys as --keys lets in, and none was silent for an hour");
    else
        take_fields(a, m, j);
    a->counters.keys = a->options.key ? a->joins.count : 0;
}

static void report_counters(const struct adapter *a) {
    char text[COUNTERS_BYTES];
    mqtt_log("%s", mqtt_counters_text(&a->counters, mqtt_feed_waiting(&a->feed), false, text));
}

static void publish_counters(struct adapter *a) {
    char text[COUNTERS_BYTES];
    /* Without this test the library would collect one message a period while the broker is away. */
    if (!mqtt_broker_ready(&a->broker))
        return;
    mqtt_counters_text(&a->counters, mqtt_feed_waiting(&a->feed), true, text);
    mqtt_broker_publish_own(&a->broker, "adapter", text, strlen(text), false);
}

/* The nearest of all deadlines. LONGEST_WAIT bounds it for those that report no deadline, such as
 * mqtt_missing_turn. */
static double longest_wait(const struct adapter *a) {
    double wait = fmin(LONGEST_WAIT, fmin(mqtt_broker_wait(&a->broker), mqtt_feed_wait(&a->feed))),
           period = mqtt_joins_wait(&a->joins);
    if (period >= 0)
        wait = fmin(wait, period);
    if (a->options.stats > 0)
        wait = fmin(wait, fmax(0, a->stats_due - svi_monotonic()));
    return wait;
}

/* One round of the loop. False: a signal says that it is time to end. */
static bool mqtt_main_turn(struct adapter *a, double wait) {
    zmq_pollitem_t items[2 + LINK_ITEMS + EVENT_SOCKETS] = {{NULL, stop_pipe[0], ZMQ_POLLIN, 0}};
    int n = 1, broker = mqtt_broker_socket(&a->broker);
    /* POLLOUT only while the library has bytes to write: a healthy socket is nearly always writable, and
     * every poll would return at once. */
    short events = (short)((a->broker.reads ? ZMQ_POLLIN : 0) |
                           (mosquitto_want_write(a->broker.client) ? ZMQ_POLLOUT : 0));
    /* A socket with nothing to wait for stays out: a poll reports its errors unasked, and nobody would
     * clear them. */
    bool waits = broker >= 0 && events;
    char byte;
    if (waits)
        items[n++] = (zmq_pollitem_t){NULL, broker, events, 0};
    n += mqtt_feed_items(&a->feed, items + n);
    n += mqtt_events_items(&a->events, items + n);
    zmq_poll(items, n, (long)ceil(1000 * wait)); /* interrupted: another round */
    short ready = waits ? items[1].revents : 0;
    /* An error counts as readable: the failing read makes the library close the socket and return the
     * reason. The order follows the data: messages become samples, the feed sends them in the same round,
     * and events go out after PUBACKs have made space. */
    mqtt_broker_turn(&a->broker, ready & (ZMQ_POLLIN | ZMQ_POLLERR), ready & ZMQ_POLLOUT);
    mqtt_feed_turn(&a->feed);
    mqtt_events_turn(&a->events);
    mqtt_missing_turn(&a->missing, svi_monotonic());
    return read(stop_pipe[0], &byte, 1) != 1;
}

/* First the samples, while the broker keeps what it has for us; then what the broker has not confirmed. */
static void mqtt_main_flush(struct adapter *a) {
    double end = svi_monotonic() + FLUSH_SECONDS, samples = svi_monotonic() + SAMPLES_SECONDS, now;
    mqtt_joins_flush(&a->joins);
    mqtt_feed_turn(&a->feed);
    /* Messages left unread have no PUBACK. The broker keeps those of QoS 1 in the session for the next
     * run. */
    a->broker.reads = false;
    while (mqtt_feed_waiting(&a->feed) > 0 && (now = svi_monotonic()) < samples)
        mqtt_main_turn(a, fmin(samples - now, mqtt_feed_wait(&a->feed)));
    publish_counters(a);
    /* A DISCONNECT makes the broker drop the will, so "offline" has to be published before it. */
    if (a->broker.connected)
        mqtt_broker_publish_own(&a->broker, "status", "offline", 7, true);
    /* PUBACKs share the socket with messages. Waiting for the one means taking the other, so the feed is
     * checked twice. */
    a->broker.reads = true;
    while (((a->broker.connected && a->broker.outstanding > 0) || mqtt_feed_waiting(&a->feed) > 0) &&
           (now = svi_monotonic()) < end)
        mqtt_main_turn(a, fmin(end - now, mqtt_feed_wait(&a->feed)));
    mqtt_broker_leave(&a->broker);
    report_counters(a);
}

static int mqtt_main_run(struct adapter *a, void *context) {
    const struct options *o = &a->options;
    /* The joins are first: a wrong --features is a usage error and should appear before anything connects.
     * Signals are last, but before the first turn: SIGALRM without a handler would end the program. */
    if (mqtt_joins_open(&a->joins, o, &a->counters, mqtt_feed_push, &a->feed) != 0)
        return 2;
    if (mqtt_broker_open(&a->broker, o, &a->counters, take_message, a) != 0 ||
        mqtt_feed_open(&a->feed, o, &a->counters, &a->joins) != 0 ||
        mqtt_events_open(&a->events, o, &a->counters, &a->broker, context) != 0 || take_signals() != 0)
        return 1;
    a->stats_due = svi_monotonic() + o->stats;
    for (bool on = true; on && !a->broker.hopeless;) {
        on = mqtt_main_turn(a, longest_wait(a));
        mqtt_joins_clock(&a->joins);
        if (o->stats > 0 && svi_monotonic() >= a->stats_due) {
            report_counters(a);
            publish_counters(a);
            a->stats_due += o->stats;
        }
    }
    if (a->broker.hopeless)
        return 1;
    mqtt_main_flush(a);
    /* The broker has its PUBACK for the messages behind these samples and will not send them again. */
    const int64_t left = mqtt_feed_waiting(&a->feed);
    if (left > 0)
        mqtt_log("%" PRId64 " samples could not be delivered within %g s and are lost", left, FLUSH_SECONDS);
    return left > 0 ? 1 : 0;
}

static int mqtt_main_start(struct adapter *a) {
    char why[300];
    a->naming = mqtt_naming_new(a->options.template, a->options.feature, a->options.key, why, sizeof why);
    a->name = mqtt_need(FEATURES_MAX, sizeof *a->name);
    void *context = zmq_ctx_new();
    int code = 1;
    if (a->naming && context)
        code = mqtt_main_run(a, context);
    else
        mqtt_log("ZeroMQ cannot start");
    /* zmq_ctx_term blocks until every socket of its context is closed, so the sockets go first. All of
     * these accept what was never opened: the struct began as zeros. */
    mqtt_events_close(&a->events);
    link_close(&a->feed.link);
    mosquitto_destroy(a->broker.client);
    mqtt_joins_clear(&a->joins);
    while (context && zmq_ctx_term(context) != 0 && errno == EINTR)
        ;
    svi_free(a->name);
    svi_free(a->naming);
    return code;
}

int main(int argc, char **argv) {
    struct adapter *a = mqtt_need(1, sizeof *a);
    bool done;
    mosquitto_lib_init();
    int code = mqtt_options_read(&a->options, argc, argv, &done);
    if (!code && !done)
        code = mqtt_main_start(a);
    mqtt_options_clear(&a->options);
    mosquitto_lib_cleanup();
    svi_free(a);
    return code;
}
