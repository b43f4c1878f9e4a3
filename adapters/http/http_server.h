/* http_server.h: the HTTP server, libmicrohttpd without a thread of its own.
 *
 * The loop in main.c polls the two descriptors of http_server_items for at most http_server_wait seconds and
 * then calls http_server_turn. Handlers run inside that call. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <zmq.h>

#include "app.h"
#include "exchange.h"

#define HTTP_SERVER_ITEMS 2

struct http_server;

/* Listens. NULL: the reason was logged. */
struct http_server *http_server_open(struct http_app *app);
void http_server_close(struct http_server *s);

const char *http_server_url(const struct http_server *s); /* "http://127.0.0.1:9464/" */

int http_server_items(const struct http_server *s, zmq_pollitem_t *items);
double http_server_wait(const struct http_server *s);
void http_server_turn(struct http_server *s, const zmq_pollitem_t *polled);

/* Reads certificate and key again, for new connections. Files that are not valid are reported, and the
 * previous ones stay in force. */
void http_server_reload(struct http_server *s);

/* Closes the connections whose token has lost the right to what they do. */
void http_server_recheck(struct http_server *s);

/* ---- for exchange.c: what an exchange does next decides how long its connection may take */

void http_server_waits(struct exchange *x, double timeout);
void http_server_answered(struct exchange *x);
void http_server_resumed(struct exchange *x);
void http_server_streams(struct exchange *x);

#endif
