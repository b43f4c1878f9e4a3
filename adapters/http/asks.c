/* Requests and replies of one DEALER socket, matched by order.
 *
 * All requests are in one list, oldest first: those before `unsent` are under way. A reply belongs to the
 * first one. That holds as long as each message that was sent gets exactly one reply, and none of an earlier
 * connection. The stream gives the former, as fewer requests are under way than its queue of replies holds.
 * The latter is the reason to replace the socket after each break: libzmq would send what it still holds to
 * the next process.
 *
 * A request that nobody waits for any more has no `done`. It stays in the list while it is under way. */
#include "asks.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "polled.h"
#include "wire/cursor.h"

#define QUEUE       1000 /* messages that libzmq itself may hold */
#define BEAT_MS     2000 /* between heartbeats; a host that vanished is noticed after two of them */
#define PAUSE_FIRST 0.05
#define PAUSE_MAX   1.0

const char http_why_absent[] = "the stream is not there";
const char http_why_full[] = "too many requests wait for the stream";
const char http_why_timeout[] = "the stream has not answered in time";
const char http_why_unsent[] = "the stream has not taken the request in time";
const char http_why_broken[] = "the connection to the stream broke before it answered";
const char http_why_foreign[] = "what answers there is no stream of svmstream: its reply cannot be read";

struct http_ask {
    struct http_ask *next;
    http_reply *done; /* NULL: nobody waits */
    void *user;
    double due; /* svi_monotonic */
    bool sent;
    size_t size;
    uint8_t bytes[]; /* the request; once it was sent only its form counts */
};

/* A failing attempt to connect is repeated by libzmq; here only what follows a complete connection counts. */
static svs_code asks_connect(struct http_asks *a, svs_error *err) {
    const struct svi_socket_plan plan = {a->setting, ZMQ_DEALER, false, QUEUE, 0, -1, 0};
    const int options[][2] = {{ZMQ_RECONNECT_IVL, 50},
                              {ZMQ_RECONNECT_IVL_MAX, 1000},
                              {ZMQ_HEARTBEAT_IVL, BEAT_MS},
                              {ZMQ_HEARTBEAT_TIMEOUT, 2 * BEAT_MS}};
    a->connected = a->blocked = a->stale = a->drained = a->monitor_drained = false;
    if (!(a->socket = svi_socket_new(a->context, &plan, err)))
        return err->code;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        zmq_setsockopt(a->socket, options[i][0], &options[i][1], sizeof(int));
    a->monitor = svi_monitor_new(
        a->context, a->socket, ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | SVI_HANDSHAKE_FAILED);
    if (!a->monitor)
        return svi_fail(err, SVS_IO, "the connection cannot be monitored: %s", zmq_strerror(errno));
    return svi_socket_connect(a->socket, &plan, a->identity, a->address, err);
}

static void asks_disconnect(struct http_asks *a) {
    svi_monitor_free(&a->monitor, a->socket);
    svi_socket_close(&a->socket);
    a->connected = a->blocked = false;
}

svs_code http_asks_open(struct http_asks *a, void *context, const char *setting, const char *address,
                        const struct svi_identity *identity, int limit, size_t *bytes, svs_error *err) {
    *a = (struct http_asks){.setting = setting,
                            .identity = identity,
                            .context = context,
                            .limit = limit,
                            .bytes = bytes,
                            .pause = PAUSE_FIRST};
    if (strlen(address) >= sizeof a->address)
        return svi_fail(err, SVS_IO, "the address of %s is longer than %zu bytes", setting,
                        sizeof a->address - 1);
    strcpy(a->address, address);
    return asks_connect(a, err);
}

/* Removes the oldest request. Its owner is notified by the caller, which may then add further requests. */
static struct http_ask *asks_pop(struct http_asks *a) {
    struct http_ask *ask = a->first;
    if (ask->sent)
        a->flying--;
    else
        a->unsent = ask->next;
    a->first = ask->next;
    if (!a->first)
        a->last = NULL;
    *a->bytes -= ask->size;
    return ask;
}

static void asks_finish(struct http_ask *ask, const void *reply, size_t size, const char *why) {
    if (ask->done)
        ask->done(ask->user, reply, size, why);
    svi_free(ask);
}

/* Ends all that are under way. Those that were not sent yet go to the next connection, or run out of time.
 * The list is taken off first: `done` may add to it. */
static void asks_break(struct http_asks *a, const char *why) {
    struct http_ask *ask = a->first, *const kept = a->unsent;
    a->first = kept;
    a->flying = 0;
    if (!kept)
        a->last = NULL;
    while (ask != kept) {
        struct http_ask *next = ask->next;
        *a->bytes -= ask->size;
        asks_finish(ask, NULL, 0, why);
        ask = next;
    }
}

void http_asks_close(struct http_asks *a) {
    if (!a->setting)
        return;
    asks_break(a, http_why_broken);
    while (a->first) {
        struct http_ask *ask = asks_pop(a);
        asks_finish(ask, NULL, 0, http_why_absent);
    }
    asks_disconnect(a);
    a->setting = NULL;
}

static void asks_send(struct http_asks *a) {
    a->blocked = false;
    while (a->connected && a->unsent && a->flying < a->limit && !a->blocked) {
        struct http_ask *ask = a->unsent;
        a->drained = false;
        if (zmq_send(a->socket, ask->bytes, ask->size, ZMQ_DONTWAIT) < 0) {
            a->blocked = true;
        } else {
            ask->sent = true;
            a->unsent = ask->next;
            a->flying++;
        }
    }
}

