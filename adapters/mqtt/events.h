/* events.h: what svmstream publishes, handed on to the broker as JSON on PREFIX/STREAM/KIND.
 *
 * Scores have a socket of their own: however many there are, they push out no alert. Nothing is read while
 * the broker takes nothing; what does not fit into the queues then is lost at svmstream's side, and counted
 * here by the gap in `seq`. Events that svmstream repeats (retained ones) are handed on once. */
#ifndef MQTT_EVENTS_H
#define MQTT_EVENTS_H

#include <zmq.h>

#include "broker.h"
#include "options.h"
#include "say.h"

#define EVENT_SOCKETS 2
#define FOLLOWED      64 /* topics whose sequence numbers are followed */

struct events {
    const struct options *options;
    struct counters *counters;
    struct broker *broker;
    void *socket[EVENT_SOCKETS];
    struct followed {
        char topic[96];
        uint64_t epoch, seq;
    } followed[FOLLOWED];
    int topics;
};

/* 0, or 1 and a line on standard error. */
int events_open(struct events *e, const struct options *o, struct counters *c, struct broker *b,
                void *context);
void events_close(struct events *e);

/* What to wait for: at most EVENT_SOCKETS items; none while the broker is not ready. */
int events_items(const struct events *e, zmq_pollitem_t *items);

/* Hands on what is there and the broker takes. */
void events_turn(struct events *e);

#endif
