#include "http_connections.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "http_log.h"

#define CONNECTIONS_MAX 2000
#define OF_ADDRESS_MAX  64
#define OTHER_FILES     200 /* descriptors for everything else */
#define CONNECTIONS_LOW 16
#define FIRST_SECONDS   10.0
#define IDLE_SECONDS    75.0
#define HEADERS_SECONDS 10.0
#define BODY_SECONDS    10.0
#define BODY_RATE       10e3 /* bytes a second that a sender must keep up, after BODY_SECONDS */
#define ANSWER_SECONDS  30.0
#define READER_SECONDS  10.0
#define READER_RATE     20e3

bool http_connections_open(struct http_connections *all) {
    struct rlimit r;
    all->most = CONNECTIONS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        if (r.rlim_cur < r.rlim_max) {
            r.rlim_cur = r.rlim_max;
            setrlimit(RLIMIT_NOFILE, &r);
            getrlimit(RLIMIT_NOFILE, &r);
        }
        const double files = r.rlim_cur == RLIM_INFINITY ? HUGE_VAL : (double)r.rlim_cur;
        all->most = (int)fmax(CONNECTIONS_LOW, fmin(CONNECTIONS_MAX, files - OTHER_FILES));
    }
    if (all->most < CONNECTIONS_MAX)
        http_log("at most %d connections: the limit of open files is low (ulimit -n)", all->most);
    all->watch = epoll_create1(EPOLL_CLOEXEC);
    all->open = all->watch >= 0;
    return all->open;
}

void http_connections_close(struct http_connections *all) {
    while (all->first)
        http_connection_free(all, all->first);
    if (all->open)
        close(all->watch);
    all->open = false;
}

/* An IPv6 client owns a /64: its lower half says nothing. */
static bool http_connection_place(const struct sockaddr *a, unsigned char out[16]) {
    memset(out, 0, 16);
    if (a && a->sa_family == AF_INET) {
        out[10] = out[11] = 0xff;
        memcpy(out + 12, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
        return out[12] == 127;
    }
    if (!a || a->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    const bool mapped = IN6_IS_ADDR_V4MAPPED(six);
    memcpy(out, six, mapped ? 16 : 8);
    return IN6_IS_ADDR_LOOPBACK(six) || (mapped && out[12] == 127);
}

/* Between requests, or in the headers of one: nothing is lost when it ends. */
static bool http_connection_is_idle(const struct http_connection *c) {
    return !c->dropped && c->wants <= HTTP_WANTS_HEADERS;
}

bool http_connections_admit(struct http_connections *all, const struct sockaddr *address) {
    unsigned char place[16];
    int same = 0, idle = 0;
    const bool local = http_connection_place(address, place);
    for (const struct http_connection *c = all->first; c; c = c->next) {
        same += memcmp(c->address, place, sizeof place) == 0;
        idle += http_connection_is_idle(c);
    }
    if (!local && same >= OF_ADDRESS_MAX)
        return false;
    if (all->count < all->most)
        return true;
    all->full = idle > 0;
    return idle > 0 && all->count < all->most + HTTP_CONNECTIONS_SPARE;
}

void http_connections_evict(struct http_connections *all, void (*drop)(struct http_connection *c)) {
    struct http_connection *oldest = NULL;
    if (!all->full)
        return;
    all->full = false;
    for (struct http_connection *c = all->first; c; c = c->next)
        if (http_connection_is_idle(c) && (!oldest || c->since < oldest->since))
            oldest = c;
    if (oldest)
        drop(oldest);
}

struct http_connection *http_connection_new(struct http_connections *all, int fd,
                                            const struct sockaddr *address) {
    const int on = 1;
    struct http_connection *c = svi_alloc_plain(sizeof *c);
    if (!c)
        return NULL;
    *c = (struct http_connection){.fd = fd, .next = all->first};
    c->local = http_connection_place(address, c->address);
    /* A machine that vanished must not keep its stream open for ever. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (all->first)
        all->first->previous = c;
    all->first = c;
    all->count++;
    http_connection_expect(c, HTTP_WANTS_FIRST, 0);
    return c;
}

void http_connection_free(struct http_connections *all, struct http_connection *c) {
    http_connection_ignore(all, c);
    *(c->previous ? &c->previous->next : &all->first) = c->next;
    if (c->next)
        c->next->previous = c->previous;
    all->count--;
    svi_free(c);
}

void http_connection_expect(struct http_connection *c, enum http_wants wants, size_t bytes) {
    static const struct {
        double seconds, rate; /* rate 0: the bytes do not count */
    } limits[] = {[HTTP_WANTS_FIRST] = {FIRST_SECONDS, 0},
                  [HTTP_WANTS_REQUEST] = {IDLE_SECONDS, 0},
                  [HTTP_WANTS_HEADERS] = {HEADERS_SECONDS, 0},
                  [HTTP_WANTS_BODY] = {BODY_SECONDS, BODY_RATE},
                  [HTTP_WANTS_ANSWER] = {ANSWER_SECONDS, 0},
                  [HTTP_WANTS_READER] = {READER_SECONDS, READER_RATE},
                  [HTTP_STREAMS] = {HUGE_VAL, 0}};
    if (c->wants != wants || c->since <= 0)
        c->since = svi_monotonic();
    c->wants = wants;
    c->deadline = c->since + limits[wants].seconds;
    if (limits[wants].rate > 0)
        c->deadline += (double)bytes / limits[wants].rate;
}

void http_connection_watch(struct http_connections *all, struct http_connection *c, bool closing) {
    struct epoll_event event = {.events = EPOLLONESHOT | (closing ? EPOLLRDHUP : 0), .data.ptr = c};
    if (!c->watched)
        c->watched = epoll_ctl(all->watch, EPOLL_CTL_ADD, c->fd, &event) == 0;
    else
        epoll_ctl(all->watch, EPOLL_CTL_MOD, c->fd, &event);
}

void http_connection_ignore(struct http_connections *all, struct http_connection *c) {
    if (c->watched)
        epoll_ctl(all->watch, EPOLL_CTL_DEL, c->fd, NULL);
    c->watched = false;
}
