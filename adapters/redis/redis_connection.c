#include "redis_connection.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/fail.h"

#define PAUSE_FIRST 0.05 /* seconds after the first failure */
#define PAUSE_MAX   1.0
#define UNSENT_MAX  (8 << 20) /* bytes handed to hiredis before the socket has taken them */

void redis_connection_close(struct redis_connection *c) {
    if (c->context)
        redisFree(c->context);
    c->context = NULL;
    c->state = REDIS_CLOSED;
    c->unsent = false;
    redis_queue_clear(&c->waiting);
    redis_queue_clear(&c->sent);
}

/* Requests that were sent go first when all are sent again: they were given first. */
static bool connection_break(struct redis_connection *c, const char *why) {
    char shown[200];
    snprintf(c->why, sizeof c->why, "%s:%d: %s", c->host, c->port,
             svi_escape(shown, sizeof shown, why, strlen(why)));
    if (c->context)
        redisFree(c->context);
    c->context = NULL;
    c->state = REDIS_CLOSED;
    c->unsent = c->asked = false;
    c->breaks++;
    c->again = svi_monotonic() + c->pause;
    c->pause = fmin(PAUSE_MAX, fmax(PAUSE_FIRST, 2 * c->pause));
    redis_queue_return(&c->waiting, &c->sent);
    return false;
}

static bool connection_begin(struct redis_connection *c) {
    c->began = svi_monotonic();
    c->refused = false;
    c->context = redisConnectNonBlock(c->host, c->port);
    if (!c->context || c->context->err)
        return connection_break(c, c->context ? c->context->errstr : "no memory");
    /* What a server sends is bounded by what we ask for, not by what hiredis keeps for reuse. */
    c->context->reader->maxbuf = 1 << 20;
    c->state = REDIS_CONNECTING;
    return true;
}

/* The log-in goes ahead of all requests; its answers are counted and not paired with any. */
static bool connection_greet(struct redis_connection *c) {
    int error = 0, one = 1;
    socklen_t size = sizeof error;
    if (getsockopt(c->context->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error)
        return connection_break(c, strerror(error ? error : errno));
    setsockopt(c->context->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const struct redis_url *u = c->login;
    c->greetings = 1;
    if (u->password[0] && u->user[0])
        redisAppendCommand(c->context, "AUTH %s %s", u->user, u->password);
    else if (u->password[0])
        redisAppendCommand(c->context, "AUTH %s", u->password);
    else
        c->greetings = 0;
    if (u->database > 0) {
        redisAppendCommand(c->context, "SELECT %d", u->database);
        c->greetings++;
    }
    c->state = c->greetings ? REDIS_GREETING : REDIS_READY;
    c->unsent = c->greetings > 0;
    return true;
}

static void connection_give(struct redis_connection *c) {
    struct redis_request *r;
    size_t given = 0;
    while (c->state == REDIS_READY && given < UNSENT_MAX && (r = redis_queue_take(&c->waiting))) {
        if (r->redirect >= 0)
            redisAppendFormattedCommand(c->context, "*1\r\n$6\r\nASKING\r\n", 16);
        redisAppendFormattedCommand(c->context, r->bytes, r->size);
        given += r->size;
        r->sent = svi_monotonic();
        redis_queue_add(&c->sent, r);
        c->unsent = true;
    }
}

/* An answer to ASKING is skipped: it precedes that of its request. */
static bool connection_take(struct redis_connection *c, const redisReply *reply,
                            redis_connection_answer *answer, void *user) {
    if (c->greetings > 0) {
        if (reply->type == REDIS_REPLY_ERROR) {
            c->refused = true;
            return connection_break(c, reply->str);
        }
        c->state = --c->greetings ? REDIS_GREETING : REDIS_READY;
        return true;
    }
    if (c->sent.first && c->sent.first->redirect >= 0 && !c->asked)
        return c->asked = true;
    c->asked = false;
    c->pause = 0;
    struct redis_request *r = redis_queue_take(&c->sent);
    if (!r)
        return connection_break(c, reply->type == REDIS_REPLY_ERROR ? reply->str : "an unexpected answer");
    answer(user, c, r, reply);
    return true;
}

static bool connection_read(struct redis_connection *c, redis_connection_answer *answer, void *user) {
    void *reply = NULL;
    bool good = true;
    if (redisBufferRead(c->context) != REDIS_OK)
        return connection_break(c, c->context->errstr);
    while (good && c->context) {
        if (redisGetReplyFromReader(c->context, &reply) != REDIS_OK)
            return connection_break(c, c->context->errstr);
        if (!reply)
            break;
        good = connection_take(c, reply, answer, user);
        freeReplyObject(reply);
    }
    return good;
}

bool redis_connection_item(const struct redis_connection *c, zmq_pollitem_t *item) {
    const bool write =
        c->state == REDIS_CONNECTING || c->unsent || (c->state == REDIS_READY && c->waiting.first);
    if (c->state == REDIS_CLOSED)
        return false;
    *item = (zmq_pollitem_t){NULL, c->context->fd, (short)(ZMQ_POLLIN | (write ? ZMQ_POLLOUT : 0)), 0};
    return true;
}

double redis_connection_wait(const struct redis_connection *c, double now) {
    if (c->state == REDIS_CLOSED)
        return c->waiting.first ? fmax(0, c->again - now) : HUGE_VAL;
    if (c->state != REDIS_READY)
        return fmax(0, c->began + c->timeout - now);
    return c->sent.first ? fmax(0, c->sent.first->sent + c->timeout - now) : HUGE_VAL;
}

bool redis_connection_turn(struct redis_connection *c, short ready, redis_connection_answer *answer,
                           void *user) {
    const double now = svi_monotonic();
    if (c->state == REDIS_CLOSED && c->waiting.first && now >= c->again && !connection_begin(c))
        return false;
    if (c->state == REDIS_CONNECTING && (ready & (ZMQ_POLLOUT | ZMQ_POLLERR)) && !connection_greet(c))
        return false;
    if ((c->state == REDIS_GREETING || c->state == REDIS_READY) && (ready & (ZMQ_POLLIN | ZMQ_POLLERR)) &&
        !connection_read(c, answer, user))
        return false;
    if (c->state == REDIS_CLOSED)
        return true;
    connection_give(c);
    if (c->state != REDIS_CONNECTING && c->unsent) {
        int done = 0;
        if (redisBufferWrite(c->context, &done) != REDIS_OK)
            return connection_break(c, c->context->errstr);
        c->unsent = !done;
    }
    if (redis_connection_wait(c, svi_monotonic()) <= 0) {
        char why[80];
        snprintf(why, sizeof why, "no answer for %g s", c->timeout);
        return connection_break(c, why);
    }
    return true;
}
