/* kept_alerts.h: the alert events of a stream, by one number over the whole of it, so that a client that was
 * away asks for what it has missed.
 *
 * Kept are the bytes of each event as they were published, of at most `keep` events; the histories that an
 * `open` carries are kept of the newest SVI_KEPT_HISTORIES alone. Numbers count from 1 without gaps while
 * the state lives, whatever falls out. Results depend on the calls alone. */
#ifndef SVI_KEPT_ALERTS_H
#define SVI_KEPT_ALERTS_H

#include "base/archive.h"
#include "wire/event.h"
#include "wire/pack.h"

#define SVI_KEPT_HISTORIES    256
#define SVI_KEPT_ANSWER       1000               /* events of an answer by default, ... */
#define SVI_KEPT_ANSWER_MAX   10000              /* ... at most, ... */
#define SVI_KEPT_ANSWER_BYTES ((size_t)16 << 20) /* ... and bytes after which it ends */

typedef struct svi_kept_alerts svi_kept_alerts;

/* Keeps none before svi_kept_alerts_limit. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_kept_alerts *svi_kept_alerts_new(svs_error *err);
void svi_kept_alerts_free(svi_kept_alerts **k);

/* Keeps at most `keep` events from now on; the oldest are dropped. */
void svi_kept_alerts_limit(svi_kept_alerts *k, int64_t keep);

/* Gives an alert event its number and keeps it, with key, epoch and seq as they are. Its payload becomes the
 * bytes of it, valid until the next call. SVS_NO_MEMORY: it has its number and is not kept; the
 * payload may be its bytes all the same. */
svs_code svi_kept_alerts_add(svi_kept_alerts *k, struct svi_event *event);

/* Number of the newest event; 0: none. */
uint64_t svi_kept_alerts_last(const svi_kept_alerts *k);

struct svi_alert_query {
    uint64_t since;  /* events with a higher number */
    const char *key; /* published in the name of this stream key, or naming it; NULL: all */
    int64_t limit;   /* most events of a reply */
};

/* Puts pairs into an open map:
 *  - `first` and `last`: the numbers that are kept;
 *  - `alerts`: an array of events in order;
 *  - `next`: the `since` of the next query;
 *  - `more`: whether the limit has left out events that it would give;
 *  - `lost`: how many numbers above `since` and up to `next` are no longer kept, of any key. */
void svi_kept_alerts_put(const svi_kept_alerts *k, const struct svi_alert_query *q, struct svi_pack *p);

/* Replaces the content of `out` by the first kept event with a number above `since`, and returns its number;
 * 0: none. -1: SVS_NO_MEMORY. */
int64_t svi_kept_alerts_next(const svi_kept_alerts *k, int64_t since, struct svi_bytes *out);

/* Largest number of bytes that what is kept now may take: buffers are at most four times as long. */
double svi_kept_alerts_memory(const svi_kept_alerts *k);

void svi_kept_alerts_archive(struct svi_archive *a, svi_kept_alerts *k);

#endif
