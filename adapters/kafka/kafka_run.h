/* kafka_run.h: a worker: the models of the partitions that its group gives it. */
#ifndef KAFKA_RUN_H
#define KAFKA_RUN_H

#include "kafka_options.h"

/* `stop`: a descriptor that becomes readable when the program is to end. Returns the exit code. */
int kafka_run(struct kafka_options *o, int stop);

#endif
