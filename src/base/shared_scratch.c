#include "base/shared_scratch.h"

#include "base/alloc.h"
#include "base/fail.h"

svs_code svi_shared_scratch_reserve(struct svi_shared_scratch *r, size_t size, svs_error *err) {
    if (size <= r->size)
        return SVS_OK;
    svi_shared_scratch_release(r);
    double *more = svi_alloc_array(size, sizeof *more);
    if (!more)
        return svi_fail_memory(err, "the scratch of a thread");
    svi_free(r->at);
    r->at = more;
    r->size = size;
    return SVS_OK;
}

void svi_shared_scratch_clear(struct svi_shared_scratch *r) {
    svi_free(r->at);
    *r = (struct svi_shared_scratch){0};
}

void svi_shared_scratch_release(struct svi_shared_scratch *r) {
    void *owner = r->owner;
    r->owner = NULL;
    if (owner)
        r->put_out(owner);
}

bool svi_shared_scratch_claim(struct svi_shared_scratch *r, void *owner, void (*put_out)(void *owner)) {
    if (r->owner == owner)
        return false;
    svi_shared_scratch_release(r);
    r->owner = owner;
    r->put_out = put_out;
    return true;
}

void svi_shared_scratch_disown(struct svi_shared_scratch *r, const void *owner) {
    if (r->owner == owner)
        r->owner = NULL;
}
