/* redis_feed.h: the command `feed`: rows of files into the partitions of the log. */
#ifndef REDIS_FEED_H
#define REDIS_FEED_H

#include "redis_options.h"

/* Returns the exit code. */
int redis_feed_run(const struct redis_options *o);

#endif
