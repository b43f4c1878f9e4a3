/* shared_scratch.h: scratch memory that an object needs only while it works, shared by many objects that one
 * thread works on in turns.
 *
 * The object that works there is its owner, and may leave its state in the memory. When another object claims
 * it, or it has to grow, `put_out` is called for the owner, which saves what it wants to keep; that must not
 * fail. The memory never shrinks, so an object that reserved once cannot fail later. One thread at a time. */
#ifndef SVI_SHARED_SCRATCH_H
#define SVI_SHARED_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "svmstream/error.h"

struct svi_shared_scratch {
    double *at;  /* aligned to 64 */
    size_t size; /* doubles */
    void *owner; /* NULL: unclaimed */
    void (*put_out)(void *owner);
};

/* Grows to at least `size` doubles; zero-initialised is empty. Growing releases the owner first, even when it
 * then fails with SVS_NO_MEMORY; the memory is unchanged in that case. */
svs_code svi_shared_scratch_reserve(struct svi_shared_scratch *r, size_t size, svs_error *err);
void svi_shared_scratch_clear(struct svi_shared_scratch *r);

/* Calls the owner's put_out; afterwards nobody owns the memory. */
void svi_shared_scratch_release(struct svi_shared_scratch *r);

/* Makes `owner` the owner. False: it was already, and its state is intact. True: the previous owner was
 * released, and the memory holds whatever it left. */
bool svi_shared_scratch_claim(struct svi_shared_scratch *r, void *owner, void (*put_out)(void *owner));

/* The owner is being freed: drops it without a call of put_out. */
void svi_shared_scratch_disown(struct svi_shared_scratch *r, const void *owner);

#endif
