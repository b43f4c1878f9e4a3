/* publisher.h: the XPUB side: encodes the events that have a subscriber, and keeps the last model, bank and
 * stats for later subscribers.
 *
 * It never waits: a subscriber that does not keep up loses messages and sees it by `seq`. One that has
 * stopped reading costs a queue of SVI_PUBLISH_QUEUE events, some 8 MiB where nearly all are scores; one that
 * reads, nothing. When a queue of the largest payload would be more than SVI_PUBLISH_BYTES the queue is
 * halved until it is not, but it always holds 64 events.
 *
 * The topics of the stream are fixed strings here, so the subscriptions that matter are their prefixes: one
 * bit for each length is the whole bookkeeping, however many subscribers there are (libzmq reports every
 * subscription, and the last cancellation of each). These get what all keys have to say, and what is retained
 * of the stream. A subscription that goes on beyond the stream's topic is to some keys, and is kept as it is
 * (prefixes.h); one to the whole topic of a key gets its present model, or bank, which is asked for then:
 * nothing is kept here for a key that nobody subscribes to. */
#ifndef SVI_PUBLISHER_H
#define SVI_PUBLISHER_H

#include <stdbool.h>

#include "net/access.h"
#include "wire/event.h"

#define SVI_PUBLISH_QUEUE 40000 /* of scores some 8 MiB */
#define SVI_PUBLISH_BYTES (256 * 1024 * 1024)

typedef struct svi_publisher svi_publisher;

/* Binds `address`; `actual` (SVI_ADDRESS_MAX bytes) receives the real one. `access` creates the socket and
 * judges its subscribers; it outlives the publisher. NULL: SVS_IO, SVS_NO_MEMORY. Owner: the caller. */
svi_publisher *svi_publisher_new(struct svi_access *access, const char *address, const char *stream,
                                 char *actual, svs_error *err);
void svi_publisher_free(svi_publisher **p);

void *svi_publisher_socket(const svi_publisher *p); /* for the poll set */

/* What would be retained of a key: fills `out`, which is empty. Any code but SVS_OK: there is nothing. */
typedef svs_code svi_present(void *user, enum svi_topic topic, const char *key, struct svi_bytes *out);

/* The stream has keys. */
void svi_publisher_show_keys(svi_publisher *p, svi_present *present, void *user);

/* Takes the subscriptions that arrived and sends the retained messages they ask for. */
void svi_publisher_subscriptions(svi_publisher *p);

/* Has this topic, of the stream or of any key, a subscriber? */
bool svi_publisher_wanted(const svi_publisher *p, enum svi_topic topic);

/* Retains the payload of an event that an earlier process published, for new subscribers. SVS_NO_MEMORY:
 * nothing is retained then. */
svs_code svi_publisher_retain(svi_publisher *p, enum svi_topic topic, const void *payload, size_t size);

/* SVS_NO_MEMORY: the event is lost, which subscribers see by `seq`. */
svs_code svi_publisher_publish(svi_publisher *p, const struct svi_event *e);

#endif
