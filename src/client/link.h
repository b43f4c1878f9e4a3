/* link.h: an outbox and its socket, for a program with its own loop: it polls the items of link_items for at
 * most link_wait seconds, then calls link_turn. Nothing here blocks, except link_close. (For a command that
 * waits for one process: delivery.h.)
 *
 * The socket is a DEALER for in.mode router or, with SVS_OUTBOX_SENT, a PUSH for in.mode pull, which queues
 * nothing while no peer is connected. It reconnects by itself; the outbox is notified at once when a
 * connection breaks. */
#ifndef SVI_LINK_H
#define SVI_LINK_H

#include <zmq.h>

#include "net/keys.h"
#include "svmstream/outbox.h"

#define LINK_ITEMS 2
#define LINK_QUEUE 1000 /* limit of messages that ZeroMQ itself queues */

struct link {
    const char *address;
    svs_outbox *box;
    void *context, *socket, *monitor;
    int linger_ms;
    int tail; /* duplicate descriptor of the current connection, see link_close; 0 = none */
    bool push;
    bool accepted;   /* a TCP or ipc connection was made at least once */
    bool introduced; /* ... and its handshake succeeded: right socket type, right keys */
    bool connected;  /* connected now */
    bool blocked;    /* the socket accepts no more messages now */
};

/* Connects in the background. `linger_ms`: how long link_close may wait for what the socket still holds.
 * SVS_IO; codes of svs_outbox_new. link_close in any case. */
svs_code link_open(struct link *l, const char *address, const struct svi_identity *identity,
                   const svs_outbox_options *o, int linger_ms, svs_error *err);
/* Closes everything. Over ipc the connection of a PUSH socket is kept open until the process has read
 * everything, or until linger_ms are over: libzmq discards unread messages when the other end hangs up. */
void link_close(struct link *l);

/* Sends what the outbox releases, until the socket is full. */
void link_send(struct link *l);

/* Takes the replies that have arrived. SVS_IO: the peer is not svmstream. */
svs_code link_receive(struct link *l, svs_error *err);

/* Takes replies, follows the state of the connection, then sends. */
svs_code link_turn(struct link *l, svs_error *err);

/* Fills the items to poll, at most LINK_ITEMS; returns how many. */
int link_items(const struct link *l, zmq_pollitem_t *items);

/* Seconds until there is something to send; HUGE_VAL: not before an item is ready. */
double link_wait(const struct link *l);

#endif
