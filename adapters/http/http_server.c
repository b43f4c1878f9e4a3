/* libmicrohttpd with our limits. A request passes its callbacks in this order:
 *
 *   - http_server_accept admits an address.
 *   - http_server_notify makes a connection.
 *   - http_server_begin makes an exchange as soon as the request line is there.
 *   - http_server_access gets the headers, each piece of the body, and its end, where the handler
 *     runs.
 *   - http_server_complete ends the exchange.
 *
 * Every connection has one deadline, which depends on what it does (http_connection_expect). A
 * check every CHECK_SECONDS ends those whose deadline is over, so a sender of one byte a second
 * gains nothing. As libmicrohttpd does not poll a suspended connection, `watch` reports that its
 * client has left.
 *
 * Nothing here blocks. All memory held for a client (bodies, answers, connections) is counted. */
#include "http_server.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "http_connections.h"
#include "exchange_internal.h"
#include "guard.h"
#include "http_listen.h"
#include "http_log.h"
#include "http_options.h"
#include "request_check.h"
#include "tls.h"

#define CHECK_SECONDS 0.1
#define CHECKS_STUCK  5 /* in a row, .5 s: bytes that are read do not stay this long */
#define PAUSE_SECONDS 0.001
#define POOL_BYTES    (32 * 1024) /* of a connection in libmicrohttpd: its headers, its writes */
#define BODIES        4           /* bodies of the largest size that may be in flight together */
#define ANSWERS_BYTES (256u << 20)
#define HANG_UPS      64 /* taken from `watch` at once */
#define RUNS          4  /* of libmicrohttpd in a turn */
#define DRAINED_MAX   (1024 * 1024)
#define TLS_VERSIONS  "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define STREAM_BUFFER (128 * 1024) /* bytes that the system keeps for a reader that does not read */

struct http_server {
    struct http_app *app;
    struct MHD_Daemon *daemon;
    struct http_connections connections;
    struct http_body_budget bodies;
    size_t answers; /* bytes */
    int polled;     /* libmicrohttpd's epoll */
    bool resumed;   /* a connection, since the last MHD_run, which does not report it */
    bool moved;     /* a request, in the last turn */
    double checked; /* svi_monotonic */
    struct http_log_limit complaints, turned_away;
    struct http_tls *tls; /* of new connections; NULL: without TLS */
    bool closing;         /* no more connections */
    char url[128];
};

/* ---- connections */

static enum MHD_Result http_server_accept(void *context, const struct sockaddr *address, socklen_t length) {
    struct http_server *s = context;
    (void)length;
    if (s->closing)
        return MHD_NO;
    if (http_connections_admit(&s->connections, address))
        return MHD_YES;
    s->app->tally.refused++;
    http_log_limited(&s->turned_away,
                     "a connection is refused: its address has as many as one may have, or all are in use");
    return MHD_NO;
}

/* Its certificate is the one in force now, until it ends: libmicrohttpd keeps the one of the start. */
static bool http_server_secure(struct http_server *s, struct http_connection *c, struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *i =
        s->tls ? MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION) : NULL;
    return !s->tls || (i && (c->tls = http_tls_hold(s->tls, i->tls_session)));
}

static void http_server_notify(void *context, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode code) {
    struct http_server *s = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD),
                                       *from =
                                           MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        *socket_context =
            fd && from ? http_connection_new(&s->connections, fd->connect_fd, from->client_addr) : NULL;
        if (*socket_context && !http_server_secure(s, *socket_context, mhd)) {
            http_connection_free(&s->connections, *socket_context);
            *socket_context = NULL; /* what it sends is refused */
        }
        s->app->tally.connections += *socket_context != NULL;
    } else if (*socket_context) {
        s->app->tally.connections--;
        http_tls_release(((struct http_connection *)*socket_context)->tls);
        http_connection_free(&s->connections, *socket_context);
    }
}

static struct http_connection *http_server_connection(struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}

/* ---- a request */

/* The request line is there. What is returned becomes the context of all further calls. NULL: no memory, and
 * http_server_access refuses. */
static void *http_server_begin(void *context, const char *target, struct MHD_Connection *mhd) {
    struct http_server *s = context;
    struct exchange *x = svi_alloc_plain(sizeof *x);
    struct http_connection *c = http_server_connection(mhd);
    if (!x || !c)
        return svi_free(x), NULL;
    *x = (struct exchange){.server = s, .connection = c, .mhd = mhd};
    x->target_error = http_target_read(&x->target, target);
    c->exchange = x;
    http_connection_expect(c, HTTP_WANTS_HEADERS, 0);
    return x;
}

