#include "feed.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reply.h"
#include "sample.h"

#define WINDOW       256  /* samples under way, if svmstream gives as much credit */
#define QUEUE        1000 /* ZeroMQ's own, more than WINDOW */
#define PATIENCE     5.0  /* seconds without an answer before it is told */
#define PAUSE        0.05 /* seconds before a new connection, doubled up to */
#define PAUSE_MAX    5.0
#define CUTS         3   /* broken connections after which the sample that breaks them is given up */
#define RETRY_MS     100 /* ZeroMQ's attempts to connect, doubled up to */
#define RETRY_MAX_MS 2000
#define BEAT_MS      5000 /* between signs of life, so that a vanished host is noticed */
#define LINGER_MS    1500 /* --no-ack: for what ZeroMQ holds at the end */

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void close_socket(struct feed *f) {
    int linger = f->socket && f->options->no_ack ? LINGER_MS : 0;
    if (f->monitor) {
        zmq_socket_monitor(f->socket, NULL, 0);
        zmq_close(f->monitor);
    }
    if (f->socket) {
        zmq_setsockopt(f->socket, ZMQ_LINGER, &linger, sizeof linger);
        zmq_close(f->socket);
    }
    f->socket = f->monitor = NULL;
}

/* A broken connection is reported through a socket pair of its own. */
static bool watch_connection(struct feed *f) {
    char address[64];
    snprintf(address, sizeof address, "inproc://connection-%p", f->socket);
    if (zmq_socket_monitor(f->socket, address, ZMQ_EVENT_DISCONNECTED) != 0)
        return false;
    f->monitor = zmq_socket(f->context, ZMQ_PAIR);
    return f->monitor && zmq_connect(f->monitor, address) == 0;
}

static bool open_socket(struct feed *f) {
    const bool push = f->options->no_ack;
    const struct {
        int option, value;
    } options[] = {{ZMQ_SNDHWM, QUEUE},
                   {ZMQ_RCVHWM, QUEUE},
                   {ZMQ_IMMEDIATE, push},
                   {ZMQ_RECONNECT_IVL, RETRY_MS},
                   {ZMQ_RECONNECT_IVL_MAX, RETRY_MAX_MS},
                   {ZMQ_HEARTBEAT_IVL, BEAT_MS}};
    bool good = (f->socket = zmq_socket(f->context, push ? ZMQ_PUSH : ZMQ_DEALER));
    for (size_t i = 0; good && i < sizeof options / sizeof options[0]; i++)
        good = zmq_setsockopt(f->socket, options[i].option, &options[i].value, sizeof(int)) == 0;
    good = good && svi_identity_connect(&f->options->identity, f->socket);
    return good && (push || watch_connection(f)) && zmq_connect(f->socket, f->options->in) == 0;
}

static void wait_for_answer(struct feed *f) {
    if (f->silent == 0)
        f->silent = clock_steady();
}

static void say_hello(struct feed *f) {
    msgpack_sbuffer hello;
    msgpack_sbuffer_init(&hello);
    hello_encode(&hello, f->options->client_id);
    zmq_send(f->socket, hello.data, hello.size, ZMQ_DONTWAIT); /* queued until somebody is there */
    msgpack_sbuffer_destroy(&hello);
    f->state = FEED_GREETING;
    wait_for_answer(f);
}

/* The connection is of no use any more: a new one after a pause. */
static void leave(struct feed *f) {
    f->broken = f->buffer.under_way;
    f->buffer.under_way = 0;
    close_socket(f);
    f->state = FEED_AWAY;
    f->again = clock_steady() + f->pause;
    f->pause = fmin(2 * f->pause, PAUSE_MAX);
    wait_for_answer(f);
}

static void answered(struct feed *f) {
    if (f->told)
        say("svmstream answers again");
    f->told = false;
    f->silent = f->buffer.under_way > 0 || f->state == FEED_GREETING ? clock_steady() : 0;
}

