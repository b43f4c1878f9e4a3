/* outbox_store.h: the samples that an outbox keeps: a queue of byte strings in one block that is used in a
 * circle and doubled up to a bound. Nothing moves but when it grows. */
#ifndef SVI_OUTBOX_STORE_H
#define SVI_OUTBOX_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

struct svi_kept {
    size_t at, size; /* the pairs of its map, in the block */
    uint32_t pairs;
    bool stub;    /* given up: only its number is sent, so that it is used up */
    bool refused; /* answered for so: counted when it is released */
};

/* Zero-initialised but for the bounds is empty. */
struct svi_store {
    struct svi_kept *ring;
    int64_t room, first, count, samples; /* entries: allocated, oldest, in use, at most */
    uint8_t *block;
    size_t size, tail, bytes; /* of the block: allocated, where the next goes if it fits, at most */
};

void svi_store_clear(struct svi_store *s);

/* Adds one at the end. SVS_LIMIT, SVS_NO_MEMORY: as it was. */
svs_code svi_store_push(struct svi_store *s, const void *body, size_t size, uint32_t pairs);

/* Takes away the oldest `count` (at most all). */
void svi_store_pop(struct svi_store *s, int64_t count);

/* The i-th oldest, i < count. Valid until the next push or pop. */
struct svi_kept *svi_store_at(const struct svi_store *s, int64_t i);

/* Is every entry inside the block, behind the one before it, and over none? */
bool svi_store_check(const struct svi_store *s);

#endif
