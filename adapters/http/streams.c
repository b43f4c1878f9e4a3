/* The streams that are shown. Each has a control socket, over which its status is asked once a
 * second. The status reports the name of the stream, and the addresses of its events and samples as
 * this program may dial them. The program connects to these when they are first known, and again
 * when a restart of the stream changes them.
 *
 * A stream is live while the status is answered, and silent when an answer is overdue or the connection
 * broke. The settings are asked for every ten seconds, and whenever the epoch changes: handlers need the
 * delivery level and the largest message.
 *
 * Everything runs on the main thread, and nothing blocks. Invariants: names are unique at any time.
 * At most one status and one config are under way. Listeners see a status after the fields of the
 * stream were updated.
 *
 * Read from the bottom: http_streams_turn, stream_turn, stream_on_status. */
#include "streams.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "polled.h"
#include "wire/pack.h"

#define STATUS_SECONDS 1.0
#define CONFIG_SECONDS 10.0
#define PATIENCE       5.0  /* seconds without an answer after which a stream is silent */
#define CTL_AT_ONCE    64   /* requests under way */
#define IN_AT_ONCE     256  /* messages under way; the credit of a stream is 1024 */
#define QUEUE          5000 /* events that may wait in a socket */
#define AT_ONCE        500  /* events taken before other work gets its turn */
#define LISTENERS      8
#define PUSHED         1000      /* messages to in.mode pull that libzmq may hold */
#define LINGER_MS      1000      /* for these, at the end */
#define MESSAGE_MAX    (1 << 20) /* bytes, where the stream has not reported its limit */

struct listener {
    http_on_status *on_status;
    http_on_event *on_event;
    void *user;
};

struct http_streams {
    void *context;
    int count, listeners;
    size_t bytes; /* of all requests */
    struct listener listener[LISTENERS];
    struct http_stream stream[];
};

/* ---- addresses */

/* `address` as this program may dial it: a host that stands for all interfaces is replaced by the one of the
 * address `dialled`. */
static void stream_dial(const char *address, const char *dialled, char out[SVI_ADDRESS_MAX]) {
    static const char *const any[] = {"tcp://*:", "tcp://0.0.0.0:", "tcp://[::]:"};
    const char *port = NULL;
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (strncmp(address, any[i], strlen(any[i])) == 0)
            port = address + strlen(any[i]);
    const char *colon = strrchr(dialled, ':');
    if (port && colon && strncmp(dialled, "tcp://", 6) == 0)
        snprintf(out, SVI_ADDRESS_MAX, "%.*s:%s", (int)(colon - dialled), dialled, port);
    else
        snprintf(out, SVI_ADDRESS_MAX, "%s", address);
}

/* The address of `which` ("in", "out"): as given, else as the status reports it. False: it is not known, or
 * there is no such socket. */
static bool stream_address(const struct http_stream *s, const char *which, const char *given,
                           char out[SVI_ADDRESS_MAX]) {
    char address[SVI_ADDRESS_MAX];
    const struct svi_view addresses = svi_view_key(http_stream_status(s), "addresses");
    svi_view_text(svi_view_key(addresses, which), "address", address, sizeof address);
    snprintf(out, SVI_ADDRESS_MAX, "%s", given ? given : "");
    if (!given && *address)
        stream_dial(address, s->option->ctl, out);
    return *out;
}

/* How samples can be sent: as the status reports it, else as the settings do. */
static enum http_in_mode stream_in_mode(const struct http_stream *s) {
    const struct svi_view in = svi_view_key(svi_view_key(http_stream_status(s), "addresses"), "in");
    char mode[20];
    svi_view_text(in, "mode", mode, sizeof mode);
    if (!*mode)
        svi_view_text(svi_view_key(http_stream_config(s), "config"), "in.mode", mode, sizeof mode);
    return strcmp(mode, "router") == 0 ? HTTP_IN_ROUTER
           : strcmp(mode, "pull") == 0 ? HTTP_IN_PULL
                                       : HTTP_IN_UNKNOWN;
}

/* ---- events */

static svs_code stream_open_events(struct http_stream *s, svs_error *err) {
    void *context = s->all->context;
    s->events_drained = s->scores_drained = false;
    SVI_TRY(subscription_open(&s->events, context, s->out, &s->identity, QUEUE, err));
    SVI_TRY(subscription_open(&s->scores, context, s->out, &s->identity, QUEUE, err));
    for (int kind = 0; kind < SVI_TOPIC_COUNT; kind++) {
        char prefix[SVI_TOPIC_MAX];
        snprintf(prefix, sizeof prefix, "%s.", svi_topic_name((enum svi_topic)kind));
        if (s->wanted[kind] > 0)
            SVI_TRY(subscription_add(kind == SVI_TOPIC_SCORE ? &s->scores : &s->events, prefix, err));
    }
    return SVS_OK;
}