int feed_open(struct feed *f, const struct options *o, struct counters *c, void *context) {
    *f = (struct feed){.options = o,
                       .counters = c,
                       .context = context,
                       .pause = PAUSE,
                       .greeted = -1,
                       .window = smaller(WINDOW, o->buffer - 1)};
    buffer_open(&f->buffer, o->buffer);
    if (!open_socket(f)) {
        say("no connection to --in %s can be made: %s", o->in, zmq_strerror(errno));
        return 1;
    }
    f->state = FEED_LIVE;
    if (!o->no_ack)
        say_hello(f);
    return 0;
}

void feed_close(struct feed *f) {
    close_socket(f);
    if (f->buffer.ring)
        buffer_close(&f->buffer);
}

void feed_push(struct feed *f, const void *bytes, size_t size) {
    f->counters->samples++;
    if (buffer_push(&f->buffer, bytes, size))
        return;
    f->counters->dropped++;
    say_few(f->counters->dropped, "the buffer is full (--buffer %" PRId64 "): the oldest sample is dropped",
            f->options->buffer);
}

static void acknowledge(struct feed *f, int64_t below) {
    while (f->number < below && f->buffer.count > 0) {
        buffer_pop(&f->buffer);
        f->number++;
        f->counters->acked++;
        f->pause = PAUSE;
    }
}

/* svmstream cuts off who sends a larger message than it takes, and that would go on for ever. */
static void give_up_on_first(struct feed *f) {
    buffer_pop(&f->buffer);
    f->counters->refused++;
    f->cuts = 0;
    say_few(f->counters->refused,
            "svmstream ends the connection at a sample each time: it is given up (larger than "
            "max.message?)");
}

/* The same process as before goes on where it is; another one begins to count anew. */
static void resume(struct feed *f, const struct reply *r) {
    bool same = f->met && r->epoch == f->epoch;
    if (same && r->next >= f->number && r->next <= f->number + f->buffer.count) {
        bool stuck = r->next == f->number && f->broken > 0;
        acknowledge(f, r->next);
        f->cuts = stuck ? f->cuts + 1 : 0;
        if (f->cuts >= CUTS)
            give_up_on_first(f);
    } else {
        f->counters->restarts += f->met;
        if (f->met)
            say("svmstream was started anew: %" PRId64 " samples that it has not acknowledged go to it",
                f->buffer.count);
        f->number = r->next;
        f->cuts = 0;
    }
    if (!f->met)
        say("svmstream answers at %s", f->options->in);
    f->met = true;
    f->epoch = r->epoch;
    f->broken = 0;
}

/* Messages of this source's last run may still wait in svmstream when the first hello is answered, and would
 * use up numbers; they are through when two answers agree. */
static void greet(struct feed *f, const struct reply *r) {
    if (!r->ok || r->next < 0) {
        say_few(++f->complaints, "svmstream refuses this source: %s (%s)", r->error, r->code);
        leave(f);
        return;
    }
    if (!f->met && f->greeted != r->next) {
        f->greeted = r->next;
        say_hello(f);
        return;
    }
    resume(f, r);
    if (r->credit > 0)
        f->window = smaller(smaller(r->credit, WINDOW), f->options->buffer - 1);
    f->state = FEED_LIVE;
}

static void judge(struct feed *f, const struct reply *r) {
    if (r->ok && r->n >= 0) {
        acknowledge(f, smaller(r->n, f->number + f->buffer.under_way - 1) + 1);
    } else if (r->final && r->n >= f->number && r->n < f->number + f->buffer.under_way) {
        acknowledge(f, r->n);
        buffer_pop(&f->buffer);
        f->number++;
        f->counters->refused++;
        say_few(f->counters->refused, "svmstream refuses a sample: %s (%s)", r->error, r->code);
    } else if (!r->ok && !r->final) {
        say_few(++f->complaints, "svmstream does not go on: %s (%s); saying hello again", r->error, r->code);
        leave(f);
    }
}

