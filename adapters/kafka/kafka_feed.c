/* feed: rows of files into the log, as entries (feed_entries), by an idempotent producer: a record that had
 * to be sent again is in the log once, and in its order. What the brokers confirm is counted by the delivery
 * reports; a row that they did not take makes the command fail. */
#include "kafka_feed.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "../common/feed_entries.h"
#include "base/clock.h"
#include "base/fail.h"
#include "kafka_log.h"

#define CONNECT_SECONDS 15.0
#define POLL_MS         100

struct kafka_feed {
    const struct kafka_options *o;
    struct kafka_origin origin;
    rd_kafka_t *producer;
    rd_kafka_topic_t *topic;
    int64_t failed, confirmed; /* samples */
    int64_t losses;            /* records that were not taken, for the log */
    int stop;
    bool stopped;
};

/* The number of samples of a record travels as its opaque pointer. */
static void kafka_feed_report(rd_kafka_t *client, const rd_kafka_message_t *m, void *origin) {
    struct kafka_feed *f = ((struct kafka_origin *)origin)->user;
    const int64_t count = (int64_t)(intptr_t)m->_private;
    char text[700];
    (void)client;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        f->confirmed += count;
        return;
    }
    f->failed += count;
    kafka_log_few(++f->losses, "an entry of %" PRId64 " samples was not taken: %s", count,
                  kafka_error_text(m->err, NULL, text, sizeof text));
}

static bool kafka_feed_idle(void *user) {
    struct kafka_feed *f = user;
    struct pollfd item = {f->stop, POLLIN, 0};
    rd_kafka_poll(f->producer, 0);
    f->stopped = f->stopped || poll(&item, 1, 0) > 0;
    return !f->stopped;
}

static void kafka_feed_log(void *user, const char *text) {
    (void)user;
    kafka_log("%s", text);
}

/* A full queue waits for the brokers; they have message.timeout.ms, after which a record fails. */
static svs_code kafka_feed_entry(void *user, int partition, const void *bytes, size_t size, int count,
                                 svs_error *err) {
    struct kafka_feed *f = user;
    char text[700];
    for (;;) {
        if (rd_kafka_produce(f->topic, partition, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)bytes, size, NULL,
                             0, (void *)(intptr_t)count) == 0)
            break;
        const rd_kafka_resp_err_t code = rd_kafka_last_error();
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            return svi_fail(err, SVS_IO, "%s", kafka_error_text(code, NULL, text, sizeof text));
        rd_kafka_poll(f->producer, POLL_MS);
        if (!kafka_feed_idle(f))
            return svi_fail(err, SVS_IO, "ended by a signal");
    }
    rd_kafka_poll(f->producer, 0);
    return kafka_feed_idle(f) ? SVS_OK : svi_fail(err, SVS_IO, "ended by a signal");
}

static svs_code kafka_feed_open(struct kafka_feed *f, int *partitions, svs_error *err) {
    const struct kafka_options *o = f->o;
    static const char *const ours[] = {"enable.idempotence", "true", NULL};
    rd_kafka_conf_t *conf = kafka_conf_new(&f->origin, ours);
    rd_kafka_conf_set_dr_msg_cb(conf, kafka_feed_report);
    if (!(f->producer = kafka_client_new(RD_KAFKA_PRODUCER, conf, err)))
        return err->code;
    if ((*partitions = kafka_partitions(f->producer, o->topic, CONNECT_SECONDS, err)) == 0)
        return err->code;
    f->topic = rd_kafka_topic_new(f->producer, o->topic, NULL);
    return f->topic
               ? SVS_OK
               : svi_fail(err, SVS_IO, "topic %s: %s", o->topic, rd_kafka_err2str(rd_kafka_last_error()));
}

static svs_code kafka_feed_all(struct kafka_feed *f, struct feed_entries_figures *figures, svs_error *err) {
    const struct kafka_options *o = f->o;
    int partitions = 0;
    SVI_TRY(kafka_feed_open(f, &partitions, err));
    const struct feed_entries_options rows = {.settings = o->settings,
                                              .column = o->column,
                                              .partitions = partitions,
                                              .batch = (int)o->batch,
                                              .bytes = (size_t)o->entry_bytes,
                                              .packed = o->packed,
                                              .quiet = o->quiet,
                                              .entry = kafka_feed_entry,
                                              .idle = kafka_feed_idle,
                                              .log = kafka_feed_log,
                                              .user = f};
    return feed_entries_run(&rows, o->files, o->file_count, figures, err);
}

int kafka_feed(struct kafka_options *o, int stop) {
    struct kafka_feed f = {.o = o, .origin = {&o->kafka, &f}, .stop = stop};
    struct feed_entries_figures figures = {0};
    svs_error err = {0};
    const double start = svi_monotonic();
    const svs_code code = kafka_feed_all(&f, &figures, &err);
    if (code != SVS_OK)
        kafka_log("%s", err.text);
    /* Every record ends in a report: taken, or failed after message.timeout.ms. */
    while (f.topic && rd_kafka_outq_len(f.producer) > 0 && !f.stopped) {
        rd_kafka_poll(f.producer, POLL_MS);
        kafka_feed_idle(&f);
    }
    const int64_t waiting = figures.rows - f.confirmed - f.failed;
    if (f.topic && (!o->quiet || f.failed > 0 || waiting > 0))
        kafka_log("%" PRId64 " samples in %" PRId64 " entries are in topic %s, after %.2f s; %" PRId64
                  " were not taken, %" PRId64 " not confirmed, %" PRId64 " rows could not be read",
                  f.confirmed, figures.entries, o->topic, svi_monotonic() - start, f.failed,
                  waiting > 0 ? waiting : 0, figures.unread);
    if (f.topic)
        rd_kafka_topic_destroy(f.topic);
    if (f.producer) {
        rd_kafka_purge(f.producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_destroy_flags(f.producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    }
    return code != SVS_OK || f.failed > 0 || waiting > 0 || figures.unread > 0 ? 1 : 0;
}
