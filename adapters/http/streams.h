/* streams.h: the streams that are shown: their state, their status once a second, their events, and requests
 * to them. One address, ctl, is enough: the status names the others. Nothing blocks.
 *
 * Models, alerts, errors and stats are always subscribed to; scores and banks while somebody wants them
 * (http_stream_want). Listeners get every status and every event. */
#ifndef HTTP_STREAMS_H
#define HTTP_STREAMS_H

#include "asks.h"
#include "client/subscription.h"
#include "http_options.h"
#include "wire/view.h"

#define HTTP_STREAM_ITEMS (2 * HTTP_ASKS_ITEMS + 2) /* poll items of one stream */

enum http_stream_state {
    HTTP_STREAM_WAITING, /* it has never answered */
    HTTP_STREAM_LIVE,
    HTTP_STREAM_SILENT /* it has answered before, and does not now */
};

/* The newest error of a code; zeros: none so far. */
struct http_last_error {
    int64_t count;
    double ts;
    char reason[SVS_ERROR_TEXT];
};

enum http_in_mode {
    HTTP_IN_UNKNOWN, /* not known yet, or nothing can be sent to it */
    HTTP_IN_ROUTER,
    HTTP_IN_PULL /* samples are not acknowledged */
};

struct http_stream {
    const struct http_stream_option *option;
    struct svi_identity identity; /* for all of its sockets */
    int index;                    /* in the order of the command line */
    char name[SVI_ADDRESS_MAX];   /* unique; until it is known: the address ctl */
    enum http_stream_state state;
    struct svi_bytes status;      /* the last reply to status, a msgpack map; size 0: none yet */
    struct svi_bytes config;      /* the last reply to config */
    double answered;              /* svi_monotonic of the last status */
    double status_time;           /* the same by the wall clock, seconds since 1970 */
    double silent_since;          /* wall clock; of state silent */
    uint64_t epoch;               /* of the last status */
    double declined, declined_at; /* of the status; svi_monotonic of its last increase, 0: none */
    int64_t lost;                 /* events that were published and did not arrive */
    struct http_streams *all;
    struct http_asks ctl, in; /* in: without an address until it is known */
    enum http_in_mode in_mode;
    void *push;                   /* the socket of in.mode pull; NULL: not connected */
    char pushed[SVI_ADDRESS_MAX]; /* its address */
    struct svi_bytes hello;       /* the reply to hello over `in`; size 0: none on this connection */
    bool hello_asked;
    struct subscription events, scores;  /* scores have a socket of their own: they push out no alert */
    bool events_drained, scores_drained; /* as in polled.h */
    char out[SVI_ADDRESS_MAX];           /* address that both are connected to */
    int wanted[SVI_TOPIC_COUNT];
    struct http_last_error errors[SVS_CODE_COUNT]; /* by code, of this epoch */
    double status_due, config_due;
    bool status_asked, config_asked;
};

struct http_streams;

/* `status`: the whole reply, a checked msgpack map. */
typedef void http_on_status(void *user, struct http_stream *s, const void *status, size_t size, double time);

/* `e` is valid during the call; e->lost: events of its topic that were lost before it. */
typedef void http_on_event(void *user, struct http_stream *s, const struct subscription_event *e);

/* Reads the key files and connects in the background. `o` must outlive it. NULL: SVS_IO, SVS_NO_MEMORY, codes
 * of svi_identity_load. Owner: the caller. */
struct http_streams *http_streams_open(const struct http_options *o, svs_error *err);
void http_streams_close(struct http_streams **all);

int http_streams_count(const struct http_streams *all);
struct http_stream *http_streams_at(struct http_streams *all, int i);

/* By name. NULL name: the only one. NULL: there is no such stream. */
struct http_stream *http_streams_find(struct http_streams *all, const char *name);

/* Either function may be NULL. At most 8 listeners; false: there are as many. */
bool http_streams_listen(struct http_streams *all, http_on_status *on_status, http_on_event *on_event,
                         void *user);

/* For the loop: what to poll (HTTP_STREAM_ITEMS a stream; returns how many), how many seconds at most, and a
 * turn. `polled`: the items after the wait; NULL: anything may be there. */
int http_streams_items(const struct http_streams *all, zmq_pollitem_t *items);
double http_streams_wait(const struct http_streams *all);
void http_streams_turn(struct http_streams *all, const zmq_pollitem_t *polled);

/* A request to ctl, msgpack or JSON, copied. `done` is called once, perhaps before this returns. */
void http_stream_ask(struct http_stream *s, const void *request, size_t size, double timeout,
                     http_reply *done, void *user);

/* A message to `in` of a stream with in.mode router. */
void http_stream_send(struct http_stream *s, const void *message, size_t size, double timeout,
                      http_reply *done, void *user);

/* Does the stream know {op: message}? An older program takes it for a row. False before the first answer. */
bool http_stream_reads_message(const struct http_stream *s);

/* A message to `in` of a stream with in.mode pull. False: it takes nothing now. */
bool http_stream_push(struct http_stream *s, const void *message, size_t size);

/* The largest message that the stream accepts, bytes, and its delivery level ("" while it is not known). */
size_t http_stream_max_message(const struct http_stream *s);
char *http_stream_delivery(const struct http_stream *s, char out[24]);

/* One more (1) or one less (-1) that wants the events of this kind. */
void http_stream_want(struct http_stream *s, enum svi_topic kind, int change);

/* A view of the last status, and of the settings; without a value before the first answer. */
struct svi_view http_stream_status(const struct http_stream *s);
struct svi_view http_stream_config(const struct http_stream *s);

#endif