static void http_server_complete(void *context, struct MHD_Connection *mhd, void **request,
                                 enum MHD_RequestTerminationCode code) {
    struct http_server *s = context;
    struct exchange *x = *request;
    (void)mhd;
    (void)code;
    if (!x)
        return;
    *request = NULL;
    if (x->phase >= HTTP_ANSWERED)
        s->answers -= x->answer_size;
    x->connection->exchange = NULL;
    http_connection_expect(x->connection, HTTP_WANTS_REQUEST, 0);
    http_connection_ignore(&s->connections, x->connection);
    http_exchange_free(x);
}

/* The answer is made before the body is here. A small rest is read first, so that the connection stays and
 * the client sees the answer; of a large one nothing is read: libmicrohttpd closes after the answer. */
static enum MHD_Result http_server_refuse(struct exchange *x) {
    if (http_request_rest(x) <= DRAINED_MAX && !x->hung_up) {
        x->phase = HTTP_REFUSED;
        http_connection_expect(x->connection, HTTP_WANTS_BODY, 0);
        return MHD_YES;
    }
    return http_exchange_queue(x);
}

static enum MHD_Result http_server_headers(struct http_server *s, struct exchange *x, const char *method,
                                           const char *version) {
    http_connection_expect(x->connection, HTTP_WANTS_BODY, 0);
    snprintf(x->asked, sizeof x->asked, "%s", method);
    if (!http_request_check(x, s->app, method, version))
        return http_server_refuse(x);
    x->phase = HTTP_READING;
    http_body_begin(&x->body, &s->bodies, (size_t)s->app->options->body, http_request_is_gzip(x));
    return MHD_YES;
}

/* A refused body is read up to DRAINED_MAX bytes. False: it is longer. */
static bool http_server_piece(struct http_server *s, struct exchange *x, const char *bytes, size_t size) {
    x->drained += size;
    http_connection_expect(x->connection, HTTP_WANTS_BODY, x->drained);
    if (x->phase == HTTP_REFUSED)
        return x->drained <= (size_t)s->app->options->body + DRAINED_MAX;
    const enum http_body_state state = http_body_add(&x->body, bytes, size);
    if (state == HTTP_BODY_GOOD)
        return true;
    http_request_body_problem(x, state, s->app->options->body);
    http_body_clear(&x->body);
    x->phase = HTTP_REFUSED;
    return true;
}

/* The request is complete. */
static enum MHD_Result http_server_dispatch(struct http_server *s, struct exchange *x) {
    const enum http_body_state state = http_body_end(&x->body);
    x->phase = HTTP_HANDLED;
    http_connection_expect(x->connection, HTTP_WANTS_ANSWER, 0);
    if (state != HTTP_BODY_GOOD)
        http_request_body_problem(x, state, s->app->options->body);
    else if (s->answers > ANSWERS_BYTES) {
        http_exchange_add(x, "Retry-After", "1");
        http_exchange_problem(x, 503, "busy", "too many answers wait for slow readers; try again");
    } else
        x->route->handler(x, s->app);
    /* A response is accepted only inside this callback; without one yet the connection sleeps. */
    if (x->phase == HTTP_ANSWERED)
        return http_exchange_queue(x);
    http_exchange_suspend(x);
    return MHD_YES;
}

static enum MHD_Result http_server_access(void *context, struct MHD_Connection *mhd, const char *url,
                                          const char *method, const char *version, const char *bytes,
                                          size_t *size, void **request) {
    struct http_server *s = context;
    struct exchange *x = *request;
    (void)mhd;
    (void)url;
    s->moved = true;
    if (!x || x->connection->dropped)
        return MHD_NO;
    if (x->phase == HTTP_BEGUN)
        return http_server_headers(s, x, method, version);
    if (*size > 0) {
        const bool good = http_server_piece(s, x, bytes, *size);
        *size = 0;
        return good ? MHD_YES : MHD_NO;
    }
    if (x->phase == HTTP_READING)
        return http_server_dispatch(s, x);
    if (x->phase == HTTP_REFUSED || x->phase == HTTP_ANSWERED)
        return http_exchange_queue(x);
    /* libmicrohttpd may call while the handler still works: the exchange sleeps again. */
    http_exchange_suspend(x);
    return MHD_YES;
}

