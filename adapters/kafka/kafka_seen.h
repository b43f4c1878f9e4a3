/* kafka_seen.h: the last event of each topic that a partition has published, so that a replay after a
 * takeover publishes none twice. */
#ifndef KAFKA_SEEN_H
#define KAFKA_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

struct kafka_seen {
    void *tree; /* by topic; zero-initialised is empty */
    int64_t count;
};

/* Notes an event that is in the log: `payload`, a msgpack map with `epoch` and `seq`, whatever else it is;
 * one without them is ignored. SVS_NO_MEMORY. */
svs_code kafka_seen_note(struct kafka_seen *s, const char *topic, size_t length, const void *payload,
                         size_t size, svs_error *err);

/* Is this event, or a later one of its topic and epoch, in the log? */
bool kafka_seen_has(const struct kafka_seen *s, const char *topic, size_t length, const void *payload,
                    size_t size);

void kafka_seen_clear(struct kafka_seen *s);

#endif
