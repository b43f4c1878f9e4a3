/* kafka_partition_internal.h: what the parts of a partition (kafka_partition*.c) call of each other. */
#ifndef KAFKA_PARTITION_INTERNAL_H
#define KAFKA_PARTITION_INTERNAL_H

#include "kafka_partition.h"

/* Everything of it begins again after a pause, from the checkpoint in the topic. Frees nothing yet, so a call
 * of the child may use it. */
void kafka_partition_fail(struct kafka_partition *p, const char *why);

/* Begins to read the state topic; takes what was read of it, and of the events (kafka_partition_recall.c). */
void kafka_partition_recall(struct kafka_partition *p);
void kafka_partition_take(struct kafka_partition *p);

/* Starts the model on what was found; continues to RUNS once it answers; reads where it stands; and hands
 * entries to it (kafka_partition_model.c). */
void kafka_partition_save(struct kafka_partition *p); /* asks the model for a checkpoint */
void kafka_partition_start(struct kafka_partition *p);
void kafka_partition_started(struct kafka_partition *p);
void kafka_partition_follow(struct kafka_partition *p);
void kafka_partition_entries(struct kafka_partition *p);

#endif
