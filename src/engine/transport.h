/* transport.h: ZeroMQ sockets from one plan each, with failures told in terms of the setting that named the
 * address, and requests that come with an envelope. Used by the pipeline and by the commands that talk to
 * one. */
#ifndef SVI_TRANSPORT_H
#define SVI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zmq.h>

#include "engine/keys.h"

#define SVI_ADDRESS_MAX  1024
#define SVI_HANDSHAKE_MS 3000 /* a peer that has not introduced itself by then is cut */
#define SVI_ENVELOPE_MAX 8    /* frames in front of a request's body that are kept for the reply */

struct svi_socket_plan {
    const char *setting; /* key of the setting that holds the address, for the error text */
    int type;            /* ZMQ_PULL ... */
    bool bind;           /* else connect */
    int queue;           /* messages queued per peer and direction at most */
    int linger_ms;       /* how long closing waits for what is not sent yet */
    int64_t max_message; /* bytes; a peer with a longer frame is cut; -1 = no limit */
};

/* The steps of svi_socket_open, for who must do something to the socket before it has an address. */
void *svi_socket_new(void *context, const struct svi_socket_plan *plan, svs_error *err);

/* Between the two: CURVE with these keys (nothing when they are off). A socket that binds is the server and
 * asks the authenticator, in whose terms the setting's key is the domain. SVS_IO: no CURVE in this libzmq. */
svs_code svi_socket_secure(void *socket, const struct svi_socket_plan *plan, const struct svi_identity *id,
                           svs_error *err);
svs_code svi_socket_attach(void *socket, const struct svi_socket_plan *plan, const char *address,
                           char *actual, svs_error *err);

/* Opens a socket. A tcp port of 0 or * takes a free one. `actual` (SVI_ADDRESS_MAX bytes, may be NULL or
 * `address` itself) receives the real address. NULL on failure: SVS_IO. Owner: the caller (svi_socket_close).
 */
void *svi_socket_open(void *context, const struct svi_socket_plan *plan, const char *address, char *actual,
                      svs_error *err);
void svi_socket_close(void **socket);

/* Who sent a message: the key that the authenticator let in ("" = nobody was asked), and the descriptor of
 * the connection (-1 = not known; it may be closed and even another's by now). Both as long as `m` lives. */
const char *svi_message_user(zmq_msg_t *m);
int svi_message_connection(zmq_msg_t *m);

/* For a socket that connects: tells of handshakes that the other end refused. NULL: cannot be told. */
void *svi_refusals_new(void *context, void *socket);
bool svi_refusals_any(void *refusals);                 /* since the last call */
void svi_refusals_free(void **refusals, void *socket); /* before the socket is closed */

/* A request to a ROUTER: everything in front of the last frame is the envelope. Zero-initialised is empty. */
struct svi_request {
    zmq_msg_t envelope[SVI_ENVELOPE_MAX];
    int envelope_count;
    zmq_msg_t body;
};

/* Takes the next request, if there is one. False: none is waiting. After true: svi_request_close. */
bool svi_request_receive(void *router, struct svi_request *r);
void svi_request_close(struct svi_request *r);

/* Sends a reply back along the envelope, without waiting. False: the peer is gone, or never reads its
 * replies. */
bool svi_request_reply(void *router, struct svi_request *r, const void *bytes, size_t length);

/* Takes the next message, of which the last frame counts, into `m` (initialised). False: none is waiting. */
bool svi_last_frame(void *socket, zmq_msg_t *m);

#endif
