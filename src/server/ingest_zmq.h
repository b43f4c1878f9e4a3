/* inlet.h: what comes in through the input socket, a turn at a time: taken from the socket, written down,
 * then applied and answered. Nothing takes effect before it is written down, and one write serves for the
 * turn. */
#ifndef SVI_INLET_H
#define SVI_INLET_H

#include "engine/control.h"
#include "engine/door.h"
#include "engine/latency.h"

/* Messages that are written down together. */
struct svi_batch {
    struct svi_request *queue;
    uint8_t *fate;   /* of each (inlet.c) */
    int count, done; /* of them are settled */
    size_t bytes;
    double now, began; /* arrival clock, monotonic */
    bool full;         /* they could not be written down */
};

struct svi_inlet {
    /* the pipeline's */
    void *socket;
    const struct svi_settings *settings;
    struct svi_control *control; /* its keeper may be NULL: nothing is written down */
    struct svi_door *door;
    struct svi_latency *latency;
    FILE *log; /* NULL = quiet */

    struct svi_batch batch[2], *first, *second; /* the second waits for the disk while the first is settled */
    double cost;                                /* seconds that a byte takes, lately */
    double each;                                /* seconds that settling a message takes, lately */
    bool blocked;                               /* nothing could be written down: see svi_inlet_turn */
    bool held;                                  /* what is in the first batch waits for that */
    svs_error why;                              /* it could not */
    double retry;                               /* arrival clock: when to try again */
    int64_t declined;
    int64_t replies_lost;
    struct svi_bytes reply;
};

/* The fields of the pipeline are set. SVS_NO_MEMORY. */
svs_code svi_inlet_new(struct svi_inlet *in, svs_error *err);
void svi_inlet_free(struct svi_inlet *in);

/* Takes what is queued, within the bounds of a turn. With a full disk, messages that are answered are
 * declined (code disk_full, to be sent again), others wait where they are until there is room. SVS_IO: the
 * state cannot be kept any more, the process must end. *took: was there anything? */
svs_code svi_inlet_turn(struct svi_inlet *in, double now, bool *took, svs_error *err);

/* Seconds until held messages are to be tried again; INFINITY when none are held. While they are, the socket
 * need not be looked at. */
double svi_inlet_wait(const struct svi_inlet *in, double now);

/* Bytes of the messages of a turn at most, and of all that an inlet holds. */
double svi_inlet_batch_memory(const struct svi_settings *s);
double svi_inlet_memory(const struct svi_settings *s);

/* Figures for stats and status, those of the keeper too, by svi_engine_note. */
void svi_inlet_figures(const struct svi_inlet *in);

/* Answers one request to a router socket by `handle`; false: none is waiting. */
struct svi_bytes;
bool svi_inlet_reply(struct svi_inlet *in, void *socket, struct svi_request *r, svs_code code);

#endif