static void stream_close_events(struct http_stream *s) {
    subscription_close(&s->events);
    subscription_close(&s->scores);
    s->out[0] = '\0';
}

static void stream_close_push(struct http_stream *s) {
    svi_socket_close(&s->push);
    s->pushed[0] = '\0';
}

/* The socket of in.mode pull. IMMEDIATE: nothing is queued while nobody is connected, so a message that was
 * taken has a connection to go to. */
static void stream_open_push(struct http_stream *s, const char *address) {
    const struct svi_socket_plan plan = {"in", ZMQ_PUSH, false, PUSHED, LINGER_MS, -1, 0};
    const int immediate = 1;
    svs_error err;
    stream_close_push(s);
    strcpy(s->pushed, address);
    if (!(s->push = svi_socket_new(s->all->context, &plan, &err)) ||
        zmq_setsockopt(s->push, ZMQ_IMMEDIATE, &immediate, sizeof immediate) != 0 ||
        svi_socket_connect(s->push, &plan, &s->identity, address, &err) != SVS_OK)
        stream_close_push(s);
}

/* The socket for samples, of the type that the mode calls for. */
static void stream_connect_in(struct http_stream *s) {
    char address[SVI_ADDRESS_MAX];
    svs_error err;
    const bool known = stream_address(s, "in", s->option->in, address);
    s->in_mode = known ? stream_in_mode(s) : HTTP_IN_UNKNOWN;
    const bool router = s->in_mode == HTTP_IN_ROUTER, pull = s->in_mode == HTTP_IN_PULL;
    if (s->in.setting && (!router || strcmp(address, s->in.address) != 0))
        http_asks_close(&s->in);
    if (router && !s->in.setting &&
        http_asks_open(&s->in, s->all->context, "in", address, &s->identity, IN_AT_ONCE, &s->all->bytes,
                       &err) != SVS_OK)
        http_asks_close(&s->in);
    if (pull && (!s->push || strcmp(address, s->pushed) != 0))
        stream_open_push(s, address);
    else if (!pull && s->push)
        stream_close_push(s);
}

/* Connects to the sockets that the status names, if it is another address than before. A failure leaves them
 * closed, and the next status tries again. */
static void stream_connect(struct http_stream *s) {
    char address[SVI_ADDRESS_MAX];
    svs_error err;
    if (stream_address(s, "out", s->option->out, address) && strcmp(address, s->out) != 0) {
        stream_close_events(s);
        strcpy(s->out, address);
        if (stream_open_events(s, &err) != SVS_OK)
            stream_close_events(s);
    }
    stream_connect_in(s);
}

/* ---- status */

/* The name, or the address where another stream has that name: requests must reach the right one. Of two, the
 * first of the command line has it, whichever answers first: after a restart each continues its own history.
 */
static void stream_name(struct http_stream *s) {
    char name[SVI_STREAM_MAX + 1];
    svi_view_text(http_stream_status(s), "stream", name, sizeof name);
    if (!*name)
        return;
    struct http_stream *same = http_streams_find(s->all, name);
    if (same && same->index > s->index)
        snprintf(same->name, sizeof same->name, "%s", same->option->ctl);
    snprintf(s->name, sizeof s->name, "%s", same && same->index < s->index ? s->option->ctl : name);
}

static bool stream_keep(struct svi_bytes *to, const void *reply, size_t size) {
    to->size = 0;
    return svi_bytes_append(to, reply, size) == SVS_OK;
}

static void stream_silent(struct http_stream *s) {
    if (s->state == HTTP_STREAM_LIVE) {
        s->state = HTTP_STREAM_SILENT;
        s->silent_since = svi_wall_clock();
    }
}

