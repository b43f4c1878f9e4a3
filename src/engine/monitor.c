#include "engine/monitor.h"

#include <arpa/inet.h>
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
#define NAMES       16   /* cut peers whose names wait to be taken */

enum handshake { NONE = 0, STARTED, UNSURE, DONE };

struct connection {
    int copy; /* duplicate of the descriptor + 1, 0 = none */
    ino_t inode;
    enum handshake handshake;
};

struct svi_monitor {
    void *watched, *events; /* the socket, and the PAIR on which libzmq tells of it (the thread's) */
    int bell;               /* eventfd: rings when somebody was cut */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* guards the next two */
    int64_t cut;          /* peers cut and not taken yet */
    char names[NAMES][SVI_PEER_MAX];
    struct connection connections[CONNECTIONS]; /* the thread's */
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
    *c = (struct connection){.copy = copy + 1, .inode = s.st_ino, .handshake = STARTED};
}

/* The event does not say whose handshake it was: with one under way it is clear, else it is open. */
static void handshake_done(svi_monitor *m) {
    struct connection *started = NULL;
    int count = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        if (m->connections[i].copy > 0 && m->connections[i].handshake < DONE) {
            started = &m->connections[i];
            count++;
        }
    if (count == 1)
        started->handshake = DONE;
    for (int i = 0; i < CONNECTIONS && count > 1; i++)
        if (m->connections[i].handshake == STARTED)
            m->connections[i].handshake = UNSURE;
}

static bool was_cut(const struct connection *c, int fd) {
    struct stat s;
    if (c->copy <= 0 || c->handshake < UNSURE)
        return false;
    if (fstat(fd, &s) == 0 && s.st_ino == c->inode)
        return false; /* the descriptor was reused before it was copied: this copy is of a living connection
                       */
    char byte;
    ssize_t n = recv(c->copy - 1, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0)
        return true;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && c->handshake == DONE;
}

static void closed(svi_monitor *m, struct connection *c, int fd) {
    if (was_cut(c, fd)) {
        char name[SVI_PEER_MAX];
        name_peer(c->copy - 1, name);
        pthread_mutex_lock(&m->lock);
        if (m->cut < NAMES)
            memcpy(m->names[m->cut], name, sizeof name);
        m->cut++;
        pthread_mutex_unlock(&m->lock);
        uint64_t one = 1;
        if (write(m->bell, &one, sizeof one) < 0)
            return; /* the bell has rung 2^64 times */
    }
    forget(c);
}

static void handle(svi_monitor *m, uint16_t event, uint32_t value) {
    struct connection *c = value < CONNECTIONS ? &m->connections[value] : NULL;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        handshake_done(m);
    else if (c && (event == ZMQ_EVENT_ACCEPTED || event == ZMQ_EVENT_CONNECTED))
        opened(c, (int)value);
    else if (c && event == ZMQ_EVENT_DISCONNECTED)
        closed(m, c, (int)value);
}

static void *watch(void *argument) {
    svi_monitor *m = argument;
    uint16_t event = 0;
    while (event != ZMQ_EVENT_MONITOR_STOPPED) {
        uint8_t frame[6];
        char endpoint[256];
        if (zmq_recv(m->events, frame, sizeof frame, 0) != sizeof frame) {
            if (zmq_errno() == EINTR)
                continue;
            break;
        }
        uint32_t value;
        memcpy(&event, frame, sizeof event);
        memcpy(&value, frame + sizeof event, sizeof value);
        zmq_recv(m->events, endpoint, sizeof endpoint, 0);
        handle(m, event, value);
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
    if (m->bell < 0 || !m->events || zmq_socket_monitor(socket, address, events) != 0)
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
    for (int i = 0; i < CONNECTIONS; i++)
        forget(&m->connections[i]);
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
