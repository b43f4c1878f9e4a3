/* transport.h: ZeroMQ sockets, each from one plan, so that a failure can name the setting that holds the
 * address; socket monitors; requests with their return path. Used by the server and by its clients. */
#ifndef SVI_TRANSPORT_H
#define SVI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zmq.h>

#include "net/keys.h"

#define SVI_ADDRESS_MAX  1024
#define SVI_WAITING      0.8  /* seconds without an answer after which a command reports that it is waiting */
#define SVI_HANDSHAKE_MS 3000 /* a peer whose handshake takes longer is disconnected */
#define SVI_ROUTE_MAX    8    /* routing frames of a request that are kept for the reply */

struct svi_socket_plan {
    const char *setting; /* key of the setting that holds the address, for the error text */
    int type;            /* ZMQ_PULL ... */
    bool bind;           /* false: connect */
    int queue;           /* limit of queued messages per peer and direction */
    int linger_ms;       /* how long closing waits for unsent messages */
    int64_t max_message; /* bytes of a frame; a peer that sends a longer one is disconnected; -1 = no limit */
    int received; /* limit of queued incoming messages per peer, if it differs from `queue`; 0 = it does not
                   */
};

/* Step 1 of 3: creates a socket with its options (then svi_socket_secure, svi_socket_attach). NULL on
 * failure: SVS_IO. Owner: the caller. */
void *svi_socket_new(void *context, const struct svi_socket_plan *plan, svs_error *err);
void svi_socket_close(void **socket);

/* Step 2: sets the CURVE keys (no effect if they are off). A socket that binds is the CURVE server; its ZAP
 * domain is the key of the setting. SVS_IO: this libzmq has no CURVE. */
svs_code svi_socket_secure(void *socket, const struct svi_socket_plan *plan, const struct svi_identity *id,
                           svs_error *err);

/* Step 3: binds or connects. A tcp port of 0 or * selects a free one. `actual` (SVI_ADDRESS_MAX bytes; may be
 * NULL or `address` itself) receives the address in use. SVS_IO. */
svs_code svi_socket_attach(void *socket, const struct svi_socket_plan *plan, const char *address,
                           char *actual, svs_error *err);

/* Waits, at most `seconds`, until another process could bind this tcp or ipc address (as reported in
 * `actual`). libzmq closes sockets in the background, so an address is in use for a moment longer. */
void svi_address_await_free(const char *address, double seconds);

/* Steps 2 and 3 together. */
svs_code svi_socket_connect(void *socket, const struct svi_socket_plan *plan, const struct svi_identity *id,
                            const char *address, svs_error *err);

/* The sender of a message: the key admitted by the authenticator ("" = CURVE is off), and the descriptor of
 * its connection (-1 = not known; it may be closed by now, and the number reused). Valid as long as `m`. */
const char *svi_message_user(zmq_msg_t *m);
int svi_message_connection(zmq_msg_t *m);

/* Reports events of a socket (ZMQ_EVENT_...) on a PAIR for the poll set. NULL: no monitor could be created;
 * the other two functions accept NULL. */
#define SVI_HANDSHAKE_FAILED                                                                                 \
    (ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |                            \
     ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
void *svi_monitor_new(void *context, void *socket, int events);
void svi_monitor_free(void **monitor, void *socket); /* call before the socket is closed */

/* Takes the next event and its value, such as a descriptor. False: none is waiting. */
bool svi_monitor_next(void *monitor, int *event, int *value);

/* Sizes of the frames of a message as its peer sent them. */
struct svi_frames {
    int count;
    size_t bytes;
    size_t last; /* bytes of the last one */
};

/* A request received by a ROUTER: `route` is the return path, the frames before the last. Zero-initialised is
 * empty. */
struct svi_request {
    zmq_msg_t route[SVI_ROUTE_MAX];
    int route_count;
    zmq_msg_t body;
    struct svi_frames frames; /* without the first frame, the routing id that libzmq adds */
};

/* Takes the next request without waiting. False: none is waiting. After true: svi_request_close. */
bool svi_request_receive(void *router, struct svi_request *r);
void svi_request_close(struct svi_request *r);

/* Sends a reply along the route, without waiting. False: the peer has left, or does not read its replies. */
bool svi_request_reply(void *router, struct svi_request *r, const void *bytes, size_t length);
bool svi_request_reply_message(void *router, struct svi_request *r, zmq_msg_t *m); /* false: m is kept */

/* Takes the next message and leaves its last frame in `m` (initialised). `frames` may be NULL. False: none is
 * waiting. */
bool svi_last_frame(void *socket, zmq_msg_t *m, struct svi_frames *frames);

#endif
