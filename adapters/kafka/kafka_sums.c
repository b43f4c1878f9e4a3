/* sums: the records of STREAM.sums on standard output, one after another as they were published (msgpack
 * maps, nothing between them), for `svmstream merge -`. Records are absolute and the largest (epoch, offset)
 * of a part wins, so the whole topic can be written again after every start. */
#include "kafka_sums.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "kafka_log.h"
#include "wire/cursor.h"

#define CONNECT_SECONDS 15.0
#define POLL_MS         100

struct kafka_sums {
    const struct kafka_options *o;
    struct kafka_origin origin;
    rd_kafka_t *consumer;
    bool *ended; /* [partitions] at the end of the partition */
    int64_t foreign;
    int partitions;
};

static svs_code sums_open(struct kafka_sums *s, svs_error *err) {
    const struct kafka_options *o = s->o;
    /* A group is demanded by the library; nothing is ever committed to it. */
    const char *const ours[] = {"group.id", o->group, "enable.auto.commit", "false", "enable.partition.eof",
                                "true",     NULL};
    char topic[KAFKA_TOPIC];
    snprintf(topic, sizeof topic, "%s.sums", o->stream);
    if (!(s->consumer = kafka_client_new(RD_KAFKA_CONSUMER, kafka_conf_new(&s->origin, ours), err)) ||
        !(s->partitions = kafka_partitions(s->consumer, topic, CONNECT_SECONDS, err)))
        return err->code;
    rd_kafka_poll_set_consumer(s->consumer);
    if (!(s->ended = svi_alloc_array((size_t)s->partitions, sizeof *s->ended)))
        return svi_fail_memory(err, "the partitions");
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(s->partitions);
    for (int p = 0; p < s->partitions; p++)
        rd_kafka_topic_partition_list_add(list, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    const rd_kafka_resp_err_t code = rd_kafka_assign(s->consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? SVS_OK
               : svi_fail(err, SVS_IO, "%s: %s", topic, rd_kafka_err2str(code));
}

static bool sums_all_ended(const struct kafka_sums *s) {
    for (int p = 0; p < s->partitions; p++)
        if (!s->ended[p])
            return false;
    return true;
}

/* What is no whole map would make all that follows unreadable. */
static bool sums_write(struct kafka_sums *s, const rd_kafka_message_t *m) {
    const uint8_t *first = m->payload;
    svs_error err;
    const bool map = m->len > 0 && (*first >> 4 == 8 || *first == 0xde || *first == 0xdf);
    if (map && svi_msgpack_check(m->payload, m->len, SVI_WALK_MAX, &err) == SVS_OK)
        return fwrite(m->payload, 1, m->len, stdout) == m->len;
    if (m->payload) /* else a deletion */
        kafka_log_few(++s->foreign, "partition %d: the record at offset %" PRId64 " holds no sums: left out",
                      m->partition, m->offset);
    return true;
}

/* One record, or nothing. False: nobody reads the output. */
static bool sums_turn(struct kafka_sums *s) {
    rd_kafka_message_t *m = rd_kafka_consumer_poll(s->consumer, POLL_MS);
    bool good = true;
    char text[700];
    if (m && m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        s->ended[m->partition] = true;
    else if (m && m->err)
        kafka_log("%s", kafka_error_text(m->err, rd_kafka_message_errstr(m), text, sizeof text));
    else if (m)
        good = sums_write(s, m);
    /* A record that is alone is sent at once; a flood of them is written in blocks. */
    if (!m || m->err)
        good = good && fflush(stdout) == 0;
    if (m)
        rd_kafka_message_destroy(m);
    return good;
}

int kafka_sums(struct kafka_options *o, int stop) {
    struct kafka_sums s = {.o = o, .origin = {&o->kafka, NULL}};
    struct pollfd item = {stop, POLLIN, 0};
    svs_error err = {0};
    svs_code code = sums_open(&s, &err);
    while (code == SVS_OK && poll(&item, 1, 0) == 0 && !(o->once && sums_all_ended(&s)))
        if (!sums_turn(&s))
            code = svi_fail(&err, SVS_IO, "standard output: %s", strerror(errno));
    if (code == SVS_OK && fflush(stdout) != 0)
        code = svi_fail(&err, SVS_IO, "standard output: %s", strerror(errno));
    if (code != SVS_OK)
        kafka_log("%s", err.text);
    if (s.consumer)
        rd_kafka_destroy(s.consumer);
    svi_free(s.ended);
    return code == SVS_OK ? 0 : 1;
}
