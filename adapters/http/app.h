/* app.h: what the parts of the adapter share. Each part is owned by main.c, which opens and closes it. */
#ifndef HTTP_APP_H
#define HTTP_APP_H

#include "tally.h"

struct http_app {
    const struct http_options *options;
    const struct http_route *routes; /* the table (routes.h) */
    struct http_server *server;
    struct http_guard *guard;     /* NULL: no --tokens, and everybody may do everything */
    struct http_streams *streams; /* the streams shown (streams.h) */
    struct http_events *events;   /* ring of their events (event_ring.h) */
    struct http_weights *weights; /* models for comparison (weight_log.h) */
    struct http_alerts *alerts;   /* their alerts (alert_list.h) */
    struct http_history *history;
    double streams_turn;     /* svi_monotonic of the last turn of all their sockets */
    struct http_tally tally; /* of the adapter's own work */
};

#endif
