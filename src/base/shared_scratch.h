/* shared_room.h: room that something needs while it works and not between two calls, for many such things
 * that one thread works on in turns.
 *
 * Who works there is its owner, and may leave his state in it; when another one comes in, or the room becomes
 * larger, `put_out` tells the owner to take what he wants to keep, which must not fail. The room is never
 * given back, so that one who found room once cannot fail for it later. One thread at a time. */
#ifndef SVI_SHARED_SCRATCH_H
#define SVI_SHARED_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "svmstream/error.h"

struct svi_shared_scratch {
    double *at;  /* aligned to 64 */
    size_t size; /* doubles */
    void *owner; /* NULL: nobody is in */
    void (*put_out)(void *owner);
};

/* Zero-initialised is empty. SVS_NO_MEMORY: nothing has changed, but that nobody is in. */
svs_code svi_shared_scratch_reserve(struct svi_shared_scratch *r, size_t size, svs_error *err);
void svi_shared_scratch_clear(struct svi_shared_scratch *r);

/* Nobody is in any more. */
void svi_shared_scratch_release(struct svi_shared_scratch *r);

/* False: `owner` is in already. Else it is now, and finds there what others have left. */
bool svi_shared_scratch_claim(struct svi_shared_scratch *r, void *owner, void (*put_out)(void *owner));

/* The owner is no more: it gets no report. */
void svi_shared_scratch_disown(struct svi_shared_scratch *r, const void *owner);

#endif