static void stream_on_status(void *user, const void *reply, size_t size, const char *why) {
    struct http_stream *s = user;
    const struct http_streams *all = s->all;
    const uint64_t epoch = s->epoch;
    s->status_asked = false;
    if (why && s->answered + PATIENCE < svi_monotonic())
        stream_silent(s);
    /* A refusal, as of a key without the role, is no status. */
    if (why || !svi_view_true(svi_view_of(reply, size), "ok") || !stream_keep(&s->status, reply, size))
        return;
    /* From here on the stream has answered; the order below matters: the epoch before the settings that
     * depend on it, the name and the connections before the listeners, which use both. */
    s->answered = svi_monotonic();
    s->status_time = svi_wall_clock();
    s->epoch = svi_view_unsigned(http_stream_status(s), "epoch", 0);
    const double declined = svi_view_number(http_stream_status(s), "declined", 0);
    /* What was declined before the first answer may be long ago. */
    if (declined > s->declined && s->state == HTTP_STREAM_LIVE)
        s->declined_at = s->answered;
    s->declined = declined;
    if (s->epoch != epoch || s->state != HTTP_STREAM_LIVE)
        s->config_due = 0;
    if (s->epoch != epoch)
        memset(s->errors, 0, sizeof s->errors);
    s->state = HTTP_STREAM_LIVE;
    stream_name(s);
    stream_connect(s);
    for (int i = 0; i < all->listeners; i++)
        if (all->listener[i].on_status)
            all->listener[i].on_status(all->listener[i].user, s, s->status.data, s->status.size,
                                       s->status_time);
}

static void stream_on_config(void *user, const void *reply, size_t size, const char *why) {
    struct http_stream *s = user;
    s->config_asked = false;
    if (!why && svi_view_true(svi_view_of(reply, size), "ok"))
        stream_keep(&s->config, reply, size);
    /* An older stream has its in.mode only here. */
    stream_connect_in(s);
}

static void stream_on_hello(void *user, const void *reply, size_t size, const char *why) {
    struct http_stream *s = user;
    if (!why && svi_view_true(svi_view_of(reply, size), "ok"))
        stream_keep(&s->hello, reply, size);
    s->hello_asked = !why;
}

/* Says hello over each new connection for samples: the reply has the delivery level and the largest message.
 * It begins no source. */
static void stream_greet(struct http_stream *s) {
    static const uint8_t hello[] = "\x82\xa2op\xa5hello\xa3src\xaesvmstream-http";
    if (!s->in.setting || !s->in.connected) {
        s->hello_asked = false;
        s->hello.size = 0;
    } else if (!s->hello_asked) {
        s->hello_asked = true;
        http_asks_put(&s->in, hello, sizeof hello - 1, PATIENCE, stream_on_hello, s);
    }
}

/* Asks for status and settings when it is time. One question at a time: a slow stream gets no queue of them.
 */
static void stream_poll(struct http_stream *s, double now) {
    static const uint8_t status[] = "\x81\xa2op\xa6status", config[] = "\x81\xa2op\xa6"
                                                                       "config";
    /* A new connection is asked at once. */
    if (!s->ctl.connected) {
        s->status_due = s->config_due = 0;
        return;
    }
    if (now >= s->status_due && !s->status_asked) {
        s->status_due = fmax(s->status_due + STATUS_SECONDS, now);
        s->status_asked = true;
        http_asks_put(&s->ctl, status, sizeof status - 1, PATIENCE, stream_on_status, s);
    }
    if (now >= s->config_due && !s->config_asked) {
        s->config_due = now + CONFIG_SECONDS;
        s->config_asked = true;
        http_asks_put(&s->ctl, config, sizeof config - 1, PATIENCE, stream_on_config, s);
    }
}

/* ---- the set */

/* The same loader as the program's: settings with --curve and its server key, as a client. */
static svs_code stream_load_keys(struct http_stream *s, svs_error *err) {
    struct svi_settings settings = {.curve = "off"};
    const char *curve = s->option->curve, *server = s->option->server;
    if ((curve && strlen(curve) >= sizeof settings.curve) ||
        (server && strlen(server) >= sizeof settings.curve_server))
        return svi_fail(err, SVS_SETTING, "the name of a key file is too long");
    if (curve)
        strcpy(settings.curve, curve);
    if (server)
        strcpy(settings.curve_server, server);
    return svi_identity_load(&settings, true, &s->identity, err);
}

static svs_code stream_set_up(struct http_streams *all, int i, const struct http_stream_option *option,
                              svs_error *err) {
    static const enum svi_topic always[] = {SVI_TOPIC_MODEL, SVI_TOPIC_ALERT, SVI_TOPIC_ERROR,
                                            SVI_TOPIC_STATS};
    struct http_stream *s = &all->stream[i];
    s->option = option;
    s->index = i;
    s->all = all;
    snprintf(s->name, sizeof s->name, "%s", option->ctl);
    for (size_t k = 0; k < sizeof always / sizeof *always; k++)
        s->wanted[always[k]] = 1;
    SVI_TRY(stream_load_keys(s, err));
    SVI_TRY(http_asks_open(&s->ctl, all->context, "ctl", option->ctl, &s->identity, CTL_AT_ONCE, &all->bytes,
                           err));
    stream_connect(s);
    return SVS_OK;
}

