#include "engine/monitor.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "base/alloc.h"
#include "base/fail.h"

#define CONNECTIONS 4096 /* descriptors below this are watched */
#define CLOSINGS    256  /* connections that ended and are not judged yet, at most */
#define LOOKS_OPEN                                                                                           \
    10000 /* at one that libzmq has not closed yet, a millisecond apart: its thread may have to wait */
#define LOOKS_DOUBT 50 /* at one that neither left nor shows more of its message */
#define NAMES       16 /* cut peers whose names wait to be taken */

enum handshake { NONE = 0, PENDING, DONE };

struct connection {
    int copy; /* duplicate of the descriptor + 1, 0 = none */
    ino_t inode;
    enum handshake handshake;
};

struct closing {
    struct connection connection;
    int fd, looks;
};

struct svi_monitor {
    void *gate; /* REP on which libzmq asks whether a peer may come in (ZAP): always, but not before it is
                   copied */
    void *watched, *events; /* the socket, and the PAIR on which libzmq tells of it (the thread's) */
    int bell;               /* eventfd: rings when somebody was cut */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* guards the next two */
    int64_t cut;          /* peers cut and not taken yet */
    char names[NAMES][SVI_PEER_MAX];
    int completed; /* handshakes that are not assigned to a connection yet; the thread's, as the next */
    struct connection connections[CONNECTIONS];
    struct closing closings[CLOSINGS];
    int closing_count;
};

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

static void forget(struct connection *c) {
    if (c->copy > 0)
        close(c->copy - 1);
    *c = (struct connection){0};
}

static void opened(struct connection *c, int fd) {
    forget(c);
    struct stat s;
    int copy = dup(fd);
    if (copy < 0 || fstat(copy, &s) != 0) {
        if (copy >= 0)
            close(copy);
        return;
    }
    *c = (struct connection){.copy = copy + 1, .inode = s.st_ino, .handshake = PENDING};
}

/* The event does not say whose handshake was completed; but when there were as many as connections without
 * one, all of these have theirs. */
static void settle_handshakes(svi_monitor *m) {
    int pending = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        pending += m->connections[i].handshake == PENDING;
    if (m->completed < pending)
        return;
    for (int i = 0; i < CONNECTIONS && pending > 0; i++)
        if (m->connections[i].handshake == PENDING)
            m->connections[i].handshake = DONE;
    m->completed = 0;
}

static void closed(svi_monitor *m, struct connection *c, int fd) {
    bool judged = c->copy > 0 && (c->handshake == DONE || m->completed > 0) && m->closing_count < CLOSINGS;
    if (!judged) {
        forget(c);
        return;
    }
    m->closings[m->closing_count++] = (struct closing){.connection = *c, .fd = fd};
    *c = (struct connection){0}; /* the copy went along */
}

enum verdict { LEFT, CUT, OPEN, DOUBT };

/* libzmq tells of the end just before it closes the descriptor. One that stays open was reused before it
 * could be copied: then the copy is of another, living connection. */
static enum verdict judge(const struct closing *x) {
    struct stat s;
    char byte;
    bool done = x->connection.handshake == DONE;
    if (fstat(x->fd, &s) == 0 && s.st_ino == x->connection.inode)
        return OPEN;
    ssize_t n = recv(x->connection.copy - 1, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0)
        return CUT;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        return LEFT;
    return done ? CUT : DOUBT; /* a peer that was cut has more of its message to send: that will tell */
}

static void tell(svi_monitor *m, const struct connection *c) {
    char name[SVI_PEER_MAX];
    const uint64_t one = 1;
    name_peer(c->copy - 1, name);
    pthread_mutex_lock(&m->lock);
    if (m->cut < NAMES)
        memcpy(m->names[m->cut], name, sizeof name);
    m->cut++;
    pthread_mutex_unlock(&m->lock);
    ssize_t rung = write(m->bell, &one, sizeof one);
    assert(rung == sizeof one); /* it blocks after 2^64 rings only */
    (void)rung;
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
            forget(&x->connection);
    }
    m->closing_count = kept;
}

static void handle(svi_monitor *m, uint16_t event, uint32_t value) {
    struct connection *c = value < CONNECTIONS ? &m->connections[value] : NULL;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        m->completed++;
    else if (c && (event == ZMQ_EVENT_ACCEPTED || event == ZMQ_EVENT_CONNECTED))
        opened(c, (int)value);
    else if (c && event == ZMQ_EVENT_DISCONNECTED)
        closed(m, c, (int)value);
    settle_handshakes(m);
}

