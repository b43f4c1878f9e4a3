/* http_history.h: samples the figures of the streams once a second and fetches their alerts, for the history;
 * and the requests /history and /history/alerts (handlers.h). */
#ifndef HTTP_HTTP_HISTORY_H
#define HTTP_HTTP_HISTORY_H

#include "history_worker.h"
#include "streams.h"
#include "tally.h"

struct http_history;

/* Opens the history (path NULL: in memory) and listens to `streams`, which must outlive it or be closed
 * before. days: limit of age of everything, 0: none. `tally` gets the count of errors. NULL: the file is not
 * to be used (its owner has to do something first), no memory, no thread. Owner: the caller. */
struct http_history *http_history_open(const char *path, double days, struct http_streams *streams,
                                       struct http_tally *tally, svs_error *err);

/* After the streams: their requests under way end before. */
void http_history_close(struct http_history **h);

int http_history_fd(const struct http_history *h); /* readable: call the turn */
void http_history_turn(struct http_history *h);

/* How the history is; for /streams and /metrics. h NULL: fine. */
void http_history_state(struct http_history *h, struct history_state *out);

#endif
