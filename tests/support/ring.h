/* ring.h: what must hold of a ring of samples (learner/ring.h), whatever was done to it. */
#ifndef TESTS_RING_H
#define TESTS_RING_H

#include "base/fnv.h"
#include "svmstream/value.h"
#include "learner/ring.h"

static uint32_t ring_check_hash(svs_value id) {
    const void *bytes = id.kind == SVS_STR ? (const void *)id.as.s : &id.as.i;
    return (uint32_t)svi_fnv_fold(
        svi_fnv(SVI_FNV_SEED, bytes, id.kind == SVS_STR ? id.length : sizeof id.as.i));
}

static const struct svi_chain *ring_check_link(const struct svi_ring *r, int32_t slot) {
    return (const struct svi_chain *)svi_ring_column(r, SVI_RING_CHAIN) + slot;
}

static const char *ring_check_chain(const struct svi_ring *r, int32_t slot) {
    const struct svi_chain *own = ring_check_link(r, slot);
    if (own->hash != ring_check_hash(svi_ring_id(r, slot)))
        return "a slot's hash is not its id's";
    if (own->newer == -1 && r->buckets[own->hash & r->bucket_mask] != slot)
        return "the newest of a bucket is not its head";
    if (own->older != -1 && (ring_check_link(r, own->older)->newer != slot ||
                             svi_ring_number(r, own->older) >= svi_ring_number(r, slot)))
        return "a chain is broken or out of order";
    return NULL;
}

/* Counts, chains and order agree: NULL; else what is wrong. */
static const char *ring_check(const struct svi_ring *r) {
    int32_t live = 0;
    int64_t chained = 0, ids = 0, last = -1;
    for (int32_t i = 0; i < r->count; i++) {
        const int32_t slot = svi_ring_at(r, i);
        const bool has_id = svi_ring_id(r, slot).kind != SVS_NONE;
        const char *wrong = has_id && r->buckets ? ring_check_chain(r, slot) : NULL;
        if (wrong)
            return wrong;
        if (has_id && !svi_ring_live(r, slot))
            return "a dead slot has an id";
        live += svi_ring_live(r, slot);
        ids += has_id;
        if (svi_ring_number(r, slot) <= last)
            return "numbers do not rise";
        last = svi_ring_number(r, slot);
    }
    for (size_t b = 0; r->buckets && b <= r->bucket_mask; b++)
        for (int32_t s = r->buckets[b]; s != -1 && chained <= ids; s = ring_check_link(r, s)->older)
            chained++;
    if (live != r->live)
        return "the live count is wrong";
    for (int32_t i = 0; i <= r->dead && i < r->count; i++)
        if (svi_ring_live(r, svi_ring_at(r, i)) != (i == r->dead))
            return "the count of dead ones before the oldest is wrong";
    return !r->buckets || chained == ids ? NULL : "the index does not hold exactly the live ids";
}

#endif
