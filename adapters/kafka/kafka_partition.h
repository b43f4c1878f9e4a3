/* kafka_partition.h: one partition that this worker owns: its model in a `svmstream run` of its own, what is
 * read for it, and what it writes. */
#ifndef KAFKA_PARTITION_H
#define KAFKA_PARTITION_H

#include <zmq.h>

#include "../common/partition_child.h"
#include "kafka_group.h"
#include "kafka_reader.h"
#include "kafka_saving.h"
#include "kafka_seen.h"

/* X(name): what all partitions of a worker count. */
#define KAFKA_COUNTERS(X)                                                                                    \
    X(entries)      /* read from the log and handed on */                                                    \
    X(undecodable)  /* of the log, that are no messages */                                                   \
    X(refused)      /* samples */                                                                            \
    X(events)       /* published */                                                                          \
    X(repeated)     /* events that were in the log already */                                                \
    X(events_lost)  /* between the model and this program */                                                 \
    X(checkpoints)  /* stored */                                                                             \
    X(takeovers)    /* partitions begun */                                                                   \
    X(restarts)     /* partitions begun again after a failure */                                             \
    X(fenced)       /* partitions that another worker took */                                                \
    X(offsets_lost) /* offsets that the log dropped before they were read */

struct kafka_counters {
#define X(name) int64_t name;
    KAFKA_COUNTERS(X)
#undef X
};

/* What the partitions of a worker share. */
struct kafka_worker {
    struct kafka_options *o;
    char topic[KAFKA_TOPIC_COUNT][KAFKA_TOPIC]; /* names */
    struct kafka_readers readers;
    struct kafka_group group;
    struct kafka_counters counters;
    void *context; /* of ZeroMQ */
    int wake;      /* descriptor that the clients write to */
    bool met;      /* a model has answered once: the arguments are good */
    bool hopeless; /* none ever did, and the first has ended: the reason was logged */
};

enum kafka_phase {
    PHASE_WAITS,    /* after a failure, until `again` */
    PHASE_FENCES,   /* earlier owners are being ended */
    PHASE_RECALLS,  /* the newest checkpoint is being read */
    PHASE_COMPARES, /* ... and the events published after it */
    PHASE_STARTS,   /* the model is being started from it */
    PHASE_RUNS,
    PHASE_REMOVED /* given up, or taken by another worker: free it */
};

struct kafka_partition {
    struct kafka_worker *worker;
    int number;
    enum kafka_phase phase;
    double again, pause, save_due, leave_by;
    bool leaving, last_saved; /* revoked; its last checkpoint has been begun */
    bool first;               /* no checkpoint existed: one is stored before the first entry */
    bool sent;                /* an entry went to the model */
    bool saving;              /* a checkpoint was asked of the model */
    int64_t saving_out;       /* end of what was published by then, an offset in STREAM.out */
    int64_t compared_from; /* offset in STREAM.out from which events of earlier owners were read; -1: all */
    int64_t repeats_to; /* end of the entries when the partition was taken: none was read beyond it before */
    struct kafka_publisher publisher;
    struct kafka_reader reader, claims; /* claims: the state topic, after what was recalled */
    struct state_reader state;
    struct kafka_seen seen;
    struct kafka_saving store;
    struct partition_child *child;
    int64_t generation;
    int64_t offset;   /* of the next entry to read */
    int64_t stored;   /* offset of the newest checkpoint in the topic */
    int64_t recalled; /* offset in the state topic */
    uint64_t claim;   /* epoch under which we own the partition */
    uint64_t epoch;   /* of the next checkpoint */
    uint64_t limit;   /* checkpoints from this one on are refused by svmstream; 0: none */
    bool more;        /* records wait that no descriptor reports */
    int64_t skipped, gaps,
        refusals; /* occasions, for the log: undecodable entries, lost events, refused entries */
};

/* Begins. NULL: no memory, logged. */
struct kafka_partition *kafka_partition_new(struct kafka_worker *w, int number);

/* Ends what runs, at once; frees. */
void kafka_partition_free(struct kafka_partition **p);

/* Give it up: with a last checkpoint, within `seconds`. The phase becomes PHASE_REMOVED. */
void kafka_partition_leave(struct kafka_partition *p, double seconds);

int kafka_partition_items(const struct kafka_partition *p, zmq_pollitem_t *items); /* PARTITION_CHILD_ITEMS */
double kafka_partition_wait(const struct kafka_partition *p);
void kafka_partition_turn(struct kafka_partition *p);

#endif
