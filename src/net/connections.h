/* connections.h: the connections that libzmq holds, by their descriptors: how many there may be, which key is
 * at the other end, and how one is closed. libzmq names a connection by its descriptor only, which may be
 * another's a moment later; so each descriptor is duplicated when it is accepted, and what is shut down is
 * the duplicate's connection.
 *
 * When there is one too many, one makes room: the oldest that has not said anything yet; else, of the home
 * (address; process of a local peer) that has most connections, the one that was idle for longest. Who was
 * active within the last second makes room only for a home that has fewer; else the newcomer goes. Some
 * places are for the control socket alone. No locks: the owner sees to that. */
#ifndef SVI_CONNECTIONS_H
#define SVI_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/keys.h"

/* Subscriptions of one connection that match no topic of this process; libzmq keeps each until it closes. */
#define SVI_IDLE_MAX 64

#define SVI_HOMES 4096 /* counts of connections by home; two homes may share one */

struct svi_connection {
    int copy;                      /* duplicate of the descriptor + 1, 0 = none */
    int socket;                    /* enum svi_role */
    int home;                      /* where its peer is: number of its count */
    int64_t opened;                /* ms */
    bool accepted;                 /* else this process made it: not limited */
    bool marked, cut;              /* to be shut down by the next sweep; was shut down by us */
    int idle;                      /* subscriptions that match nothing */
    char user[SVI_KEY_LENGTH + 1]; /* key of the peer, "" = not known yet */
};

struct svi_connections {
    struct svi_connection *of; /* by descriptor */
    int slots, limit, count;   /* count: accepted and not shut down by us */
    int reserved, control;     /* places for the control socket alone; its share of count */
    int homes[SVI_HOMES];      /* count by home */
    int marked;
};

/* `limit` is lowered where the system does not grant the descriptors, which are asked for: before a connection
 * cannot be accepted for want of one, others make room. SVS_NO_MEMORY; SVS_IO: there are hardly any. */
svs_code svi_connections_init(struct svi_connections *c, int limit, svs_error *err);
void svi_connections_clear(struct svi_connections *c);

/* NULL: none that is known. */
struct svi_connection *svi_connections_find(struct svi_connections *c, int fd);

/* libzmq has a new one. NULL: it cannot be followed, or had to go at once. */
struct svi_connection *svi_connections_open(struct svi_connections *c, int fd, int socket, bool accepted,
                                            int64_t now);

/* libzmq closed it: the entry moves to the caller, to be released by svi_connection_release. copy 0: not
 * known. */
struct svi_connection svi_connections_close(struct svi_connections *c, int fd);
void svi_connection_release(struct svi_connection *x);

/* To be shut down by the next sweep, so that what is on its way out may still go. */
void svi_connections_mark(struct svi_connections *c, int fd);
void svi_connections_sweep(struct svi_connections *c);

/* A subscription of `user` came by it, which does or does not match a topic. False: it has too many. */
bool svi_connections_subscribed(struct svi_connections *c, int fd, const char *user, bool idle);

/* Marks those of a socket whose user is known and fails the test. */
void svi_connections_review(struct svi_connections *c, int socket,
                            bool (*may_stay)(void *with, const char *user), void *with);

#endif
