/* Membership of a consumer group.
 *
 * Rebalances arrive as events and are answered when it suits: an assignment at once, a revocation when the
 * partitions have been given up, with their last checkpoints stored (kafka_group_release). The group waits
 * for that, up to max.poll.interval.ms. The client would fetch what it is assigned; that is paused, since
 * entries are read by another client from offsets that are known only when the state has been read.
 *
 * No offset is committed: nothing here would read it, and a commit that meets a rebalance costs the worker
 * all of its partitions (librdkafka takes the answer of an old generation for the loss of the assignment). */
#include "kafka_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "kafka_log.h"

static bool group_cooperative(const struct kafka_group *g) {
    return strcmp(rd_kafka_rebalance_protocol(g->consumer), "COOPERATIVE") == 0;
}

static void group_report(rd_kafka_error_t *error) {
    if (!error)
        return;
    kafka_log("the group: %s", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

static void group_assign(struct kafka_group *g, rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_END;
    if (group_cooperative(g))
        group_report(rd_kafka_incremental_assign(g->consumer, list));
    else
        rd_kafka_assign(g->consumer, list);
    if (list->cnt > 0)
        rd_kafka_pause_partitions(g->consumer, list);
    for (int i = 0; i < list->cnt; i++)
        g->assigned(g->user, list->elems[i].partition);
}

static void group_rebalance(struct kafka_group *g, rd_kafka_event_t *event) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
    if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        group_assign(g, list);
        rd_kafka_event_destroy(event);
        return;
    }
    const bool lost = rd_kafka_assignment_lost(g->consumer);
    g->revoking = event;
    for (int i = 0; i < list->cnt; i++)
        g->revoked(g->user, list->elems[i].partition, lost);
}

void kafka_group_release(struct kafka_group *g) {
    if (!g->revoking)
        return;
    if (group_cooperative(g))
        group_report(
            rd_kafka_incremental_unassign(g->consumer, rd_kafka_event_topic_partition_list(g->revoking)));
    else
        rd_kafka_assign(g->consumer, NULL);
    rd_kafka_event_destroy(g->revoking);
    g->revoking = NULL;
}

void kafka_group_turn(struct kafka_group *g) {
    rd_kafka_event_t *event;
    while (!g->revoking && (event = rd_kafka_queue_poll(g->queue, 0))) {
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE) {
            group_rebalance(g, event);
            continue;
        }
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
            kafka_error_report(g->origin.settings, rd_kafka_event_error(event),
                               rd_kafka_event_error_string(event));
        rd_kafka_event_destroy(event);
    }
}

svs_code kafka_group_open(struct kafka_group *g, struct kafka_options *o, int wake, svs_error *err) {
    const char *const ours[] = {"group.id",
                                o->group,
                                "partition.assignment.strategy",
                                o->strategy,
                                "enable.auto.commit",
                                "false",
                                "enable.auto.offset.store",
                                "false",
                                "auto.offset.reset",
                                "latest",
                                NULL};
    const uint64_t one = 1;
    g->origin = (struct kafka_origin){&o->kafka, g};
    g->topic = o->topic;
    rd_kafka_conf_t *conf = kafka_conf_new(&g->origin, ours);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT);
    if (!(g->consumer = kafka_client_new(RD_KAFKA_CONSUMER, conf, err)))
        return err->code;
    rd_kafka_poll_set_consumer(g->consumer);
    g->queue = rd_kafka_queue_get_consumer(g->consumer);
    rd_kafka_queue_io_event_enable(g->queue, wake, &one, sizeof one);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, o->topic, RD_KAFKA_PARTITION_UA);
    const rd_kafka_resp_err_t code = rd_kafka_subscribe(g->consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? SVS_OK
               : svi_fail(err, SVS_IO, "group %s: %s", o->group, rd_kafka_err2str(code));
}

double kafka_group_session(const struct kafka_group *g) {
    char text[32] = "45000";
    size_t size = sizeof text;
    rd_kafka_conf_get(rd_kafka_conf(g->consumer), "session.timeout.ms", text, &size);
    return strtod(text, NULL) / 1000;
}

void kafka_group_leave(struct kafka_group *g) {
    kafka_group_release(g);
    g->leaving = true;
    group_report(rd_kafka_consumer_close_queue(g->consumer, g->queue));
}

bool kafka_group_left(const struct kafka_group *g) {
    return !g->consumer || (g->leaving && rd_kafka_consumer_closed(g->consumer));
}

void kafka_group_close(struct kafka_group *g) {
    if (g->revoking)
        rd_kafka_event_destroy(g->revoking);
    if (g->queue) {
        rd_kafka_queue_io_event_enable(g->queue, -1, NULL, 0);
        rd_kafka_queue_destroy(g->queue);
    }
    if (g->consumer)
        rd_kafka_destroy_flags(g->consumer, g->leaving ? 0 : RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    g->consumer = NULL;
}
