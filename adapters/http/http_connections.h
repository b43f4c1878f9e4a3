/* http_connections.h: the connections of clients, how many an address may have, and how long each may take.
 *
 * Zeros are a list that is not open. */
#ifndef HTTP_CONNECTIONS_H
#define HTTP_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define HTTP_CONNECTIONS_SPARE 16 /* above the limit, while one is closed for another */

/* What a connection waits for; each has its limit. */
enum http_wants {
    HTTP_WANTS_FIRST,   /* the first request of a new connection, with the handshake of TLS */
    HTTP_WANTS_REQUEST, /* the next one of a connection that has had an answer */
    HTTP_WANTS_HEADERS, /* of a request whose first line is there */
    HTTP_WANTS_BODY,
    HTTP_WANTS_ANSWER, /* of a handler */
    HTTP_WANTS_READER, /* the client reads its answer */
    HTTP_STREAMS       /* without limit */
};

struct http_connection {
    struct http_connection *previous, *next;
    struct exchange *exchange; /* NULL between requests */
    struct http_tls *tls;      /* held; NULL: without TLS */
    int fd;                    /* owned by libmicrohttpd */
    enum http_wants wants;
    double since, deadline;    /* svi_monotonic, when `wants` began; HUGE_VAL: without limit */
    unsigned char address[16]; /* IPv6, or IPv4 mapped; the host bits of a /64 are cleared */
    bool local;                /* of this machine, where there is no limit by address */
    bool dropped;              /* it is being closed */
    bool watched;
    int stuck;      /* checks in a row that found bytes that nobody reads */
    size_t drained; /* bytes of the body at the last check */
};

struct http_connections {
    struct http_connection *first; /* the newest */
    int count, most;
    int watch; /* epoll: suspended connections whose client has left */
    bool open, full;
};

/* Raises the limit of descriptors as far as it goes. False: errno has the reason. */
bool http_connections_open(struct http_connections *all);
void http_connections_close(struct http_connections *all);

/* May a further client connect from there? Where all connections are in use, the oldest that has not sent a
 * request makes way (http_connections_evict), if there is one. */
bool http_connections_admit(struct http_connections *all, const struct sockaddr *address);
void http_connections_evict(struct http_connections *all, void (*drop)(struct http_connection *c));

/* NULL: no memory. */
struct http_connection *http_connection_new(struct http_connections *all, int fd,
                                            const struct sockaddr *address);
void http_connection_free(struct http_connections *all, struct http_connection *c);

/* Sets the deadline by what the connection waits for. `bytes`: of a body, those that have arrived; of an
 * answer, its size. */
void http_connection_expect(struct http_connection *c, enum http_wants wants, size_t bytes);

/* Reports on `watch`, once, that the client has left: reset it, or (`closing`) closed its sending side. */
void http_connection_watch(struct http_connections *all, struct http_connection *c, bool closing);
void http_connection_ignore(struct http_connections *all, struct http_connection *c);

#endif
