/* redis_read.h: the commands that read what workers have written: `sums` and `status`. */
#ifndef REDIS_READ_H
#define REDIS_READ_H

#include "redis_options.h"

/* Each returns the exit code. */
int redis_sums_run(const struct redis_options *o);
int redis_status_run(const struct redis_options *o);

#endif