static void take_reply(struct feed *f, zmq_msg_t *m) {
    struct reply r;
    if (!reply_read(&r, zmq_msg_data(m), zmq_msg_size(m))) {
        say_few(++f->complaints, "what answers at %s is not svmstream", f->options->in);
        leave(f);
    } else if (f->state == FEED_GREETING) {
        greet(f, &r);
        answered(f);
    } else {
        judge(f, &r);
        answered(f);
    }
}

static void take_replies(struct feed *f) {
    zmq_msg_t m;
    zmq_msg_init(&m);
    while (f->socket && !f->options->no_ack && zmq_msg_recv(&m, f->socket, ZMQ_DONTWAIT) >= 0)
        if (!zmq_msg_more(&m))
            take_reply(f, &m);
    zmq_msg_close(&m);
}

/* Replies that were on the way are read first: what they acknowledge is not sent again. */
static void watch(struct feed *f) {
    zmq_msg_t m;
    bool broken = false;
    zmq_msg_init(&m);
    while (f->monitor && zmq_msg_recv(&m, f->monitor, ZMQ_DONTWAIT) >= 0)
        broken = true;
    zmq_msg_close(&m);
    if (broken)
        take_replies(f);
    if (broken && f->socket)
        leave(f);
}

static void come_back(struct feed *f) {
    if (f->state != FEED_AWAY || clock_steady() < f->again)
        return;
    if (open_socket(f))
        say_hello(f);
    else
        leave(f);
}

static bool send_next(struct feed *f) {
    struct message *m = buffer_at(&f->buffer, f->buffer.under_way);
    if (!f->options->no_ack)
        sample_number(m->bytes, m->size, (uint64_t)(f->number + f->buffer.under_way));
    if (zmq_send(f->socket, m->bytes, m->size, ZMQ_DONTWAIT) < 0)
        return false;
    f->counters->sent++;
    if (f->options->no_ack)
        buffer_pop(&f->buffer);
    else
        f->buffer.under_way++;
    return true;
}

static void send_all(struct feed *f) {
    const struct buffer *b = &f->buffer;
    f->blocked = false;
    while (f->state == FEED_LIVE && b->under_way < smaller(b->count, f->window) && !f->blocked) {
        f->blocked = !send_next(f);
        if (f->options->no_ack && !f->blocked)
            answered(f);
        else
            wait_for_answer(f);
    }
}

static void complain(struct feed *f) {
    const struct options *o = f->options;
    if (f->told || f->silent == 0 || clock_steady() - f->silent < PATIENCE)
        return;
    f->told = true;
    say("no answer from %s for %g s: is `svmstream run --in %s --in.mode %s` running%s? %" PRId64
        " of %" PRId64 " places in the buffer are taken",
        o->in, PATIENCE, o->in, o->no_ack ? "pull" : "router",
        o->identity.on ? ", and is our key in its allow file" : "", f->buffer.count, o->buffer);
}

int feed_items(const struct feed *f, zmq_pollitem_t *items) {
    short events = (short)((f->options->no_ack ? 0 : ZMQ_POLLIN) | (f->blocked ? ZMQ_POLLOUT : 0));
    int n = 0;
    if (f->socket && events)
        items[n++] = (zmq_pollitem_t){f->socket, 0, events, 0};
    if (f->monitor)
        items[n++] = (zmq_pollitem_t){f->monitor, 0, ZMQ_POLLIN, 0};
    return n;
}

double feed_wait(const struct feed *f) {
    double now = clock_steady(), wait = 1e9;
    if (f->state == FEED_AWAY)
        wait = f->again - now;
    if (f->silent > 0 && !f->told)
        wait = fmin(wait, f->silent + PATIENCE - now);
    return fmax(0, wait);
}

void feed_turn(struct feed *f) {
    take_replies(f);
    watch(f);
    come_back(f);
    send_all(f);
    complain(f);
}
