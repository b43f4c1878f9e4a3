/* key_queue.h: keys ordered by the time at which they fall due, whether they are in memory or not.
 *
 * A key whose time becomes later keeps its place until it is the first. The caller that takes the first key
 * compares it with the present time and sets it again if it is not due. So a sample of a key, which postpones
 * its time, costs nothing here. Of equal times, the key that began first comes first. */
#ifndef SVI_KEY_QUEUE_H
#define SVI_KEY_QUEUE_H

#include "fleet/key_table.h"

struct svi_key_due {
    double due;
    struct svi_key_entry *key;
};

/* Zero-initialised is empty. */
struct svi_key_queue {
    struct svi_key_due *at; /* a heap */
    size_t count, capacity;
};

void svi_key_queue_clear(struct svi_key_queue *q);

/* Capacity for this number of keys. SVS_NO_MEMORY. */
svs_code svi_key_queue_reserve(struct svi_key_queue *q, int64_t keys, svs_error *err);

/* Sets the time of a key; INFINITY: never due. Capacity must have been reserved. */
void svi_key_queue_set(struct svi_key_queue *q, struct svi_key_entry *key, double due);

/* The same, but a later time takes effect only when the key is the first. */
void svi_key_queue_put_off(struct svi_key_queue *q, struct svi_key_entry *key, double due);

void svi_key_queue_leave(struct svi_key_queue *q, struct svi_key_entry *key);

#endif
