/* kafka_sums.h: writes the sums of all partitions to standard output. */
#ifndef KAFKA_SUMS_H
#define KAFKA_SUMS_H

#include "kafka_options.h"

/* `stop`: a descriptor that becomes readable when the program is to end. Returns the exit code. */
int kafka_sums(struct kafka_options *o, int stop);

#endif
