/* Records of one partition, through the part of librdkafka that knows no groups: it is given an
 * offset. Each partition has a queue of its own, so one with a slow model delays no other. The
 * client stops fetching for a partition whose queue is full (queued.max.messages.kbytes). */
#include "kafka_reader.h"

#include <string.h>

#include "base/fail.h"

#define RANGE_MS 2000

svs_code kafka_readers_open(struct kafka_readers *r, struct kafka_settings *settings, int wake,
                            svs_error *err) {
    static const char *const soft[][2] = {{"queued.max.messages.kbytes", "8192"},
                                          {"fetch.wait.max.ms", "100"}};
    const char *ours[16] = {"group.id",
                            "svmstream-reader",
                            "enable.auto.commit",
                            "false",
                            "isolation.level",
                            "read_committed",
                            "auto.offset.reset",
                            "error",
                            "enable.partition.eof",
                            "true"};
    int n = 10;
    /* Where the user has no other wish: each partition has a queue, and the end of a topic is known only when
     * a fetch that waits for more returns. */
    for (int i = 0; i < 2; i++)
        if (!kafka_settings_has(settings, soft[i][0])) {
            ours[n++] = soft[i][0];
            ours[n++] = soft[i][1];
        }
    *r = (struct kafka_readers){.origin = {settings, r}, .wake = wake};
    r->client = kafka_client_new(RD_KAFKA_CONSUMER, kafka_conf_new(&r->origin, ours), err);
    return r->client ? SVS_OK : err->code;
}

void kafka_readers_close(struct kafka_readers *r) {
    if (r->client)
        rd_kafka_destroy_flags(r->client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    r->client = NULL;
}

svs_code kafka_reader_start(struct kafka_reader *r, struct kafka_readers *readers, const char *topic,
                            int partition, int64_t offset, svs_error *err) {
    const uint64_t one = 1;
    kafka_reader_stop(r);
    *r = (struct kafka_reader){.readers = readers, .partition = partition};
    r->topic = rd_kafka_topic_new(readers->client, topic, NULL);
    r->queue = rd_kafka_queue_new(readers->client);
    rd_kafka_queue_io_event_enable(r->queue, readers->wake, &one, sizeof one);
    if (r->topic && rd_kafka_consume_start_queue(r->topic, partition, offset, r->queue) == 0)
        return SVS_OK;
    svi_fail(err, SVS_IO, "topic %.200s: %s", topic, rd_kafka_err2str(rd_kafka_last_error()));
    if (r->topic)
        rd_kafka_topic_destroy(r->topic);
    rd_kafka_queue_destroy(r->queue);
    *r = (struct kafka_reader){0};
    return err->code;
}

void kafka_reader_stop(struct kafka_reader *r) {
    if (!r->topic)
        return;
    rd_kafka_consume_stop(r->topic, r->partition);
    rd_kafka_queue_io_event_enable(r->queue, -1, NULL, 0);
    rd_kafka_queue_destroy(r->queue);
    rd_kafka_topic_destroy(r->topic);
    *r = (struct kafka_reader){0};
}

rd_kafka_message_t *kafka_reader_next(struct kafka_reader *r) {
    return r->topic ? rd_kafka_consume_queue(r->queue, 0) : NULL;
}

bool kafka_reader_out_of_range(rd_kafka_resp_err_t code) {
    return code == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || code == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE ||
           code == RD_KAFKA_RESP_ERR__NO_OFFSET;
}

svs_code kafka_reader_range(struct kafka_readers *readers, const char *topic, int partition, int64_t *low,
                            int64_t *high, svs_error *err) {
    char text[700];
    const rd_kafka_resp_err_t code =
        rd_kafka_query_watermark_offsets(readers->client, topic, partition, low, high, RANGE_MS);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? SVS_OK
                                              : svi_fail(err, SVS_IO, "topic %.200s: %s", topic,
                                                         kafka_error_text(code, NULL, text, sizeof text));
}
