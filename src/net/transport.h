/* transport.h: ZeroMQ sockets from one plan each, whose failures name the setting that holds the address;
 * their monitors; and requests with their return path. Used by the server and by its clients. */
#ifndef SVI_TRANSPORT_H
#define SVI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zmq.h>

#include "net/keys.h"

#define SVI_ADDRESS_MAX  1024
#define SVI_WAITING      0.8  /* seconds without an answer after which a command says that it waits */
#define SVI_HANDSHAKE_MS 3000 /* a peer whose handshake takes longer is cut */
#define SVI_ROUTE_MAX    8    /* frames in front of a request's body that are kept for the reply */

struct svi_socket_plan {
    const char *setting; /* key of the setting that holds the address, for the error text */
    int type;            /* ZMQ_PULL ... */
    bool bind;           /* else connect */
    int queue;           /* messages queued per peer and direction at most */
    int linger_ms;       /* how long closing waits for what is not sent yet */
    int64_t max_message; /* bytes; a peer with a longer frame is cut; -1 = no limit */
    int received;        /* messages queued of a peer at most, where that is not `queue`; 0 = it is */
};

/* Creates a socket; then keys; then its address. NULL on failure: SVS_IO. Owner: the caller. */
void *svi_socket_new(void *context, const struct svi_socket_plan *plan, svs_error *err);
void svi_socket_close(void **socket);

/* CURVE with these keys (nothing when they are off). A socket that binds is the server; its ZAP domain is the
 * setting's key. SVS_IO: no CURVE in this libzmq. */
svs_code svi_socket_secure(void *socket, const struct svi_socket_plan *plan, const struct svi_identity *id,
                           svs_error *err);

/* Binds or connects. A tcp port of 0 or * takes a free one. `actual` (SVI_ADDRESS_MAX bytes, may be NULL or
 * `address` itself) receives the real address. SVS_IO. */
svs_code svi_socket_attach(void *socket, const struct svi_socket_plan *plan, const char *address,
                           char *actual, svs_error *err);

/* Waits until a tcp or ipc address, as libzmq reports those that it has bound, could be bound again, at most
 * this long: libzmq closes in the background. */
void svi_address_await_free(const char *address, double seconds);

/* svi_socket_secure and svi_socket_attach. */
svs_code svi_socket_connect(void *socket, const struct svi_socket_plan *plan, const struct svi_identity *id,
                            const char *address, svs_error *err);

/* The sender of a message: the key that the authenticator let in ("" = CURVE is off), and the descriptor of
 * the connection (-1 = not known; it may be closed by now, and reused). Both as long as `m` lives. */
const char *svi_message_user(zmq_msg_t *m);
int svi_message_connection(zmq_msg_t *m);

/* Reports events of a socket (ZMQ_EVENT_...), on a PAIR for the poll set. NULL: there is no monitor, which
 * the other two functions accept. */
#define SVI_HANDSHAKE_FAILED                                                                                 \
    (ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |                            \
     ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
void *svi_monitor_new(void *context, void *socket, int events);
void svi_monitor_free(void **monitor, void *socket); /* before the socket is closed */

/* Takes the next event and its value, such as a descriptor. False: none is waiting. */
bool svi_monitor_next(void *monitor, int *event, int *value);

/* The frames of a message as its peer sent them. */
struct svi_frames {
    int count;
    size_t bytes;
    size_t last; /* bytes of the last one */
};

/* A request to a ROUTER: the frames in front of the last one are the return path (route). Zero-initialised is
 * empty. */
struct svi_request {
    zmq_msg_t route[SVI_ROUTE_MAX];
    int route_count;
    zmq_msg_t body;
    struct svi_frames frames; /* without the first, libzmq's name of the peer */
};

/* Takes the next request, if there is one. False: none is waiting. After true: svi_request_close. */
bool svi_request_receive(void *router, struct svi_request *r);
void svi_request_close(struct svi_request *r);

/* Sends a reply back along the route, without waiting. False: the peer is gone, or does not read its
 * replies. */
bool svi_request_reply(void *router, struct svi_request *r, const void *bytes, size_t length);

/* Takes the next message, of which the last frame counts, into `m` (initialised). `frames` may be NULL.
 * False: none is waiting. */
bool svi_last_frame(void *socket, zmq_msg_t *m, struct svi_frames *frames);

#endif
