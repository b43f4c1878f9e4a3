/* redis_connection.h: one connection to one server: it connects, logs in, sends requests in their order and
 * pairs them with the answers. Nothing blocks, except the resolution of a host's name.
 *
 * A connection that breaks, or answers nothing for `timeout` seconds, gives back all unanswered requests;
 * its owner may use it again, and it then connects again, after a pause that doubles from failure to
 * failure up to a second. */
#ifndef REDIS_CONNECTION_H
#define REDIS_CONNECTION_H

#include <zmq.h>

#include "redis_request.h"
#include "redis_url.h"

enum redis_connection_state { REDIS_CLOSED, REDIS_CONNECTING, REDIS_GREETING, REDIS_READY };

struct redis_connection {
    const struct redis_url *login; /* user, password, database */
    const char *host;
    int port;
    int node, lane; /* of the owner */
    double timeout; /* seconds */
    enum redis_connection_state state;
    redisContext *context;
    struct redis_queue waiting, sent;
    int greetings;  /* answers outstanding of the log-in */
    bool asked;     /* the answer to ASKING has been taken, that of its request has not */
    bool unsent;    /* bytes wait for the socket */
    bool refused;   /* the log-in failed: `why` */
    double again;   /* svi_monotonic: next attempt to connect */
    double pause;   /* seconds before the one after it */
    double began;   /* svi_monotonic: of the attempt */
    int64_t breaks; /* failures so far */
    char why[320];  /* of the last one */
};

/* Takes an answer to a request, which it owns from then on. */
typedef void redis_connection_answer(void *user, struct redis_connection *c, struct redis_request *r,
                                     const redisReply *reply);

void redis_connection_close(struct redis_connection *c);

/* False: there is nothing to poll. */
bool redis_connection_item(const struct redis_connection *c, zmq_pollitem_t *item);

/* Seconds until a turn is due without any event. */
double redis_connection_wait(const struct redis_connection *c, double now);

/* Connects, sends, takes answers, as far as that is possible. False: it broke, `why` is set, and all requests
 * are in `waiting`. */
bool redis_connection_turn(struct redis_connection *c, short ready, redis_connection_answer *answer,
                           void *user);

#endif
