#include "net/connections.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "net/transport.h"

#define OWN      128  /* descriptors that the process needs for itself */
#define BURST    4096 /* connections that libzmq may accept before the first of them is shut down */
#define GREETING 64   /* bytes that every peer sends first */

/* Two descriptors for each connection. Returns the limit in force. */
static int request_descriptors(int wanted) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return wanted;
    if (r.rlim_cur < (rlim_t)wanted && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max < (rlim_t)wanted ? r.rlim_max : (rlim_t)wanted;
        if (setrlimit(RLIMIT_NOFILE, &r) != 0)
            getrlimit(RLIMIT_NOFILE, &r);
    }
    return r.rlim_cur < (rlim_t)wanted ? (int)r.rlim_cur : wanted;
}

svs_code svi_connections_init(struct svi_connections *c, int limit, svs_error *err) {
    int granted = request_descriptors(2 * limit + OWN + BURST);
    int room = granted > 2 * OWN ? (granted - OWN) / 2 : OWN / 2;
    *c = (struct svi_connections){.slots = granted, .limit = limit < room ? limit : room};
    c->of = svi_alloc_array((size_t)c->slots, sizeof *c->of);
    return c->of ? SVS_OK : svi_fail_memory(err, "the table of connections");
}

void svi_connection_release(struct svi_connection *x) {
    if (x->copy > 0)
        close(x->copy - 1);
    *x = (struct svi_connection){0};
}

void svi_connections_clear(struct svi_connections *c) {
    for (int i = 0; i < c->slots && c->of; i++)
        svi_connection_release(&c->of[i]);
    svi_free(c->of);
    *c = (struct svi_connections){0};
}

struct svi_connection *svi_connections_find(struct svi_connections *c, int fd) {
    return fd >= 0 && fd < c->slots && c->of[fd].copy > 0 ? &c->of[fd] : NULL;
}

static void connection_cut(struct svi_connections *c, struct svi_connection *x) {
    if (x->cut)
        return;
    c->marked -= x->marked;
    c->count -= x->accepted;
    x->marked = false;
    x->cut = true;
    shutdown(x->copy - 1, SHUT_RDWR);
}

/* Local sockets do not count bytes; a peer on this machine is taken to have sent something. */
static bool connection_is_silent(struct svi_connection *x) {
    struct tcp_info t;
    socklen_t size = sizeof t;
    memset(&t, 0, sizeof t);
    x->spoken = x->spoken || getsockopt(x->copy - 1, IPPROTO_TCP, TCP_INFO, &t, &size) != 0 ||
                t.tcpi_bytes_received > GREETING;
    return !x->spoken;
}

/* Those older than a handshake may take have completed it, or libzmq would have closed them. */
static struct svi_connection *oldest_newcomer(struct svi_connections *c, int64_t now) {
    struct svi_connection *oldest = NULL;
    for (int i = 0; i < c->slots; i++) {
        struct svi_connection *x = &c->of[i];
        bool fresh =
            x->copy > 0 && x->accepted && !x->cut && !x->spoken && now - x->opened < 2 * SVI_HANDSHAKE_MS;
        if (fresh && (!oldest || x->opened < oldest->opened))
            oldest = x;
    }
    return oldest;
}

static void connections_make_room(struct svi_connections *c, struct svi_connection *newest, int64_t now) {
    struct svi_connection *x;
    while ((x = oldest_newcomer(c, now)) && !connection_is_silent(x)) /* each is found to have spoken once */
        ;
    connection_cut(c, x ? x : newest);
}

struct svi_connection *svi_connections_open(struct svi_connections *c, int fd, int socket, bool accepted,
                                            int64_t now) {
    if (fd < 0 || fd >= c->slots)
        return NULL;
    struct svi_connection *x = &c->of[fd];
    struct svi_connection before = svi_connections_close(c, fd); /* libzmq has not reported its end yet */
    svi_connection_release(&before);
    int copy = dup(fd);
    if (copy < 0)
        return NULL;
    *x = (struct svi_connection){.copy = copy + 1, .socket = socket, .opened = now, .accepted = accepted};
    c->count += accepted;
    if (c->count > c->limit)
        connections_make_room(c, x, now);
    return x;
}

struct svi_connection svi_connections_close(struct svi_connections *c, int fd) {
    struct svi_connection *x = svi_connections_find(c, fd);
    if (!x)
        return (struct svi_connection){0};
    struct svi_connection gone = *x;
    c->marked -= x->marked;
    c->count -= x->accepted && !x->cut;
    *x = (struct svi_connection){0}; /* the copy went along */
    return gone;
}

void svi_connections_mark(struct svi_connections *c, int fd) {
    struct svi_connection *x = svi_connections_find(c, fd);
    if (!x || x->marked || x->cut)
        return;
    x->marked = true;
    c->marked++;
}

void svi_connections_sweep(struct svi_connections *c) {
    for (int i = 0; i < c->slots && c->marked > 0; i++)
        if (c->of[i].marked)
            connection_cut(c, &c->of[i]);
}

bool svi_connections_subscribed(struct svi_connections *c, int fd, const char *user, bool idle) {
    struct svi_connection *x = svi_connections_find(c, fd);
    if (!x)
        return true;
    if (strlen(user) < sizeof x->user)
        memcpy(x->user, user, strlen(user) + 1);
    x->idle += idle;
    return x->idle <= SVI_IDLE_MAX;
}

void svi_connections_review(struct svi_connections *c, int socket,
                            bool (*may_stay)(void *with, const char *user), void *with) {
    for (int fd = 0; fd < c->slots; fd++) {
        const struct svi_connection *x = svi_connections_find(c, fd);
        if (x && x->socket == socket && x->user[0] && !may_stay(with, x->user))
            svi_connections_mark(c, fd);
    }
}
