/* store_common.h: records whose content is known from their number, the state they make, and recovery of both
 * through the store's own interface, as the engine does it: newest sound checkpoint, then the journal behind
 * it.
 *
 * Record n is made from (seed, n, cycle): a cycle is one process that wrote to the folder, counted from 1. So
 * a record that an earlier cycle wrote at the same place is told from the one that replaced it, and any
 * prefix of the journal is described by the spans of the cycles that wrote it. */
#ifndef STORE_COMMON_H
#define STORE_COMMON_H

#include <stddef.h>

#include "store/checkpoint_file.h"

#define SPANS_MAX        64
#define PAYLOAD_MIN      16
#define PAYLOAD_MAX      2200
#define CHECKPOINTS_KEPT 2

struct span {
    uint64_t first, cycle; /* records from `first` on are by `cycle` */
};

/* The state after `count` records. Nothing but 64-bit numbers: kept as its bytes. */
struct state {
    uint64_t count, hash, spans;
    struct span span[SPANS_MAX];
};

/* Fills in record n; returns its size. */
size_t known_payload(uint64_t seed, uint64_t n, uint64_t cycle, uint8_t out[PAYLOAD_MAX]);
int known_kind(uint64_t n);
double known_time(uint64_t n);

/* Takes the next record into the state. False: no more spans. */
bool state_take(struct state *s, uint64_t cycle, const uint8_t *payload, size_t size);

/* The state as a checkpoint at this position, and back. */
svs_code state_save(const struct state *s, uint64_t seed, uint64_t epoch, struct svi_position position,
                    struct svi_checkpoint *c, svs_error *err);

/* What was found in a folder. */
struct recovered {
    struct state state;
    struct svi_journal_found journal;
    uint64_t epoch;
    int damaged;     /* checkpoints that could not be read */
    char wrong[256]; /* what was accepted although it is none of ours; "" = nothing */
};

/* SVS_OK with `wrong` to be looked at, or the store's own error. */
svs_code recover(const struct svi_state_dir *f, uint64_t seed, struct recovered *r, svs_error *err);

#endif