struct http_streams *http_streams_open(const struct http_options *o, svs_error *err) {
    const size_t size = sizeof(struct http_streams) + (size_t)o->streams * sizeof(struct http_stream);
    struct http_streams *all = svi_new(size, "the streams", err);
    if (!all)
        return NULL;
    if (!(all->context = zmq_ctx_new())) {
        svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(errno));
        http_streams_close(&all);
    }
    while (all && all->count < o->streams) {
        const int i = all->count++;
        if (stream_set_up(all, i, &o->stream[i], err) != SVS_OK)
            http_streams_close(&all);
    }
    return all;
}

void http_streams_close(struct http_streams **all) {
    struct http_streams *a = *all;
    if (!a)
        return;
    *all = NULL;
    for (int i = 0; i < a->count; i++) {
        struct http_stream *s = &a->stream[i];
        /* Requests end first: their callbacks may still read the stream. */
        http_asks_close(&s->ctl);
        http_asks_close(&s->in);
        stream_close_events(s);
        stream_close_push(s);
        svi_bytes_clear(&s->hello);
        svi_bytes_clear(&s->status);
        svi_bytes_clear(&s->config);
        svi_identity_wipe(&s->identity);
    }
    /* With all sockets closed this waits for LINGER_MS at most. */
    while (a->context && zmq_ctx_term(a->context) != 0 && errno == EINTR)
        ;
    svi_free(a);
}

int http_streams_count(const struct http_streams *all) {
    return all->count;
}

struct http_stream *http_streams_at(struct http_streams *all, int i) {
    return &all->stream[i];
}

struct http_stream *http_streams_find(struct http_streams *all, const char *name) {
    if (!name)
        return all->count == 1 ? &all->stream[0] : NULL;
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->stream[i].name, name) == 0)
            return &all->stream[i];
    return NULL;
}

bool http_streams_listen(struct http_streams *all, http_on_status *on_status, http_on_event *on_event,
                         void *user) {
    if (all->listeners == LISTENERS)
        return false;
    all->listener[all->listeners++] = (struct listener){on_status, on_event, user};
    return true;
}

/* ---- the loop */

static void stream_items(const struct http_stream *s, zmq_pollitem_t *items) {
    http_asks_items(&s->ctl, items);
    http_asks_items(&s->in, items + HTTP_ASKS_ITEMS);
    items += 2 * HTTP_ASKS_ITEMS;
    items[0] = http_polled_socket(s->events.open ? s->events.socket : NULL, s->events_drained, ZMQ_POLLIN);
    items[1] = http_polled_socket(s->scores.open ? s->scores.socket : NULL, s->scores_drained, ZMQ_POLLIN);
}

int http_streams_items(const struct http_streams *all, zmq_pollitem_t *items) {
    for (int i = 0; i < all->count; i++)
        stream_items(&all->stream[i], items + i * HTTP_STREAM_ITEMS);
    return all->count * HTTP_STREAM_ITEMS;
}

double http_streams_wait(const struct http_streams *all) {
    double due = HUGE_VAL;
    for (int i = 0; i < all->count; i++) {
        const struct http_stream *s = &all->stream[i];
        due = fmin(due, fmin(http_asks_due(&s->ctl), http_asks_due(&s->in)));
        if (s->ctl.connected && !s->status_asked)
            due = fmin(due, s->status_due);
    }
    return fmax(0, due - svi_monotonic());
}

static void stream_note_error(struct http_stream *s, const struct subscription_event *e) {
    const struct svi_view event = svi_view_of(e->payload, e->size);
    char name[40];
    const svs_code code = svi_code_by_name(svi_view_text(event, "code", name, sizeof name));
    struct http_last_error *last = &s->errors[code];
    const int64_t count = svi_view_integer(event, "count", last->count + 1);
    /* A key of a stream counts for itself: the stream's own count is in its status. */
    last->count = count > last->count ? count : last->count;
    last->ts = svi_view_number(event, "ts", 0);
    svi_view_text(event, "reason", last->reason, sizeof last->reason);
}

