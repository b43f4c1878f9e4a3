#include "engine/monitor.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/connections.h"
#include "engine/zap.h"

#define SOCKETS  3   /* in, out, ctl */
#define IN       0   /* where messages may be too large */
#define CLOSINGS 256 /* connections that ended and are not judged yet, at most */
#define LOOKS_OPEN                                                                                           \
    10000 /* at one that libzmq has not closed yet, a millisecond apart: its thread may have to wait */
#define LOOKS_DOUBT 50   /* at one that neither left nor shows more of its message */
#define NAMES       16   /* cut peers whose names wait to be taken */
#define TICK_MS     200  /* the allow file is looked at, and connections are ended, so often */
#define NOTICE_MS   1000 /* between two notices */

struct closing {
    struct svi_connection connection;
    int fd, looks;
};

/* Handshakes of one socket that are not assigned to a connection yet, and connections without one. */
struct handshakes {
    int completed, pending;
};

struct svi_monitor {
    svi_authenticator *auth; /* NULL = everybody may come in */
    void *gate;              /* REP on which libzmq asks whether a peer may come in */
    void *watched[SOCKETS];  /* the sockets, for the thread that owns them */
    void *events[SOCKETS];   /* the PAIRs on which libzmq tells of them; the thread's */
    int bell;                /* eventfd: rings when there is something to take */
    int call;                /* eventfd: calls the thread */
    pthread_t thread;
    bool running;
    atomic_bool leaving;
    atomic_int_least64_t refused, connected;
    pthread_mutex_t lock; /* guards the next ones */
    int64_t cut;          /* peers cut and not taken yet */
    char names[NAMES][SVI_PEER_MAX];
    svs_error notice; /* SVS_OK = none */
    struct svi_connections connections;
    /* the thread's alone */
    struct handshakes handshakes[SOCKETS];
    struct closing closings[CLOSINGS];
    int closing_count;
    int64_t told, told_at, looked_at; /* refusals told of, and when; when the tick was; ms */
    svs_error reason;                 /* why the last peer was refused */
};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void ring(int bell) {
    const uint64_t one = 1;
    ssize_t rung = write(bell, &one, sizeof one);
    assert(rung == sizeof one); /* it blocks after 2^64 rings only */
    (void)rung;
}

static void name_peer(int fd, char *out) {
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    char host[INET6_ADDRSTRLEN] = "";
    out[0] = 0;
    if (getpeername(fd, (struct sockaddr *)&a, &size) != 0)
        return;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a;
    if (a.ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host))
        snprintf(out, SVI_PEER_MAX, "%s:%d", host, ntohs(v4->sin_port));
    else if (a.ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host))
        snprintf(out, SVI_PEER_MAX, "[%s]:%d", host, ntohs(v6->sin6_port));
}

/* The event does not say whose handshake was completed; but when there were as many as connections without
 * one, all of these have theirs. */
static void settle_handshakes(svi_monitor *m, int socket) {
    struct handshakes *h = &m->handshakes[socket];
    if (h->completed < h->pending || h->completed == 0)
        return; /* what is left of them when all have theirs must not count for the next one that comes */
    for (int i = 0; i < m->connections.slots && h->pending > 0; i++) {
        struct svi_connection *x = &m->connections.of[i];
        if (x->copy > 0 && x->socket == socket && x->handshake == SVI_HANDSHAKE_PENDING)
            x->handshake = SVI_HANDSHAKE_DONE;
    }
    *h = (struct handshakes){0};
}

static void opened(svi_monitor *m, int socket, int fd, bool accepted) {
    struct svi_connection before =
        fd < m->connections.slots ? m->connections.of[fd] : (struct svi_connection){0};
    m->handshakes[before.socket].pending -= before.copy > 0 && before.handshake == SVI_HANDSHAKE_PENDING;
    const struct svi_connection *x = svi_connections_open(&m->connections, fd, socket, accepted, now_ms());
    m->handshakes[socket].pending += x != NULL;
}

static void closed(svi_monitor *m, int socket, int fd) {
    struct handshakes *h = &m->handshakes[socket];
    struct svi_connection x = svi_connections_close(&m->connections, fd);
    bool pending = x.copy > 0 && x.handshake == SVI_HANDSHAKE_PENDING;
    bool introduced = x.handshake == SVI_HANDSHAKE_DONE || h->completed > 0;
    h->pending -= pending;
    if (x.copy > 0 && socket == IN && introduced && !x.cut && m->closing_count < CLOSINGS)
        m->closings[m->closing_count++] = (struct closing){.connection = x, .fd = fd};
    else
        svi_connection_forget(&x);
}

