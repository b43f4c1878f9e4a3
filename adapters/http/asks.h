/* asks.h: requests to one socket of a stream, ctl or in, and their replies, without blocking.
 *
 * A DEALER socket gets the replies in the order of the requests. So a request whose time is over keeps its
 * place until its reply has arrived. When the connection breaks, all requests under way end, and the socket
 * is replaced: nothing that it still holds can reach the next process, whose replies would then be matched
 * with the wrong requests. A new attempt follows after a pause that doubles. */
#ifndef HTTP_ASKS_H
#define HTTP_ASKS_H

#include <zmq.h>

#include "net/keys.h"
#include "net/transport.h"

#define HTTP_ASKS_ITEMS 2
#define HTTP_ASKS_BYTES (64u << 20) /* of requests that wait or are under way, over all streams */

/* Why a request has no reply. They are compared by address. */
extern const char http_why_absent[];  /* no connection: it was not sent */
extern const char http_why_full[];    /* too many bytes wait already: it was not sent */
extern const char http_why_timeout[]; /* no answer in time; it may have been taken */
extern const char http_why_unsent[];  /* its time was over before it could be sent */
extern const char http_why_broken[]; /* the connection broke while it was under way; it may have been taken */
extern const char http_why_foreign[]; /* what was received is no reply of a stream; it may have been taken */

/* The reply: a checked map of msgpack, or JSON, unchecked, and only where the request was JSON. NULL: it
 * failed, and `why` is one of the above. */
typedef void http_reply(void *user, const void *reply, size_t size, const char *why);

struct http_ask;

struct http_asks {
    const char *setting; /* "ctl" or "in" */
    char address[SVI_ADDRESS_MAX];
    const struct svi_identity *identity; /* not owned */
    void *context;                       /* not owned */
    void *socket, *monitor;
    bool connected;                /* the handshake has succeeded */
    bool refused;                  /* the last handshake failed: keys */
    bool blocked;                  /* the socket accepts nothing now */
    bool stale;                    /* to be replaced at `again` */
    bool foreign;                  /* and the reason is what was received */
    bool drained, monitor_drained; /* as in polled.h */
    double again, pause;
    struct http_ask *first, *unsent, *last; /* by age; those before `unsent` are under way */
    int flying, limit;                      /* under way, and how many may be */
    size_t *bytes;                          /* of all asks of the program; not owned */
};

/* Connects in the background. `limit`: requests under way at once. SVS_IO. http_asks_close in any case. */
svs_code http_asks_open(struct http_asks *a, void *context, const char *setting, const char *address,
                        const struct svi_identity *identity, int limit, size_t *bytes, svs_error *err);

/* Ends all requests (http_why_broken), and closes the socket. */
void http_asks_close(struct http_asks *a);

/* Sends a request, copied. `done` is called once, perhaps before this returns. */
void http_asks_put(struct http_asks *a, const void *request, size_t size, double timeout, http_reply *done,
                   void *user);

/* What to poll: HTTP_ASKS_ITEMS items. */
void http_asks_items(const struct http_asks *a, zmq_pollitem_t *items);

/* svi_monotonic of the next deadline; HUGE_VAL: none. */
double http_asks_due(const struct http_asks *a);

/* Takes replies, ends what is overdue, follows the connection, sends. `polled`: the items after the wait;
 * NULL: anything may be there. */
void http_asks_turn(struct http_asks *a, const zmq_pollitem_t *polled);

#endif
