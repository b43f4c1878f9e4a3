/* ingest_zmq.h: what comes in through the input socket, a turn at a time: taken from the socket, written
 * down, then applied and answered. Nothing takes effect before it is written down, and one write serves for
 * the turn. */
#ifndef SVI_INGEST_ZMQ_H
#define SVI_INGEST_ZMQ_H

#include "server/control.h"
#include "net/access.h"
#include "server/latency.h"

/* Messages that are written down together. */
struct svi_batch {
    struct svi_request *queue;
    struct svi_envelope *envelope; /* of each */
    uint8_t *verdict;              /* of each (ingest_zmq.c) */
    uint64_t *owner;               /* of the source that it may make */
    size_t *place;                 /* in `converted`, of what came as JSON */
    struct svi_bytes converted;    /* that, as msgpack */
    int count, done;               /* of them are settled */
    size_t bytes;
    double now, began; /* arrival clock, monotonic */
    bool full;         /* they could not be written down */
};

/* A reply that goes out when the events of its samples have. */
struct svi_held_reply {
    int message; /* in its batch */
    size_t at, size;
    uint64_t after; /* svi_stream_published */
};

/* A message whose samples are at work on other threads. */
struct svi_later_reply {
    int message; /* in its batch */
    struct svi_receipt receipt;
};

struct svi_ingest_zmq {
    /* the server's */
    void *socket;
    const struct svi_settings *settings;
    struct svi_control *control; /* its write_ahead may be NULL: the state is not kept */
    struct svi_access *access;
    struct svi_latency *latency;
    FILE *log; /* NULL = quiet */

    struct svi_batch batch[2], *first, *second; /* the second waits for the disk while the first is settled */
    double cost;                                /* seconds that a byte took recently */
    double each;                                /* seconds that settling a message took recently */
    bool blocked;   /* something could not be written down: see svi_ingest_zmq_turn; */
    double fits;    /* monotonic: and since then all could; 0: it could not */
    bool held;      /* what is in the first batch waits for that */
    svs_error why;  /* it could not */
    double retry;   /* monotonic: when to try again */
    size_t largest; /* bytes of a message so far */
    int64_t declined;
    int64_t replies_lost;
    struct svi_bytes reply, text;   /* the reply, and as JSON */
    struct svi_held_reply *replies; /* of the messages that are being settled: to samples whose events wait */
    struct svi_bytes replies_held;  /* their bytes */
    int replies_first, replies_count;
    struct svi_later_reply *later;
    int later_count;
};

/* The fields of the server are set. SVS_NO_MEMORY. */
svs_code svi_ingest_zmq_new(struct svi_ingest_zmq *in, svs_error *err);
void svi_ingest_zmq_free(struct svi_ingest_zmq *in);

/* Takes what is queued, within the bounds of a turn. With a full disk, messages that are answered are
 * declined (code disk_full, to be sent again), others wait where they are until there is room. SVS_IO: the
 * state cannot be kept any more, the process must end. *took: was there anything? */
svs_code svi_ingest_zmq_turn(struct svi_ingest_zmq *in, double now, bool *took, svs_error *err);

/* Seconds until held messages are to be tried again; INFINITY when none are held. While they are, the socket
 * need not be looked at. */
double svi_ingest_zmq_wait(const struct svi_ingest_zmq *in);

/* Seconds until it is reported that there is room again; INFINITY: it is not to be. */
double svi_ingest_zmq_room_wait(const struct svi_ingest_zmq *in);

/* Messages that libzmq holds of one producer at most; then it waits. */
int svi_ingest_zmq_queue(const struct svi_settings *s);

/* Bytes of the messages of a turn at most, and of all that it holds. */
double svi_ingest_zmq_batch_memory(const struct svi_settings *s);
double svi_ingest_zmq_memory(const struct svi_settings *s);

/* Bytes that messages in JSON have needed so far, besides. */
double svi_ingest_zmq_converted(const struct svi_ingest_zmq *in);

/* Gauges for stats and status, those of the write-ahead too. */
void svi_ingest_zmq_figures(const struct svi_ingest_zmq *in);

/* Sends in->reply as the reply to r, as JSON where r is JSON. False: it could not be sent, which is counted;
 * code: of making it. */
bool svi_ingest_zmq_reply(struct svi_ingest_zmq *in, void *socket, struct svi_request *r, svs_code code);

#endif
