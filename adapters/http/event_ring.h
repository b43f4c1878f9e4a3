/* event_ring.h: the events of all streams as server-sent events: one bounded ring for all readers, GET
 * /events.
 *
 * An event is encoded once: `event:` its kind, `data:` the line of `watch --json`, `id:` EPOCH-NUMBER, where
 * EPOCH is that of this ring. A reader is a position in the ring: one that does not read costs no more than
 * one that does, and gets `event: lost` with the number of events that left the ring before it reached them.
 * Scores have a part of their own, so that they push out nothing else. */
#ifndef HTTP_EVENT_RING_H
#define HTTP_EVENT_RING_H

#include "streams.h"
#include "tally.h"

struct http_events;

/* Listens to `all`, which must outlive it. NULL: SVS_NO_MEMORY. Owner: the caller. */
struct http_events *http_events_open(struct http_streams *all, struct http_tally *tally, svs_error *err);

/* After the server was closed: no reader is left. */
void http_events_close(struct http_events **e);

/* Seconds until http_events_turn has something to do: comments to readers that have received nothing. */
double http_events_wait(const struct http_events *e);
void http_events_turn(struct http_events *e);

#endif
