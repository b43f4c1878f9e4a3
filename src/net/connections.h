/* connections.h: the connections that libzmq holds, by their descriptors: how many there may be, whose they
 * are, and how one is ended. libzmq tells of a connection only by number, which may be another's a moment
 * later; so each descriptor is duplicated when it is accepted, and what is ended is the duplicate's
 * connection.
 *
 * Where one too many comes, the oldest that has not said anything yet makes room; where all have spoken, the
 * newcomer goes. No locks: the owner sees to that. */
#ifndef SVI_CONNECTIONS_H
#define SVI_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/keys.h"

/* Subscriptions of one connection that match no topic of this process; libzmq keeps each for as long as it
 * lasts. */
#define SVI_IDLE_MAX 64

enum svi_handshake { SVI_NO_HANDSHAKE = 0, SVI_HANDSHAKE_PENDING, SVI_HANDSHAKE_DONE };

struct svi_connection {
    int copy;   /* duplicate of the descriptor + 1, 0 = none */
    int socket; /* whose: the owner's number */
    ino_t inode;
    int64_t opened; /* ms */
    enum svi_handshake handshake;
    bool accepted;                 /* else this process made it: not limited */
    bool spoken;                   /* it has sent more than the greeting */
    bool doomed, cut;              /* to be ended at the next sweep; was ended by us */
    int idle;                      /* subscriptions that match nothing */
    char user[SVI_KEY_LENGTH + 1]; /* "" = not known yet */
};

struct svi_connections {
    struct svi_connection *of; /* by descriptor */
    int slots, most, count;    /* count: accepted and not ended by us */
    int doomed;
};

/* `most` is lowered where the system does not grant the descriptors, which are asked for. SVS_NO_MEMORY. */
svs_code svi_connections_init(struct svi_connections *c, int most, svs_error *err);
void svi_connections_clear(struct svi_connections *c);

/* libzmq has a new one. NULL: it cannot be followed, or had to go at once. */
struct svi_connection *svi_connections_open(struct svi_connections *c, int fd, int socket, bool accepted,
                                            int64_t now);

/* libzmq let go of it: the entry moves to the caller, who ends it by svi_connection_forget. copy 0: not
 * known. */
struct svi_connection svi_connections_close(struct svi_connections *c, int fd);
void svi_connection_forget(struct svi_connection *x);

/* Ends it at the next sweep, so that what is on its way out may still go. */
void svi_connections_doom(struct svi_connections *c, int fd);
void svi_connections_sweep(struct svi_connections *c);

/* A subscription came by it from `user`, which does or does not match a topic. False: it has too many. */
bool svi_connections_subscribed(struct svi_connections *c, int fd, const char *user, bool idle);

/* Dooms those of a socket whose user is known and fails the test. */
void svi_connections_review(struct svi_connections *c, int socket,
                            bool (*may_stay)(void *with, const char *user), void *with);

#endif
