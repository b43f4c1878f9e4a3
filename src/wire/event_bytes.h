/* event_bytes.h: events that are kept as bytes: taken apart, put together and looked into without decoding
 * them. The bytes are those of svi_event_encode, or have passed svi_event_bytes_good. */
#ifndef SVI_EVENT_BYTES_H
#define SVI_EVENT_BYTES_H

#include "wire/pack.h"

/* Bytes of the pairs that `whole` has at its end and `plain`, otherwise the same map, lacks. */
size_t svi_event_bytes_added(const struct svi_bytes *plain, const struct svi_bytes *whole);

/* Packs a map with one more pair (size 0: with none) at its end. */
void svi_event_bytes_put(struct svi_pack *p, const uint8_t *map, size_t size, const uint8_t *pair,
                         size_t pair_size);

/* Was the event published in the name of this stream key, or does it name it among others? */
bool svi_event_bytes_concern(const uint8_t *map, size_t size, const char *key);

/* Is it one map with string keys (else, with `pair`, one pair of such a map), complete? */
bool svi_event_bytes_good(const uint8_t *bytes, size_t size, bool pair);

#endif
