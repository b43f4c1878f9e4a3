/* feed.h: the way to svmstream: samples out, acknowledgements back.
 *
 * A DEALER says hello, learns which number comes next, and sends with at most `window` samples under way.
 * When the connection breaks it says hello again on a new one: the same process (by its epoch) tells what it
 * has already taken, so nothing is lost or applied twice; a fresh process starts to count at 0, and all that
 * is not acknowledged goes to it under new numbers. What the process before had applied without being able to
 * say so reaches both.
 *
 * With --no-ack a PUSH socket takes samples as fast as somebody is connected. */
#ifndef MQTT_FEED_H
#define MQTT_FEED_H

#include <zmq.h>

#include "buffer.h"
#include "join.h"
#include "options.h"
#include "say.h"

#define FEED_ITEMS 2

struct feed {
    const struct options *options;
    struct counters *counters;
    struct buffer buffer;
    void *context, *socket, *monitor;
    enum { FEED_AWAY, FEED_GREETING, FEED_LIVE } state;
    double again;       /* steady clock: when a new connection is due (FEED_AWAY) */
    double pause;       /* seconds before the next one */
    double silent;      /* steady clock: since when an answer is waited for; 0: none is */
    bool told;          /* of this silence */
    bool blocked;       /* the socket takes no more now */
    bool met;           /* there was a process: its epoch is known */
    uint64_t epoch;     /* of that process */
    int64_t greeted;    /* `next` in the last answer to hello, -1 before the first */
    int64_t number;     /* of the oldest sample in the buffer */
    int64_t window;     /* samples under way at most */
    int64_t broken;     /* under way when the connection broke */
    int cuts;           /* connections in a row that broke without progress */
    int64_t complaints; /* for say_few */
};

/* 0, or 1 and a line on standard error. `context`: ZeroMQ's. */
int feed_open(struct feed *f, const struct options *o, struct counters *c, void *context);
void feed_close(struct feed *f);

/* One more sample. */
void feed_push(struct feed *f, const void *bytes, size_t size);

/* What to wait for: fills at most FEED_ITEMS, returns how many; seconds until something is due. */
int feed_items(const struct feed *f, zmq_pollitem_t *items);
double feed_wait(const struct feed *f);

/* Reads, connects, sends: whatever is possible now. */
void feed_turn(struct feed *f);

#endif
