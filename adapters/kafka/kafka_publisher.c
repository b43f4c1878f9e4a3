/* What the owner of a partition writes.
 *
 * The queue holds records from `first` (not safe yet) over `at` (not written yet) to its end. A turn opens a
 * transaction, writes what waits, and after TRANSACTION_SECONDS commits it: only then do its records leave
 * the queue. A transaction that fails is aborted, `at` returns to `first`, and all of it is written again,
 * so the order of records is that of kafka_publisher_put, and each is committed once.
 *
 * A record that no broker will ever take (too large) must not fail each further attempt: its delivery report
 * marks it, and it is left out from then on, with a line and a count.
 *
 * Without transactions records are safe when the delivery reports of all that was written are there.
 *
 * Fencing: rd_kafka_init_transactions makes the coordinator raise the epoch of the transactional id. An
 * earlier owner's commit fails from that moment on (PUBLISHER_FENCED), and what it had not committed is
 * aborted. */
#include "kafka_publisher.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "kafka_log.h"

#define TRANSACTION_SECONDS 0.1
#define TRANSACTION_BYTES   ((size_t)4 << 20) /* written in one transaction, at most */
/* That a step of a transaction may block. A call that timed out continues in the background, and is
 * resumed by calling again. But librdkafka 2.0.2 forgets which call that was if its own thread has
 * not answered meanwhile. The resumed call then fails ("Erroneous state"), and librdkafka aborts
 * the process when the outcome arrives ("Invalid transaction state transition"). Its thread answers
 * within milliseconds, except on a machine without a free processor. */
#define STEP_MS             2000
#define AGAIN_SECONDS       0.05

struct kafka_record {
    uint32_t size, key; /* bytes of the value and of the key that follow */
    uint8_t topic;
    bool none, dropped; /* no value; left out */
};

static struct kafka_record publisher_read(const struct kafka_publisher *p, size_t at) {
    struct kafka_record r;
    memcpy(&r, p->queue.data + at, sizeof r);
    return r;
}

static size_t publisher_next(const struct kafka_publisher *p, size_t at) {
    const struct kafka_record r = publisher_read(p, at);
    return at + sizeof r + r.key + r.size;
}

/* ---- delivery reports */

/* Marks record number `number` (counted as `put`): no broker takes it. */
static void publisher_drop(struct kafka_publisher *p, int64_t number, const char *why) {
    size_t at = p->first;
    for (int64_t i = p->safe; i < number && at < p->queue.size; i++)
        at = publisher_next(p, at);
    if (number < p->safe || at >= p->queue.size)
        return;
    struct kafka_record r = publisher_read(p, at);
    if (r.dropped)
        return;
    r.dropped = true;
    memcpy(p->queue.data + at, &r, sizeof r);
    kafka_log_few(++p->dropped,
                  "partition %d: a record of %" PRIu32 " bytes with the key %.*s is left out: %s",
                  p->partition, r.size, (int)r.key, (const char *)p->queue.data + at + sizeof r, why);
}

