/* key_queue.h: keys by the time at which they fall due, whether they are in memory or not.
 *
 * A key whose time becomes later stays where it is until it is the first: who asks for the first one holds it
 * against the time of now, and sets it again. So a sample of a key, which puts its time off, costs nothing
 * here. Of equal times the key that began first comes first. */
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

/* Room for that many keys. SVS_NO_MEMORY. */
svs_code svi_key_queue_reserve(struct svi_key_queue *q, int64_t keys, svs_error *err);

/* It is due then: INFINITY: never. There is room. */
void svi_key_queue_set(struct svi_key_queue *q, struct svi_key_entry *key, double due);

/* Likewise, where a later time can wait. */
void svi_key_queue_put_off(struct svi_key_queue *q, struct svi_key_entry *key, double due);

void svi_key_queue_leave(struct svi_key_queue *q, struct svi_key_entry *key);

#endif