void http_asks_put(struct http_asks *a, const void *request, size_t size, double timeout, http_reply *done,
                   void *user) {
    struct http_ask *ask = NULL;
    if (!a->connected) {
        done(user, NULL, 0, http_why_absent);
        return;
    }
    if (*a->bytes + size <= HTTP_ASKS_BYTES)
        ask = svi_alloc_plain(sizeof *ask + size);
    if (!ask) {
        done(user, NULL, 0, http_why_full);
        return;
    }
    *ask = (struct http_ask){.done = done, .user = user, .due = svi_monotonic() + timeout, .size = size};
    memcpy(ask->bytes, request, size);
    *a->bytes += size;
    if (a->last)
        a->last->next = ask;
    else
        a->first = ask;
    a->last = ask;
    a->unsent = a->unsent ? a->unsent : ask;
    asks_send(a);
}

void http_asks_items(const struct http_asks *a, zmq_pollitem_t *items) {
    const bool open = a->setting && a->socket;
    items[0] = http_polled_socket(open ? a->monitor : NULL, a->monitor_drained, ZMQ_POLLIN);
    items[1] = http_polled_socket(open ? a->socket : NULL, a->drained && !a->blocked,
                                  (short)(ZMQ_POLLIN | (a->blocked ? ZMQ_POLLOUT : 0)));
}

/* Deadlines are not sorted: requests have different times. The list is short, or its owner is in trouble. */
double http_asks_due(const struct http_asks *a) {
    double due = a->setting && a->stale ? a->again : HUGE_VAL;
    for (const struct http_ask *ask = a->setting ? a->first : NULL; ask; ask = ask->next)
        if (ask->done)
            due = fmin(due, ask->due);
    return due;
}

static bool asks_is_json(const uint8_t *bytes, size_t size) {
    return size > 0 && (*bytes == '{' || *bytes == '[');
}

/* A request in msgpack has its reply in msgpack. Whether one in JSON makes sense is seen by its reader. */
static bool asks_is_reply(const struct http_ask *ask, const uint8_t *bytes, size_t size) {
    struct svi_item head;
    if (asks_is_json(bytes, size))
        return asks_is_json(ask->bytes, ask->size);
    if (svi_msgpack_check(bytes, size, SVI_WALK_MAX, NULL) != SVS_OK)
        return false;
    svi_item_read(bytes, &head);
    return head.type == SVI_MAP;
}

/* A reply that cannot be one comes from another program: the connection is given up like a broken one. */
static void asks_receive(struct http_asks *a) {
    zmq_msg_t m;
    zmq_msg_init(&m);
    while (a->socket) {
        if (!svi_last_frame(a->socket, &m, NULL)) {
            a->drained = errno == EAGAIN;
            break;
        }
        const uint8_t *bytes = zmq_msg_data(&m);
        const size_t size = zmq_msg_size(&m);
        if (a->flying == 0 || !asks_is_reply(a->first, bytes, size)) {
            a->stale = a->foreign = true;
            break;
        }
        a->pause = PAUSE_FIRST;
        asks_finish(asks_pop(a), bytes, size, NULL);
    }
    zmq_msg_close(&m);
}

static void asks_follow(struct http_asks *a) {
    int event, value;
    while (svi_monitor_next(a->monitor, &event, &value)) {
        if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
            a->connected = true;
        else if (event == ZMQ_EVENT_DISCONNECTED)
            a->stale = a->stale || a->connected;
        a->refused = event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED ? false
                     : event == ZMQ_EVENT_DISCONNECTED      ? a->refused
                                                            : a->identity->on;
    }
    a->monitor_drained = errno == EAGAIN;
}

/* Ends those whose time is over. One under way keeps its place; one that was not sent leaves the list. */
static void asks_expire(struct http_asks *a, double now) {
    struct http_ask *before = NULL;
    for (struct http_ask *ask = a->first, *next; ask; ask = next) {
        next = ask->next;
        if (now < ask->due || !ask->done) {
            before = ask;
            continue;
        }
        http_reply *const done = ask->done;
        void *const user = ask->user;
        ask->done = NULL;
        if (ask->sent) {
            before = ask;
            done(user, NULL, 0, http_why_timeout);
        } else {
            if (before)
                before->next = next;
            else
                a->first = next;
            a->unsent = a->unsent == ask ? next : a->unsent;
            a->last = a->last == ask ? before : a->last;
            *a->bytes -= ask->size;
            svi_free(ask);
            done(user, NULL, 0, http_why_unsent);
        }
        /* `done` may have put a request at the end. */
        next = before ? before->next : a->first;
    }
}

void http_asks_turn(struct http_asks *a, const zmq_pollitem_t *polled) {
    svs_error err;
    if (!a->setting)
        return;
    const double now = svi_monotonic();
    /* Replies first: those that arrived before a break still count. */
    const bool follows = !polled || polled[0].revents;
    if (follows || polled[1].revents)
        asks_receive(a);
    if (follows)
        asks_follow(a);
    asks_expire(a, now);
    if (a->stale && a->socket) {
        asks_disconnect(a);
        a->again = now + a->pause;
        a->pause = fmin(2 * a->pause, PAUSE_MAX);
        asks_break(a, a->foreign ? http_why_foreign : http_why_broken);
        a->foreign = false;
    }
    /* A failure here is a shortage of descriptors or memory: it is tried again. */
    if (a->stale && now >= a->again && asks_connect(a, &err) != SVS_OK) {
        asks_disconnect(a);
        a->stale = true;
        a->again = now + PAUSE_MAX;
    }
    asks_send(a);
}
