/* publisher.h: the XPUB side: encodes events that have a subscriber, and retains the last model, bank and
 * stats for later subscribers.
 *
 * It never blocks: a slow subscriber loses messages and detects that by `seq`. A subscriber that
 * has stopped reading costs a queue of SVI_PUBLISH_QUEUE events, about 8 MiB if nearly all are
 * scores. Large payloads that wait for such subscribers may together have SVI_PUBLISH_BYTES. Beyond
 * that the queue is halved until as many payloads of the present size are within the limit, down to
 * 64 events.
 *
 * The topics of a stream are fixed strings, so a relevant subscription is a prefix of one. One bit
 * for each length is all the bookkeeping, however many subscribers there are, because libzmq
 * reports every subscription and the last cancellation of each. This kind of subscription receives
 * the events of all keys, and what is retained of the stream. A subscription that extends beyond
 * the stream's topic selects keys and is stored as a prefix (prefixes.h). One to the complete topic
 * of a key receives the key's current model or bank, obtained at that moment: nothing is retained
 * for a key without subscribers. */
#ifndef SVI_PUBLISHER_H
#define SVI_PUBLISHER_H

#include <stdbool.h>

#include "net/access.h"
#include "wire/event.h"

#define SVI_PUBLISH_QUEUE 40000 /* about 8 MiB of scores */
#define SVI_PUBLISH_BYTES (256 * 1024 * 1024)

/* A subscription to `mark.` and one digit is answered by a message of that topic (an empty map), behind all
 * events published before. */
#define SVI_TOPIC_MARK "mark."

typedef struct svi_publisher svi_publisher;

/* Binds `address`; `actual` (SVI_ADDRESS_MAX bytes) receives the address in use. `access` creates the socket,
 * checks its subscribers, and must outlive the publisher. NULL: SVS_IO, SVS_NO_MEMORY. Owner: the caller. */
svi_publisher *svi_publisher_new(struct svi_access *access, const char *address, const char *stream,
                                 char *actual, svs_error *err);
void svi_publisher_free(svi_publisher **p);

void *svi_publisher_socket(const svi_publisher *p); /* for the poll set */

/* Provides what would be retained for a key: fills `out`, which is empty. Any code but SVS_OK: nothing. */
typedef svs_code svi_present(void *user, enum svi_topic topic, const char *key, struct svi_bytes *out);

/* Declares that the stream has keys. */
void svi_publisher_show_keys(svi_publisher *p, svi_present *present, void *user);

/* Takes subscriptions that arrived, a bounded number, and sends the retained messages that they ask for. */
void svi_publisher_subscriptions(svi_publisher *p);

/* Does this topic, of the stream or of any key, have a subscriber? */
bool svi_publisher_wanted(const svi_publisher *p, enum svi_topic topic);

/* Retains the payload of an event that an earlier process published, for new subscribers. SVS_NO_MEMORY: then
 * nothing is retained. */
svs_code svi_publisher_retain(svi_publisher *p, enum svi_topic topic, const void *payload, size_t size);

/* Publishes an event. SVS_NO_MEMORY: it is lost, which subscribers detect by `seq`. */
svs_code svi_publisher_publish(svi_publisher *p, const struct svi_event *e);

#endif
