/* link.h: an outbox and the socket that carries it, for a program with a loop of its own: it polls what
 * link_items names for link_wait seconds at most, then calls link_turn. Nothing here blocks. (For a command
 * that waits for one process: delivery.h.)
 *
 * The socket is a DEALER to in.mode router or, with SVS_OUTBOX_SENT, a PUSH to in.mode pull, which queues
 * nothing while no peer is connected. It connects again by itself; the outbox learns at once when a
 * connection breaks. */
#ifndef SVI_LINK_H
#define SVI_LINK_H

#include <zmq.h>

#include "net/keys.h"
#include "svmstream/outbox.h"

#define LINK_ITEMS 2
#define LINK_QUEUE 1000 /* messages that ZeroMQ itself queues at most */

struct link {
    const char *address;
    svs_outbox *box;
    void *context, *socket, *monitor;
    int linger_ms;
    int tail; /* a second descriptor of the present connection, see link_close; 0 = none */
    bool push;
    bool accepted;   /* a connection was accepted once */
    bool introduced; /* ... by a socket of the right type, with the right keys */
    bool connected;  /* at present */
    bool blocked;    /* the socket takes no more now */
};

/* Connects in the background. `linger_ms`: how long link_close may wait for what the socket still holds.
 * SVS_IO; codes of svs_outbox_new. link_close in any case. */
svs_code link_open(struct link *l, const char *address, const struct svi_identity *identity,
                   const svs_outbox_options *o, int linger_ms, svs_error *err);
/* Over ipc a PUSH socket's connection is held until the process has read all of it, or that time is over:
 * libzmq drops what it has not read when the other end hangs up. */
void link_close(struct link *l);

/* Sends what may go. */
void link_send(struct link *l);

/* Takes the replies that are there. SVS_IO: the peer is not svmstream. */
svs_code link_receive(struct link *l, svs_error *err);

/* The same, then looks at the connection, then sends. */
svs_code link_turn(struct link *l, svs_error *err);

/* What to wait for: fills at most LINK_ITEMS, returns how many. */
int link_items(const struct link *l, zmq_pollitem_t *items);

/* Seconds until there is something to send; HUGE_VAL: not before one of the items is ready. */
double link_wait(const struct link *l);

#endif
