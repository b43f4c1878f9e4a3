/* subscription.h: events of a running process, each delivered once and with the number lost before it.
 * Nothing blocks: poll the socket, then take everything that has arrived. */
#ifndef SVI_SUBSCRIPTION_H
#define SVI_SUBSCRIPTION_H

#include <zmq.h>

#include "net/keys.h"
#include "wire/event.h"

struct subscription {
    bool open;
    void *socket;
    void *monitor; /* for the poll set: readable when a connection is made or refused */
    bool keyed;    /* CURVE is on */
    bool met;      /* a handshake has succeeded once */
    bool refused;  /* our key was refused since the last subscription_refused */
    zmq_msg_t topic, payload;
    void *followed; /* tree of the topics whose sequence numbers are tracked; with keys there are many */
    int64_t topics;
};

/* One event; all pointers are valid until the next call. */
struct subscription_event {
    enum svi_topic kind; /* SVI_TOPIC_COUNT: none of ours */
    const char *topic;   /* not terminated */
    size_t topic_length;
    const void *payload; /* one complete msgpack map */
    size_t size;
    int64_t lost; /* events of this topic lost between the previous one and this one */
};

/* Connects to `address`, without any subscription yet. `queue`: events that may be queued here. SVS_IO.
 * subscription_close in any case. */
svs_code subscription_open(struct subscription *s, void *context, const char *address,
                           const struct svi_identity *identity, int queue, svs_error *err);
void subscription_close(struct subscription *s);

/* Subscribes to all topics that begin with `prefix`. SVS_IO. */
svs_code subscription_add(struct subscription *s, const char *prefix, svs_error *err);

/* Cancels the subscription to `prefix`. SVS_IO. */
svs_code subscription_remove(struct subscription *s, const char *prefix, svs_error *err);

/* Takes the next event. False: none has arrived. Retained events seen before, and messages that are not
 * events, are skipped. */
bool subscription_next(struct subscription *s, struct subscription_event *e);

/* Replaces `line` by {"topic": "model.default.", ...the payload's keys...} and a newline. SVS_NO_MEMORY. */
svs_code subscription_json(struct svi_bytes *line, const struct subscription_event *e);

/* Was our key refused since the last call? */
bool subscription_refused(struct subscription *s);

#endif
