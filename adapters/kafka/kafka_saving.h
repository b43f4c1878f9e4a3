/* kafka_saving.h: a checkpoint's file on its way into STREAM.state: piece after piece, as fast as the
 * publisher takes them, then the closing record. */
#ifndef KAFKA_SAVING_H
#define KAFKA_SAVING_H

#include <stdbool.h>

#include "kafka_publisher.h"
#include "state_topic.h"

#define KAFKA_KEPT 2 /* checkpoints that are kept in the topic, the newest included */

struct kafka_saving {
    bool active; /* a file is being written, or is not safe yet */
    int fd;      /* -1: all of it is in the publisher */
    uint64_t epoch;
    struct state_closing closing;
    int64_t piece; /* next one */
    int64_t until; /* the checkpoint is stored once the publisher has made this many records safe */
    /* Stored before: epochs and pieces, the newest first; those beyond KAFKA_KEPT are deleted. */
    struct {
        uint64_t epoch;
        int64_t pieces;
    } kept[KAFKA_KEPT + 1];
};

/* Begins; the file may be removed afterwards. `what`: at, out and state are set. SVS_IO, SVS_NO_MEMORY. */
svs_code kafka_saving_begin(struct kafka_saving *s, const char *path, uint64_t epoch,
                            const struct state_closing *what, svs_error *err);

/* Continues. *stored: the checkpoint is in the topic for good; reported once. */
svs_code kafka_saving_turn(struct kafka_saving *s, struct kafka_publisher *p, bool *stored, svs_error *err);

/* Deletes what the topic holds besides the checkpoint that was found: an older one, what owners that were
 * killed left unfinished, their claims. */
svs_code kafka_saving_tidy(struct kafka_publisher *p, const struct state_reader *found, svs_error *err);

/* Notes a checkpoint that is in the topic already. */
void kafka_saving_found(struct kafka_saving *s, uint64_t epoch, int64_t pieces);

void kafka_saving_end(struct kafka_saving *s);

#endif
