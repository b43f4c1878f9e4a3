/* connections.h: the connections of libzmq, by descriptor: how many there may be, whose key is at the other
 * end, and how one is closed. libzmq identifies a connection only by its descriptor, whose number may be
 * reused a moment later. So each descriptor is duplicated when it is accepted, and the duplicate is what gets
 * shut down.
 *
 * When the limit is exceeded, one connection is closed: the oldest that has sent nothing yet; otherwise, of
 * the home (address; process of a local peer) with most connections, the one that has been idle longest. A
 * connection that was active within the last second yields only to a home with fewer; otherwise the new one
 * is closed. Some slots are reserved for the control socket. No locks: the owner serialises access. */
#ifndef SVI_CONNECTIONS_H
#define SVI_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/keys.h"

/* Limit of subscriptions of one connection that match no topic of this process: libzmq keeps each until the
 * connection closes. */
#define SVI_IDLE_MAX 64

#define SVI_HOMES 4096 /* counters of connections by home; two homes may share a counter */

struct svi_connection {
    int copy;                      /* duplicate of the descriptor, plus 1; 0 = entry not in use */
    int socket;                    /* enum svi_role */
    int home;                      /* index of its home's counter */
    int64_t opened;                /* ms */
    bool accepted;                 /* false: made by this process, not limited */
    bool marked, cut;              /* the next sweep shuts it down; it was shut down by us */
    int idle;                      /* subscriptions that match no topic */
    char user[SVI_KEY_LENGTH + 1]; /* key of the peer; "" = not known yet */
};

struct svi_connections {
    struct svi_connection *of; /* indexed by descriptor; NULL = not allocated */
    int slots, limit, count;   /* count: accepted and not shut down by us */
    int reserved, control;     /* slots reserved for the control socket; its part of count */
    int homes[SVI_HOMES];      /* connections by home */
    int marked;
};

/* Allocates the table and raises RLIMIT_NOFILE for it. `limit` is lowered if the system does not grant enough
 * descriptors, so that connections are closed in time instead of failing to be accepted. SVS_NO_MEMORY;
 * SVS_IO: hardly any descriptors. */
svs_code svi_connections_init(struct svi_connections *c, int limit, svs_error *err);
void svi_connections_clear(struct svi_connections *c);

/* NULL: not in the table. */
struct svi_connection *svi_connections_find(struct svi_connections *c, int fd);

/* libzmq has opened a connection; `now` in ms. NULL: it cannot be tracked, or was closed at once. */
struct svi_connection *svi_connections_open(struct svi_connections *c, int fd, int socket, bool accepted,
                                            int64_t now);

/* libzmq has closed a connection: the entry moves to the caller, which releases it with svi_connection_release.
 * copy 0: not known. */
struct svi_connection svi_connections_close(struct svi_connections *c, int fd);
void svi_connection_release(struct svi_connection *x);

/* Marks a connection, which the next sweep shuts down, so that pending output may still leave. */
void svi_connections_mark(struct svi_connections *c, int fd);
void svi_connections_sweep(struct svi_connections *c);

/* Notes a subscription of `user`, and whether it matches no topic (`idle`). False: too many of these. */
bool svi_connections_subscribed(struct svi_connections *c, int fd, const char *user, bool idle);

/* Marks the connections of a socket whose user is known and fails the test. */
void svi_connections_review(struct svi_connections *c, int socket,
                            bool (*may_stay)(void *with, const char *user), void *with);

#endif
