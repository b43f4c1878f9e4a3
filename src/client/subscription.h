/* subscription.h: events of a running process, each once and with what was lost before it. Nothing blocks:
 * poll the socket, then take all that is there. */
#ifndef SVI_SUBSCRIPTION_H
#define SVI_SUBSCRIPTION_H

#include <zmq.h>

#include "net/keys.h"
#include "wire/event.h"

struct subscription {
    bool open;
    void *socket;
    void *monitor; /* readable when a connection is made or refused */
    bool keyed;    /* with CURVE */
    bool met;      /* the process was there once */
    bool refused;  /* it has refused our key since that was asked last */
    zmq_msg_t topic, payload;
    void *followed; /* a tree of the topics whose sequence numbers are followed; with keys there are many */
    int64_t topics;
};

/* One event: views that are valid until the next call. */
struct subscription_event {
    enum svi_topic kind; /* SVI_TOPIC_COUNT: none of ours */
    const char *topic;   /* not terminated */
    size_t topic_length;
    const void *payload; /* one complete msgpack map */
    size_t size;
    int64_t lost; /* events of this topic that came between the one before and this one */
};

/* Connects to `address`, still without any topic. `queue`: events that may wait here. SVS_IO.
 * subscription_close in any case. */
svs_code subscription_open(struct subscription *s, void *context, const char *address,
                           const struct svi_identity *identity, int queue, svs_error *err);
void subscription_close(struct subscription *s);

/* All topics that begin with `prefix`. SVS_IO. */
svs_code subscription_add(struct subscription *s, const char *prefix, svs_error *err);

/* No longer by this one. SVS_IO. */
svs_code subscription_remove(struct subscription *s, const char *prefix, svs_error *err);

/* The next event that is there. False: none is. Retained events that were seen before, and messages that are
 * no events, are passed over. */
bool subscription_next(struct subscription *s, struct subscription_event *e);

/* Has the process refused our key since the last call? */
bool subscription_refused(struct subscription *s);

#endif
