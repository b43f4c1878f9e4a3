/* redis_part.h: one partition of the stream, as a worker sees it: whose it is and, while it is ours, its
 * process, its place in the log, its events and its checkpoints.
 *
 *     FREE -> (lease) -> FETCHING the checkpoint -> RUNNING -> CLOSING (last checkpoint) -> FREE
 *
 * In RUNNING the log is read after the place that the process states, entries go to it, its events go to
 * :out, and from time to time a checkpoint goes to :state, after which the log is trimmed below it. A write
 * that the fence refuses ends all of that at once: another worker has the partition. A process that dies is
 * begun from the stored checkpoint, as at a takeover; the events of the samples that it takes again are
 * known in :out by their order and written once. */
#ifndef REDIS_PART_H
#define REDIS_PART_H

#include "../common/partition_child.h"
#include "redis_scripts.h"

#define REDIS_LANE_LEASE 0 /* commands of leases wait for nothing else */
#define REDIS_LANE_WRITE 1
#define REDIS_LANE_READ  2 /* plus the partition: a read may block */

enum redis_part_state { REDIS_PART_FREE, REDIS_PART_FETCHING, REDIS_PART_RUNNING, REDIS_PART_CLOSING };

/* What all partitions of a worker share; owned by the worker. */
struct redis_shared {
    struct redis_client *client;
    const char *stream;
    const char *id;               /* of this worker */
    const char *folder;           /* of the partitions */
    const char *program;          /* svmstream; NULL: found by partition_child */
    const char *const *arguments; /* of `svmstream run`, of the user */
    int argument_count;
    unsigned topics; /* bit t: events that are wanted */
    int64_t keep;    /* entries of :out */
    double save;     /* seconds between checkpoints */
    double lease;    /* seconds */
    int64_t wait;    /* replicas that must have an entry before it is learned */
    bool trim;       /* the log below a stored checkpoint */
    void *context;   /* ZeroMQ's */
    /* Counted over all partitions. */
    int64_t entries, refused, events, lost, rewound, fenced, takeovers, checkpoints;
};

struct redis_part;

/* Owner: the caller. */
struct redis_part *redis_part_new(struct redis_shared *shared, int number);
void redis_part_free(struct redis_part **p);

enum redis_part_state redis_part_state(const struct redis_part *p);
bool redis_part_busy(const struct redis_part *p);   /* ours, or its lease was asked for */
bool redis_part_wanted(const struct redis_part *p); /* FREE, and its lease may be asked for now */

/* Asks for the lease, if it is FREE and no request is under way. */
void redis_part_take(struct redis_part *p);

/* Extends the lease, if it is ours. */
void redis_part_renew(struct redis_part *p);

/* Ends the work orderly: a last checkpoint, then the lease is given up. */
void redis_part_close(struct redis_part *p);

int redis_part_items(const struct redis_part *p, zmq_pollitem_t *items); /* PARTITION_CHILD_ITEMS at most */
double redis_part_wait(const struct redis_part *p);                      /* seconds until a turn is due */
void redis_part_turn(struct redis_part *p);

#endif
