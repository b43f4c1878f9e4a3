/* Events are followed by topic: each has its own sequence numbers, so gaps are counted for each, and a
 * retained event that arrives again is recognised. The last numbers are kept in a search tree, since a stream
 * with keys has a topic for each. */
#include "client/subscription.h"

#include <errno.h>
#include <search.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "net/transport.h"
#include "wire/decode.h"
#include "wire/fields.h"
#include "wire/json.h"

#define TOPICS (1 << 20) /* topics that are tracked; all events of further ones count as new */

struct followed {
    uint64_t epoch, seq; /* of the last event */
    size_t length;
    const char *topic; /* points after this structure; in a search key, anywhere */
};

static int subscription_order(const void *a, const void *b) {
    const struct followed *x = a, *y = b;
    /* By length first: topics need not end in NUL, and most comparisons end here. */
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return memcmp(x->topic, y->topic, x->length);
}

svs_code subscription_open(struct subscription *s, void *context, const char *address,
                           const struct svi_identity *identity, int queue, svs_error *err) {
    const struct svi_socket_plan plan = {"out", ZMQ_SUB, false, queue, 0, -1, 0};
    *s = (struct subscription){.open = true};
    zmq_msg_init(&s->topic);
    zmq_msg_init(&s->payload);
    if (!(s->socket = svi_socket_new(context, &plan, err)))
        return err->code;
    s->keyed = identity->on;
    s->monitor = svi_monitor_new(context, s->socket, SVI_HANDSHAKE_FAILED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    return svi_socket_connect(s->socket, &plan, identity, address, err);
}

void subscription_close(struct subscription *s) {
    /* May be called for one that was never opened, or twice. */
    if (!s->open)
        return;
    zmq_msg_close(&s->topic);
    zmq_msg_close(&s->payload);
    svi_monitor_free(&s->monitor, s->socket);
    svi_socket_close(&s->socket);
    tdestroy(s->followed, svi_free);
    s->followed = NULL;
    s->open = false;
}

svs_code subscription_add(struct subscription *s, const char *prefix, svs_error *err) {
    if (zmq_setsockopt(s->socket, ZMQ_SUBSCRIBE, prefix, strlen(prefix)) == 0)
        return SVS_OK;
    return svi_fail(err, SVS_IO, "cannot subscribe: %s", zmq_strerror(errno));
}

svs_code subscription_remove(struct subscription *s, const char *prefix, svs_error *err) {
    if (zmq_setsockopt(s->socket, ZMQ_UNSUBSCRIBE, prefix, strlen(prefix)) == 0)
        return SVS_OK;
    return svi_fail(err, SVS_IO, "cannot end a subscription: %s", zmq_strerror(errno));
}

/* The kind is the part of the topic before the first dot; a topic of another program gives SVI_TOPIC_COUNT.
 */
static enum svi_topic subscription_kind(const char *topic, size_t length) {
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        const char *name = svi_topic_name((enum svi_topic)t);
        const size_t n = strlen(name);
        if (length > n && memcmp(topic, name, n) == 0 && topic[n] == '.')
            return (enum svi_topic)t;
    }
    return SVI_TOPIC_COUNT;
}

/* The entry of a topic, created if missing. NULL: it is not known and cannot be added. */
static struct followed *subscription_find(struct subscription *s, const char *topic, size_t length,
                                          bool *known) {
    const struct followed sought = {.topic = topic, .length = length};
    struct followed **found = tfind(&sought, &s->followed, subscription_order);
    *known = found != NULL;
    if (found)
        return *found;
    struct followed *f = s->topics < TOPICS && length <= SVI_TOPIC_MAX ? svi_alloc(sizeof *f + length) : NULL;
    if (!f)
        return NULL;
    f->topic = memcpy(f + 1, topic, length);
    f->length = length;
    /* tsearch allocates a node of the tree, which may fail too. */
    if (!tsearch(f, &s->followed, subscription_order)) {
        svi_free(f);
        return NULL;
    }
    s->topics++;
    return f;
}

/* Compares `seq` with the last one of its topic. False: a retained event that was seen before. A new epoch
 * starts over, because the process counts from 1 again; nothing counts as lost then. */
static bool subscription_follow(struct subscription *s, struct subscription_event *e) {
    static const struct svi_field fields[] = {
        {.name = "epoch", .type = SVI_FIELD_UINT, .to = offsetof(struct followed, epoch)},
        {.name = "seq", .type = SVI_FIELD_UINT, .to = offsetof(struct followed, seq)}};
    struct followed now = {0};
    bool known = false;
    /* An event without numbers is passed on as it is: it cannot be ordered. */
    if (svi_fields_read("event", fields, 2, e->payload, (const uint8_t *)e->payload + e->size, &now, NULL) !=
        SVS_OK)
        return true;
    struct followed *last = subscription_find(s, e->topic, e->topic_length, &known);
    known = known && last->epoch == now.epoch;
    if (known && now.seq <= last->seq)
        return false;
    if (known)
        e->lost = (int64_t)(now.seq - last->seq - 1);
    if (last) {
        last->epoch = now.epoch;
        last->seq = now.seq;
    }
    return true;
}

/* Reads the monitor: connections made and refused. Without keys a failed handshake is no refusal. */
static void subscription_follow_connection(struct subscription *s) {
    int event, value;
    while (svi_monitor_next(s->monitor, &event, &value)) {
        s->met = s->met || event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
        s->refused = s->refused || (s->keyed && event != ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    }
}

bool subscription_next(struct subscription *s, struct subscription_event *e) {
    struct svi_item map;
    subscription_follow_connection(s);
    while (zmq_msg_recv(&s->topic, s->socket, ZMQ_DONTWAIT) >= 0) {
        int frames = 1; /* an event has two: topic and payload */
        /* Reads all frames of a message, even of one that is not an event, so that the next one starts at its
         * topic. */
        for (bool more = zmq_msg_more(&s->topic);
             more && zmq_msg_recv(&s->payload, s->socket, ZMQ_DONTWAIT) >= 0;
             more = zmq_msg_more(&s->payload))
            frames++;
        *e = (struct subscription_event){.topic = zmq_msg_data(&s->topic),
                                         .topic_length = zmq_msg_size(&s->topic),
                                         .payload = zmq_msg_data(&s->payload),
                                         .size = zmq_msg_size(&s->payload)};
        e->kind = subscription_kind(e->topic, e->topic_length);
        if (frames != 2 || svi_msgpack_check(e->payload, e->size, SVI_DEPTH_MAX, NULL) != SVS_OK)
            continue;
        svi_item_read(e->payload, &map);
        if (map.type == SVI_MAP && subscription_follow(s, e))
            return true;
    }
    return false;
}

/* The topic is written first, and the payload's opening brace then becomes a comma. */
svs_code subscription_json(struct svi_bytes *line, const struct subscription_event *e) {
    line->size = 0;
    SVI_TRY(svi_json_text(line, "{\"topic\":"));
    SVI_TRY(svi_json_string(line, e->topic, e->topic_length));
    const size_t brace = line->size;
    SVI_TRY(svi_json_msgpack(line, e->payload, e->size, NULL));
    line->data[brace] = line->size > brace + 2 ? ',' : ' '; /* an empty map needs no comma */
    return svi_json_text(line, "\n");
}

bool subscription_refused(struct subscription *s) {
    subscription_follow_connection(s);
    const bool refused = s->refused;
    s->refused = false;
    return refused;
}
