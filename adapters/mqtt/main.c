/* svmstream-mqtt: a bridge between an MQTT broker and a running svmstream. It speaks only the wire format.
 *
 * One thread, one loop: a message of the broker is read (payload), its topic becomes names (naming), its
 * values become samples (join, sample), which wait (buffer) until svmstream has them (feed); what svmstream
 * publishes goes back to the broker (events, broker). */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <svmstream/svmstream.h>

#include "broker.h"
#include "events.h"
#include "feed.h"
#include "naming.h"
#include "sample.h"

#define FLUSH_SECONDS   2.0 /* to hand over what is left, of which */
#define SAMPLES_SECONDS 1.5 /* for the samples alone */
#define LONGEST_WAIT    1.0

struct adapter {
    struct options options;
    struct counters counters;
    struct naming *naming;
    struct join join;
    struct feed feed;
    struct broker broker;
    struct events events;
    struct payload payload;
    char (*name)[NAME_BYTES + 1]; /* of the payload's fields */
    msgpack_sbuffer sample;
    double stats_due; /* steady clock */
};

/* The end of the pipe that a signal writes to: the only thing that a handler can reach. */
static int stop_pipe[2] = {-1, -1};

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

static int take_signals(void) {
    struct sigaction stop = {.sa_handler = on_stop}, wake = {.sa_handler = on_alarm},
                     none = {.sa_handler = SIG_IGN};
    bool good = pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) == 0 && sigaction(SIGINT, &stop, NULL) == 0 &&
                sigaction(SIGTERM, &stop, NULL) == 0 && sigaction(SIGALRM, &wake, NULL) == 0 &&
                sigaction(SIGPIPE, &none, NULL) == 0;
    if (!good)
        say("signals cannot be waited for: %s", strerror(errno));
    return good ? 0 : 1;
}

static void take_sample(void *context, const struct join *j, double ts, const struct sample_id *id) {
    struct adapter *a = context;
    sample_encode(&a->sample, j, ts, id, a->options.no_ack ? NULL : a->options.client_id);
    feed_push(&a->feed, a->sample.data, a->sample.size);
}

static void bad(struct adapter *a, const struct mosquitto_message *m, const char *why) {
    char topic[200];
    a->counters.bad++;
    say_few(a->counters.bad, "a message on %s is left out: %s",
            shown(topic, sizeof topic, m->topic, strlen(m->topic)), why);
}

static void unmatched(struct adapter *a, const char *name, const char *why) {
    char safe[200];
    a->counters.unmatched++;
    say_few(a->counters.unmatched, "%s %s; left out", shown(safe, sizeof safe, name, strlen(name)), why);
}

/* A kept session may still hold filters of an earlier run. */
static bool is_wanted(const struct options *o, const char *topic) {
    bool match = false;
    for (int i = 0; i < o->topics && !match; i++)
        if (mosquitto_topic_matches_sub(o->topic[i], topic, &match) != MOSQ_ERR_SUCCESS)
            match = false;
    return match;
}

static bool name_fields(struct adapter *a, const struct mosquitto_message *m, const struct topic_tokens *t) {
    const struct payload *p = &a->payload;
    for (int i = 0; i < p->fields; i++) {
        const char *key = p->object ? p->field[i].key : NULL;
        if (naming_feature(a->naming, t, key, a->name[i], sizeof a->name[i]) == 0) {
            bad(a, m,
                "the name of its feature is empty or longer than 64 bytes (--template and --feature shorten "
                "it)");
            return false;
        }
    }
    return true;
}

static void tell_skipped(struct adapter *a, const struct mosquitto_message *m) {
    const struct payload *p = &a->payload;
    char topic[150], key[100];
    if (p->skipped == 0)
        return;
    a->counters.skipped += p->skipped;
    if (a->counters.skipped == p->skipped) /* devices say the same every time */
        say("no number in %s on %s: left out, as everything that is none (only counted from here)",
            shown(key, sizeof key, p->skipped_key, strlen(p->skipped_key)),
            shown(topic, sizeof topic, m->topic, strlen(m->topic)));
}

static void take_fields(struct adapter *a, const struct mosquitto_message *m) {
    const struct payload *p = &a->payload;
    const char *names[FEATURES_MAX], *reason;
    double ts = p->has_ts ? p->ts : clock_wall();
    int taken = 0;
    for (int i = 0; i < p->fields; i++)
        names[i] = a->name[i];
    join_begin(&a->join, ts, p->has_ts, m->retain, names, p->fields);
    for (int i = 0; i < p->fields; i++) {
        bool good = join_value(&a->join, names[i], &p->field[i], ts, m->retain, &reason);
        taken += good;
        if (!good && reason)
            bad(a, m, reason);
        else if (!good)
            unmatched(a, names[i], "is not in --features");
    }
    if (taken > 0)
        join_end(&a->join, &p->id, ts, m->retain);
}

static void take_message(void *context, const struct mosquitto_message *m) {
    struct adapter *a = context;
    struct topic_tokens tokens;
    char why[300];
    if (!is_wanted(&a->options, m->topic) || !naming_match(a->naming, m->topic, &tokens))
        unmatched(a, m->topic, "fits no --topic, or not the --template");
    else if (!payload_read(&a->payload, m->payload, (size_t)m->payloadlen, a->options.ts_key,
                           a->options.id_key, why, sizeof why))
        bad(a, m, why);
    else if (name_fields(a, m, &tokens)) {
        tell_skipped(a, m);
        take_fields(a, m);
    }
}

