/* One thread reads the events of libzmq's monitors and answers ZAP, in a loop around one poll (watch_run):
 * first the events, then a ZAP request, then, 5 times a second, the tick (allow file, connections to close,
 * notices). The order is an invariant: before its peer is admitted, a connection is in the table with its
 * duplicate descriptor, and its socket is known to the flood guard.
 *
 * connection_opened and connection_closed maintain the table. Reports (cuts by the flood guard, in libzmq's
 * thread, and notices) are stored under the lock and signalled by `ready`, which the owner of the sockets has
 * in its poll set. That thread in turn marks connections and signals `wake`.
 *
 * The lock guards what both threads touch; everything else belongs to one of them, as the structure states.
 */
#include "net/peer_watch.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "net/connections.h"
#include "net/transport.h"

#define ZAP_ADDRESS "inproc://zeromq.zap.01"
#define SOCKETS     SVI_SOCKET_COUNT
#define CUTS_NAMED  16   /* disconnected peers that are stored with their addresses */
#define TICK_MS     200  /* between two checks of the allow file */
#define NOTICE_MS   1000 /* between two notices */

struct svi_peer_watch {
    svi_authenticator *auth; /* NULL = every peer may connect */
    void *zap;               /* REP on which libzmq asks whether a peer may connect */
    void *watched[SOCKETS];  /* the sockets; belongs to their owner's thread */
    void *monitors[SOCKETS]; /* PAIRs with their events; belongs to the watch's thread */
    int ready;               /* eventfd: a report can be taken */
    int wake;                /* eventfd: the thread has something to do */
    pthread_t thread;
    bool running;
    atomic_bool leaving;
    atomic_int_least64_t refused, connected;
    pthread_mutex_t lock; /* guards the next four */
    int64_t cuts;         /* cuts not taken yet; only the first CUTS_NAMED have details */
    struct svi_cut cut[CUTS_NAMED];
    svs_error notice; /* SVS_OK = none */
    struct svi_connections connections;
    /* only for the watch's thread */
    int64_t reported, reported_at, ticked_at; /* refusals covered by notices; ms: last notice, last tick */
    svs_error reason;                         /* why the last peer was refused */
};

static void ring_eventfd(int fd) {
    const uint64_t one = 1;
    ssize_t rung = write(fd, &one, sizeof one);
    assert(rung == sizeof one); /* it would fail only at 2^64 unread signals */
    (void)rung;
}