enum verdict { LEFT, CUT, OPEN, DOUBT };

/* A peer that dies with replies unread resets the connection; libzmq, which meets that when it writes, leaves
 * what it had sent before unread. */
static bool was_reset(int copy) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    return getsockopt(copy, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_CLOSE;
}

/* libzmq tells of the end just before it closes the descriptor. One that stays open was reused before it
 * could be copied: then the copy is of another, living connection. */
static enum verdict judge(const struct closing *x) {
    struct stat s;
    char byte;
    bool done = x->connection.handshake == SVI_HANDSHAKE_DONE;
    /* By now the number may be anybody's descriptor, also of a file that another thread is closing: it is a
     * question about a name. ThreadSanitizer takes fstat for a use of that thread's descriptor. */
    if (fstatat(x->fd, "", &s, AT_EMPTY_PATH) == 0 && s.st_ino == x->connection.inode)
        return OPEN;
    ssize_t n = recv(x->connection.copy - 1, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0)
        return was_reset(x->connection.copy - 1) ? LEFT : CUT;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        return LEFT;
    return done ? CUT : DOUBT; /* a peer that was cut has more of its message to send: that will tell */
}

static void tell(svi_monitor *m, const struct svi_connection *c) {
    char name[SVI_PEER_MAX];
    name_peer(c->copy - 1, name);
    if (m->cut < NAMES)
        memcpy(m->names[m->cut], name, sizeof name);
    m->cut++;
    ring(m->bell);
}

static void judge_all(svi_monitor *m) {
    int kept = 0;
    for (int i = 0; i < m->closing_count; i++) {
        struct closing *x = &m->closings[i];
        enum verdict v = judge(x);
        if (v == CUT)
            tell(m, &x->connection);
        int most = v == OPEN ? LOOKS_OPEN : v == DOUBT ? LOOKS_DOUBT : 0;
        if (++x->looks < most)
            m->closings[kept++] = *x;
        else
            svi_connection_forget(&x->connection);
    }
    m->closing_count = kept;
}

/* ---- what libzmq tells */

static void refused(svi_monitor *m, const char *why) {
    atomic_fetch_add(&m->refused, 1);
    if (why)
        svi_fail(&m->reason, SVS_NOT_ALLOWED, "%s", why);
}

static void handle(svi_monitor *m, int socket, uint16_t event, uint32_t value) {
    int fd = value <= INT32_MAX ? (int)value : -1;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        m->handshakes[socket].completed++;
    else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
        refused(m, "it came without CURVE, took us for somebody else, or speaks no ZeroMQ");
    else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        refused(m, "it left, or was silent, before it had introduced itself");
    else if (fd >= 0 && (event == ZMQ_EVENT_ACCEPTED || event == ZMQ_EVENT_CONNECTED))
        opened(m, socket, fd, event == ZMQ_EVENT_ACCEPTED);
    else if (fd >= 0 && event == ZMQ_EVENT_DISCONNECTED)
        closed(m, socket, fd);
    settle_handshakes(m, socket);
    atomic_store(&m->connected, m->connections.count);
}

static bool has_event(void *events) {
    int flags = 0;
    size_t size = sizeof flags;
    return zmq_getsockopt(events, ZMQ_EVENTS, &flags, &size) == 0 && (flags & ZMQ_POLLIN);
}

static bool take_event(svi_monitor *m, int socket) {
    uint8_t frame[6];
    char endpoint[256];
    uint16_t event;
    uint32_t value;
    int n = zmq_recv(m->events[socket], frame, sizeof frame, ZMQ_DONTWAIT);
    if (n != sizeof frame)
        return false;
    zmq_recv(m->events[socket], endpoint, sizeof endpoint, ZMQ_DONTWAIT);
    memcpy(&event, frame, sizeof event);
    memcpy(&value, frame + sizeof event, sizeof value);
    handle(m, socket, event, value);
    return true;
}

static void take_events(svi_monitor *m) {
    pthread_mutex_lock(&m->lock);
    for (int s = 0; s < SOCKETS; s++)
        while (has_event(m->events[s]) && take_event(m, s))
            ;
    judge_all(m);
    pthread_mutex_unlock(&m->lock);
}

/* ---- may this peer come in? */