static void publisher_report(rd_kafka_t *producer, const rd_kafka_message_t *m, void *origin) {
    struct kafka_publisher *p = ((struct kafka_origin *)origin)->user;
    char text[700];
    (void)producer;
    p->reported++;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        for (int t = 0; t < KAFKA_TOPIC_COUNT; t++)
            if (m->rkt == p->topic[t] && m->offset >= 0)
                p->end[t] = m->offset + 1;
        return;
    }
    p->broken = true;
    if (m->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        publisher_drop(p, (int64_t)(intptr_t)m->_private, kafka_error_text(m->err, NULL, text, sizeof text));
    else if (m->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE && m->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
        kafka_log_few(++p->failures, "partition %d: a record was not taken, and is written again: %s",
                      p->partition, kafka_error_text(m->err, NULL, text, sizeof text));
}

/* ---- open, close, put */

svs_code kafka_publisher_open(struct kafka_publisher *p, struct kafka_settings *settings, const char *id,
                              const char *const names[KAFKA_TOPIC_COUNT], int partition, bool transactional,
                              int wake, svs_error *err) {
    const char *const ours[] = {"enable.idempotence", "true", "transactional.id", id, NULL},
                      *const plain[] = {"enable.idempotence", "true", NULL};
    const uint64_t one = 1;
    *p = (struct kafka_publisher){
        .origin = {settings, p}, .partition = partition, .transactional = transactional};
    p->phase = transactional ? PUBLISHER_BEGINNING : PUBLISHER_READY;
    rd_kafka_conf_t *conf = kafka_conf_new(&p->origin, transactional ? ours : plain);
    rd_kafka_conf_set_dr_msg_cb(conf, publisher_report);
    if (!(p->producer = kafka_client_new(RD_KAFKA_PRODUCER, conf, err)))
        return err->code;
    for (int t = 0; t < KAFKA_TOPIC_COUNT; t++) {
        p->end[t] = -1;
        if (!(p->topic[t] = rd_kafka_topic_new(p->producer, names[t], NULL)))
            return svi_fail(err, SVS_IO, "topic %s: %s", names[t], rd_kafka_err2str(rd_kafka_last_error()));
    }
    p->events = rd_kafka_queue_get_main(p->producer);
    rd_kafka_queue_io_event_enable(p->events, wake, &one, sizeof one);
    return SVS_OK;
}

void kafka_publisher_close(struct kafka_publisher *p) {
    for (int t = 0; t < KAFKA_TOPIC_COUNT; t++)
        if (p->topic[t])
            rd_kafka_topic_destroy(p->topic[t]);
    if (p->events) {
        rd_kafka_queue_io_event_enable(p->events, -1, NULL, 0);
        rd_kafka_queue_destroy(p->events);
    }
    if (p->producer) {
        rd_kafka_purge(p->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_destroy(p->producer);
    }
    svi_bytes_clear(&p->queue);
    *p = (struct kafka_publisher){0};
}

svs_code kafka_publisher_put(struct kafka_publisher *p, enum kafka_topic topic, const char *key,
                             const void *value, size_t size, svs_error *err) {
    const struct kafka_record r = {
        .size = (uint32_t)size, .key = (uint32_t)strlen(key), .topic = (uint8_t)topic, .none = !value};
    /* What is safe leaves when it is most of the queue: each byte moves once, on average. */
    if (p->first > p->queue.size / 2) {
        memmove(p->queue.data, p->queue.data + p->first, p->queue.size - p->first);
        p->queue.size -= p->first;
        p->at -= p->first;
        p->first = 0;
    }
    if (size > UINT32_MAX || svi_bytes_reserve(&p->queue, sizeof r + r.key + size) != SVS_OK)
        return svi_fail_memory(err, "records that wait for the brokers");
    svi_bytes_append(&p->queue, &r, sizeof r);
    svi_bytes_append(&p->queue, key, r.key);
    if (size > 0)
        svi_bytes_append(&p->queue, value, size);
    p->put++;
    return SVS_OK;
}

size_t kafka_publisher_waiting(const struct kafka_publisher *p) {
    return p->queue.size - p->first;
}

/* ---- turns */

static void publisher_failed(struct kafka_publisher *p, rd_kafka_resp_err_t code, const char *reason) {
    char text[700];
    p->phase = PUBLISHER_FAILED;
    if (code == RD_KAFKA_RESP_ERR__FENCED || code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
        code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH)
        p->phase = PUBLISHER_FENCED;
    svi_fail(&p->why, SVS_IO, "%s", kafka_error_text(code, reason, text, sizeof text));
}

/* The outcome of a step of a transaction: true: it is done. Otherwise it is tried again, aborted, or final. A
 * fatal error of the client stands behind a step's own error code. */
static bool publisher_step(struct kafka_publisher *p, rd_kafka_error_t *error) {
    if (!error)
        return true;
    char why[400];
    const rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(p->producer, why, sizeof why),
                              code = rd_kafka_error_code(error);
    if (fatal)
        publisher_failed(p, fatal, why);
    else if (rd_kafka_error_txn_requires_abort(error))
        p->phase = PUBLISHER_ABORTING;
    else if (!rd_kafka_error_is_retriable(error) && code != RD_KAFKA_RESP_ERR__TIMED_OUT)
        publisher_failed(p, code, rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return false;
}

/* Writes what waits, as far as the client's queue and the bound of a transaction let it. */
static void publisher_write(struct kafka_publisher *p) {
    char text[700];
    while (p->at < p->queue.size && p->at - p->first < TRANSACTION_BYTES) {
        const struct kafka_record r = publisher_read(p, p->at);
        uint8_t *key = p->queue.data + p->at + sizeof r, *value = r.none ? NULL : key + r.key;
        if (!r.dropped && rd_kafka_produce(p->topic[r.topic], p->partition, RD_KAFKA_MSG_F_COPY, value,
                                           r.size, key, r.key, (void *)(intptr_t)p->written) != 0) {
            const rd_kafka_resp_err_t code = rd_kafka_last_error();
            if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
                publisher_drop(p, p->written, kafka_error_text(code, NULL, text, sizeof text));
            else if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL)
                return;
            else {
                p->broken = true;
                return;
            }
            p->reported++;
        } else if (r.dropped) {
            p->reported++;
        }
        p->at = publisher_next(p, p->at);
        p->written++;
    }
}

static void publisher_settle(struct kafka_publisher *p) {
    p->first = p->at;
    p->safe = p->written;
    p->reported = 0;
    p->broken = false;
    p->phase = PUBLISHER_READY;
}

static void publisher_go_back(struct kafka_publisher *p) {
    p->at = p->first;
    p->written = p->safe;
    p->reported = 0;
    p->broken = false;
    p->phase = PUBLISHER_READY;
}

/* Without transactions a failed record is written again with those after it, once all have been reported. */
static void publisher_turn_plain(struct kafka_publisher *p) {
    char why[400];
    const rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(p->producer, why, sizeof why);
    if (fatal)
        publisher_failed(p, fatal, why);
    else if (p->written > p->safe && p->reported >= p->written - p->safe && p->broken)
        publisher_go_back(p);
    else if (p->written > p->safe && p->reported >= p->written - p->safe)
        publisher_settle(p);
    if (p->phase == PUBLISHER_READY && !p->broken)
        publisher_write(p);
}

void kafka_publisher_turn(struct kafka_publisher *p) {
    rd_kafka_poll(p->producer, 0);
    if (p->phase >= PUBLISHER_FENCED)
        return;
    if (!p->transactional) {
        publisher_turn_plain(p);
        return;
    }
    if (p->phase == PUBLISHER_BEGINNING &&
        publisher_step(p, rd_kafka_init_transactions(p->producer, STEP_MS)))
        p->phase = PUBLISHER_READY;
    if (p->phase == PUBLISHER_READY && p->at < p->queue.size &&
        publisher_step(p, rd_kafka_begin_transaction(p->producer))) {
        p->phase = PUBLISHER_OPEN;
        p->opened = svi_monotonic();
    }
    if (p->phase == PUBLISHER_OPEN) {
        publisher_write(p);
        if (p->broken)
            p->phase = PUBLISHER_ABORTING;
        else if (svi_monotonic() - p->opened >= TRANSACTION_SECONDS || p->at - p->first >= TRANSACTION_BYTES)
            p->phase = PUBLISHER_COMMITTING;
    }
    if (p->phase == PUBLISHER_COMMITTING &&
        publisher_step(p, rd_kafka_commit_transaction(p->producer, STEP_MS)))
        publisher_settle(p);
    if (p->phase == PUBLISHER_ABORTING &&
        publisher_step(p, rd_kafka_abort_transaction(p->producer, STEP_MS))) {
        p->aborted++;
        publisher_go_back(p);
    }
}

double kafka_publisher_wait(const struct kafka_publisher *p) {
    if (p->phase >= PUBLISHER_FENCED)
        return HUGE_VAL;
    if (p->phase == PUBLISHER_OPEN)
        return fmax(0, p->opened + TRANSACTION_SECONDS - svi_monotonic());
    if (p->phase == PUBLISHER_READY && (p->at == p->queue.size || !p->transactional))
        return p->at < p->queue.size ? AGAIN_SECONDS : HUGE_VAL;
    return p->phase == PUBLISHER_READY ? 0 : AGAIN_SECONDS / 10;
}
