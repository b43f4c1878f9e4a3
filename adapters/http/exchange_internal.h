/* exchange_internal.h: one request as the server's files see it.
 *
 * It begins with the request line (http_server.c), grows with each piece of the body, waits for its answer,
 * and ends when libmicrohttpd reports the request as completed. While it waits, or while a stream has nothing
 * to send, its connection is suspended: libmicrohttpd ignores it until it is resumed. */
#ifndef HTTP_EXCHANGE_INTERNAL_H
#define HTTP_EXCHANGE_INTERNAL_H

#include <microhttpd.h>

#include "body.h"
#include "exchange.h"
#include "framing.h"
#include "route.h"
#include "target.h"
#include "tokens.h"

#define HTTP_HEADERS_MAX 8 /* that a handler may add to its answer */

enum http_phase {
    HTTP_BEGUN,    /* the request line is there */
    HTTP_READING,  /* the headers are good, the body arrives */
    HTTP_REFUSED,  /* the answer is made, the rest of the body is read and dropped */
    HTTP_HANDLED,  /* with the handler, which has not answered */
    HTTP_ANSWERED, /* `response` is made and not yet with libmicrohttpd */
    HTTP_SENT      /* with libmicrohttpd */
};

struct exchange {
    struct http_server *server;
    struct http_connection *connection;
    struct MHD_Connection *mhd;
    enum http_phase phase;
    bool head, suspended, hung_up;
    const char *method; /* "GET" of a HEAD */
    char asked[12];     /* the method as it was sent, for the counters */
    const struct http_route *route;
    struct http_framing framing;
    struct http_target target;
    const char *target_error; /* NULL: it is good */
    const char *named[HTTP_SEGMENTS_MAX];
    char body_type[64], accepted[64];
    struct http_principal principal;
    struct http_token token; /* a copy, to which `principal` points: the file may be read again meanwhile */
    struct http_body body;
    size_t drained; /* bytes of a refused body */
    struct {
        const char *name;
        char value[512];
    } header[HTTP_HEADERS_MAX];
    int headers;
    struct MHD_Response *response; /* owned; NULL: none yet */
    int status;
    size_t answer_size;
    void (*closed)(void *user);
    ssize_t (*more)(void *user, void *bytes, size_t size);
    void (*end)(void *user);
    void *user;
};

/* Memory that all exchanges share; what a handler asked for may be answered late. */
void http_exchange_free(struct exchange *x);

/* Hands the finished response to libmicrohttpd, from inside its access handler. */
enum MHD_Result http_exchange_queue(struct exchange *x);

/* Lets libmicrohttpd serve a suspended connection again. */
void http_exchange_resume(struct exchange *x);
void http_exchange_suspend(struct exchange *x);

#endif
