/* kafka_feed.h: sends rows of files to the log, as entries. */
#ifndef KAFKA_FEED_H
#define KAFKA_FEED_H

#include "kafka_options.h"

/* `stop`: a descriptor that becomes readable when the program is to end. Returns the exit code. */
int kafka_feed(struct kafka_options *o, int stop);

#endif