static bool may_enter(svi_monitor *m, const struct svi_zap *q, char user[SVI_KEY_LENGTH + 1]) {
    svs_error why = {SVS_NOT_ALLOWED, "the question is incomplete"};
    char reason[SVS_ERROR_TEXT];
    user[0] = '\0';
    if (!m->auth)
        return true;
    if (q->complete &&
        svi_authenticator_admits(m->auth, q->domain, q->mechanism, q->key, q->key_size, user, &why))
        return true;
    snprintf(reason, sizeof reason, "from %.60s at `%.8s`: %.160s", q->address, q->domain, why.text);
    refused(m, reason);
    return false;
}

/* The connection waits for the answer, so that what libzmq told before is looked at first. */
static void answer(svi_monitor *m) {
    struct svi_zap question;
    char user[SVI_KEY_LENGTH + 1];
    if (svi_zap_receive(m->gate, &question)) {
        bool yes = may_enter(m, &question, user);
        svi_zap_answer(m->gate, &question, yes, user);
    }
}

/* ---- the thread */

static bool may_subscribe(void *with, const char *user) {
    return svi_authenticator_allows(with, SVI_ROLE_SUBSCRIBE, user);
}

static void publish_notice(svi_monitor *m, const svs_error *notice) {
    m->notice = *notice;
    ring(m->bell);
}

/* Without CURVE nobody is refused for who he is: what fails then (scanners, browsers) is counted only. */
static void tell_refusals(svi_monitor *m, int64_t now) {
    svs_error notice;
    int64_t count = atomic_load(&m->refused) - m->told;
    if (!m->auth || count == 0 || now - m->told_at < NOTICE_MS)
        return;
    svi_fail(&notice, SVS_NOT_ALLOWED, "%lld peer%s refused, the last one %.180s", (long long)count,
             count > 1 ? "s were" : " was", m->reason.text);
    publish_notice(m, &notice);
    m->told += count;
    m->told_at = now;
}

static void tick(svi_monitor *m, int64_t now) {
    svs_error trouble = {SVS_OK, ""};
    bool less = m->auth && svi_authenticator_refresh(m->auth, &trouble);
    pthread_mutex_lock(&m->lock);
    svi_connections_sweep(&m->connections);
    if (less) {
        svi_connections_review(&m->connections, SVI_ROLE_SUBSCRIBE, may_subscribe, m->auth);
        svi_connections_sweep(&m->connections);
    }
    if (trouble.code != SVS_OK)
        publish_notice(m, &trouble);
    else
        tell_refusals(m, now);
    pthread_mutex_unlock(&m->lock);
    m->looked_at = now;
}

/* Asleep but when there is something to do: without an allow file only for connections that are to end. */
static long wait_ms(svi_monitor *m) {
    pthread_mutex_lock(&m->lock);
    bool ticks = m->auth || m->connections.doomed > 0;
    pthread_mutex_unlock(&m->lock);
    return m->closing_count > 0 ? 1 : ticks ? TICK_MS : -1;
}

static void *watch(void *argument) {
    svi_monitor *m = argument;
    zmq_pollitem_t items[SOCKETS + 2] = {{m->gate, 0, ZMQ_POLLIN, 0}, {NULL, m->call, ZMQ_POLLIN, 0}};
    uint64_t calls;
    for (int s = 0; s < SOCKETS; s++)
        items[2 + s] = (zmq_pollitem_t){m->events[s], 0, ZMQ_POLLIN, 0};
    while (!atomic_load(&m->leaving)) {
        int n = zmq_poll(items, SOCKETS + 2, wait_ms(m));
        if (n < 0 && zmq_errno() != EINTR)
            break; /* then nobody comes in any more: libzmq waits for the answer until the handshake's time is
                      over */
        if (n > 0 && (items[1].revents & ZMQ_POLLIN) && read(m->call, &calls, sizeof calls) < 0)
            break;
        take_events(m);
        if (n > 0 && (items[0].revents & ZMQ_POLLIN))
            answer(m);
        int64_t now = now_ms();
        if (now - m->looked_at >= TICK_MS)
            tick(m, now);
    }
    return NULL;
}

static void address_of(const svi_monitor *m, int socket, char out[64]) {
    snprintf(out, 64, "inproc://monitor-%p-%d", (const void *)m, socket);
}

static bool start(svi_monitor *m, void *context) {
    char address[64];
    m->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    m->call = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    m->gate = zmq_socket(context, ZMQ_REP);
    if (m->bell < 0 || m->call < 0 || !m->gate || zmq_bind(m->gate, SVI_ZAP_ADDRESS) != 0)
        return false;
    for (int s = 0; s < SOCKETS; s++) {
        address_of(m, s, address);
        m->events[s] = zmq_socket(context, ZMQ_PAIR);
        if (!m->events[s] || zmq_connect(m->events[s], address) != 0)
            return false;
    }
    m->running = pthread_create(&m->thread, NULL, watch, m) == 0;
    return m->running;
}