static bool has_event(const svi_monitor *m) {
    int events = 0;
    size_t size = sizeof events;
    return zmq_getsockopt(m->events, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN);
}

/* False: it was the last of all. */
static bool take_event(svi_monitor *m) {
    uint8_t frame[6];
    char endpoint[256];
    uint16_t event;
    uint32_t value;
    int n = zmq_recv(m->events, frame, sizeof frame, ZMQ_DONTWAIT);
    if (n != sizeof frame)
        return false;
    zmq_recv(m->events, endpoint, sizeof endpoint, ZMQ_DONTWAIT);
    memcpy(&event, frame, sizeof event);
    memcpy(&value, frame + sizeof event, sizeof value);
    handle(m, event, value);
    return event != ZMQ_EVENT_MONITOR_STOPPED;
}

/* "May this peer come in?" Yes; the question serves to look at the events first, while the connection waits.
 */
static void let_in(svi_monitor *m) {
    char version[8], id[256], rest[1024];
    int id_size, n = zmq_recv(m->gate, version, sizeof version, ZMQ_DONTWAIT);
    if (n < 0)
        return;
    id_size = zmq_recv(m->gate, id, sizeof id, ZMQ_DONTWAIT);
    for (int more = 1; more;) {
        size_t size = sizeof more;
        if (zmq_getsockopt(m->gate, ZMQ_RCVMORE, &more, &size) != 0 ||
            (more && zmq_recv(m->gate, rest, sizeof rest, ZMQ_DONTWAIT) < 0))
            break;
    }
    static const char *const answer[] = {"200", "", "", ""}; /* status, its text, user, metadata */
    zmq_send(m->gate, "1.0", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(m->gate, id, id_size > 0 ? (size_t)id_size : 0, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    for (int i = 0; i < 4; i++)
        zmq_send(m->gate, answer[i], strlen(answer[i]), (i < 3 ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT);
}

static void *watch(void *argument) {
    svi_monitor *m = argument;
    zmq_pollitem_t items[2] = {{m->events, 0, ZMQ_POLLIN, 0}, {m->gate, 0, ZMQ_POLLIN, 0}};
    bool more = true;
    while (more) {
        int n = zmq_poll(items, 2, m->closing_count > 0 ? 1 : -1);
        if (n < 0 && zmq_errno() != EINTR)
            break;
        while (more && n >= 0 && has_event(m))
            more = take_event(m);
        if (n > 0 && (items[1].revents & ZMQ_POLLIN))
            let_in(m);
        judge_all(m);
    }
    return NULL;
}

static bool start(svi_monitor *m, void *context, void *socket) {
    const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED |
                       ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_MONITOR_STOPPED;
    char address[64];
    snprintf(address, sizeof address, "inproc://monitor-%p", (void *)m);
    m->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    m->events = zmq_socket(context, ZMQ_PAIR);
    m->gate = zmq_socket(context, ZMQ_REP);
    if (m->bell < 0 || !m->events || !m->gate || zmq_bind(m->gate, "inproc://zeromq.zap.01") != 0 ||
        zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "in", 2) != 0 ||
        zmq_socket_monitor(socket, address, events) != 0)
        return false;
    m->watched = socket;
    if (zmq_connect(m->events, address) != 0)
        return false;
    m->running = pthread_create(&m->thread, NULL, watch, m) == 0;
    return m->running;
}

svi_monitor *svi_monitor_new(void *context, void *socket, svs_error *err) {
    svi_monitor *m = svi_alloc(sizeof *m);
    if (!m) {
        svi_fail_memory(err, "the socket monitor");
        return NULL;
    }
    m->bell = -1;
    pthread_mutex_init(&m->lock, NULL);
    if (!start(m, context, socket)) {
        svi_fail(err, SVS_IO, "the input socket cannot be watched: %s", zmq_strerror(errno));
        svi_monitor_free(&m);
    }
    return m;
}

void svi_monitor_free(svi_monitor **pm) {
    svi_monitor *m = *pm;
    if (!m)
        return;
    if (m->watched)
        zmq_socket_monitor(m->watched, NULL, 0); /* its last event ends the thread */
    if (m->running)
        pthread_join(m->thread, NULL);
    if (m->events)
        zmq_close(m->events);
    if (m->gate)
        zmq_close(m->gate);
    for (int i = 0; i < CONNECTIONS; i++)
        forget(&m->connections[i]);
    for (int i = 0; i < m->closing_count; i++)
        forget(&m->closings[i].connection);
    if (m->bell >= 0)
        close(m->bell);
    pthread_mutex_destroy(&m->lock);
    svi_free(m);
    *pm = NULL;
}

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