void http_server_resumed(struct exchange *x) {
    x->server->resumed = true;
}

void http_server_waits(struct exchange *x, double timeout) {
    x->connection->wants = HTTP_WANTS_ANSWER;
    x->connection->deadline = svi_monotonic() + timeout;
}

void http_server_answered(struct exchange *x) {
    x->server->answers += x->answer_size;
    http_tally_request(&x->server->app->tally, x->asked, x->status);
    http_connection_ignore(&x->server->connections, x->connection);
    http_connection_expect(x->connection, HTTP_WANTS_READER, x->answer_size);
}

/* A reader may take its time: what it does not read is lost for it, and costs this much. */
void http_server_streams(struct exchange *x) {
    const int bytes = STREAM_BUFFER;
    setsockopt(x->connection->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    http_connection_expect(x->connection, HTTP_STREAMS, 0);
    http_connection_watch(&x->server->connections, x->connection, true);
}

/* ---- the loop */

static void http_server_drop(struct http_connection *c) {
    c->dropped = true;
    shutdown(c->fd, SHUT_RDWR);
    if (c->exchange) {
        c->exchange->hung_up = true;
        http_exchange_resume(c->exchange);
    }
}

void http_server_recheck(struct http_server *s) {
    for (struct http_connection *c = s->connections.first; c; c = c->next) {
        const struct exchange *x = c->exchange;
        if (!x || !x->token.name[0] || !s->app->guard)
            continue;
        const struct http_token *now = http_guard_find(s->app->guard, x->token.hash);
        if (!now || (x->route->role & ~now->roles) || strcmp(now->sources, x->token.sources) != 0)
            http_server_drop(c);
    }
}

void http_server_reload(struct http_server *s) {
    struct http_tls *now = s->tls ? http_tls_read(s->app->options) : NULL;
    if (now) {
        http_tls_release(s->tls);
        s->tls = now;
        http_log("new connections have the certificate as it is in the file now");
    } else if (s->tls)
        http_log("the previous certificate stays in force");
}

static void http_server_expire(struct http_connection *c) {
    struct exchange *x = c->exchange;
    if (c->wants != HTTP_WANTS_ANSWER || !x) {
        http_server_drop(c);
        return;
    }
    /* The handler first: what it still holds for this exchange must not answer it as well. */
    void (*closed)(void *user) = x->closed;
    x->closed = NULL;
    if (closed)
        closed(x->user);
    http_exchange_problem(x, 504, "no_answer", "the stream has not answered in time; is it running?");
}

/* A line of chunked coding that is larger than libmicrohttpd's memory of a connection: it reads no further,
 * and it does not sleep either, as bytes are there. Bytes of a body that is read do not stay that long. */
static bool http_server_is_stuck(struct http_connection *c) {
    const size_t drained = c->exchange ? c->exchange->drained : 0;
    int waiting = 0;
    if (c->wants != HTTP_WANTS_BODY || drained != c->drained || ioctl(c->fd, FIONREAD, &waiting) != 0 ||
        waiting == 0)
        c->stuck = 0;
    else
        c->stuck++;
    c->drained = drained;
    return c->stuck >= CHECKS_STUCK;
}

/* False: it is not time for it. */
static bool http_server_check(struct http_server *s) {
    const double now = svi_monotonic();
    if (now - s->checked < CHECK_SECONDS)
        return false;
    s->checked = now;
    for (struct http_connection *c = s->connections.first, *next; c; c = next) {
        next = c->next;
        if (!c->dropped && (now >= c->deadline || http_server_is_stuck(c)))
            http_server_expire(c);
        else if (c->wants == HTTP_WANTS_ANSWER && !c->watched)
            http_connection_watch(&s->connections, c, false); /* it takes longer than most */
    }
    return true;
}

/* Has libmicrohttpd something to do at once? A connection that was resumed is not in its own timeout. */
static bool http_server_is_ready(const struct http_server *s) {
    unsigned long long ms;
    return s->resumed || (MHD_get_timeout(s->daemon, &ms) == MHD_YES && ms == 0);
}

/* libmicrohttpd reads a block of each connection in a run. */
void http_server_turn(struct http_server *s, const zmq_pollitem_t *polled) {
    struct epoll_event left[HANG_UPS];
    const int n = polled[1].revents ? epoll_wait(s->connections.watch, left, HANG_UPS, 0) : 0;
    for (int i = 0; i < n; i++)
        http_server_drop(left[i].data.ptr);
    /* Deadlines after the clients that left: they need no answer of theirs. */
    const bool checked = http_server_check(s);
    s->moved = false;
    http_connections_evict(&s->connections, http_server_drop);
    bool more = checked || polled[0].revents || http_server_is_ready(s);
    for (int i = 0; i < RUNS && more; i++) {
        s->resumed = false;
        MHD_run(s->daemon);
        more = http_server_is_ready(s);
    }
}

/* libmicrohttpd wants to go on at once for as long as a client has sent a part of a TLS handshake. A pause
 * keeps that from occupying the core; what arrives ends it early. */
double http_server_wait(const struct http_server *s) {
    unsigned long long ms;
    const double wait = s->resumed ? 0 : s->connections.count > 0 ? CHECK_SECONDS : HUGE_VAL;
    if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
        return wait;
    return fmin(wait, ms == 0 && s->tls && !s->moved ? PAUSE_SECONDS : (double)ms / 1000);
}

int http_server_items(const struct http_server *s, zmq_pollitem_t *items) {
    items[0] = (zmq_pollitem_t){NULL, s->polled, ZMQ_POLLIN, 0};
    items[1] = (zmq_pollitem_t){NULL, s->connections.watch, ZMQ_POLLIN, 0};
    return HTTP_SERVER_ITEMS;
}

const char *http_server_url(const struct http_server *s) {
    return s->url;
}

/* libmicrohttpd's own messages, which a client can cause at any rate. */
static void http_server_complain(void *context, const char *format, va_list arguments) {
    struct http_server *s = context;
    char text[300], safe[400];
    /* At the end it reports each connection that was asked to end as a failure of ours. */
    if (s->closing)
        return;
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    /* A client that leaves is no trouble. */
    static const char *const left[] = {
        "closed by remote", "detected connection closure", "has been disconnected",
        "no longer available for sending",
        "application error generating response"}; /* the end of an event stream */
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        if (strstr(text, left[i]))
            return;
    http_log_limited(&s->complaints, "%s%s", svi_escape(safe, sizeof safe, text, strlen(text)),
                     s->tls ? " (a client that speaks no TLS, or does not accept the certificate?)" : "");
}

static bool http_server_start(struct http_server *s, int fd) {
    const struct MHD_OptionItem options[] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)http_server_complain, s},
        {MHD_OPTION_LISTEN_SOCKET, fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, s->connections.most + HTTP_CONNECTIONS_SPARE, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)http_server_notify, s},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)http_server_complete, s},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)http_server_begin, s},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL},
        {s->tls ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, 0, s->tls ? s->tls->key : NULL},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls ? s->tls->cert : NULL},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_VERSIONS},
        {MHD_OPTION_END, 0, NULL}};
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (s->tls ? MHD_USE_TLS : 0), 0,
        http_server_accept, s, http_server_access, s, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    const union MHD_DaemonInfo *i =
        s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    s->polled = i ? i->epoll_fd : -1;
    return s->polled >= 0;
}

struct http_server *http_server_open(struct http_app *app) {
    struct http_server *s = http_log_need(1, sizeof *s);
    s->app = app;
    s->bodies.limit = BODIES * (size_t)app->options->body;
    const bool secured = !app->options->tls_cert || (s->tls = http_tls_read(app->options));
    const int fd = secured ? http_listen(app->options, s->tls != NULL, s->url, sizeof s->url) : -1;
    if (fd >= 0 && http_connections_open(&s->connections) && http_server_start(s, fd))
        return s;
    if (fd >= 0) {
        http_log("the server cannot start: %s", strerror(errno));
        if (!s->daemon)
            close(fd);
    }
    http_server_close(s);
    return NULL;
}

/* libmicrohttpd cannot stop while connections are suspended: none may be added any more, either. */
void http_server_close(struct http_server *s) {
    if (!s)
        return;
    s->closing = true;
    for (struct http_connection *c = s->connections.first; c; c = c->next)
        http_server_drop(c);
    if (s->daemon) {
        MHD_run(s->daemon);
        MHD_stop_daemon(s->daemon);
    }
    http_connections_close(&s->connections);
    http_tls_release(s->tls);
    svi_free(s);
}