static void tell_counters(const struct adapter *a) {
    fputs("svmstream-mqtt: ", stderr);
    counters_text(&a->counters, a->feed.buffer.count, stderr);
    fputc('\n', stderr);
}

static void publish_counters(struct adapter *a) {
    char *text = NULL;
    size_t length = 0;
    FILE *to = broker_ready(&a->broker) ? open_memstream(&text, &length) : NULL;
    if (!to)
        return;
    counters_json(&a->counters, a->feed.buffer.count, to);
    if (fclose(to) == 0)
        broker_publish_own(&a->broker, "adapter", text, length, false);
    free(text);
}

static double longest_wait(const struct adapter *a) {
    double wait = fmin(LONGEST_WAIT, fmin(broker_wait(&a->broker), feed_wait(&a->feed))),
           period = join_wait(&a->join);
    if (period >= 0)
        wait = fmin(wait, period);
    if (a->options.stats > 0)
        wait = fmin(wait, fmax(0, a->stats_due - clock_steady()));
    return wait;
}

/* One round of the loop. False: a signal says that it is time to end. */
static bool turn(struct adapter *a, double wait) {
    zmq_pollitem_t items[2 + FEED_ITEMS + EVENT_SOCKETS] = {{NULL, stop_pipe[0], ZMQ_POLLIN, 0}};
    int n = 1, broker = broker_socket(&a->broker);
    short events =
        (short)((a->broker.reads ? ZMQ_POLLIN : 0) | (broker_wants_write(&a->broker) ? ZMQ_POLLOUT : 0));
    bool waits = broker >= 0 && events;
    char byte;
    if (waits)
        items[n++] = (zmq_pollitem_t){NULL, broker, events, 0};
    n += feed_items(&a->feed, items + n);
    n += events_items(&a->events, items + n);
    zmq_poll(items, n, (long)ceil(1000 * wait)); /* interrupted: another round */
    short ready = waits ? items[1].revents : 0;
    broker_turn(&a->broker, ready & (ZMQ_POLLIN | ZMQ_POLLERR), ready & ZMQ_POLLOUT);
    feed_turn(&a->feed);
    events_turn(&a->events);
    return read(stop_pipe[0], &byte, 1) != 1;
}

static void work(struct adapter *a) {
    bool on = true;
    while (on && !a->broker.hopeless) {
        on = turn(a, longest_wait(a));
        join_clock(&a->join);
        if (a->options.stats > 0 && clock_steady() >= a->stats_due) {
            tell_counters(a);
            publish_counters(a);
            a->stats_due += a->options.stats;
        }
    }
}

/* First the samples, while the broker keeps what it has for us; then what the broker has not confirmed. */
static void flush(struct adapter *a) {
    double end = clock_steady() + FLUSH_SECONDS, samples = clock_steady() + SAMPLES_SECONDS, now;
    join_flush(&a->join);
    feed_turn(&a->feed);
    a->broker.reads = false;
    while (a->feed.buffer.count > 0 && (now = clock_steady()) < samples)
        turn(a, samples - now);
    publish_counters(a);
    if (a->broker.connected)
        broker_publish_own(&a->broker, "status", "offline", 7, true);
    a->broker.reads = true;
    while (((a->broker.connected && a->broker.outstanding > 0) || a->feed.buffer.count > 0) &&
           (now = clock_steady()) < end)
        turn(a, end - now);
    broker_leave(&a->broker);
    tell_counters(a);
}

static int run(struct adapter *a, void *context) {
    const struct options *o = &a->options;
    int code = join_open(&a->join, o, &a->counters, take_sample, a);
    if (!code)
        code = broker_open(&a->broker, o, &a->counters, take_message, a);
    if (!code)
        code = feed_open(&a->feed, o, &a->counters, context);
    if (!code)
        code = events_open(&a->events, o, &a->counters, &a->broker, context);
    if (!code)
        code = take_signals();
    if (code)
        return code;
    a->stats_due = clock_steady() + o->stats;
    work(a);
    if (a->broker.hopeless)
        return 1;
    flush(a);
    if (a->feed.buffer.count > 0)
        say("%lld samples could not be handed over within %g s and are lost", (long long)a->feed.buffer.count,
            FLUSH_SECONDS);
    return a->feed.buffer.count > 0 ? 1 : 0;
}

static int start(struct adapter *a) {
    char why[300];
    a->naming = naming_new(a->options.template, a->options.feature, why, sizeof why);
    a->name = need(FEATURES_MAX, sizeof *a->name);
    msgpack_sbuffer_init(&a->sample);
    void *context = zmq_ctx_new();
    int code = 1;
    if (a->naming && context)
        code = run(a, context);
    else
        say("ZeroMQ cannot start");
    events_close(&a->events);
    feed_close(&a->feed);
    broker_close(&a->broker);
    join_close(&a->join);
    while (context && zmq_ctx_term(context) != 0 && errno == EINTR)
        ;
    msgpack_sbuffer_destroy(&a->sample);
    free(a->name);
    naming_free(a->naming);
    return code;
}

int main(int argc, char **argv) {
    struct adapter *a = need(1, sizeof *a);
    enum wish wish;
    mosquitto_lib_init();
    int code = options_read(&a->options, argc, argv, &wish);
    if (!code && wish == WISH_HELP)
        options_help();
    else if (!code && wish == WISH_VERSION)
        puts("svmstream-mqtt " SVS_VERSION);
    else if (!code)
        code = start(a);
    options_clear(&a->options);
    mosquitto_lib_cleanup();
    free(a);
    return code;
}
