/* What the topics hold of a partition: the newest whole checkpoint, and the events published after it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "kafka_log.h"
#include "kafka_partition_internal.h"
#include "wire/event.h"

#define RECORDS_TURN 500 /* records taken in one turn */

void kafka_partition_recall(struct kafka_partition *p) {
    svs_error err;
    p->state = (struct state_reader){.part = p->number, .folder = p->worker->o->folder, .limit = p->limit};
    p->phase = PHASE_RECALLS;
    if (kafka_reader_start(&p->reader, &p->worker->readers, p->worker->topic[KAFKA_TOPIC_STATE], p->number,
                           RD_KAFKA_OFFSET_BEGINNING, &err) != SVS_OK)
        kafka_partition_fail(p, err.text);
}

static void partition_compare(struct kafka_partition *p) {
    const struct state_whole *best = &p->state.best;
    svs_error err;
    state_reader_end(&p->state);
    if (p->state.bad_epoch > best->epoch)
        kafka_log("%s; %s", p->state.why,
                  best->epoch > 0 ? "an older one is used, and the log is read from there"
                                  : "there is no older one");
    if (p->state.foreign > 0)
        kafka_log("partition %d: %" PRId64 " records of topic %s have numbers that no worker gives: left out",
                  p->number, p->state.foreign, p->worker->topic[KAFKA_TOPIC_STATE]);
    p->epoch = p->state.highest + 1;
    p->first = best->epoch == 0;
    /* To begin without any would throw away what was learned, on the word of a svmstream that may be too old.
     */
    if (p->first && p->limit > 0) {
        p->limit = 0;
        kafka_partition_fail(p, "there is no older checkpoint: use a svmstream that reads it, or delete the "
                                "records of the partition from the state topic to begin without one");
        return;
    }
    if (best->epoch > 0)
        kafka_saving_found(&p->store, best->epoch, best->closing.pieces);
    p->phase = PHASE_COMPARES;
    int64_t low = 0, high = 0;
    p->compared_from = best->epoch > 0 ? best->closing.out : -1;
    p->repeats_to = 0;
    if (p->first) { /* a stream of another epoch: nothing can repeat */
        if (kafka_reader_range(&p->worker->readers, p->worker->topic[KAFKA_TOPIC_OUT], p->number, &low, &high,
                               &err) != SVS_OK) {
            kafka_partition_fail(p, err.text);
            return;
        }
        p->publisher.end[KAFKA_TOPIC_OUT] = high;
        kafka_partition_start(p);
        return;
    }
    if (kafka_reader_range(&p->worker->readers, p->worker->o->topic, p->number, &low, &p->repeats_to, &err) !=
            SVS_OK ||
        kafka_reader_start(&p->reader, &p->worker->readers, p->worker->topic[KAFKA_TOPIC_OUT], p->number,
                           p->compared_from >= 0 ? p->compared_from : RD_KAFKA_OFFSET_BEGINNING,
                           &err) != SVS_OK)
        kafka_partition_fail(p, err.text);
}

/* Takes what has been read of the state topic, or of the events. */
void kafka_partition_take(struct kafka_partition *p) {
    rd_kafka_message_t *m;
    svs_error err;
    char text[700];
    p->more = true; /* unless the queue is seen to be empty */
    for (int i = 0; i < RECORDS_TURN; i++) {
        if (!(m = kafka_reader_next(&p->reader))) {
            p->more = false;
            return;
        }
        const bool recalls = p->phase == PHASE_RECALLS, end = m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        const int64_t offset = m->offset;
        svs_code code = SVS_OK;
        if (m->err && !end)
            code = kafka_reader_out_of_range(m->err) && !recalls
                       ? SVS_EMPTY /* the events are no longer held: none of them can be compared */
                       : svi_fail(&err, SVS_IO, "%s: %s",
                                  p->worker->topic[recalls ? KAFKA_TOPIC_STATE : KAFKA_TOPIC_OUT],
                                  kafka_error_text(m->err, rd_kafka_message_errstr(m), text, sizeof text));
        else if (!end && recalls)
            code = state_reader_take(&p->state, m->key, m->key_len, m->payload, m->len, &err);
        else if (!end)
            code = kafka_seen_note(&p->seen, m->key, m->key_len, m->payload, m->len, &err);
        rd_kafka_message_destroy(m);
        if (code != SVS_OK && code != SVS_EMPTY) {
            kafka_partition_fail(p, err.text);
            return;
        }
        if (end && recalls) {
            p->recalled = offset;
            partition_compare(p);
            return;
        }
        if (end || code == SVS_EMPTY) {
            p->publisher.end[KAFKA_TOPIC_OUT] = end ? offset : -1;
            kafka_partition_start(p);
            return;
        }
    }
}
