/* events.h: what svmstream publishes, handed on to the broker as JSON on PREFIX/STREAM/KIND,
 * of a key on PREFIX/STREAM/KIND/KEY, where the key is percent-encoded as in svmstream's own topics: nothing
 * in it is a level or a wildcard to the broker.
 *
 * Scores have a socket of their own: however many there are, they push out no alert. Nothing is read while
 * the broker takes nothing; what does not fit into the queues then is lost at svmstream's side, and counted
 * here by the gap in `seq`. Events that svmstream repeats (retained ones) are handed on once. */
#ifndef MQTT_EVENTS_H
#define MQTT_EVENTS_H

#include "broker.h"
#include "client/subscription.h"

#define EVENT_SOCKETS 2

struct events {
    const struct options *options;
    struct counters *counters;
    struct broker *broker;
    struct subscription subscription[EVENT_SOCKETS]; /* without socket where no kind is to be published */
    struct svi_bytes text;                           /* JSON */
    bool refused;                                    /* reported once: our key may not subscribe */
};

/* 0, or 1 and a line on standard error. `context`: ZeroMQ's. */
int mqtt_events_open(struct events *e, const struct options *o, struct counters *c, struct broker *b,
                     void *context);
void mqtt_events_close(struct events *e);

/* What to wait for: at most EVENT_SOCKETS items; none while the broker is not ready. */
int mqtt_events_items(const struct events *e, zmq_pollitem_t *items);

/* Hands on what is there and the broker takes. */
void mqtt_events_turn(struct events *e);

#endif
