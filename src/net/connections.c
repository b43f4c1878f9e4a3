/* The table of connections, and the choice of the one to close when there are too many.
 *
 * An entry begins when libzmq has accepted (svi_connections_open) and ends when it has closed
 * (svi_connections_close). In between it may be marked, which the next sweep turns into a cut, or be cut at
 * once. A cut entry stays until libzmq has closed its side, but no longer counts: not in `count`, not for its
 * home, not for the control socket (count_connection).
 *
 * The victim is chosen either among the connections of the control socket or among the others, so neither
 * group can take the slots of the other (connections_enforce_limit). The flood guard knows when bytes of a
 * connection last moved. */
#include "net/connections.h"

#include <dirent.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "net/acl.h"
#include "net/flood_guard.h"

#define OWN             128  /* descriptors kept for the process itself, if there are plenty */
#define LATER           32   /* descriptors that it opens after this table: sockets, libzmq's own, files */
#define SPARE           8    /* for new connections that are about to be closed */
#define MIN_CONNECTIONS 4    /* connections */
#define BURST           4096 /* connections that libzmq may accept before the first is shut down */
#define RESERVED        16   /* most slots reserved for the control socket; never over a quarter */
#define ACTIVE          1000 /* ms since bytes last moved: within it a connection is active */

/* Raises the soft limit of descriptors towards `wanted`. Returns the limit in force, at most `wanted`. */
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

/* Number of open descriptors, roughly: includes ".", ".." and the one of this listing. */
static int open_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

svs_code svi_connections_init(struct svi_connections *c, int limit, svs_error *err) {
    /* Each connection takes two descriptors: libzmq's and the duplicate. */
    const int granted = request_descriptors(2 * limit + OWN + BURST), open = open_descriptors();
    const int own = granted > 2 * OWN && open + LATER + SPARE < OWN ? OWN : open + LATER + SPARE;
    const int capacity = (granted - own) / 2;
    *c = (struct svi_connections){.slots = granted, .limit = limit < capacity ? limit : capacity};
    if (capacity < MIN_CONNECTIONS)
        return svi_fail(err, SVS_IO,
                        "ulimit -n is %d, but the process needs %d descriptors and each connection two: "
                        "raise it to at least %d",
                        granted, own, own + 2 * MIN_CONNECTIONS);
    c->reserved = c->limit / 4 < RESERVED ? c->limit / 4 : RESERVED;
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

/* Adds `change` (1 or -1) to every counter that the connection belongs to. All counters change only here. */
static void count_connection(struct svi_connections *c, const struct svi_connection *x, int change) {
    c->count += change;
    c->homes[x->home] += change;
    c->control += x->socket == SVI_ROLE_CONTROL ? change : 0;
}

/* shutdown, not close: libzmq owns the descriptor and has to see the end. The duplicate makes sure that it is
 * this connection that ends, even if the number was reused. */
static void connection_cut(struct svi_connections *c, struct svi_connection *x) {
    if (x->cut)
        return;
    c->marked -= x->marked;
    if (x->accepted)
        count_connection(c, x, -1);
    x->marked = false;
    x->cut = true;
    shutdown(x->copy - 1, SHUT_RDWR);
}

/* choosing a connection to close */

/* The counter of the peer's home: an IPv4 address, a /64 of IPv6 (one site usually has a whole one), or the
 * process of a local peer. Hashed by FNV-1a. */
static int find_home(int fd) {
    struct sockaddr_storage a;
    struct ucred process;
    uint8_t known[8] = {0};
    socklen_t size = sizeof a, process_size = sizeof process;
    uint32_t hash = 2166136261u; /* FNV-1a */
    if (getpeername(fd, (struct sockaddr *)&a, &size) != 0)
        return 0;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)&a)->sin6_addr;
    if (a.ss_family == AF_INET)
        memcpy(known, &((const struct sockaddr_in *)&a)->sin_addr, 4);
    else if (a.ss_family == AF_INET6)
        memcpy(known, six->s6_addr + (IN6_IS_ADDR_V4MAPPED(six) ? 12 : 0), IN6_IS_ADDR_V4MAPPED(six) ? 4 : 8);
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &process_size) == 0)
        memcpy(known, &process.pid, sizeof process.pid);
    for (size_t i = 0; i < sizeof known; i++)
        hash = (hash ^ known[i]) * 16777619u;
    return (int)((hash ^ hash >> 16) % SVI_HOMES);
}