static void stream_take_events(struct http_stream *s, struct subscription *from, bool *drained) {
    const struct http_streams *all = s->all;
    struct subscription_event event;
    *drained = false;
    for (int n = 0; n < AT_ONCE && from->socket; n++) {
        if (!subscription_next(from, &event)) {
            *drained = errno == EAGAIN;
            break;
        }
        s->lost += event.lost;
        if (event.kind == SVI_TOPIC_ERROR)
            stream_note_error(s, &event);
        for (int i = 0; i < all->listeners; i++)
            if (all->listener[i].on_event)
                all->listener[i].on_event(all->listener[i].user, s, &event);
    }
}

static void stream_turn(struct http_stream *s, double now, const zmq_pollitem_t *polled) {
    const zmq_pollitem_t *const subscribed = polled ? polled + 2 * HTTP_ASKS_ITEMS : NULL;
    /* Replies before events: a status may replace the sockets that events are read from. */
    http_asks_turn(&s->ctl, polled);
    http_asks_turn(&s->in, polled ? polled + HTTP_ASKS_ITEMS : NULL);
    if (!s->ctl.connected)
        stream_silent(s);
    if (!polled || subscribed[0].revents)
        stream_take_events(s, &s->events, &s->events_drained);
    if (!polled || subscribed[1].revents)
        stream_take_events(s, &s->scores, &s->scores_drained);
    stream_greet(s);
    stream_poll(s, now);
}

void http_streams_turn(struct http_streams *all, const zmq_pollitem_t *polled) {
    const double now = svi_monotonic();
    for (int i = 0; i < all->count; i++)
        stream_turn(&all->stream[i], now, polled ? polled + i * HTTP_STREAM_ITEMS : NULL);
}

/* ---- requests of others */

void http_stream_ask(struct http_stream *s, const void *request, size_t size, double timeout,
                     http_reply *done, void *user) {
    http_asks_put(&s->ctl, request, size, timeout, done, user);
}

void http_stream_send(struct http_stream *s, const void *message, size_t size, double timeout,
                      http_reply *done, void *user) {
    if (s->in.setting)
        http_asks_put(&s->in, message, size, timeout, done, user);
    else
        done(user, NULL, 0, http_why_absent);
}

bool http_stream_push(struct http_stream *s, const void *message, size_t size) {
    return s->push && zmq_send(s->push, message, size, ZMQ_DONTWAIT) >= 0;
}

size_t http_stream_max_message(const struct http_stream *s) {
    const struct svi_view hello = svi_view_of(s->hello.data, s->hello.size),
                          config = svi_view_key(http_stream_config(s), "config");
    int64_t most = s->hello.size > 0 ? svi_view_integer(hello, "max_message", 0) : 0;
    if (most <= 0)
        most = svi_view_integer(config, "max.message", MESSAGE_MAX);
    return most > 0 ? (size_t)most : MESSAGE_MAX;
}

char *http_stream_delivery(const struct http_stream *s, char out[24]) {
    if (s->in_mode == HTTP_IN_PULL)
        return strcpy(out, "at-most-once");
    out[0] = '\0';
    return s->hello.size > 0 ? svi_view_text(svi_view_of(s->hello.data, s->hello.size), "delivery", out, 24)
                             : out;
}

void http_stream_want(struct http_stream *s, enum svi_topic kind, int change) {
    struct subscription *to = kind == SVI_TOPIC_SCORE ? &s->scores : &s->events;
    /* Only the first and the last reader change the subscription. */
    const bool before = s->wanted[kind] > 0;
    char prefix[SVI_TOPIC_MAX];
    s->wanted[kind] += change;
    if (!to->socket || before == (s->wanted[kind] > 0))
        return;
    snprintf(prefix, sizeof prefix, "%s.", svi_topic_name(kind));
    *(to == &s->scores ? &s->scores_drained : &s->events_drained) = false;
    if (before)
        subscription_remove(to, prefix, NULL);
    else
        subscription_add(to, prefix, NULL);
}

/* Versions whose status has addresses know the request. */
bool http_stream_reads_message(const struct http_stream *s) {
    return svi_view_key(http_stream_status(s), "addresses").at != NULL;
}

struct svi_view http_stream_status(const struct http_stream *s) {
    return s->status.size > 0 ? svi_view_of(s->status.data, s->status.size) : (struct svi_view){NULL, NULL};
}

struct svi_view http_stream_config(const struct http_stream *s) {
    return s->config.size > 0 ? svi_view_of(s->config.data, s->config.size) : (struct svi_view){NULL, NULL};
}