/* Address and port of a peer, "" if it has none (ipc) or has left. Numeric: a lookup of names would block. */
static void name_peer(int fd, char *out) {
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    char host[SVI_PEER_MAX - 8], port[6];
    out[0] = 0;
    if (getpeername(fd, (struct sockaddr *)&a, &size) == 0 &&
        (a.ss_family == AF_INET || a.ss_family == AF_INET6) &&
        getnameinfo((struct sockaddr *)&a, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(out, SVI_PEER_MAX, a.ss_family == AF_INET ? "%s:%s" : "[%s]:%s", host, port);
}

/* ---- connections that open and close */

static void connection_opened(svi_peer_watch *w, int socket, int fd, bool accepted) {
    /* The flood guard first: opening may close the connection at once. */
    svi_flood_guard_assign(fd, socket);
    svi_connections_open(&w->connections, fd, socket, accepted, svi_monotonic_ms());
}

/* Events of two sockets may arrive in another order than they happened: a descriptor may already belong to a
 * new connection of another socket, whose entry must stay. */
static void connection_closed(svi_peer_watch *w, int socket, int fd) {
    const struct svi_connection *last = svi_connections_find(&w->connections, fd);
    if (!last || last->socket != socket)
        return;
    struct svi_connection x = svi_connections_close(&w->connections, fd);
    svi_connection_release(&x);
}

/* The caller holds the lock. */
static void report_cut(svi_peer_watch *w, int socket, int fd, enum svi_flood why) {
    if (w->cuts < CUTS_NAMED) {
        struct svi_cut *cut = &w->cut[w->cuts];
        cut->socket = (enum svi_role)socket;
        cut->why = why;
        name_peer(fd, cut->peer);
    }
    w->cuts++;
    ring_eventfd(w->ready);
}

/* Called by libzmq's thread, which owns the descriptor. */
static void peer_floods(void *with, int socket, int fd, enum svi_flood why) {
    svi_peer_watch *w = with;
    pthread_mutex_lock(&w->lock);
    report_cut(w, socket, fd, why);
    pthread_mutex_unlock(&w->lock);
}

/* ---- events of libzmq */

static void count_refusal(svi_peer_watch *w, const char *why) {
    atomic_fetch_add(&w->refused, 1);
    svi_fail(&w->reason, SVS_NOT_ALLOWED, "%s", why);
}

/* Failed handshakes have no reliable descriptor, so they are only counted; accepted and closed connections
 * maintain the table. A HANDSHAKE_FAILED_AUTH is not watched: ZAP has counted that refusal. */
static void handle_event(svi_peer_watch *w, int socket, int event, int fd) {
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
        count_refusal(w, "it connected without CURVE, with another server's key, or does not speak ZeroMQ");
    else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        count_refusal(w, "it disconnected or was silent before its handshake was complete");
    else if (fd >= 0 && (event == ZMQ_EVENT_ACCEPTED || event == ZMQ_EVENT_CONNECTED))
        connection_opened(w, socket, fd, event == ZMQ_EVENT_ACCEPTED);
    else if (fd >= 0 && event == ZMQ_EVENT_DISCONNECTED)
        connection_closed(w, socket, fd);
    atomic_store(&w->connected, w->connections.count);
}

static void take_events(svi_peer_watch *w) {
    int event, fd;
    pthread_mutex_lock(&w->lock);
    for (int s = 0; s < SOCKETS; s++)
        while (svi_monitor_next(w->monitors[s], &event, &fd))
            handle_event(w, s, event, fd);
    pthread_mutex_unlock(&w->lock);
}

/* may this peer connect? libzmq asks through ZAP (rfc.zeromq.org/spec/27), on a REP socket */

/* A ZAP request. Texts end in NUL; one that is too long is truncated and then equals no known text. */
struct zap {
    bool complete; /* all frames are present */
    char id[256];
    size_t id_size;
    char domain[16], address[64], mechanism[16];
    uint8_t key[32]; /* CURVE: the peer's public key */
    size_t key_size; /* 0 with another mechanism, or another size */
};

enum { VERSION, ID, DOMAIN, ADDRESS, IDENTITY, MECHANISM, KEY, FRAMES };

static void zap_take_text(char *out, size_t capacity, const char *bytes, size_t size) {
    size_t length = size < capacity ? size : capacity - 1;
    memcpy(out, bytes, length);
    out[length] = '\0';
}

/* Copies one frame of a request. Frames come from libzmq, but their content from the peer: nothing longer
 * than its field is stored. */
static void zap_take_frame(struct zap *q, int number, const char *bytes, size_t size) {
    if (number == ID && size < sizeof q->id) {
        memcpy(q->id, bytes, size);
        q->id_size = size;
    } else if (number == DOMAIN) {
        zap_take_text(q->domain, sizeof q->domain, bytes, size);
    } else if (number == ADDRESS) {
        zap_take_text(q->address, sizeof q->address, bytes, size);
    } else if (number == MECHANISM) {
        zap_take_text(q->mechanism, sizeof q->mechanism, bytes, size);
    } else if (number == KEY && size == sizeof q->key) {
        memcpy(q->key, bytes, size);
        q->key_size = size;
    }
}

/* Takes the next request without waiting. False: none. */
static bool zap_receive(void *gate, struct zap *q) {
    zmq_msg_t m;
    bool more = true;
    int count = 0;
    memset(q, 0, sizeof *q);
    zmq_msg_init(&m);
    for (; more && zmq_msg_recv(&m, gate, ZMQ_DONTWAIT) >= 0; count++) {
        zap_take_frame(q, count, zmq_msg_data(&m), zmq_msg_size(&m));
        more = zmq_msg_more(&m);
    }
    zmq_msg_close(&m);
    q->complete = count > MECHANISM;
    return count > 0;
}

/* Answers a request. `user` becomes the User-Id of the peer's messages. */
static void zap_answer(void *gate, const struct zap *q, bool yes, const char *user) {
    /* Status code, status text, user, metadata. A 400 would make libzmq's clients give up for ever, silently.
     * After 300 they retry once the handshake has timed out, and are admitted if their key is listed by then.
     */
    const char *const reply[] = {yes ? "200" : "300", "", yes ? user : "", ""};
    zmq_send(gate, "1.0", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(gate, q->id, q->id_size, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    for (int i = 0; i < 4; i++)
        zmq_send(gate, reply[i], strlen(reply[i]), (i < 3 ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT);
}

/* Decides with the authenticator; a refusal is counted with its reason, which the next notice shows. */
static bool peer_admitted(svi_peer_watch *w, const struct zap *q, char user[SVI_KEY_LENGTH + 1]) {
    svs_error why = {SVS_NOT_ALLOWED, "the ZAP request is incomplete"};
    char reason[SVS_ERROR_TEXT];
    user[0] = '\0';
    if (!w->auth)
        return true;
    if (q->complete &&
        svi_authenticator_admits(w->auth, q->domain, q->mechanism, q->key, q->key_size, user, &why))
        return true;
    snprintf(reason, sizeof reason, "from %.60s at `%.8s`: %.160s", q->address, q->domain, why.text);
    count_refusal(w, reason);
    return false;
}

/* Answers one request. The connection waits for it, so the events before it are processed first. */
static void answer_zap(svi_peer_watch *w) {
    struct zap question;
    char user[SVI_KEY_LENGTH + 1];
    if (zap_receive(w->zap, &question)) {
        bool yes = peer_admitted(w, &question, user);
        zap_answer(w->zap, &question, yes, user);
    }
}

/* ---- the thread */

static bool may_subscribe(void *with, const char *user) {
    return svi_authenticator_allows(with, SVI_ROLE_SUBSCRIBE, user);
}

/* Fills a notice with the refusals since the last, at most one each NOTICE_MS. Without CURVE no peer is
 * refused for its key: failed handshakes (scanners, browsers) are counted only. */
static bool sum_up_refusals(svi_peer_watch *w, int64_t now, svs_error *notice) {
    long long count = atomic_load(&w->refused) - w->reported;
    if (!w->auth || count == 0 || now - w->reported_at < NOTICE_MS)
        return false;
    svi_fail(notice, SVS_NOT_ALLOWED, "%lld peer%s refused, the last one: %.180s", count,
             count > 1 ? "s were" : " was", w->reason.text);
    w->reported += count;
    w->reported_at = now;
    return true;
}

/* The sweep closes what was marked before this tick; the delay let a reply leave. Subscribers that lost their
 * role are found here because they send nothing that could be checked; senders are checked at each message.
 */
static void watch_tick(svi_peer_watch *w, int64_t now) {
    svs_error notice = {SVS_OK, ""};
    bool less = w->auth && svi_authenticator_refresh(w->auth, &notice);
    pthread_mutex_lock(&w->lock);
    svi_connections_sweep(&w->connections);
    if (less) {
        svi_connections_review(&w->connections, SVI_ROLE_SUBSCRIBE, may_subscribe, w->auth);
        svi_connections_sweep(&w->connections);
    }
    if (notice.code != SVS_OK || sum_up_refusals(w, now, &notice)) {
        w->notice = notice;
        ring_eventfd(w->ready);
    }
    pthread_mutex_unlock(&w->lock);
    w->ticked_at = now;
}

/* Poll timeout in ms: without an allow file the thread wakes only to close marked connections. */
static long watch_wait_ms(svi_peer_watch *w) {
    pthread_mutex_lock(&w->lock);
    bool ticks = w->auth || w->connections.marked > 0;
    pthread_mutex_unlock(&w->lock);
    return ticks ? TICK_MS : -1;
}

static void *watch_run(void *argument) {
    svi_peer_watch *w = argument;
    zmq_pollitem_t items[SOCKETS + 2] = {{w->zap, 0, ZMQ_POLLIN, 0}, {NULL, w->wake, ZMQ_POLLIN, 0}};
    uint64_t rings;
    for (int s = 0; s < SOCKETS; s++)
        items[2 + s] = (zmq_pollitem_t){w->monitors[s], 0, ZMQ_POLLIN, 0};
    while (!atomic_load(&w->leaving)) {
        int n = zmq_poll(items, SOCKETS + 2, watch_wait_ms(w));
        if (n < 0 && zmq_errno() != EINTR)
            break; /* from then on no peer is admitted: libzmq waits for the answer until the handshake times
                      out */
        if (n > 0 && (items[1].revents & ZMQ_POLLIN) && read(w->wake, &rings, sizeof rings) < 0)
            break;
        take_events(w);
        if (n > 0 && (items[0].revents & ZMQ_POLLIN))
            answer_zap(w);
        int64_t now = svi_monotonic_ms();
        if (now - w->ticked_at >= TICK_MS)
            watch_tick(w, now);
    }
    return NULL;
}

/* ---- beginning and end, for the thread that owns the sockets */

static void monitor_address(const svi_peer_watch *w, int socket, char out[64]) {
    snprintf(out, 64, "inproc://monitor-%p-%d", (const void *)w, socket);
}

static bool watch_start(svi_peer_watch *w, void *context) {
    char address[64];
    w->ready = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->zap = zmq_socket(context, ZMQ_REP);
    if (w->ready < 0 || w->wake < 0 || !w->zap || zmq_bind(w->zap, ZAP_ADDRESS) != 0)
        return false;
    /* The monitors connect before the sockets exist: inproc allows it, and no event can be missed. */
    for (int s = 0; s < SOCKETS; s++) {
        monitor_address(w, s, address);
        w->monitors[s] = zmq_socket(context, ZMQ_PAIR);
        if (!w->monitors[s] || zmq_connect(w->monitors[s], address) != 0)
            return false;
    }
    w->running = pthread_create(&w->thread, NULL, watch_run, w) == 0;
    return w->running;
}

svi_peer_watch *svi_peer_watch_new(void *context, svi_authenticator *auth, int limit, svs_error *err) {
    svi_peer_watch *w = svi_new(sizeof *w, "the peer watch", err);
    if (!w)
        return NULL;
    w->ready = w->wake = -1;
    w->auth = auth;
    pthread_mutex_init(&w->lock, NULL);
    if (svi_connections_init(&w->connections, limit, err) != SVS_OK) {
        svi_peer_watch_free(&w);
    } else if (!watch_start(w, context)) {
        svi_fail(err, SVS_IO, "cannot watch the sockets: %s", zmq_strerror(errno));
        svi_peer_watch_free(&w);
    } else {
        /* Armed last: the callback needs a complete watch. */
        svi_flood_guard_arm(peer_floods, w);
    }
    return w;
}

svs_code svi_peer_watch_add(svi_peer_watch *w, const char *name, void *socket, svs_error *err) {
    const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED |
                       ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;
    char address[64];
    int s = (int)svi_role_of(name);
    assert(s < SOCKETS && !w->watched[s]);
    monitor_address(w, s, address);
    if (zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, name, strlen(name)) != 0 ||
        zmq_socket_monitor(socket, address, events) != 0)
        return svi_fail(err, SVS_IO, "cannot watch the socket `%s`: %s", name, zmq_strerror(errno));
    w->watched[s] = socket;
    return SVS_OK;
}

int svi_peer_watch_limit(const svi_peer_watch *w, int *descriptors) {
    *descriptors = w->connections.slots;
    return w->connections.limit;
}

/* libzmq blocks until its events are read, so monitoring must end while the watch's thread still reads. */
void svi_peer_watch_leave(svi_peer_watch *w) {
    for (int s = 0; s < SOCKETS; s++) {
        if (w->watched[s])
            zmq_socket_monitor(w->watched[s], NULL, 0);
        w->watched[s] = NULL;
    }
}

void svi_peer_watch_free(svi_peer_watch **pw) {
    svi_peer_watch *w = *pw;
    if (!w)
        return;
    svi_peer_watch_leave(w);
    /* After this returns no thread of libzmq calls peer_floods. */
    svi_flood_guard_disarm();
    atomic_store(&w->leaving, true);
    if (w->running) {
        ring_eventfd(w->wake);
        pthread_join(w->thread, NULL);
    }
    for (int s = 0; s < SOCKETS; s++)
        svi_socket_close(&w->monitors[s]);
    svi_socket_close(&w->zap);
    svi_connections_clear(&w->connections);
    if (w->ready >= 0)
        close(w->ready);
    if (w->wake >= 0)
        close(w->wake);
    pthread_mutex_destroy(&w->lock);
    svi_free(w);
    *pw = NULL;
}

/* ---- for the thread that owns the sockets, while it runs */

int svi_peer_watch_fd(const svi_peer_watch *w) {
    return w->ready;
}

bool svi_peer_watch_next_cut(svi_peer_watch *w, struct svi_cut *cut) {
    uint64_t rings;
    pthread_mutex_lock(&w->lock);
    bool any = w->cuts > 0;
    if (any) {
        w->cuts--;
        /* Newest first. Beyond CUTS_NAMED only the number is known: the last entry stands for these, without
         * its address. */
        *cut = w->cut[w->cuts < CUTS_NAMED ? w->cuts : CUTS_NAMED - 1];
        if (w->cuts >= CUTS_NAMED)
            cut->peer[0] = '\0';
        /* Reset the signal only when nothing is left, under the lock: a report made meanwhile signals again.
         */
    } else if (read(w->ready, &rings, sizeof rings) < 0) {
        any = false; /* it was not signalled */
    }
    pthread_mutex_unlock(&w->lock);
    return any;
}

bool svi_peer_watch_next_notice(svi_peer_watch *w, svs_error *notice) {
    pthread_mutex_lock(&w->lock);
    *notice = w->notice;
    w->notice.code = SVS_OK;
    pthread_mutex_unlock(&w->lock);
    return notice->code != SVS_OK;
}

int64_t svi_peer_watch_refused(const svi_peer_watch *w) {
    return atomic_load(&w->refused);
}

int64_t svi_peer_watch_connected(const svi_peer_watch *w) {
    return atomic_load(&w->connected);
}

void svi_peer_watch_cut(svi_peer_watch *w, int connection) {
    pthread_mutex_lock(&w->lock);
    svi_connections_mark(&w->connections, connection);
    pthread_mutex_unlock(&w->lock);
    ring_eventfd(w->wake);
}

void svi_peer_watch_flooded(svi_peer_watch *w, enum svi_role socket, int connection, enum svi_flood why) {
    pthread_mutex_lock(&w->lock);
    const struct svi_connection *x = svi_connections_find(&w->connections, connection);
    if (!x || !x->cut)
        report_cut(w, (int)socket, connection, why);
    svi_connections_mark(&w->connections, connection);
    svi_connections_sweep(&w->connections);
    pthread_mutex_unlock(&w->lock);
}

/* A peer with too many is disconnected at once, not at the next tick: each further command costs memory. */
void svi_peer_watch_subscribed(svi_peer_watch *w, int connection, const char *user, bool idle) {
    pthread_mutex_lock(&w->lock);
    if (!svi_connections_subscribed(&w->connections, connection, user, idle)) {
        svi_connections_mark(&w->connections, connection);
        svi_connections_sweep(&w->connections);
    }
    pthread_mutex_unlock(&w->lock);
}
