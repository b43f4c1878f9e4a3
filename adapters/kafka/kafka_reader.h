/* kafka_reader.h: records of one partition of a topic in order, from an offset on. Committed ones only. */
#ifndef KAFKA_READER_H
#define KAFKA_READER_H

#include "kafka_conf.h"

/* The client that all partitions share; made once. */
struct kafka_readers {
    struct kafka_origin origin;
    rd_kafka_t *client;
    int wake;
};

struct kafka_reader {
    struct kafka_readers *readers;
    rd_kafka_topic_t *topic; /* owned; NULL: nothing is being read */
    rd_kafka_queue_t *queue;
    int partition;
};

/* SVS_SETTING. kafka_readers_close in any case, after all readers have stopped. */
svs_code kafka_readers_open(struct kafka_readers *r, struct kafka_settings *settings, int wake,
                            svs_error *err);
void kafka_readers_close(struct kafka_readers *r);

/* Begins to read at `offset`, or at RD_KAFKA_OFFSET_BEGINNING; ends what was read before. SVS_IO. */
svs_code kafka_reader_start(struct kafka_reader *r, struct kafka_readers *readers, const char *topic,
                            int partition, int64_t offset, svs_error *err);
void kafka_reader_stop(struct kafka_reader *r);

/* The next record, or an error (RD_KAFKA_RESP_ERR__PARTITION_EOF: the end, for now); NULL: none has arrived.
 * The caller destroys it. */
rd_kafka_message_t *kafka_reader_next(struct kafka_reader *r);

/* Is the error that of an offset that the topic does not have? */
bool kafka_reader_out_of_range(rd_kafka_resp_err_t code);

/* The first offset that the partition has, and the one after its last. Blocks for at most 2 s. SVS_IO. */
svs_code kafka_reader_range(struct kafka_readers *readers, const char *topic, int partition, int64_t *low,
                            int64_t *high, svs_error *err);

#endif
