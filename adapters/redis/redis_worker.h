/* redis_worker.h: the command `run` of svmstream-redis: a worker that learns partitions. */
#ifndef REDIS_WORKER_H
#define REDIS_WORKER_H

#include "redis_options.h"

/* Returns the exit code. */
int redis_worker_run(const struct redis_options *o);

#endif
