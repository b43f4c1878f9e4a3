#include "base/shared_scratch.h"

#include "base/alloc.h"
#include "base/fail.h"

svs_code svi_shared_room_reserve(struct svi_shared_room *r, size_t size, svs_error *err) {
    if (size <= r->size)
        return SVS_OK;
    svi_shared_room_rest(r);
    double *more = svi_alloc_array(size, sizeof *more);
    if (!more)
        return svi_fail_memory(err, "the room of a thread");
    svi_free(r->at);
    r->at = more;
    r->size = size;
    return SVS_OK;
}

void svi_shared_room_clear(struct svi_shared_room *r) {
    svi_free(r->at);
    *r = (struct svi_shared_room){0};
}

void svi_shared_room_rest(struct svi_shared_room *r) {
    void *owner = r->owner;
    r->owner = NULL;
    if (owner)
        r->put_out(owner);
}

bool svi_shared_room_enter(struct svi_shared_room *r, void *owner, void (*put_out)(void *owner)) {
    if (r->owner == owner)
        return false;
    svi_shared_room_rest(r);
    r->owner = owner;
    r->put_out = put_out;
    return true;
}

void svi_shared_room_leave(struct svi_shared_room *r, const void *owner) {
    if (r->owner == owner)
        r->owner = NULL;
}
