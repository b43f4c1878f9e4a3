/* redis_client.h: commands to a Redis server or a cluster of them, for a program with its own loop.
 *
 * A command goes to the server that has the slot of its key. The client follows MOVED and ASK, asks for the
 * table of slots, connects again when a connection breaks, and repeats a command until it has an answer that
 * is not a passing trouble (LOADING, CLUSTERDOWN, OOM, READONLY, ...). So a command may be carried out twice:
 * callers send only commands whose repetition changes nothing. Trouble is reported on standard error in the
 * trade's words, with what to do; once a kind until it is over.
 *
 * Commands of one lane and one slot are sent in the order in which they were given. After a break they are
 * repeated in that order, all from the oldest without an answer. A command that a server in trouble refused
 * may be overtaken by those that were sent behind it, except in the lane `ordered`: there the next command of
 * a slot waits for the answer to the one before. */
#ifndef REDIS_CLIENT_H
#define REDIS_CLIENT_H

#include "redis_connection.h"

#define REDIS_SLOTS     16384
#define REDIS_NODES_MAX 256

struct redis_node {
    char host[REDIS_HOST_BYTES];
    int port;
    bool down; /* its last connection broke, and none has been made since */
};

struct redis_client {
    const struct redis_url *url; /* owned by the caller */
    struct redis_node node[REDIS_NODES_MAX];
    int nodes;
    int16_t owner[REDIS_SLOTS];           /* index of a node; -1: not known */
    bool cluster;                         /* the servers are nodes of a cluster */
    bool asked;                           /* for the table of slots, an answer is awaited */
    bool reached;                         /* a server has answered once, whatever it was */
    bool answered;                        /* ... and carried a command out */
    int turn;                             /* questions so far: each goes to another server */
    double refresh;                       /* svi_monotonic: the table is asked for then; HUGE_VAL: not */
    struct redis_connection **connection; /* owned */
    int64_t connections, capacity;
    struct redis_queue pending; /* not routed yet, or not due */
    int ordered;                /* a lane, set after opening; 0: none */
    bool busy[REDIS_SLOTS];     /* a command of that lane is on a connection */
    double timeout;             /* seconds without an answer after which a server counts as lost */
    const char *trouble;        /* kind of the present trouble; NULL: none */
    double troubled;            /* svi_monotonic: since then */
    int64_t reconnects, redirects, retries; /* counted */
    bool patient;  /* a server that cannot be reached is waited for, as long as it takes */
    double began;  /* svi_monotonic */
    bool hopeless; /* refused for good, or not to be reached, which was reported */
};

void redis_client_open(struct redis_client *r, const struct redis_url *url, double timeout);
void redis_client_close(struct redis_client *r);

/* Sends a command. `key` decides the server (NULL: any). `done` gets the answer, once; never, if it is
 * forgotten before. */
void redis_client_send(struct redis_client *r, int lane, const char *key, const struct redis_word *words,
                       int count, redis_answer *done, void *user);

/* From here on no answer is given to this user. */
void redis_client_forget(struct redis_client *r, const void *user);

/* Commands without an answer. */
int64_t redis_client_waiting(const struct redis_client *r);

/* Items to poll: fills at most `capacity`, returns how many. */
int redis_client_items(const struct redis_client *r, zmq_pollitem_t *items, int capacity);
int redis_client_item_count(const struct redis_client *r);

/* Seconds until a turn is due without any event. */
double redis_client_wait(const struct redis_client *r);

/* Does all that is possible now. `items`: as they were filled, polled. */
void redis_client_turn(struct redis_client *r, const zmq_pollitem_t *items, int count);

#endif