/* A candidate to be closed. */
struct choice {
    struct svi_connection *x;
    bool silent;
    int64_t since; /* ms: idle since; if silent: opened */
};

/* Is a the better victim? Silent connections come first, oldest first: a flood of half-open connections
 * cannot displace working ones. Then the home with most connections, then the longest idle. */
static bool is_better_victim(const struct svi_connections *c, const struct choice *a,
                             const struct choice *b) {
    if (!b->x || a->silent != b->silent)
        return !b->x || a->silent;
    const int more = a->silent ? 0 : c->homes[a->x->home] - c->homes[b->x->home];
    return more > 0 || (more == 0 && a->since < b->since);
}

/* The best victim among the connections of the control socket, or among all others. */
static struct choice find_victim(struct svi_connections *c, const struct svi_connection *newest,
                                 bool control) {
    struct choice best = {.x = NULL};
    for (int fd = 0; fd < c->slots; fd++) {
        struct choice now = {.x = &c->of[fd]};
        bool spoken;
        if (now.x->copy == 0 || !now.x->accepted || now.x->cut || now.x == newest ||
            (now.x->socket == SVI_ROLE_CONTROL) != control)
            continue;
        /* `moved` may be earlier than `opened`: the event of a connection arrives after its first bytes. */
        const int64_t moved = svi_flood_guard_moved(fd, &spoken);
        now.silent = moved > 0 && !spoken;
        now.since = now.silent || moved < now.x->opened ? now.x->opened : moved;
        if (is_better_victim(c, &now, &best))
            best = now;
    }
    return best;
}

/* Closes one connection if there are too many. The control socket may use free slots of the others, but gives
 * them back when needed; its reserved slots nobody else can take. */
static void connections_enforce_limit(struct svi_connections *c, struct svi_connection *newest, int64_t now) {
    const bool control = newest->socket == SVI_ROLE_CONTROL;
    const bool crowded = c->count - c->control > c->limit - c->reserved;
    if (c->count <= c->limit && (control || !crowded))
        return;
    const struct choice a = find_victim(c, newest, control || !crowded);
    /* An active victim is spared unless its home keeps more connections than the home of the new one:
     * otherwise one address could displace everybody else. */
    const bool yields =
        a.x && (a.silent || now - a.since >= ACTIVE || c->homes[a.x->home] > c->homes[newest->home] + 1);
    connection_cut(c, yields ? a.x : newest);
}

struct svi_connection *svi_connections_open(struct svi_connections *c, int fd, int socket, bool accepted,
                                            int64_t now) {
    if (fd < 0 || fd >= c->slots)
        return NULL;
    /* An entry for each possible descriptor: no search, and no allocation while peers connect. */
    struct svi_connection *x = &c->of[fd];
    /* the end of its previous owner was not reported yet */
    struct svi_connection before = svi_connections_close(c, fd);
    svi_connection_release(&before);
    int copy = dup(fd), type;
    if (copy < 0)
        return NULL;
    if (getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){sizeof type}) != 0) {
        close(copy); /* not a socket: it has closed, and the number belongs to another file */
        return NULL;
    }
    *x = (struct svi_connection){.copy = copy + 1, .socket = socket, .opened = now, .accepted = accepted};
    x->home = find_home(copy);
    if (accepted) {
        count_connection(c, x, 1);
        connections_enforce_limit(c, x, now);
    }
    return x;
}

struct svi_connection svi_connections_close(struct svi_connections *c, int fd) {
    struct svi_connection *x = svi_connections_find(c, fd);
    if (!x)
        return (struct svi_connection){0};
    struct svi_connection closed = *x;
    c->marked -= x->marked;
    if (x->accepted && !x->cut)
        count_connection(c, x, -1);
    *x = (struct svi_connection){0}; /* the duplicate moves to the caller */
    return closed;
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
    /* A full scan: rights are revoked rarely. */
    for (int fd = 0; fd < c->slots; fd++) {
        const struct svi_connection *x = svi_connections_find(c, fd);
        if (x && x->socket == socket && x->user[0] && !may_stay(with, x->user))
            svi_connections_mark(c, fd);
    }
}
