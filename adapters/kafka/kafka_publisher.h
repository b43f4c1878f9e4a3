/* kafka_publisher.h: what the owner of a partition writes: its events, sums and checkpoints, in order.
 *
 * Records wait in a queue here until the brokers have them for good. With transactions they are
 * written in transactions of some tenths of a second, under an id of the partition (STREAM-0). A
 * process that opens the publisher of a partition ends all earlier ones: their next commit fails
 * (fenced). Readers of committed records never see what these had begun. Without transactions an
 * idempotent producer writes the records. It writes nothing twice by repetition, but it does not
 * stop an earlier owner that is still at work. */
#ifndef KAFKA_PUBLISHER_H
#define KAFKA_PUBLISHER_H

#include "base/bytes.h"
#include "kafka_conf.h"

enum kafka_topic { KAFKA_TOPIC_STATE, KAFKA_TOPIC_SUMS, KAFKA_TOPIC_OUT, KAFKA_TOPIC_COUNT };

enum kafka_publishing {
    PUBLISHER_BEGINNING, /* earlier owners are being ended; nothing is written yet */
    PUBLISHER_READY,     /* no transaction is open */
    PUBLISHER_OPEN,      /* ... or one is */
    PUBLISHER_COMMITTING,
    PUBLISHER_ABORTING, /* its records are written again in a further one */
    PUBLISHER_FENCED,   /* final: another worker owns the partition */
    PUBLISHER_FAILED    /* final: `why` */
};

struct kafka_publisher {
    struct kafka_origin origin;
    rd_kafka_t *producer;
    rd_kafka_topic_t *topic[KAFKA_TOPIC_COUNT];
    rd_kafka_queue_t *events;
    int partition;
    bool transactional;
    enum kafka_publishing phase;
    double opened;          /* svi_monotonic: when the transaction was opened */
    struct svi_bytes queue; /* records: struct kafka_record and its bytes each */
    size_t first,
        at; /* offsets in the queue of the first record that is not safe, and of the next one to write */
    int64_t put, written, safe; /* records so far; safe <= written <= put */
    int64_t reported;           /* of those written since `safe`: delivery reports */
    int64_t
        end[KAFKA_TOPIC_COUNT]; /* offset after the last record of ours that a broker reported; -1: none */
    int64_t dropped;            /* records that no broker takes: reported, and left out */
    int64_t failures, aborted;
    bool broken; /* a record of this transaction failed */
    svs_error why;
};

/* Begins. `names`: of the topics. SVS_SETTING, SVS_IO. kafka_publisher_close in any case. */
svs_code kafka_publisher_open(struct kafka_publisher *p, struct kafka_settings *settings, const char *id,
                              const char *const names[KAFKA_TOPIC_COUNT], int partition, bool transactional,
                              int wake, svs_error *err);
void kafka_publisher_close(struct kafka_publisher *p);

/* Queues a record, copied. SVS_NO_MEMORY. `value` NULL: the key is deleted where the topic is compacted. */
svs_code kafka_publisher_put(struct kafka_publisher *p, enum kafka_topic topic, const char *key,
                             const void *value, size_t size, svs_error *err);

/* Bytes that wait: the caller stops above some MiB. */
size_t kafka_publisher_waiting(const struct kafka_publisher *p);

/* Does what is possible now. Blocks for some ms while a transaction begins or ends. */
void kafka_publisher_turn(struct kafka_publisher *p);

/* Seconds until a turn has something to do, unless `wake` is written to before. */
double kafka_publisher_wait(const struct kafka_publisher *p);

#endif
