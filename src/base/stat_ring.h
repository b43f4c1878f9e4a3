/* stat_ring.h: the positions in a ring of the last `window` samples: how many are in use, and which is
 * written next. The owner keeps the values, in its own arrays (base/arrays.h lets them grow).
 *
 * The ring is filled from the front in every round and archived with its position: owners recompute their
 * sums at the end of a round, so a restored ring must end its round at the same sample. */
#ifndef SVI_STAT_RING_H
#define SVI_STAT_RING_H

#include "base/archive.h"

struct svi_stat_ring {
    int64_t window, slot, filled; /* positions; the next one; how many are in use */
};

static inline bool svi_stat_ring_full(const struct svi_stat_ring *r) {
    return r->filled == r->window;
}

/* To be called when the slot has been written. True: it was the last one of a round. */
static inline bool svi_stat_ring_advance(struct svi_stat_ring *r) {
    r->filled += r->filled < r->window;
    r->slot = r->slot + 1 < r->window ? r->slot + 1 : 0;
    return r->slot == 0;
}

static inline void svi_stat_ring_reset(struct svi_stat_ring *r) {
    r->slot = r->filled = 0;
}

/* Archives all but the window, under two names. Returns svi_archive_ok; only then may the owner use `filled`.
 */
static inline bool svi_stat_ring_archive_as(struct svi_archive *a, const char *filled, const char *slot,
                                            struct svi_stat_ring *r) {
    svi_archive_int64(a, filled, &r->filled, 0, r->window);
    svi_archive_int64(a, slot, &r->slot, 0, r->window - 1);
    return svi_archive_check(a, r->filled == r->window || r->slot == r->filled, "a ring has a hole");
}

static inline bool svi_stat_ring_archive(struct svi_archive *a, struct svi_stat_ring *r) {
    return svi_stat_ring_archive_as(a, "filled", "slot", r);
}

#endif
