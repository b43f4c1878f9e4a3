/* kafka_group.h: membership of a consumer group: which partitions are this worker's. Nothing is consumed
 * here: the partitions are read elsewhere, from the offsets that are kept with the models. */
#ifndef KAFKA_GROUP_H
#define KAFKA_GROUP_H

#include "kafka_options.h"

struct kafka_group {
    struct kafka_origin origin;
    rd_kafka_t *consumer;
    rd_kafka_queue_t *queue;
    rd_kafka_event_t *revoking; /* a rebalance that waits for kafka_group_release; NULL: none */
    const char *topic;
    bool leaving;
    /* A partition is ours; no longer. `lost`: the group has given it to another already. */
    void (*assigned)(void *user, int partition);
    void (*revoked)(void *user, int partition, bool lost);
    void *user;
};

/* Joins. The calls and `user` are set before. SVS_SETTING, SVS_IO. kafka_group_close in any case. */
svs_code kafka_group_open(struct kafka_group *g, struct kafka_options *o, int wake, svs_error *err);
void kafka_group_close(struct kafka_group *g);

/* Takes what has happened. */
void kafka_group_turn(struct kafka_group *g);

/* All partitions that were revoked have been given up. */
void kafka_group_release(struct kafka_group *g);

/* Seconds of silence after which the group counts a worker as dead. */
double kafka_group_session(const struct kafka_group *g);

/* Leaves the group; turns follow until kafka_group_left. */
void kafka_group_leave(struct kafka_group *g);
bool kafka_group_left(const struct kafka_group *g);

#endif
