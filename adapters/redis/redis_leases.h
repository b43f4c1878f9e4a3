/* redis_leases.h: which partitions a worker holds.
 *
 * Fixed ones (--partitions 0-3): it takes all of them and gives none up. Shared ones: the workers register in
 * {STREAM}:workers for the length of a lease; of P partitions and W workers each takes its share, P / W, the
 * first ones in the order of their ids one more. A worker that holds more than its share gives one up at a
 * time, with a checkpoint. A lease is renewed four times in its length. */
#ifndef REDIS_LEASES_H
#define REDIS_LEASES_H

#include "redis_part.h"

struct redis_leases {
    struct redis_shared *shared;
    struct redis_part **part; /* [count], owned; NULL: a partition that is not ours to take */
    int count, fixed;         /* fixed: number of partitions that were named; 0: shared */
    int workers, rank;        /* 0 workers: not known yet */
    bool beating, closing;
    int64_t refusals; /* for redis_log_few */
    double beat;      /* svi_monotonic: next registration */
    double renew;     /* svi_monotonic: next renewal */
    double balance;   /* svi_monotonic: no partition is given up for others before */
    struct redis_names names;
};

/* `wanted`: a flag a partition, or NULL: all are shared. */
void redis_leases_open(struct redis_leases *l, struct redis_shared *s, int count, const bool *wanted);
void redis_leases_free(struct redis_leases *l);

/* Gives all up, orderly. */
void redis_leases_close(struct redis_leases *l);

int redis_leases_held(const struct redis_leases *l); /* partitions that are ours, or being given up */
double redis_leases_wait(const struct redis_leases *l);
void redis_leases_turn(struct redis_leases *l);

#endif