svi_monitor *svi_monitor_new(void *context, svi_authenticator *auth, int most, svs_error *err) {
    svi_monitor *m = svi_alloc(sizeof *m);
    if (!m) {
        svi_fail_memory(err, "the socket monitor");
        return NULL;
    }
    m->bell = m->call = -1;
    m->auth = auth;
    pthread_mutex_init(&m->lock, NULL);
    if (svi_connections_init(&m->connections, most, err) != SVS_OK) {
        svi_monitor_free(&m);
    } else if (!start(m, context)) {
        svi_fail(err, SVS_IO, "the sockets cannot be watched: %s", zmq_strerror(errno));
        svi_monitor_free(&m);
    }
    return m;
}

svs_code svi_monitor_watch(svi_monitor *m, const char *name, void *socket, svs_error *err) {
    const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED |
                       ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                       ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;
    char address[64];
    int s = (int)svi_role_of(name);
    assert(s < SOCKETS && !m->watched[s]);
    address_of(m, s, address);
    if (zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, name, strlen(name)) != 0 ||
        zmq_socket_monitor(socket, address, events) != 0)
        return svi_fail(err, SVS_IO, "the socket `%s` cannot be watched: %s", name, zmq_strerror(errno));
    m->watched[s] = socket;
    return SVS_OK;
}

/* libzmq waits for who reads its events: it must have ended before the reader does. */
void svi_monitor_unwatch(svi_monitor *m) {
    for (int s = 0; s < SOCKETS; s++) {
        if (m->watched[s])
            zmq_socket_monitor(m->watched[s], NULL, 0);
        m->watched[s] = NULL;
    }
}

void svi_monitor_free(svi_monitor **pm) {
    svi_monitor *m = *pm;
    if (!m)
        return;
    svi_monitor_unwatch(m);
    atomic_store(&m->leaving, true);
    if (m->running) {
        ring(m->call);
        pthread_join(m->thread, NULL);
    }
    for (int s = 0; s < SOCKETS; s++)
        if (m->events[s])
            zmq_close(m->events[s]);
    if (m->gate)
        zmq_close(m->gate);
    for (int i = 0; i < m->closing_count; i++)
        svi_connection_forget(&m->closings[i].connection);
    svi_connections_clear(&m->connections);
    if (m->bell >= 0)
        close(m->bell);
    if (m->call >= 0)
        close(m->call);
    pthread_mutex_destroy(&m->lock);
    svi_free(m);
    *pm = NULL;
}

/* ---- for the thread that owns the sockets */

int svi_monitor_fd(const svi_monitor *m) {
    return m->bell;
}

bool svi_monitor_take(svi_monitor *m, char peer[SVI_PEER_MAX]) {
    uint64_t rings;
    pthread_mutex_lock(&m->lock);
    bool any = m->cut > 0;
    peer[0] = 0;
    if (any) {
        m->cut--;
        if (m->cut < NAMES)
            memcpy(peer, m->names[m->cut], SVI_PEER_MAX);
    } else if (read(m->bell, &rings, sizeof rings) < 0) {
        any = false; /* nothing had rung */
    }
    pthread_mutex_unlock(&m->lock);
    return any;
}

bool svi_monitor_notice(svi_monitor *m, svs_error *notice) {
    pthread_mutex_lock(&m->lock);
    *notice = m->notice;
    m->notice.code = SVS_OK;
    pthread_mutex_unlock(&m->lock);
    return notice->code != SVS_OK;
}

int64_t svi_monitor_refused(const svi_monitor *m) {
    return atomic_load(&m->refused);
}

int64_t svi_monitor_connected(const svi_monitor *m) {
    return atomic_load(&m->connected);
}

void svi_monitor_cut(svi_monitor *m, int connection) {
    pthread_mutex_lock(&m->lock);
    svi_connections_doom(&m->connections, connection);
    pthread_mutex_unlock(&m->lock);
    ring(m->call);
}

/* One who floods is ended here and now: each further command costs memory. */
void svi_monitor_subscribed(svi_monitor *m, int connection, const char *user, bool idle) {
    pthread_mutex_lock(&m->lock);
    if (!svi_connections_subscribed(&m->connections, connection, user, idle)) {
        svi_connections_doom(&m->connections, connection);
        svi_connections_sweep(&m->connections);
    }
    pthread_mutex_unlock(&m->lock);
}
